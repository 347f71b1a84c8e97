// SPDX-License-Identifier: Apache-2.0
// The packet that an ICMP error quotes: whose it was, and the translation of both back
// (RFC 5508 sections 4.2 and 4.3; RFC 792, RFC 4443, extensions of RFC 4884 are left alone).
//
// Pure functions over the IP packet that carries the error (from its IP header; it may be cut off
// behind), no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/wire/packet.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::wire {

struct Quote {
    Tuple tuple;       // of the quoted packet, in the direction in which it was sent
    IpAddress source;  // of the error: whoever met the trouble
    IpAddress destination;
    std::uint8_t type = 0;  // of the error
    std::uint8_t code = 0;
    std::uint16_t icmp_offset = 0;       // the error's ICMP header, from its IP header, octets
    std::uint16_t quoted_offset = 0;     // the quoted IP header
    std::uint16_t quoted_l4_offset = 0;  // the quoted upper-layer header
    std::uint16_t quoted_end = 0;        // end of what is quoted of the packet
    bool fragment = false;               // the quoted packet is a first fragment
};

// Nothing: not an error that a host has to know of (unreachable, time exceeded, parameter problem,
// packet too big; redirects and source quench do not cross a gateway), a fragment, a quote that
// holds less than the headers and, of TCP, UDP, ICMP and SCTP, eight octets, a quoted ICMP error
// or a quoted fragment other than the first. A quoted ICMP message must be an echo request or
// reply, or a timestamp's. Nor if the error goes to anybody but the one who sent what it quotes.
std::optional<Quote> parse_quote(std::span<const std::uint8_t> packet);

// What the error and its quote look like behind the translation.
struct QuoteTranslation {
    IpAddress source;       // of the error
    IpAddress destination;  // of the error
    Tuple quoted;           // protocol as before; ICMP: only the identifier may differ
};

// Rewrites the packet that `quote` was parsed from: outer and quoted addresses, quoted ports or
// identifier, and, all of them incrementally (a wrong one stays wrong, a missing one missing), the
// IPv4 header checksums, the quoted upper-layer checksum if the quote holds all of it, the
// ICMP checksum, for ICMPv6 with the pseudo-header. All addresses are of the packet's family.
// False, and nothing changed, if they are not, or if the quoted protocol cannot be translated
// (ports of SCTP: its checksum covers what is not quoted).
bool translate_quote(std::span<std::uint8_t> packet, const Quote& quote,
                     const QuoteTranslation& translation);

}  // namespace sluice::wire
