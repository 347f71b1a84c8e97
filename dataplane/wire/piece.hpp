// SPDX-License-Identifier: Apache-2.0
// Which piece of which datagram a fragment is (RFC 791 section 3.2, RFC 8200 section 4.5).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/wire/parser.hpp"

namespace sluice::wire {

struct Piece {
    std::uint32_t identification = 0;
    std::uint8_t protocol = 0;  // part of an IPv4 datagram's identity; 0 for IPv6
    std::uint16_t offset = 0;   // octets, a multiple of 8
    std::uint16_t length = 0;   // octets of the datagram's payload, more than 0
    bool last = false;          // no more fragments

    [[nodiscard]] constexpr std::uint32_t end() const { return std::uint32_t{offset} + length; }
};

// Of a parsed frame with kFragment. None where no datagram has such a piece: an empty one, one of
// a length that is no multiple of 8 though more follow, one that ends beyond 65,535 octets.
std::optional<Piece> piece_of(std::span<const std::uint8_t> contiguous, const Headers& headers);

}  // namespace sluice::wire
