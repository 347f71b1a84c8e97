// SPDX-License-Identifier: Apache-2.0
// The common frame in a straight line: VXLAN over option-less IPv4 without UDP checksum, with
// an option-less, unfragmented IPv4 packet of TCP or UDP inside.
//
// Checks everything that may differ between two packets of one connection: lengths, versions,
// flags, both header checksums. What follows from the key alone (martian, multicast and equal
// addresses, VXLAN inside VXLAN) is not looked at: a connection with such a key does not
// exist, and whoever does not find one parses again with parser.hpp before anything else.
// Whatever is not common returns false and is parser.hpp's too, which finds the reason.
// Cost: 5 ns.
#pragma once

#include <cstdint>

#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/parser.hpp"
#include "dataplane/wire/raw.hpp"

namespace sluice::wire {

// Receiver, as the words that lie in a packet.
struct FastReceiver {
    std::uint64_t mac = 0;   // the low 48 bits of a load
    std::uint32_t vtep = 0;  // 0: none, then nothing is common
};

inline constexpr std::uint64_t kMacMask = 0xffff'ffff'ffffULL;

// Where the headers of a common frame lie.
inline constexpr std::uint32_t kCommonIp = kOuterIpv4 + ethernet::kSize;
inline constexpr std::uint32_t kCommonL4 = kCommonIp + ipv4::kSize;

// The sum over an option-less IPv4 header, folded: 0xffff if its checksum is right.
[[gnu::always_inline]] inline std::uint16_t common_header_sum(const std::uint8_t* header) {
    unsigned long long sum = 0;
    const bool carry = __builtin_uaddll_overflow(raw64(header), raw64(header + 8), &sum);
    return fold((sum >> 32) + (sum & 0xffffffff) + carry + raw32(header + 16));
}

[[gnu::always_inline]] inline bool is_common(const std::uint8_t* p, std::uint32_t contiguous,
                                             std::uint32_t length, const FastReceiver& receiver) {
    if (contiguous < kCommonL4 + udp::kSize) return false;
    // Fields are compared as the words that they share; masks are little-endian.
    // One bit of anything unusual makes the frame uncommon; no branch per check.
    std::uint64_t odd = (raw64(p) & kMacMask) ^ receiver.mac;
    odd |= (raw32(p + 12) & 0x00ffffffU) ^ 0x00450008U;  // IPv4, IHL 5
    odd |= (raw32(p + 20) & 0xff00ff3fU) ^ 0x11000000U;  // no fragment; UDP
    odd |= raw32(p + 30) ^ receiver.vtep;
    // To port 4789, without checksum, the I flag and no extension.
    odd |= (raw64(p + 36) & 0x003dffff0000ffffULL) ^ 0x000800000000b512ULL;
    odd |= (p[50] | p[56]) & 1U;                         // unicast MACs
    odd |= (raw32(p + 62) & 0x00ffffffU) ^ 0x00450008U;  // IPv4, IHL 5
    odd |= raw16(p + 70) & 0xff3fU;                      // no fragment
    odd |= static_cast<std::uint16_t>(~common_header_sum(p + ethernet::kSize));
    odd |= static_cast<std::uint16_t>(~common_header_sum(p + kCommonIp));

    // Each difference is negative if a length lies; their signs are collected.
    const auto host16 = [&](std::size_t at) -> std::int32_t { return load16(p + at).host(); };
    const std::int32_t outer_total = host16(16);
    const std::int32_t udp_length = host16(38);
    const std::int32_t inner_total = host16(66);
    std::int32_t signs = static_cast<std::int32_t>(length) - outer_total - 14;
    signs |= outer_total - udp_length - 20;
    signs |= udp_length - inner_total - 30;
    signs |= inner_total - 28;
    signs |= static_cast<std::int32_t>(p[22]) - 1;                        // outer TTL
    signs |= static_cast<std::int32_t>(raw32(p + 46) & 0x00ffffffU) - 1;  // VNI
    const std::uint8_t protocol = p[73];
    if (protocol == static_cast<std::uint8_t>(Protocol::udp)) {
        const std::int32_t datagram = host16(kCommonL4 + udp::kLength);
        // VXLAN in VXLAN may come as a reply, too. A branch: among the words above it costs more.
        if (raw16(p + kCommonL4 + udp::kDestination) == udp::kVxlan.raw) return false;
        signs |= datagram - 8;
        signs |= inner_total - 20 - datagram;
    } else if (protocol == static_cast<std::uint8_t>(Protocol::tcp)) {
        if (contiguous < kCommonL4 + tcp::kSize) return false;
        const std::int32_t header = p[kCommonL4 + tcp::kDataOffset] >> 4 << 2;
        signs |= header - 20;
        signs |= inner_total - 20 - header;
    } else {
        return false;
    }
    return (odd == 0) & (signs >= 0);
}

// What parser.hpp says of a common frame. Inlined, most of it are constants.
[[gnu::always_inline]] inline Headers common_headers(const std::uint8_t* p) {
    Headers headers;
    headers.kind = FrameKind::connection;
    headers.flags = static_cast<std::uint8_t>(
        kTunnelled | ((p[70] & 0x40) != 0 ? static_cast<unsigned>(kDontFragment) : 0U));
    headers.protocol = p[73];
    headers.ttl = p[72];
    headers.traffic_class = p[65];
    headers.outer_ecn = p[15] & 3;
    if (headers.protocol == static_cast<std::uint8_t>(Protocol::tcp))
        headers.tcp_flags = p[kCommonL4 + tcp::kFlags];
    headers.zone = load32(p + 46).host() >> 8;
    headers.ports = raw32(p + kCommonL4);
    headers.outer_ip = ethernet::kSize;
    headers.l2 = kOuterIpv4;
    headers.l3 = kCommonIp;
    headers.l4 = kCommonL4;
    headers.ip_length = load16(p + 66).host();
    return headers;
}

inline bool parse_fast(const std::uint8_t* p, std::uint32_t contiguous, std::uint32_t length,
                       const FastReceiver& receiver, Headers& headers) {
    if (!is_common(p, contiguous, length, receiver)) return false;
    headers = common_headers(p);
    return true;
}

}  // namespace sluice::wire
