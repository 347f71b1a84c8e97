// SPDX-License-Identifier: Apache-2.0
// The maximum segment size that a TCP SYN announces (RFC 9293 section 3.7.1), lowered to what the
// path carries, as routers do between links of different MTU.
//
// Pure functions on octets, no allocation, one pass over the options.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::wire {

// The largest segment of a path that carries IP packets of `mtu` octets: without IP and TCP
// headers, options not counted (RFC 6691 section 2). 0 if not even these fit.
std::uint16_t largest_segment(std::uint16_t mtu, bool v6);

// `segment`: a TCP segment from its header on, at least 20 octets; it may be cut off behind. The
// MSS option (each, if there are several) that names more than `most` names `most` afterwards; the
// checksum changes with it (RFC 1624), so that a wrong one stays wrong. Never raised, never added.
// Options whose lengths contradict each other end the search: what follows is not understood and
// stays. True if something changed.
bool clamp_mss(std::span<std::uint8_t> segment, std::uint16_t most);

}  // namespace sluice::wire
