// SPDX-License-Identifier: Apache-2.0
// Which addresses can be a station's on a network (RFC 6890's registries, as far as forwarding
// is concerned).
#pragma once

#include "dataplane/wire/types.hpp"

namespace sluice::wire {

// True for an address that a single station can have: not multicast, broadcast, "this network"
// (0.0.0.0/8, ::), loopback or reserved (240.0.0.0/4). A subnet's own broadcast address cannot be
// told without its prefix.
constexpr bool is_station(const IpAddress& address) {
    if (address.is_v4()) {
        const std::uint8_t first = address.bytes[12];
        return first != 0 && first != 127 && first < 224;
    }
    constexpr IpAddress kLoopback{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    return !address.is_multicast() && !address.is_none() && address != kLoopback;
}

}  // namespace sluice::wire
