// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/parser.hpp"

#include <algorithm>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/parse_inner.hpp"
#include "dataplane/wire/raw.hpp"

namespace sluice::wire {

namespace {

std::uint16_t host16(const std::uint8_t* at) {
    return be16::from_raw(raw16(at)).host();
}

bool is(const std::uint8_t* mac, const MacAddress& wanted) {
    return std::memcmp(mac, wanted.bytes.data(), 6) == 0;
}

bool among(const IpAddress& address, std::span<const IpAddress> list) {
    return std::find(list.begin(), list.end(), address) != list.end();
}

Headers dropped(DropReason reason) {
    Headers headers;
    refuse(headers, reason);
    return headers;
}

Headers local(std::size_t l3) {
    Headers headers;
    headers.kind = FrameKind::local;
    headers.l3 = static_cast<std::uint16_t>(l3);
    return headers;
}

// RFC 7348 section 5: flags, 24 reserved bits, VNI, 8 reserved bits.
void parse_vxlan(const Octets& frame, std::size_t at, Headers& headers) {
    constexpr std::uint8_t kValidVni = 0x08;
    // Version, next-protocol and OAM bits of the generic protocol extension
    // (draft-ietf-nvo3-vxlan-gpe): with them what follows need not be an Ethernet frame.
    // The other reserved bits are ignored, as RFC 7348 wants.
    constexpr std::uint8_t kExtensions = 0x35;
    if (!frame.need(at, vxlan::kSize, DropReason::outer_truncated, headers)) return;
    const std::uint8_t* header = frame.data + at;
    if ((header[0] & kValidVni) == 0) return refuse(headers, DropReason::vxlan_no_vni);
    if ((header[0] & kExtensions) != 0) return refuse(headers, DropReason::vxlan_reserved);
    headers.zone = be32::from_raw(raw32(header + 4)).host() >> 8;
    // Zone 0 is the outside: no VPC has it.
    if (headers.zone == 0) return refuse(headers, DropReason::unknown_vni);
    headers.l2 = static_cast<std::uint16_t>(at + vxlan::kSize);
    if (!frame.need(headers.l2, ethernet::kSize, DropReason::inner_truncated, headers)) return;
    parse_frame(frame, headers);
}

// `end`: where the outer IP packet ends. Whatever follows it is Ethernet padding.
void parse_outer_udp(const Octets& whole, std::size_t at, std::size_t end, bool is_vtep,
                     Headers& headers) {
    const Octets frame{whole.data, std::min(whole.contiguous, end), end};
    if (!frame.need(at, udp::kSize, DropReason::outer_truncated, headers)) return;
    const std::uint8_t* header = frame.data + at;
    const std::size_t length = host16(header + 4);
    if (length < udp::kSize || at + length > end)
        return refuse(headers, DropReason::outer_bad_header);
    if (host16(header + 2) != udp::kVxlan.host())
        return refuse(headers, DropReason::outer_not_vxlan);
    if (!is_vtep) return refuse(headers, DropReason::outer_not_for_us);
    if (raw16(header + 6) != 0) headers.flags |= kCheckOuterUdp;
    const Octets payload{whole.data, std::min(whole.contiguous, at + length), at + length};
    parse_vxlan(payload, at + udp::kSize, headers);
}

Headers parse_outer_ipv4(const Octets& frame, const Receiver& receiver) {
    Headers headers;
    constexpr std::size_t at = ethernet::kSize;
    if (!frame.need(at, ipv4::kSize, DropReason::outer_truncated, headers)) return headers;
    const std::uint8_t* ip = frame.data + at;
    const std::size_t header_length = std::size_t{ip[0] & 0xfU} * 4;
    const std::size_t total = host16(ip + 2);
    if (ip[0] >> 4 != 4 || header_length < ipv4::kSize || total < header_length)
        return dropped(DropReason::outer_bad_header);
    if (at + total > frame.length) return dropped(DropReason::outer_truncated);
    if (!frame.need(at, header_length, DropReason::outer_truncated, headers)) return headers;
    if (!ipv4_header_checksum_ok({ip, header_length}))
        return dropped(DropReason::outer_bad_checksum);
    if ((host16(ip + 6) & 0x3fff) != 0) return dropped(DropReason::outer_fragment);
    if (ip[8] == 0) return dropped(DropReason::outer_ttl);
    const IpAddress destination = IpAddress::v4(be32::from_raw(raw32(ip + 16)));
    const bool own = among(destination, receiver.own_addresses);
    const bool vtep = among(destination, receiver.vteps);
    if (!own && !vtep) return dropped(DropReason::outer_not_for_us);
    if (ip[9] == static_cast<std::uint8_t>(Protocol::icmp)) return local(at);
    if (ip[9] != static_cast<std::uint8_t>(Protocol::udp))
        return dropped(DropReason::outer_not_vxlan);
    headers.flags = kTunnelled;
    headers.outer_ip = at;
    headers.outer_ecn = ip[1] & 3;
    parse_outer_udp(frame, at + header_length, at + total, vtep, headers);
    return headers;
}

// Outer extension headers have no use between VTEPs: not VXLAN.
Headers parse_outer_ipv6(const Octets& frame, const Receiver& receiver) {
    Headers headers;
    constexpr std::size_t at = ethernet::kSize;
    if (!frame.need(at, ipv6::kSize, DropReason::outer_truncated, headers)) return headers;
    const std::uint8_t* ip = frame.data + at;
    const std::size_t payload = host16(ip + 4);
    if (ip[0] >> 4 != 6) return dropped(DropReason::outer_bad_header);
    if (at + ipv6::kSize + payload > frame.length) return dropped(DropReason::outer_truncated);
    if (ip[7] == 0) return dropped(DropReason::outer_ttl);
    if (ip[6] == static_cast<std::uint8_t>(Protocol::icmpv6)) return local(at);
    const IpAddress destination = IpAddress::v6(ip + 24);
    const bool vtep = among(destination, receiver.vteps);
    if (!vtep && !among(destination, receiver.own_addresses))
        return dropped(DropReason::outer_not_for_us);
    if (ip[6] == 44) return dropped(DropReason::outer_fragment);
    if (ip[6] != static_cast<std::uint8_t>(Protocol::udp))
        return dropped(DropReason::outer_not_vxlan);
    headers.flags = kTunnelled | kOuterV6;
    headers.outer_ip = at;
    headers.outer_ecn = static_cast<std::uint8_t>(ip[1] >> 4 & 3);
    parse_outer_udp(frame, at + ipv6::kSize, at + ipv6::kSize + payload, vtep, headers);
    return headers;
}

}  // namespace

Headers parse_underlay(std::span<const std::uint8_t> contiguous, std::uint32_t length,
                       const Receiver& receiver) {
    const Octets frame{contiguous.data(), contiguous.size(), length};
    Headers headers;
    if (!frame.need(0, ethernet::kSize, DropReason::outer_truncated, headers)) return headers;
    const bool group = (frame.data[0] & 1) != 0;
    if (!group && !is(frame.data, receiver.mac)) return dropped(DropReason::outer_not_for_us);
    switch (host16(frame.data + 12)) {
        case ethernet::kIpv4.host():
            if (group) return dropped(DropReason::outer_not_for_us);
            return parse_outer_ipv4(frame, receiver);
        case ethernet::kIpv6.host():
            // Neighbour discovery comes by multicast; nothing else of use does.
            if (group &&
                (contiguous.size() < ethernet::kSize + ipv6::kSize ||
                 frame.data[ethernet::kSize + 6] != static_cast<std::uint8_t>(Protocol::icmpv6)))
                return dropped(DropReason::outer_not_for_us);
            return parse_outer_ipv6(frame, receiver);
        case ethernet::kArp.host():
            return local(ethernet::kSize);
        default:
            return dropped(DropReason::outer_not_vxlan);
    }
}

Headers parse_uplink(std::span<const std::uint8_t> contiguous, std::uint32_t length,
                     const Receiver& receiver) {
    const Octets frame{contiguous.data(), contiguous.size(), length};
    Headers headers;
    if (!frame.need(0, ethernet::kSize, DropReason::outer_truncated, headers)) return headers;
    const bool group = (frame.data[0] & 1) != 0;
    if (!group && !is(frame.data, receiver.mac)) return dropped(DropReason::outer_not_for_us);
    const std::uint16_t ether_type = host16(frame.data + 12);
    if (ether_type != ethernet::kIpv4.host() && ether_type != ethernet::kIpv6.host() &&
        ether_type != ethernet::kArp.host())
        return dropped(DropReason::uplink_ethertype);
    // The gateway's own addresses first: they are nobody's behind it.
    constexpr std::size_t at = ethernet::kSize;
    if (ether_type == ethernet::kArp.host() && contiguous.size() >= at + arp::kSize) {
        const IpAddress target = IpAddress::v4(be32::from_raw(raw32(frame.data + at + 24)));
        const bool reply = host16(frame.data + at + 6) == 2;
        if (reply || among(target, receiver.own_addresses)) return local(at);
    }
    if (ether_type == ethernet::kIpv4.host() && contiguous.size() >= at + ipv4::kSize) {
        const IpAddress destination = IpAddress::v4(be32::from_raw(raw32(frame.data + at + 16)));
        if (among(destination, receiver.own_addresses)) return local(at);
    }
    if (ether_type == ethernet::kIpv6.host() && contiguous.size() >= at + ipv6::kSize) {
        const std::uint8_t* ip = frame.data + at;
        if (among(IpAddress::v6(ip + 24), receiver.own_addresses)) return local(at);
        // A link's own neighbour discovery never goes further, unless it asks for somebody
        // behind the gateway.
        constexpr std::size_t target = at + ipv6::kSize + icmp::kSize;
        const bool asks_for_others =
            contiguous.size() >= target + 16 &&
            frame.data[at + ipv6::kSize] == icmpv6::kNeighbourSolicitation &&
            !among(IpAddress::v6(frame.data + target), receiver.own_addresses);
        if (group && ip[6] == static_cast<std::uint8_t>(Protocol::icmpv6) && ip[7] == 255 &&
            !asks_for_others)
            return local(at);
    }
    parse_frame(frame, headers);
    if (headers.kind == FrameKind::connection || headers.kind == FrameKind::icmp_error) {
        const std::uint8_t* ip = frame.data + headers.l3;
        const IpAddress source =
            headers.has(kInnerV6) ? IpAddress::v6(ip + ipv6::kSource) : load_v4(ip + ipv4::kSource);
        if (among(source, receiver.own_addresses)) refuse(headers, DropReason::spoofed_ip);
    }
    return headers;
}

bool outer_udp_checksum_ok(std::span<const std::uint8_t> frame, const Headers& headers) {
    const std::uint8_t* ip = frame.data() + headers.outer_ip;
    const bool v6 = headers.has(kOuterV6);
    const std::size_t udp_at =
        headers.outer_ip + (v6 ? ipv6::kSize : std::size_t{ip[0] & 0xfU} * 4);
    if (udp_at + udp::kSize > frame.size()) return false;
    const std::uint16_t length = host16(frame.data() + udp_at + 4);
    if (udp_at + length > frame.size()) return false;
    return Sum{}
               .add(v6 ? std::span{ip + ipv6::kSource, 32} : std::span{ip + ipv4::kSource, 8})
               .add(be16{length})
               .add(be16{static_cast<std::uint16_t>(Protocol::udp)})
               .add(frame.subspan(udp_at, length))
               .folded() == 0xffff;
}

IpAddress vtep_of(std::span<const std::uint8_t> contiguous, const Headers& headers) {
    if (!headers.has(kTunnelled)) return {};
    const std::uint8_t* ip = contiguous.data() + headers.outer_ip;
    return headers.has(kOuterV6) ? IpAddress::v6(ip + 8)
                                 : IpAddress::v4(be32::from_raw(raw32(ip + 12)));
}

Tuple tuple_of(std::span<const std::uint8_t> contiguous, const Headers& headers) {
    Tuple tuple;
    const std::uint8_t* l3 = contiguous.data() + headers.l3;
    if (headers.kind == FrameKind::arp_request) {
        tuple.source = IpAddress::v4(be32::from_raw(raw32(l3 + 14)));
        tuple.destination = IpAddress::v4(be32::from_raw(raw32(l3 + 24)));
        return tuple;
    }
    tuple.protocol = headers.protocol;
    tuple.source_port = be16::from_raw(static_cast<std::uint16_t>(headers.ports)).host();
    tuple.destination_port = be16::from_raw(static_cast<std::uint16_t>(headers.ports >> 16)).host();
    if (!headers.has(kInnerV6)) {
        tuple.source = IpAddress::v4(be32::from_raw(raw32(l3 + 12)));
        tuple.destination = IpAddress::v4(be32::from_raw(raw32(l3 + 16)));
    } else {
        tuple.source = IpAddress::v6(l3 + 8);
        tuple.destination = IpAddress::v6(l3 + 24);
    }
    return tuple;
}

Packet to_packet(std::span<const std::uint8_t> contiguous, const Headers& headers, PortId port) {
    Packet packet;
    packet.side = headers.has(kTunnelled) ? Side::underlay : Side::uplink;
    packet.port = port;
    packet.vni = Vni{headers.zone};
    packet.vtep = vtep_of(contiguous, headers);
    packet.outer_ecn = headers.outer_ecn;
    packet.kind = headers.kind == FrameKind::arp_request ? EtherKind::arp
                  : headers.has(kInnerV6)                ? EtherKind::ipv6
                                                         : EtherKind::ipv4;
    std::memcpy(packet.destination_mac.bytes.data(), contiguous.data() + headers.l2, 6);
    std::memcpy(packet.source_mac.bytes.data(), contiguous.data() + headers.l2 + 6, 6);
    packet.tuple = tuple_of(contiguous, headers);
    if (headers.kind == FrameKind::solicitation)
        packet.nd_target = IpAddress::v6(contiguous.data() + headers.l4 + 8);
    packet.ttl = headers.ttl;
    packet.traffic_class = headers.traffic_class;
    packet.tcp_flags = headers.tcp_flags;
    packet.icmp_type = headers.icmp_type;
    packet.icmp_code = headers.icmp_code;
    packet.fragment = headers.has(kFragment);
    packet.first_fragment = headers.has(kFirstFragment);
    packet.dont_fragment = headers.has(kDontFragment) || headers.has(kInnerV6);
    packet.icmp_error = headers.kind == FrameKind::icmp_error;
    packet.l2_offset = headers.l2;
    packet.l3_offset = headers.l3;
    packet.l4_offset = headers.l4;
    packet.ip_length = headers.ip_length;
    return packet;
}

}  // namespace sluice::wire
