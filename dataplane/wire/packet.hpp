// SPDX-License-Identifier: Apache-2.0
// A parsed packet as the first-packet walk sees it. The fast path does not build one: it
// works on keys; this is filled in for packets that miss the session table.
#pragma once

#include <cstdint>
#include <optional>

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

// The ICMP or ICMPv6 type that answers this one or that this one answers: echo (RFC 792,
// RFC 4443) and timestamp. Nothing for types that open no connection.
constexpr std::optional<std::uint8_t> opposite_icmp_type(std::uint8_t protocol, std::uint8_t type) {
    if (protocol == static_cast<std::uint8_t>(Protocol::icmp)) {
        if (type == 8 || type == 0) return static_cast<std::uint8_t>(type ^ 8);
        if (type == 13 || type == 14) return static_cast<std::uint8_t>(type ^ 3);
    }
    if (protocol == static_cast<std::uint8_t>(Protocol::icmpv6) && (type == 128 || type == 129))
        return static_cast<std::uint8_t>(type ^ 1);
    return std::nullopt;
}

// What the packets that answer `tuple` carry; nothing for an ICMP type without an answer.
constexpr std::optional<Tuple> reversed(const Tuple& tuple) {
    Tuple result{tuple.destination, tuple.source, tuple.protocol, tuple.destination_port,
                 tuple.source_port};
    if (tuple.protocol == static_cast<std::uint8_t>(Protocol::icmp) ||
        tuple.protocol == static_cast<std::uint8_t>(Protocol::icmpv6)) {
        const auto type = opposite_icmp_type(
            tuple.protocol, static_cast<std::uint8_t>(tuple.destination_port >> 8));
        if (!type) return std::nullopt;
        result.source_port = tuple.source_port;
        result.destination_port =
            static_cast<std::uint16_t>(*type << 8 | (tuple.destination_port & 0xff));
    }
    return result;
}

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
    // Of a neighbour solicitation or advertisement (RFC 4861 sections 4.3, 4.4).
    IpAddress nd_target;
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
