// SPDX-License-Identifier: Apache-2.0
// Whether this machine can run a configuration: cores, hugepages, devices, sockets, folder.
//
// Purpose: `--check` and every start name all that is wrong at once, each with what to do.
// Nothing is changed or left behind. Threads: the caller's. Cost: some milliseconds; of the
// drivers, which DPDK has to be started for, some tenths of a second.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataplane/config/config.hpp"

namespace sluice::control {

struct Machine {
    std::vector<config::Problem> problems;
    // The process of a gateway that runs on the configuration's state_dir already. No problem of
    // the file; its memory and sockets are not asked for then.
    std::optional<std::string> runs;
};

// `drivers`: DPDK is started and asked whether it knows the devices; the process must not
// start it again. A start finds that out by itself.
enum class Depth : std::uint8_t { start, drivers };

// Of a configuration that may be incomplete: what it lacks is not asked for.
Machine check_machine(const config::Config& config, Depth depth);

}  // namespace sluice::control
