// SPDX-License-Identifier: Apache-2.0
// Whether this machine can run a configuration: cores, hugepages, devices, sockets, folder.
//
// Purpose: `--check` and every start name all that is wrong at once, each with what to do.
// Nothing is changed or left behind. Threads: the caller's. Cost: some milliseconds.
#pragma once

#include <vector>

#include "dataplane/config/config.hpp"

namespace sluice::control {

std::vector<config::Problem> check_machine(const config::Config& config);

}  // namespace sluice::control
