// SPDX-License-Identifier: Apache-2.0
// What telemetry looks at: references to the gateway's parts, gathered by whoever owns them.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "dataplane/control/tables.hpp"
#include "dataplane/port/port.hpp"
#include "dataplane/telemetry/attribution.hpp"
#include "dataplane/telemetry/counters.hpp"
#include "dataplane/telemetry/samples.hpp"

namespace sluice::telemetry {

// Whether the tables are what a controller last said, or only what the disk remembers.
enum class Freshness : std::uint8_t { current, stale };

struct Facts {
    const std::string& name;
    control::Tables& tables;
    const port::Ports& ports;
    const policy::Pipeline& pipeline;
    Counters& counters;
    const Samples& samples;
    const Freshness& freshness;
    const std::uint64_t& nat_log_lost;
    std::chrono::steady_clock::time_point started;
    std::function<std::uint64_t()> now;  // nanoseconds, the workers' clock
};

}  // namespace sluice::telemetry
