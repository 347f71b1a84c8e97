// SPDX-License-Identifier: Apache-2.0
// What the command lines of the DPDK programs have in common: how they refuse, and their version.
//
// Threads: for main, before anything else runs. Errors go to standard error, one line each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataplane/config/config.hpp"

namespace CLI {
class App;
}

namespace sluice::command_line {

// The exit status of whatever keeps a program from starting.
inline constexpr int kRefused = 2;

// Nothing if the program goes on; else its exit status, with everything said.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

// Says every problem of `file`; the exit status.
int refuse(const std::vector<config::Problem>& problems, const std::string& file);

// After a check that has found none; the exit status.
int no_problem(const std::string& file);

// The program's own version and DPDK's; the exit status.
int print_version(const CLI::App& app);

}  // namespace sluice::command_line
