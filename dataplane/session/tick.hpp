// SPDX-License-Identifier: Apache-2.0
// The clock of sessions: coarse, 32 bits, monotonic, handed in by the caller so that ageing
// is tested without sleeping.
#pragma once

#include <cstdint>

namespace sluice::session {

// 2^26 nanoseconds (67 ms). Wraps after nine years; compare with `since` only.
struct Tick {
    std::uint32_t value = 0;

    static constexpr unsigned kShift = 26;
    static constexpr Tick from_nanoseconds(std::uint64_t nanoseconds) {
        return {static_cast<std::uint32_t>(nanoseconds >> kShift)};
    }
    [[nodiscard]] constexpr std::uint64_t since(Tick before) const {
        const auto difference = static_cast<std::int32_t>(value - before.value);
        // Another worker's clock may be a tick ahead.
        return difference > 0 ? static_cast<std::uint64_t>(difference) : 0;
    }
};

constexpr std::uint32_t ticks(std::uint64_t seconds) {
    return static_cast<std::uint32_t>((seconds * 1'000'000'000ULL >> Tick::kShift) + 1);
}
constexpr std::uint64_t nanoseconds(std::uint64_t ticks) {
    return ticks << Tick::kShift;
}

}  // namespace sluice::session
