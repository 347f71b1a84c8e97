// SPDX-License-Identifier: Apache-2.0
// What the settings of a VPC mean for its connections.
//
// Threads: the control thread; workers act on it with their next look. Cost: some stores.
#pragma once

#include "dataplane/openflow/settings.hpp"
#include "dataplane/policy/adjacency.hpp"
#include "dataplane/session/sessions.hpp"

namespace sluice::worker {

// What is not set is the gateway's default.
VpcLimits limits_of(const openflow::Settings& settings);
session::ZoneValues values_of(const openflow::Settings& settings);
// From now on, for the connections that are there too.
void apply_settings(session::Sessions& sessions, policy::ZoneSlot zone,
                    const openflow::Settings& settings);

}  // namespace sluice::worker
