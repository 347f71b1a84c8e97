// SPDX-License-Identifier: Apache-2.0
// The names by which the API knows its objects (RFC 9562).
//
// Plain values, safe from any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::model {

struct Uuid {
    std::array<std::uint8_t, 16> bytes{};

    constexpr auto operator<=>(const Uuid&) const = default;
    [[nodiscard]] constexpr bool is_nil() const { return *this == Uuid{}; }
};

// The one spelling 8-4-4-4-12; capital hexadecimal digits are read, small ones written.
std::optional<Uuid> parse_uuid(std::string_view text);
std::string to_string(const Uuid& uuid);
// Version 4, from the system's random numbers.
Uuid random_uuid();

}  // namespace sluice::model

template <>
struct std::hash<sluice::model::Uuid> {
    std::size_t operator()(const sluice::model::Uuid& uuid) const noexcept {
        std::uint64_t high = 0, low = 0;
        std::memcpy(&high, uuid.bytes.data(), 8);
        std::memcpy(&low, uuid.bytes.data() + 8, 8);
        // A client may choose its ids, so their bits are mixed.
        std::uint64_t x = (high ^ 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 29) ^ low) * 0x94d049bb133111ebULL;
        return static_cast<std::size_t>(x ^ (x >> 32));
    }
};
