// SPDX-License-Identifier: Apache-2.0
// Sums over all VPCs.
#pragma once

#include <cstdint>

#include "dataplane/telemetry/facts.hpp"

namespace sluice::telemetry {

// Connections that are alive now. Cost: the open VPCs times the workers.
inline std::uint64_t live_connections(const Facts& facts) {
    auto sum = facts.counters.zone(policy::ZoneSlot{0}).connections();
    facts.tables.store.current().core.vpcs.visit([&](const policy::VpcRecord& record) {
        sum += facts.counters.zone(record.slot).connections();
        return true;
    });
    return sum;
}

}  // namespace sluice::telemetry
