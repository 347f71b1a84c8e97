// SPDX-License-Identifier: Apache-2.0
// What of reachability a commit moves, for the gateway that keeps the Adjacency and Source
// records behind the indexes named here.
#pragma once

#include <optional>
#include <vector>

#include "dataplane/policy/records.hpp"

namespace sluice::policy {

// Put: `after`. Removed: only `before`. Changed: both, and indexes that both name are the same.
template <class Record>
struct Change {
    std::optional<Record> before, after;
};

struct Delta {
    Generation generation;
    std::vector<Change<VpcRecord>> vpcs;
    std::vector<Change<EndpointRecord>> endpoints;
    std::vector<Change<SenderRecord>> senders;
    std::vector<Change<HostRecord>> hosts;
    std::vector<Change<SubnetRecord>> subnets;
    std::vector<Change<IpAddress>> public_addresses;
    std::vector<Change<openflow::Meter>> meters;
};

}  // namespace sluice::policy
