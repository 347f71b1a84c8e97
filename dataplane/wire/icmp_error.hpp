// SPDX-License-Identifier: Apache-2.0
// ICMP errors that the gateway sends about packets it dropped: RFC 792, RFC 1122 section
// 3.2.2, RFC 1191, RFC 1812 section 4.3; ICMPv6: RFC 4443.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/types.hpp"

namespace sluice::wire {

enum class IcmpError : std::uint8_t {
    time_exceeded,        // 11/0; ICMPv6 3/0
    no_route,             // 3/0;  1/0
    address_unreachable,  // 3/1;  1/3
    admin_prohibited,     // 3/13; 1/1
    port_unreachable,     // 3/3;  1/4
    too_big,              // 3/4, only about a packet with DF; 2/0
};

struct IcmpErrorMessage {
    IcmpError error = IcmpError::time_exceeded;
    IpAddress from;         // the gateway's own address, of the packet's family
    std::uint16_t mtu = 0;  // too_big: the largest IP packet that passes, octets
};

// Longest frames that are written: Ethernet and 576 (RFC 1812 section 4.3.2.3) or 1,280 octets
// (RFC 4443 section 2.4 (c)).
inline constexpr std::size_t kMaxIcmpErrorFrame = 14 + 576;
inline constexpr std::size_t kMaxIcmpv6ErrorFrame = 14 + 1280;

// Writes a complete Ethernet frame with the error about `frame` (from its Ethernet header, as it
// was received; it may be cut off behind) to `out` and returns its length in octets. The frame
// goes back to the MAC it came from, from the MAC it was sent to. `out` and `frame` do not
// overlap; what does not fit `out` is not quoted, but the first eight octets of the upper layer
// always are.
//
// 0: no error may be sent about this packet, which is the rule for ICMP errors and redirects,
// later fragments, multicast and broadcast of either layer, and sources that are no single
// station's (RFC 1122 section 3.2.2, RFC 4443 section 2.4 (e)); or it cannot: malformed headers,
// `from` of the wrong family, `out` too short. How many are sent a second is the caller's to limit.
//
// Pure, no allocation; costs a copy and a sum of the quote.
std::size_t write_icmp_error(std::span<std::uint8_t> out, std::span<const std::uint8_t> frame,
                             const IcmpErrorMessage& message);

// True if an ICMP type says that something went wrong with another packet, or redirects: what may
// never be answered with an error. `protocol` is ICMP or ICMPv6.
bool is_icmp_error(std::uint8_t protocol, std::uint8_t type);

}  // namespace sluice::wire
