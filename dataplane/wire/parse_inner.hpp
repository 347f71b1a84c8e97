// SPDX-License-Identifier: Apache-2.0
// The parser's second half: an Ethernet frame that carries tenants' or the internet's packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/parser.hpp"

namespace sluice::wire {

// A frame whose first octets are at hand.
struct Octets {
    const std::uint8_t* data;
    std::size_t contiguous;
    std::size_t length;

    // Whether [offset, offset + count) can be read; if not, `headers` says why: `truncated`
    // when the frame ends there, else incomplete.
    bool need(std::size_t offset, std::size_t count, DropReason truncated, Headers& headers) const {
        if (offset + count <= contiguous) [[likely]]
            return true;
        if (offset + count > length) {
            headers.kind = FrameKind::drop;
            headers.drop = truncated;
        } else {
            headers.kind = FrameKind::incomplete;
        }
        return false;
    }
};

// Fills `headers` from the Ethernet header at headers.l2, which the caller found readable.
void parse_frame(const Octets& frame, Headers& headers);

// From `l3` on; `end` is where the enclosing packet ends. Used for the frame's own packet and
// for its transport header after it.
void parse_ipv4(const Octets& frame, Headers& headers);
void parse_ipv6(const Octets& frame, Headers& headers);
// Ports, flags and ICMP types at headers.l4; the packet ends at `end`.
void parse_transport(const Octets& frame, std::size_t end, Headers& headers);

}  // namespace sluice::wire
