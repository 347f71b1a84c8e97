// SPDX-License-Identifier: Apache-2.0
// The way of a first packet through policy.
//
// Purpose: one packet and one snapshot in, one plan out. Pure: the same call has the same
// result and no effect. Commit (the worker's) turns plans into connections; a re-walk and
// `explain` only look.
// Threads: any, on a snapshot that stays (reclaim/qsbr.hpp). Cost: about ten look-ups and
// one scan of each group's rules; no allocation unless traced.
#pragma once

#include "dataplane/policy/plan.hpp"
#include "dataplane/policy/snapshot.hpp"
#include "dataplane/policy/trace.hpp"

namespace sluice::policy {

// Judges an ARP, IPv4 or IPv6 packet (a WalkFunction). What the worker judges is not asked
// here: TTL, MTU, fragments, ICMP errors, TCP flags.
Plan walk(const Snapshot& snapshot, const Packet& packet, WalkMode mode,
          const Established* established = nullptr);

// The same, and says how it came to it.
Plan walk(const Snapshot& snapshot, const Packet& packet, WalkMode mode, Trace& trace);

// What an installed connection is; none of it changes while it lives.
struct Installed {
    Vni source_vni, destination_vni;
    EndpointId source, destination;
    Tuple arrives, leaves;  // its first packet, before and after translation
};

enum class Standing : std::uint8_t {
    permitted,  // refresh its indexes, meters and path from the plan
    denied,     // policy no longer allows it: end it with the plan's reason
    replaced,   // its key, translation or ends are no longer these: end it, begin anew
};

// What the re-walk of a connection's first packet means for the connection.
Standing standing(const Installed& installed, const Plan& rewalked);

}  // namespace sluice::policy
