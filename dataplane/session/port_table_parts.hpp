// SPDX-License-Identifier: Apache-2.0
// What the two sources of PortTable share; nobody else's.
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/session/port_table.hpp"

namespace sluice::session {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint32_t kProbes = 64;  // of addresses that fall on one another

inline std::uint64_t spread(std::uint64_t x) {
    x *= 0x9e3779b97f4a7c15ULL;
    return x ^ x >> 29;
}
inline std::size_t index(PortSpace space) {
    return static_cast<std::size_t>(space);
}
inline bool is_over(std::uint32_t until, Tick now) {
    return until == 0 || static_cast<std::int32_t>(now.value - until) >= 0;
}

}  // namespace sluice::session
