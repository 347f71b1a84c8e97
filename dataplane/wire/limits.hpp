// SPDX-License-Identifier: Apache-2.0
// What one VPC or one endpoint may have of the session tables, as an operator sets it.
#pragma once

#include <compare>
#include <cstdint>

namespace sluice {

// 0 of a field: none of its own, the gateway's default holds.
struct SessionLimits {
    std::uint32_t connections = 0;  // at once, over both families
    std::uint32_t half_open = 0;    // ... of which nobody has answered yet
    std::uint32_t per_second = 0;   // new ones, attempts that policy refuses included

    constexpr auto operator<=>(const SessionLimits&) const = default;
};

// A VPC's: of all of it, and of each of its endpoints.
struct VpcLimits {
    SessionLimits vpc, endpoint;

    constexpr auto operator<=>(const VpcLimits&) const = default;
};

}  // namespace sluice
