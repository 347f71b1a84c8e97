// SPDX-License-Identifier: Apache-2.0
// Finds what an IP packet carries: past IPv4 options, past IPv6 extension headers.
//
// Pure, no allocation; costs one step for each extension header, of which there may be
// at most kMaxExtensionHeaders. RFC 791, RFC 8200 section 4, RFC 4302 (authentication).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice::wire {

// Longer chains exist only to make routers work (RFC 8504 section 5.3 lets nodes limit them).
inline constexpr std::size_t kMaxExtensionHeaders = 8;

struct UpperLayer {
    std::uint8_t protocol = 0;
    std::size_t offset = 0;             // from the start of the IP header, octets
    std::uint16_t fragment_offset = 0;  // octets
    bool more_fragments = false;

    [[nodiscard]] constexpr bool is_fragment() const {
        return fragment_offset != 0 || more_fragments;
    }
    // One that does not begin with the upper layer's header.
    [[nodiscard]] constexpr bool is_later_fragment() const { return fragment_offset != 0; }
};

// `packet` starts with the IP header and may be cut off behind. Nothing: neither version 4 nor 6,
// headers that contradict themselves or a chain that the span does not hold; offset <= its size
// always. An IPv6 routing header with segments left is refused: its destination is not final.
std::optional<UpperLayer> find_upper_layer(std::span<const std::uint8_t> packet);
// The same as the key of a connection has it: in IPv6 the authentication header, mobility, HIP and
// shim6 are what the packet carries, as in IPv4.
std::optional<UpperLayer> find_connection_layer(std::span<const std::uint8_t> packet);

}  // namespace sluice::wire
