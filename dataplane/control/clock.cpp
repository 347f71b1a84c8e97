// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/clock.hpp"

#include <rte_cycles.h>

#include "dataplane/session/key.hpp"

namespace sluice::control {

std::uint64_t worker_nanoseconds() {
    // As the workers reckon it: 2^-32 nanoseconds a cycle is exact to a second in a century.
    static const std::uint64_t multiplier = (1'000'000'000ULL << 32) / rte_get_tsc_hz();
    return static_cast<std::uint64_t>(static_cast<session::Product>(rte_rdtsc()) * multiplier >>
                                      32);
}

}  // namespace sluice::control
