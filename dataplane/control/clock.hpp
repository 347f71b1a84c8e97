// SPDX-License-Identifier: Apache-2.0
// The workers' clock, for whoever compares with times that workers wrote down.
#pragma once

#include <cstdint>

namespace sluice::control {

// Nanoseconds of the TSC.
std::uint64_t worker_nanoseconds();

}  // namespace sluice::control
