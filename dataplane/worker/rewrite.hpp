// SPDX-License-Identifier: Apache-2.0
// What a hit does to the octets: TTL and translation of the inner packet, and the header
// that goes before it. Plain functions on octets, free of DPDK.
#pragma once

#include <cstdint>
#include <cstring>

#include "dataplane/policy/adjacency.hpp"
#include "dataplane/session/flow.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/raw.hpp"

namespace sluice::worker {

// The amount by which a checksum field changes: what to add to it.
inline std::uint16_t field_delta(std::uint16_t data_delta) {
    return static_cast<std::uint16_t>(~data_delta);
}

// The sum comes out as 0xffff where it is zero: what UDP wants (RFC 768).
inline void add_to_udp_field(std::uint8_t* field, std::uint32_t delta) {
    wire::put_raw(field, wire::fold_small(wire::raw16(field) + delta));
}
// In any other header zero is zero, and 0xffff no checksum at all (RFC 1624 section 3).
inline void add_to_field(std::uint8_t* field, std::uint32_t delta) {
    const std::uint16_t sum = wire::fold_small(wire::raw16(field) + delta);
    wire::put_raw(field, sum == 0xffff ? std::uint16_t{0} : sum);
}

// The TTL or hop limit with which a packet goes no further: zero is nowhere sent (RFC 1122 section
// 3.2.1.7, RFC 8200 section 3), and a router takes one off. Without a branch.
inline unsigned spent_ttl(const policy::Adjacency& adjacency) {
    return unsigned{!adjacency.bridged};
}

// TTL, less one; the checksum grows by as much (RFC 1624; TTL is the high octet of its word).
inline void decrement_ttl_ipv4(std::uint8_t* ip) {
    --ip[wire::ipv4::kTtl];
    add_to_field(ip + wire::ipv4::kChecksum, be16{0x0100}.raw);
}

inline void translate_ipv4(std::uint8_t* ip, std::uint8_t* l4, std::uint8_t protocol,
                           const session::Rewrite& rewrite) {
    namespace wi = wire;
    wi::put_raw(ip + wi::ipv4::kSource, wi::raw32(ip + wi::ipv4::kSource) ^ rewrite.source);
    wi::put_raw(ip + wi::ipv4::kDestination,
                wi::raw32(ip + wi::ipv4::kDestination) ^ rewrite.destination);
    add_to_field(ip + wi::ipv4::kChecksum, rewrite.ip_delta);
    switch (static_cast<Protocol>(protocol)) {
        case Protocol::tcp:
            wi::put_raw(l4, wi::raw32(l4) ^ rewrite.ports);
            add_to_field(l4 + wi::tcp::kChecksum, rewrite.l4_delta);
            break;
        case Protocol::udp: {
            wi::put_raw(l4, wi::raw32(l4) ^ rewrite.ports);
            // Zero is "no checksum" and stays; a sum never comes out as zero (RFC 768), since
            // folding a sum of words that are not all zero never does.
            if (wi::raw16(l4 + wi::udp::kChecksum) != 0)
                add_to_udp_field(l4 + wi::udp::kChecksum, rewrite.l4_delta);
            break;
        }
        case Protocol::icmp:
            // No pseudo-header: only a changed identifier changes the sum.
            if (rewrite.ports != 0) {
                wi::put_raw(l4 + wi::icmp::kIdentifier,
                            static_cast<std::uint16_t>(wi::raw16(l4 + wi::icmp::kIdentifier) ^
                                                       rewrite.ports));
                add_to_field(l4 + wi::icmp::kChecksum, rewrite.l4_delta);
            }
            break;
        default:
            break;  // protocols whose checksum covers no address
    }
}

// What the outer header takes from the packet.
struct OuterFacts {
    std::uint32_t ip_length = 0;     // of the inner packet
    std::uint16_t source_port = 0;   // any 16 bits of the inner flow's hash
    std::uint8_t traffic_class = 0;  // copied, ECN included (RFC 6040 section 4.1)
};

constexpr std::uint32_t kInnerEthernet = wire::ethernet::kSize;
constexpr std::uint32_t kVxlanIpv4 = 50 + kInnerEthernet;
constexpr std::uint32_t kVxlanIpv6 = 70 + kInnerEthernet;

// The header's length, Ethernet of the inner frame included.
constexpr std::uint32_t header_length(policy::Adjacency::Kind kind) {
    switch (kind) {
        case policy::Adjacency::Kind::vxlan_ipv4:
            return kVxlanIpv4;
        case policy::Adjacency::Kind::vxlan_ipv6:
            return kVxlanIpv6;
        default:
            return kInnerEthernet;
    }
}

// Writes `adjacency`'s header so that it ends at `ip`; the EtherType before `ip` stays. A
// bridged frame keeps its source MAC too. RFC 7348 section 5; UDP source port from the
// dynamic range (RFC 6335 section 6).
inline void write_vxlan_ipv4(std::uint8_t* ip, const policy::Adjacency& adjacency,
                             const OuterFacts& facts) {
    const std::uint8_t* header = adjacency.header.data();
    std::uint8_t* out = ip - kVxlanIpv4;
    const std::uint32_t total = facts.ip_length + kVxlanIpv4 - wire::ethernet::kSize;
    const std::uint16_t total_raw = be16{static_cast<std::uint16_t>(total)}.raw;
    const std::uint32_t tos_word = std::uint32_t{facts.traffic_class} << 8;
    const std::uint16_t ether_type = wire::raw16(ip - 2);
    std::uint8_t source_mac[6];
    std::memcpy(source_mac, ip - 8, sizeof source_mac);
    std::memcpy(out, header, 64);
    wire::put_raw(ip - 2, ether_type);
    if (adjacency.bridged) std::memcpy(ip - 8, source_mac, sizeof source_mac);
    out[15] = facts.traffic_class;
    wire::put_raw(out + 16, total_raw);
    wire::put_raw(out + 24, static_cast<std::uint16_t>(
                                ~wire::fold_small(adjacency.checksum_base + total_raw + tos_word)));
    wire::put_raw(out + 34, static_cast<std::uint16_t>(facts.source_port | 0x00c0));
    wire::put_raw(out + 38, be16{static_cast<std::uint16_t>(total - wire::ipv4::kSize)}.raw);
}

inline void write_vxlan_ipv6(std::uint8_t* ip, const policy::Adjacency& adjacency,
                             const OuterFacts& facts) {
    const std::uint8_t* header = adjacency.header.data();
    std::uint8_t* out = ip - kVxlanIpv6;
    const std::uint32_t payload =
        facts.ip_length + kVxlanIpv6 - wire::ethernet::kSize - wire::ipv6::kSize;
    // All but the inner EtherType, and, bridged, all but the source MAC as well.
    std::memcpy(out, header, kVxlanIpv6 - (adjacency.bridged ? 8 : 2));
    out[14] = static_cast<std::uint8_t>(0x60 | facts.traffic_class >> 4);
    out[15] = static_cast<std::uint8_t>(facts.traffic_class << 4);
    wire::put_raw(out + 18, be16{static_cast<std::uint16_t>(payload)}.raw);
    wire::put_raw(out + 54, static_cast<std::uint16_t>(facts.source_port | 0x00c0));
    wire::put_raw(out + 58, be16{static_cast<std::uint16_t>(payload)}.raw);
}

inline void write_uplink(std::uint8_t* ip, const policy::Adjacency& adjacency) {
    std::memcpy(ip - kInnerEthernet, adjacency.header.data(), kInnerEthernet - 2);
}

}  // namespace sluice::worker
