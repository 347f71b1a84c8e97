// SPDX-License-Identifier: Apache-2.0
// Congestion marks of the outer header carried over to the inner one (RFC 6040 section 4.2).
// Plain functions on octets, free of DPDK.
#pragma once

#include <cstdint>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/parser.hpp"

namespace sluice::worker {

// Figure 4 of it, on the inner IP header; `traffic_class` is what that has afterwards. False: the
// packet must be dropped. A packet that is looked at again, as the first of another connection, has
// its mark already.
inline bool combine_ecn(std::uint8_t* ip, const wire::Headers& headers,
                        std::uint8_t& traffic_class) {
    constexpr std::uint8_t kEct1 = 1, kEct0 = 2, kCe = 3;
    traffic_class = headers.has(wire::kInnerV6) ? static_cast<std::uint8_t>(ip[0] << 4 | ip[1] >> 4)
                                                : ip[wire::ipv4::kTos];
    const std::uint8_t outer = headers.outer_ecn;
    const std::uint8_t inner = traffic_class & 3;
    if (outer == kCe && inner == 0) return false;
    const bool marked = outer == kCe && inner != kCe;
    const bool lowered = outer == kEct1 && inner == kEct0;
    if (!marked && !lowered) return true;
    const auto after = static_cast<std::uint8_t>((traffic_class & 0xfc) | outer);
    if (headers.has(wire::kInnerV6)) {
        ip[1] = static_cast<std::uint8_t>((ip[1] & 0x0f) | (after << 4 & 0xf0));
    } else {
        const auto delta = wire::ChecksumDelta{}.replace(be16{traffic_class}, be16{after});
        ip[wire::ipv4::kTos] = after;
        wire::store(ip + wire::ipv4::kChecksum,
                    delta.apply(wire::load16(ip + wire::ipv4::kChecksum)));
    }
    traffic_class = after;
    return true;
}

}  // namespace sluice::worker
