// SPDX-License-Identifier: Apache-2.0
// From octets to headers: the underlay's VXLAN frames with what is inside them, and the
// uplink's plain frames.
//
// Purpose: every frame that arrives gets a kind, or the reason why it goes no further. Checks
// come in the order of the headers: RFC 791, 8200, 768, 7348 sections 4 and 5, then the inner
// frame.
// Contract: pure; reads only the octets it is given, whatever they claim. `contiguous` may be
// the first segment of a longer frame of `length` octets: when the headers do not fit in it
// the result is `incomplete`, and the caller pulls more of the frame together.
// Cost: 20 to 60 ns; the worker's common case is fast_parser.hpp.
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/wire/drop_reason.hpp"
#include "dataplane/wire/packet.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::wire {

// What is to be done with a frame.
enum class FrameKind : std::uint8_t {
    drop,          // `drop` says why
    incomplete,    // the headers go on beyond the contiguous octets
    connection,    // look it up: a packet that a connection could carry
    icmp_error,    // quotes a packet of a connection
    arp_request,   // inner, or on the uplink: who has `tuple.destination`
    solicitation,  // the same for IPv6 (RFC 4861)
    local,  // outer: not VXLAN, but addressed to the gateway or of interest to it (ARP, ND, ICMP)
};

// Ethernet, IPv4, UDP, VXLAN; the same with IPv6.
inline constexpr std::size_t kOuterIpv4 = 50;
inline constexpr std::size_t kOuterIpv6 = 70;

enum HeaderFlag : std::uint8_t {
    kTunnelled = 1,        // came in VXLAN
    kOuterV6 = 2,          // ... over IPv6
    kInnerV6 = 4,          // kind connection, icmp_error, solicitation
    kFragment = 8,         // any fragment; no ports unless it is the first
    kFirstFragment = 16,   // offset zero, more to come
    kDontFragment = 32,    // IPv4 DF
    kOptions = 64,         // IPv4 options or IPv6 extension headers
    kCheckOuterUdp = 128,  // the outer UDP checksum is not zero: verify it over the whole frame
};

// A parsed frame, compact. Offsets are from the frame's start.
struct Headers {
    FrameKind kind = FrameKind::drop;
    DropReason drop = DropReason::none;
    std::uint8_t flags = 0;
    std::uint8_t protocol = 0;       // inner, after any extension headers
    std::uint8_t ttl = 0;            // inner
    std::uint8_t traffic_class = 0;  // inner TOS or traffic class
    std::uint8_t outer_ecn = 0;
    std::uint8_t tcp_flags = 0;
    std::uint32_t zone = 0;      // VNI; 0: from the uplink
    std::uint32_t ports = 0;     // as in a session key: source in the low half, both as on the wire
    std::uint16_t outer_ip = 0;  // the outer IP header; 0: none
    std::uint16_t l2 = 0;        // the inner (or only) Ethernet header
    std::uint16_t l3 = 0;        // its IP header, or ARP
    std::uint16_t l4 = 0;
    std::uint16_t ip_length = 0;  // the inner IP packet, from its own header
    std::uint8_t icmp_type = 0;
    std::uint8_t icmp_code = 0;

    [[nodiscard]] bool has(HeaderFlag flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(Headers) == 28);

inline void refuse(Headers& headers, DropReason reason) {
    headers.kind = FrameKind::drop;
    headers.drop = reason;
}

// Whom frames must be addressed to.
struct Receiver {
    MacAddress mac;                            // the port's
    std::span<const IpAddress> vteps;          // outer destinations of VXLAN
    std::span<const IpAddress> own_addresses;  // the gateway's on this port
};

Headers parse_underlay(std::span<const std::uint8_t> contiguous, std::uint32_t length,
                       const Receiver& receiver);
Headers parse_uplink(std::span<const std::uint8_t> contiguous, std::uint32_t length,
                     const Receiver& receiver);

// Whether the outer UDP checksum of a tunnelled frame is right, all of it contiguous.
bool outer_udp_checksum_ok(std::span<const std::uint8_t> frame, const Headers& headers);

// What the walk sees of a frame of kind connection, arp_request or solicitation.
// `solicitation`: `nd_target` is the address asked for.
Packet to_packet(std::span<const std::uint8_t> contiguous, const Headers& headers, PortId port);
Tuple tuple_of(std::span<const std::uint8_t> contiguous, const Headers& headers);
// The outer source of a tunnelled frame.
IpAddress vtep_of(std::span<const std::uint8_t> contiguous, const Headers& headers);

}  // namespace sluice::wire
