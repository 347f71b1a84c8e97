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

inline bool parse_fast(const std::uint8_t* p, std::uint32_t contiguous, std::uint32_t length,
                       const FastReceiver& receiver, Headers& headers) {
    constexpr std::uint32_t kInnerIp = kOuterIpv4 + ethernet::kSize;
    constexpr std::uint32_t kL4 = kInnerIp + ipv4::kSize;
    if (contiguous < kL4 + udp::kSize) return false;

    const std::uint32_t outer_total = be16::from_raw(raw16(p + 16)).host();
    const std::uint32_t udp_length = be16::from_raw(raw16(p + 38)).host();
    const std::uint32_t inner_total = be16::from_raw(raw16(p + 66)).host();
    const std::uint8_t protocol = p[73];
    const std::uint32_t l4_end = kInnerIp + inner_total;
    const bool tcp = protocol == static_cast<std::uint8_t>(Protocol::tcp);

    // One bit of anything unusual makes it uncommon; no branch per check.
    std::uint64_t odd = (raw64(p) & kMacMask) ^ receiver.mac;
    odd |= (raw32(p + 12) & 0x00ffffffU) ^ 0x00450008U;  // IPv4, IHL 5 (and TOS aside)
    odd |= raw32(p + 20) & 0x0000ff3fU;                  // outer fragment bits and offset
    odd |= p[23] ^ static_cast<std::uint8_t>(Protocol::udp);
    odd |= raw32(p + 30) ^ receiver.vtep;
    odd |= raw16(p + 36) ^ 0xb512U;                      // to port 4789
    odd |= raw16(p + 40);                                // no UDP checksum
    odd |= (p[42] & 0x3d) ^ 0x08;                        // the I flag and no extension
    odd |= (p[50] | p[56]) & 1U;                         // unicast MACs
    odd |= (raw32(p + 62) & 0x00ffffffU) ^ 0x00450008U;  // inner IPv4, IHL 5
    odd |= raw16(p + 70) & 0xff3fU;                      // inner fragment bits and offset
    bool bad = p[22] == 0;
    bad |= outer_total + ethernet::kSize > length;
    bad |= udp_length + ipv4::kSize > outer_total;
    bad |= l4_end > ethernet::kSize + ipv4::kSize + udp_length;
    bad |= inner_total < ipv4::kSize + udp::kSize;
    bad |= (fold(ipv4_header_sum(p + ethernet::kSize)) != 0xffff);
    bad |= (fold(ipv4_header_sum(p + kInnerIp)) != 0xffff);
    const std::uint32_t zone = be32::from_raw(raw32(p + 46)).host() >> 8;
    bad |= zone == 0;
    if (tcp) {
        if (contiguous < kL4 + tcp::kSize) return false;
        const std::uint32_t header = std::uint32_t{p[kL4 + 12]} >> 4 << 2;
        bad |= header < tcp::kSize;
        bad |= kL4 + header > l4_end;
    } else {
        const std::uint32_t datagram = be16::from_raw(raw16(p + kL4 + 4)).host();
        bad |= protocol != static_cast<std::uint8_t>(Protocol::udp);
        bad |= datagram < udp::kSize;
        bad |= kL4 + datagram > l4_end;
    }
    if (__builtin_expect((odd != 0) | bad, 0)) return false;

    headers.kind = FrameKind::connection;
    headers.drop = DropReason::none;
    headers.flags =
        static_cast<std::uint8_t>(kTunnelled | ((p[70] & 0x40) != 0 ? kDontFragment : 0));
    headers.protocol = protocol;
    headers.ttl = p[72];
    headers.traffic_class = p[65];
    headers.outer_ecn = p[15] & 3;
    headers.tcp_flags = tcp ? p[kL4 + 13] : std::uint8_t{0};
    headers.zone = zone;
    headers.ports = raw32(p + kL4);
    headers.outer_ip = ethernet::kSize;
    headers.l2 = kOuterIpv4;
    headers.l3 = kInnerIp;
    headers.l4 = kL4;
    headers.ip_length = static_cast<std::uint16_t>(inner_total);
    headers.icmp_type = 0;
    headers.icmp_code = 0;
    return true;
}

}  // namespace sluice::wire
