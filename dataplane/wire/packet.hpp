// SPDX-License-Identifier: Apache-2.0
// A parsed packet as the first-packet walk sees it. The fast path does not build one: it
// works on keys; this is filled in for packets that miss the session table.
#pragma once

#include <cstdint>

#include "dataplane/wire/types.hpp"

namespace sluice {

enum class Protocol : std::uint8_t {
    icmp = 1,
    tcp = 6,
    udp = 17,
    gre = 47,
    esp = 50,
    icmpv6 = 58,
    sctp = 132
};

// Which side of the gateway a port is on.
enum class Side : std::uint8_t { underlay, uplink };

// What identifies a connection in one direction, besides its zone. Ports in host order.
// ICMP and ICMPv6 queries: `source_port` is the identifier, `destination_port` is
// type << 8 | code, so that a request and its reply have keys of their own.
// Protocols without ports: both ports 0.
struct Tuple {
    IpAddress source;
    IpAddress destination;
    std::uint8_t protocol = 0;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;

    constexpr auto operator<=>(const Tuple&) const = default;
};

enum class EtherKind : std::uint8_t { ipv4, ipv6, arp };

struct Packet {
    // Where it came from.
    Side side = Side::underlay;
    PortId port;
    Vni vni;         // underlay only
    IpAddress vtep;  // outer source; underlay only
    std::uint8_t outer_ecn = 0;

    // The inner frame (uplink: the frame itself).
    EtherKind kind = EtherKind::ipv4;
    MacAddress source_mac;
    MacAddress destination_mac;
    Tuple tuple;  // kind ipv4, ipv6; for arp: sender and target address
    std::uint8_t ttl = 0;
    std::uint8_t traffic_class = 0;
    std::uint8_t tcp_flags = 0;
    std::uint8_t icmp_type = 0;
    std::uint8_t icmp_code = 0;
    bool fragment = false;        // any fragment
    bool first_fragment = false;  // offset zero, more to come
    bool dont_fragment = false;   // IPv4 DF; always true for IPv6
    bool icmp_error = false;      // quotes another packet
    std::uint16_t l2_offset = 0;  // from the start of the received frame, octets
    std::uint16_t l3_offset = 0;
    std::uint16_t l4_offset = 0;
    std::uint32_t ip_length = 0;  // inner IP packet, octets, from its own header
};

}  // namespace sluice
