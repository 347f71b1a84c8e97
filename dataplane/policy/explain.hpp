// SPDX-License-Identifier: Apache-2.0
// Why does this packet pass, or not? The answer of a traced walk, as JSON.
//
// Purpose: the body of the `explain` query. Names are the caller's business: steps carry the
// cookies of the entries that decided.
// Threads: the control thread. Nothing is installed, counted or changed.
//
// Request:  {"source_vpc": N (0: from the internet), "source": "10.0.0.5",
//            "destination": "10.0.0.6", "protocol": 6, "source_port": 40000,
//            "destination_port": 80, "icmp_type": 8, "icmp_code": 0}
//           All but source_vpc, source, destination and protocol may be absent.
// Reply:    {"verdict": "forward" | "drop" | "answer", "reason": label, "sentence": ...,
//            "cookie": N, "source_vpc", "destination_vpc", "source_endpoint",
//            "destination_endpoint": N, "leaves": {"source", "destination"}, "generation": N,
//            "steps": [{"table", "outcome", "cookie"?, "detail", "groups"?: [N]}]}
//           `groups`: those that were asked where none of their rules fits.
#pragma once

#include <string>
#include <string_view>

#include "dataplane/policy/snapshot.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::policy {

// Errors: invalid, with the path of the member.
Result<std::string> explain(const Snapshot& snapshot, std::string_view request);

}  // namespace sluice::policy
