// SPDX-License-Identifier: Apache-2.0
// The common frames in a straight line: VXLAN over option-less IPv4 without UDP checksum, with an
// option-less, unfragmented packet of TCP or UDP inside, or such a packet plain on an uplink.
//
// Checks everything that may differ between two packets of one connection: lengths, versions,
// flags, header checksums. What follows from the addresses alone (martian, multicast and equal
// ones, the gateway's own on the uplink) is not looked at: a connection with such a key does not
// exist, and whoever does not find one parses again with parser.hpp before anything else. Whatever
// is not common returns false and is parser.hpp's too, which finds the reason. Cost: 5 ns.
#pragma once

#include <cstdint>

#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/parser.hpp"
#include "dataplane/wire/raw.hpp"

namespace sluice::wire {

// Receiver, as the words that lie in a packet.
struct FastReceiver {
    std::uint64_t mac = 0;   // the low 48 bits of a load
    std::uint32_t vtep = 0;  // 0: none, then nothing tunnelled is common
};

inline constexpr std::uint64_t kMacMask = 0xffff'ffff'ffffULL;

// Of common frames: where they come from, and what is inside.
enum class Shape : std::uint8_t { overlay_ipv4, overlay_ipv6, uplink_ipv4 };

// Where the headers of a common frame lie.
template <Shape shape>
struct Place {
    static constexpr bool kOverlay = shape != Shape::uplink_ipv4;
    static constexpr bool kIpv6 = shape == Shape::overlay_ipv6;
    static constexpr std::uint32_t kL2 = kOverlay ? kOuterIpv4 : 0;
    static constexpr std::uint32_t kIp = kL2 + ethernet::kSize;
    static constexpr std::uint32_t kL4 = kIp + (kIpv6 ? ipv6::kSize : ipv4::kSize);
};

// The sum over an option-less IPv4 header, folded: 0xffff if its checksum is right.
[[gnu::always_inline]] inline std::uint16_t common_header_sum(const std::uint8_t* header) {
    unsigned long long sum = 0;
    const bool carry = __builtin_uaddll_overflow(raw64(header), raw64(header + 8), &sum);
    return fold((sum >> 32) + (sum & 0xffffffff) + carry + raw32(header + 16));
}

// Which of the overlay's shapes a frame may have.
inline bool may_be_ipv6(const std::uint8_t* p, std::uint32_t contiguous) {
    constexpr std::uint32_t kType = kOuterIpv4 + ethernet::kType;
    return contiguous >= kType + 2 && raw16(p + kType) == ethernet::kIpv6.raw;
}

template <Shape shape>
[[gnu::always_inline]] inline bool is_common(const std::uint8_t* p, std::uint32_t contiguous,
                                             std::uint32_t length, const FastReceiver& receiver) {
    using At = Place<shape>;
    if (contiguous < At::kL4 + udp::kSize) return false;
    // Fields are compared as the words that they share; masks are little-endian.
    // One bit of anything unusual makes the frame uncommon; no branch per check.
    std::uint64_t odd = (raw64(p) & kMacMask) ^ receiver.mac;
    // Each difference is negative if a length lies; their signs are collected.
    std::int32_t signs = 0;
    const auto host16 = [&](std::size_t at) -> std::int32_t { return load16(p + at).host(); };
    std::int32_t room = static_cast<std::int32_t>(length) - 14;  // for the IP packet
    if constexpr (At::kOverlay) {
        odd |= (raw32(p + 12) & 0x00ffffffU) ^ 0x00450008U;  // IPv4, IHL 5
        odd |= (raw32(p + 20) & 0xff00ff3fU) ^ 0x11000000U;  // no fragment; UDP
        odd |= raw32(p + 30) ^ receiver.vtep;
        // To port 4789, without checksum, the I flag and no extension.
        odd |= (raw64(p + 36) & 0x003dffff0000ffffULL) ^ 0x000800000000b512ULL;
        odd |= (p[50] | p[56]) & 1U;  // unicast MACs
        odd |= static_cast<std::uint16_t>(~common_header_sum(p + ethernet::kSize));
        const std::int32_t outer_total = host16(16);
        const std::int32_t udp_length = host16(38);
        signs |= room - outer_total;
        signs |= outer_total - udp_length - 20;
        signs |= static_cast<std::int32_t>(p[22]) - 1;                        // outer TTL
        signs |= static_cast<std::int32_t>(raw32(p + 46) & 0x00ffffffU) - 1;  // VNI
        room = udp_length - 30;
    } else {
        odd |= p[6] & 1U;
    }
    const std::uint8_t* ip = p + At::kIp;
    std::int32_t payload = 0;
    std::uint8_t protocol = 0;
    if constexpr (At::kIpv6) {
        odd |= (raw32(ip - 2) & 0x00f0ffffU) ^ 0x0060dd86U;  // IPv6
        payload = host16(At::kIp + ipv6::kLength);
        signs |= room - payload - 40;
        signs |= payload - 8;
        protocol = ip[ipv6::kNextHeader];
    } else {
        odd |= (raw32(ip - 2) & 0x00ffffffU) ^ 0x00450008U;  // IPv4, IHL 5
        odd |= raw16(ip + ipv4::kFragment) & 0xff3fU;        // no fragment
        odd |= static_cast<std::uint16_t>(~common_header_sum(ip));
        const std::int32_t total = host16(At::kIp + 2);
        signs |= room - total;
        signs |= total - 28;
        payload = total - 20;
        protocol = ip[ipv4::kProtocol];
    }
    if (protocol == static_cast<std::uint8_t>(Protocol::udp)) {
        // VXLAN in VXLAN may come as a reply, too. A branch: among the words above it costs more.
        if (At::kOverlay && raw16(p + At::kL4 + udp::kDestination) == udp::kVxlan.raw) return false;
        const std::int32_t datagram = host16(At::kL4 + udp::kLength);
        signs |= datagram - 8;
        signs |= payload - datagram;
    } else if (protocol == static_cast<std::uint8_t>(Protocol::tcp)) {
        if (contiguous < At::kL4 + tcp::kSize) return false;
        const std::int32_t header = p[At::kL4 + tcp::kDataOffset] >> 4 << 2;
        signs |= header - 20;
        signs |= payload - header;
    } else {
        return false;
    }
    return (odd == 0) & (signs >= 0);
}

// What parser.hpp says of a common frame. Inlined, most of it are constants.
template <Shape shape>
[[gnu::always_inline]] inline Headers common_headers(const std::uint8_t* p) {
    using At = Place<shape>;
    const std::uint8_t* ip = p + At::kIp;
    Headers headers;
    headers.kind = FrameKind::connection;
    headers.flags = At::kOverlay ? kTunnelled : 0;
    if constexpr (At::kIpv6) {
        headers.flags |= kInnerV6;
        headers.protocol = ip[ipv6::kNextHeader];
        headers.ttl = ip[ipv6::kHopLimit];
        headers.traffic_class = static_cast<std::uint8_t>(load16(ip).host() >> 4);
        headers.ip_length =
            static_cast<std::uint16_t>(load16(ip + ipv6::kLength).host() + ipv6::kSize);
    } else {
        headers.flags |= (ip[ipv4::kFragment] & 0x40) != 0 ? kDontFragment : 0;
        headers.protocol = ip[ipv4::kProtocol];
        headers.ttl = ip[ipv4::kTtl];
        headers.traffic_class = ip[1];
        headers.ip_length = load16(ip + 2).host();
    }
    if (headers.protocol == static_cast<std::uint8_t>(Protocol::tcp))
        headers.tcp_flags = p[At::kL4 + tcp::kFlags];
    headers.ports = raw32(p + At::kL4);
    if constexpr (At::kOverlay) {
        headers.outer_ecn = p[15] & 3;
        headers.zone = load32(p + 46).host() >> 8;
        headers.outer_ip = ethernet::kSize;
    }
    headers.l2 = At::kL2;
    headers.l3 = At::kIp;
    headers.l4 = At::kL4;
    return headers;
}

template <Shape shape>
bool parse_fast(const std::uint8_t* p, std::uint32_t contiguous, std::uint32_t length,
                const FastReceiver& receiver, Headers& headers) {
    if (!is_common<shape>(p, contiguous, length, receiver)) return false;
    headers = common_headers<shape>(p);
    return true;
}

}  // namespace sluice::wire
