// SPDX-License-Identifier: Apache-2.0
// What sluice-pktgen does with its ports: measure itself, send at a rate, search, soak.
//
// Each starts DPDK, prints what it measures, and returns the process's exit status: 0, or 1 if
// there is no figure (the generator's own limit may have set it, flows never arrived, packets
// arrived elsewhere or broken), or 2 if it cannot start.
#pragma once

#include <cstdint>
#include <string>

#include "bench/pktgen/profile.hpp"

namespace sluice::pktgen {

enum class Mode : std::uint8_t { self_test, run, search, soak };

struct Options {
    Mode mode = Mode::run;
    std::string file;  // the profile's, for messages
    unsigned core = 0;
    double rate = 0;     // packets a second; 0: as many as the generator may (run, soak: 100,000)
    double seconds = 0;  // of a trial; 0: of the mode
    std::uint64_t packets = 0;
    double wait = 10;  // seconds for links and neighbours
    bool json = false;
    std::string flows_file;  // run: writes each flow's counts there
};

// Sets by signal: the running trial ends, and what it has measured is printed.
void stop_running();

int execute(const Profile& profile, const Options& options);

}  // namespace sluice::pktgen
