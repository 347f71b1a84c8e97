// SPDX-License-Identifier: Apache-2.0
// Ping: an echo request becomes its reply in place (RFC 792, RFC 4443 section 4.2).
#pragma once

#include <cstdint>
#include <span>

namespace sluice::wire {

inline constexpr std::uint8_t kOwnTtl = 64;  // of what the gateway itself sends

// `frame` starts with the Ethernet header of an echo request; headers up to and including the
// ICMP header are inside, the payload need not be (a first segment is enough). That the destination
// is the gateway's own is the caller's to know.
//
// Afterwards MACs and addresses are swapped, TTL is our own, type and checksums updated. IPv4
// options and IPv6 extension headers of the request are dropped: the reply then starts later in
// the frame than the request did. Returns the part of `frame` that is the reply, ends of padding
// cut off; empty, and the frame untouched, if it must not be answered: no echo request, a fragment,
// a wrong IPv4 header checksum, or an address that is no single station's.
//
// The ICMP checksum is updated, not computed: a request damaged on its way makes a damaged reply.
std::span<std::uint8_t> make_echo_reply(std::span<std::uint8_t> frame);

}  // namespace sluice::wire
