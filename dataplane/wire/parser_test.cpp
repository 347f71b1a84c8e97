// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/parser.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"
#include "dataplane/wire/fast_parser.hpp"
#include "dataplane/wire/neighbour.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

constexpr MacAddress kPort{{2, 0, 0, 0, 0, 2}};
const IpAddress kVteps[] = {"192.0.2.1"_ip, "2001:db8:ff::1"_ip};
const IpAddress kOwn[] = {"192.0.2.1"_ip, "192.0.2.10"_ip, "2001:db8:ff::1"_ip};
const Receiver kReceiver{kPort, kVteps, kOwn};

using Layers = std::vector<Layer>;

Layers operator+(Layers front, const Layers& back) {
    front.insert(front.end(), back.begin(), back.end());
    return front;
}

// VXLAN from a host to the gateway, over either family.
const Ipv4 kOuter4{.source = "192.0.2.11"_ip, .destination = "192.0.2.1"_ip};
const Ipv6 kOuter6{.source = "2001:db8:ff::11"_ip, .destination = "2001:db8:ff::1"_ip};
const Udp kTunnel{.source = 50000, .destination = 4789, .checksum = 0};
const Ethernet kInner{.source = "02:aa:00:00:00:01"_mac, .destination = "02:aa:00:00:00:02"_mac};
const Ethernet kInnerAll{.source = kInner.source, .destination = ethernet::kBroadcast};
const Layers kTunnel4{Ethernet{}, kOuter4, kTunnel, Vxlan{.vni = Vni{0x123456}}};
const Layers kTunnel6{Ethernet{}, kOuter6, Udp{.source = 50000, .destination = 4789},
                      Vxlan{.vni = Vni{0x123456}}};

Headers parse(const Bytes& frame) {
    return parse_underlay(frame, static_cast<std::uint32_t>(frame.size()), kReceiver);
}
Headers parse(const Layers& layers) {
    return parse(packet(layers));
}
Headers inner(const Layers& layers) {
    return parse(kTunnel4 + Layers{kInner} + layers);
}
Headers uplink(const Layers& layers) {
    const Bytes frame = packet(layers);
    return parse_uplink(frame, static_cast<std::uint32_t>(frame.size()), kReceiver);
}

// The reason, or none if it is not dropped.
DropReason reason(const Headers& headers) {
    return headers.kind == FrameKind::drop ? headers.drop : DropReason::none;
}

bool same(const Headers& one, const Headers& other) {
    return one.kind == other.kind && one.drop == other.drop && one.flags == other.flags &&
           one.protocol == other.protocol && one.ttl == other.ttl &&
           one.traffic_class == other.traffic_class && one.outer_ecn == other.outer_ecn &&
           one.tcp_flags == other.tcp_flags && one.zone == other.zone && one.ports == other.ports &&
           one.outer_ip == other.outer_ip && one.l2 == other.l2 && one.l3 == other.l3 &&
           one.l4 == other.l4 && one.ip_length == other.ip_length &&
           one.icmp_type == other.icmp_type && one.icmp_code == other.icmp_code;
}

}  // namespace

namespace Catch {
template <>
struct StringMaker<DropReason> {
    static std::string convert(DropReason reason) { return std::string{label(reason)}; }
};
}  // namespace Catch

TEST_CASE("VXLAN over IPv4: where everything lies, and what it says") {
    const Bytes frame = packet(
        Layers{Ethernet{}, Ipv4{.source = "192.0.2.11"_ip, .destination = "192.0.2.1"_ip, .tos = 1},
               kTunnel, Vxlan{.vni = Vni{0x123456}}, kInner} +
        Layers{Ipv4{.ttl = 7, .tos = 0x2a, .flags_and_offset = ipv4::kDontFragment},
               Tcp{.source = 1, .destination = 2, .flags = tcp::kSyn}, Payload{filler(10)}});
    const Headers headers = parse(frame);
    REQUIRE(headers.kind == FrameKind::connection);
    CHECK(headers.zone == 0x123456);
    CHECK(headers.flags == (kTunnelled | kDontFragment));
    CHECK(headers.outer_ip == 14);
    CHECK(headers.outer_ecn == 1);
    CHECK(headers.l2 == kOuterIpv4);
    CHECK(headers.l3 == 64);
    CHECK(headers.l4 == 84);
    CHECK(headers.ip_length == 50);
    CHECK(headers.ttl == 7);
    CHECK(headers.traffic_class == 0x2a);
    CHECK(headers.tcp_flags == tcp::kSyn);
    CHECK(vtep_of(frame, headers) == "192.0.2.11"_ip);
    CHECK(tuple_of(frame, headers) == Tuple{"10.0.0.1"_ip, "10.0.0.2"_ip, 6, 1, 2});

    const Packet walked = to_packet(frame, headers, PortId{3});
    CHECK(walked.side == Side::underlay);
    CHECK(walked.vni == Vni{0x123456});
    CHECK(walked.source_mac == kInner.source);
    CHECK(walked.destination_mac == kInner.destination);
    CHECK(walked.dont_fragment);
    CHECK_FALSE(walked.fragment);
}

TEST_CASE("VXLAN over IPv6 with IPv6 inside; a UDP checksum is noted, and verified apart") {
    const Bytes frame = packet(kTunnel6 + Layers{kInner, Ipv6{.traffic_class = 0xb9}, Extension{},
                                                 Udp{.source = 1, .destination = 2}});
    const Headers headers = parse(frame);
    REQUIRE(headers.kind == FrameKind::connection);
    CHECK(headers.flags == (kTunnelled | kOuterV6 | kInnerV6 | kOptions | kCheckOuterUdp));
    CHECK(headers.l2 == kOuterIpv6);
    CHECK(headers.l4 == kOuterIpv6 + 14 + 40 + 8);
    CHECK(headers.ip_length == 40 + 8 + 8);
    CHECK(headers.traffic_class == 0xb9);
    CHECK(tuple_of(frame, headers) == Tuple{"2001:db8::1"_ip, "2001:db8::2"_ip, 17, 1, 2});
    CHECK(vtep_of(frame, headers) == "2001:db8:ff::11"_ip);
    CHECK(outer_udp_checksum_ok(frame, headers));
    Bytes damaged = frame;
    damaged.back() ^= 1;
    CHECK_FALSE(outer_udp_checksum_ok(damaged, parse(damaged)));
}

TEST_CASE("The outer packet: each thing that can be wrong has its reason") {
    using R = DropReason;
    const Layers rest{Vxlan{}, kInner, Ipv4{}, Udp{}};
    const auto with = [&](const Ipv4& outer) {
        return reason(parse(Layers{Ethernet{}, outer, kTunnel} + rest));
    };
    const auto with6 = [&](const Ipv6& outer) {
        return reason(parse(Layers{Ethernet{}, outer, kTunnel} + rest));
    };
    const auto outer4 = [](auto change) {
        Ipv4 outer = kOuter4;
        change(outer);
        return outer;
    };
    const auto outer6 = [](auto change) {
        Ipv6 outer = kOuter6;
        change(outer);
        return outer;
    };
    CHECK(with(kOuter4) == R::none);
    CHECK(with(outer4([](auto& o) { o.options = Bytes(4, 1); })) == R::none);
    CHECK(with(outer4([](auto& o) { o.destination = "192.0.2.99"_ip; })) == R::outer_not_for_us);
    CHECK(with(outer4([](auto& o) { o.destination = kOwn[1]; })) == R::outer_not_for_us);
    CHECK(with(outer4([](auto& o) { o.version_and_words = 0x44; })) == R::outer_bad_header);
    CHECK(with(outer4([](auto& o) { o.version_and_words = 0x55; })) == R::outer_bad_header);
    CHECK(with(outer4([](auto& o) { o.length = 19; })) == R::outer_bad_header);
    CHECK(with(outer4([](auto& o) { o.length = 9000; })) == R::outer_truncated);
    CHECK(with(outer4([](auto& o) { o.checksum = 0x1234; })) == R::outer_bad_checksum);
    CHECK(with(outer4([](auto& o) { o.flags_and_offset = 0x2000; })) == R::outer_fragment);
    CHECK(with(outer4([](auto& o) { o.flags_and_offset = 5; })) == R::outer_fragment);
    CHECK(with(outer4([](auto& o) { o.flags_and_offset = 0x4000; })) == R::none);
    CHECK(with(outer4([](auto& o) { o.ttl = 0; })) == R::outer_ttl);
    CHECK(with(outer4([](auto& o) { o.protocol = 6; })) == R::outer_not_vxlan);
    CHECK(with6(kOuter6) == R::none);
    CHECK(with6(outer6([](auto& o) { o.destination = "2001:db8::9"_ip; })) == R::outer_not_for_us);
    CHECK(with6(outer6([](auto& o) { o.version = 4; })) == R::outer_bad_header);
    CHECK(with6(outer6([](auto& o) { o.length = 9000; })) == R::outer_truncated);
    CHECK(with6(outer6([](auto& o) { o.hop_limit = 0; })) == R::outer_ttl);
    CHECK(with6(outer6([](auto& o) { o.next_header = 44; })) == R::outer_fragment);
    CHECK(with6(outer6([](auto& o) { o.next_header = 60; })) == R::outer_not_vxlan);

    const auto udp = [&](const Udp& tunnel) {
        return reason(parse(Layers{Ethernet{}, kOuter4, tunnel} + rest));
    };
    CHECK(udp({.destination = 4790}) == R::outer_not_vxlan);
    CHECK(udp({.destination = 4789, .length = 7}) == R::outer_bad_header);
    CHECK(udp({.destination = 4789, .length = 9000}) == R::outer_bad_header);
    // One that ends inside the inner headers.
    CHECK(udp({.destination = 4789, .length = 12}) == R::outer_truncated);
    CHECK(udp({.destination = 4789, .length = 40}) == R::inner_truncated);

    CHECK(reason(parse({Ethernet{.destination = "02:00:00:00:00:03"_mac}, kOuter4, kTunnel})) ==
          R::outer_not_for_us);
    CHECK(reason(parse({Ethernet{.destination = ethernet::kBroadcast}, kOuter4, kTunnel})) ==
          R::outer_not_for_us);
    CHECK(reason(parse({Ethernet{.type = 0x88cc}, Payload{Bytes(50)}})) == R::outer_not_vxlan);
}

TEST_CASE("VXLAN: the I flag is needed, unknown extensions are refused, reserved bits ignored") {
    using R = DropReason;
    const auto with = [](const Vxlan& header) {
        return reason(parse({Ethernet{}, kOuter4, kTunnel, header, kInner, Ipv4{}, Udp{}}));
    };
    CHECK(with({.flags = 0x00}) == R::vxlan_no_vni);
    CHECK(with({.flags = 0xf7}) == R::vxlan_no_vni);
    for (const std::uint8_t extension : {0x01, 0x04, 0x10, 0x20})
        CHECK(with({.flags = static_cast<std::uint8_t>(0x08 | extension)}) == R::vxlan_reserved);
    for (const std::uint8_t ignored : {0x02, 0x40, 0x80})
        CHECK(with({.flags = static_cast<std::uint8_t>(0x08 | ignored)}) == R::none);
    CHECK(with({.reserved = 0xffffff, .reserved_last = 0xff}) == R::none);
    CHECK(with({.vni = Vni{0}}) == R::unknown_vni);
    CHECK(with({.vni = Vni{0xffffff}}) == R::none);
}

TEST_CASE("The inner frame: each thing that can be wrong has its reason") {
    using R = DropReason;
    const auto frame = [](const Ethernet& header, const Layers& layers) {
        return reason(parse(kTunnel4 + Layers{header} + layers));
    };
    CHECK(frame({.source = "03:00:00:00:00:01"_mac}, {Ipv4{}, Udp{}}) == R::spoofed_mac);
    CHECK(frame(kInnerAll, {Ipv4{}, Udp{}}) == R::inner_broadcast);
    CHECK(frame({.destination = "01:00:5e:00:00:05"_mac}, {Ipv4{}, Udp{}}) == R::inner_multicast);
    CHECK(frame({.destination = "33:33:00:00:00:05"_mac}, {Ipv6{}, Udp{}}) == R::inner_multicast);
    CHECK(frame(kInner, {Vlan{}, Ipv4{}, Udp{}}) == R::inner_vlan);
    CHECK(frame({.type = 0x88a8}, {Vlan{}, Ipv4{}, Udp{}}) == R::inner_vlan);
    CHECK(frame({.type = 0x8915}, {Payload{Bytes(60)}}) == R::inner_ethertype);  // RoCEv1

    const auto v4 = [](const Ipv4& header) { return reason(inner({header, Udp{}})); };
    CHECK(v4({}) == R::none);
    CHECK(v4({.version_and_words = 0x44}) == R::inner_bad_header);
    CHECK(v4({.version_and_words = 0x65}) == R::inner_bad_header);
    CHECK(v4({.length = 19}) == R::inner_bad_header);
    CHECK(v4({.length = 27}) == R::inner_truncated);
    CHECK(v4({.length = 29}) == R::inner_truncated);
    CHECK(v4({.checksum = 1}) == R::inner_bad_checksum);
    CHECK(v4({.options = {7, 7, 4, 0, 0, 0, 0}}) == R::none);
    CHECK(v4({.options = {131, 7, 4, 0, 0, 0, 0}}) == R::inner_ip_options);
    CHECK(v4({.options = {1, 137, 7, 4, 0, 0, 0}}) == R::inner_ip_options);
    CHECK(v4({.options = {7, 1, 0, 0}}) == R::inner_bad_header);
    CHECK(v4({.options = {7, 9, 0, 0}}) == R::inner_bad_header);
    CHECK(v4({.options = {1, 1, 1, 7}}) == R::inner_bad_header);
    for (const auto address : {"0.0.0.0"_ip, "0.1.1.1"_ip, "127.0.0.1"_ip, "240.0.0.1"_ip})
        CHECK(v4({.destination = address}) == R::inner_martian);
    for (const auto address : {"0.0.0.0"_ip, "127.0.0.1"_ip, "224.0.0.1"_ip, "255.255.255.255"_ip})
        CHECK(v4({.source = address}) == R::inner_martian);
    CHECK(v4({.destination = "255.255.255.255"_ip}) == R::inner_broadcast);
    CHECK(v4({.destination = "239.0.0.1"_ip}) == R::inner_multicast);
    CHECK(v4({.destination = Ipv4{}.source}) == R::inner_land);

    const auto v6 = [](const Ipv6& header) { return reason(inner({header, Udp{}})); };
    CHECK(v6({}) == R::none);
    CHECK(v6({.version = 5}) == R::inner_bad_header);
    CHECK(v6({.length = 7}) == R::inner_truncated);
    CHECK(v6({.length = 9}) == R::inner_truncated);
    for (const auto address : {"::"_ip, "::1"_ip, "10.0.0.1"_ip, "ff02::1"_ip})
        CHECK(v6({.source = address}) == R::inner_martian);
    for (const auto address : {"::"_ip, "::1"_ip, "10.0.0.1"_ip})
        CHECK(v6({.destination = address}) == R::inner_martian);
    CHECK(v6({.destination = "ff02::1"_ip}) == R::inner_multicast);
    CHECK(v6({.destination = Ipv6{}.source}) == R::inner_land);
}

TEST_CASE("IPv6 extension headers: passed where they may be, refused where they may not") {
    using R = DropReason;
    const auto behind = [](const Layers& layers) {
        return reason(inner(Layers{Ipv6{}} + layers + Layers{Udp{}}));
    };
    const Extension hop_by_hop{.kind = ipv6::kHopByHop};
    CHECK(behind({hop_by_hop, Extension{}}) == R::none);
    CHECK(behind({Extension{}, hop_by_hop}) == R::inner_extension_header);
    CHECK(behind({Extension{.kind = ipv6::kRouting, .body = {4, 0}}}) == R::none);
    CHECK(behind({Extension{.kind = ipv6::kRouting, .body = {0, 1}}}) == R::inner_extension_header);
    CHECK(behind(Layers(6, Extension{})) == R::none);
    CHECK(behind(Layers(7, Extension{})) == R::inner_extension_header);
    CHECK(behind({Extension{.length = 100}}) == R::inner_truncated);
}

TEST_CASE("The transport header: each thing that can be wrong has its reason") {
    using R = DropReason;
    CHECK(reason(inner({Ipv4{}, Tcp{.header_words = 4}})) == R::inner_bad_header);
    CHECK(reason(inner({Ipv4{}, Tcp{.header_words = 6}})) == R::inner_bad_header);
    CHECK(reason(inner({Ipv4{}, Tcp{.options = {1, 1, 1, 1}}})) == R::none);
    CHECK(reason(inner({Ipv4{.protocol = 6}, Payload{Bytes(19)}})) == R::inner_truncated);
    CHECK(reason(inner({Ipv4{}, Udp{.length = 7}})) == R::inner_bad_header);
    CHECK(reason(inner({Ipv4{}, Udp{.length = 9}})) == R::inner_bad_header);
    CHECK(reason(inner({Ipv4{}, Udp{.length = 8}, Payload{Bytes(4)}})) == R::none);
    CHECK(reason(inner({Ipv4{}, Udp{.destination = 4789}, Vxlan{}})) == R::inner_vxlan);
    CHECK(reason(inner({Ipv4{.protocol = 132}, Payload{Bytes(11)}})) == R::inner_truncated);
    CHECK(reason(inner({Ipv4{.protocol = 58}, Icmp{.type = 128}})) == R::inner_bad_header);
    CHECK(reason(inner({Ipv6{.next_header = 1}, Icmp{}})) == R::inner_bad_header);
    CHECK(reason(inner({Ipv4{.protocol = 50}})) == R::none);
}

TEST_CASE("ICMP: queries open connections, errors quote them, the rest is refused") {
    const auto kind4 = [](std::uint8_t type) { return inner({Ipv4{}, Icmp{.type = type}}).kind; };
    const auto kind6 = [](std::uint8_t type) { return inner({Ipv6{}, Icmp{.type = type}}).kind; };
    for (unsigned type = 0; type < 256; ++type) {
        const auto number = static_cast<std::uint8_t>(type);
        INFO(type);
        const bool query4 = type == 0 || type == 8 || type == 13 || type == 14;
        const bool error4 = type == 3 || type == 11 || type == 12;
        CHECK(kind4(number) == (query4   ? FrameKind::connection
                                : error4 ? FrameKind::icmp_error
                                         : FrameKind::drop));
        const bool query6 = type == 128 || type == 129;
        const bool error6 = type >= 1 && type <= 4;
        CHECK(kind6(number) == (query6   ? FrameKind::connection
                                : error6 ? FrameKind::icmp_error
                                         : FrameKind::drop));
    }
    const Bytes frame = packet(kTunnel4 + Layers{kInner, Ipv4{}, Icmp{.type = 8, .identifier = 9}});
    CHECK(tuple_of(frame, parse(frame)) == Tuple{"10.0.0.1"_ip, "10.0.0.2"_ip, 1, 9, 8 << 8});
}

TEST_CASE("Questions: ARP and neighbour solicitations, from the station that they name") {
    using R = DropReason;
    const Arp right{.sender_mac = kInner.source};
    const auto arp = [](const Ethernet& header, const Arp& message) {
        return parse(kTunnel4 + Layers{header, message});
    };
    CHECK(arp(kInnerAll, right).kind == FrameKind::arp_request);
    CHECK(arp(kInner, right).kind == FrameKind::arp_request);
    CHECK(reason(arp(kInnerAll, {.operation = arp::kReply, .sender_mac = kInner.source})) ==
          R::inner_arp);
    CHECK(reason(arp(kInnerAll, {.sender_mac = "02:aa:00:00:00:09"_mac})) == R::spoofed_mac);
    const Bytes asked = packet(kTunnel4 + Layers{kInnerAll, right});
    const Packet question = to_packet(asked, parse(asked), PortId{1});
    CHECK(question.kind == EtherKind::arp);
    CHECK(question.tuple.source == "10.0.0.1"_ip);
    CHECK(question.tuple.destination == "10.0.0.2"_ip);

    Bytes solicitation(kNeighbourFrame);
    write_solicitation(solicitation, {"2001:db8::1"_ip, kInner.source}, "2001:db8::2"_ip);
    const Bytes frame = packet(kTunnel4 + Layers{Payload{solicitation}});
    const Headers headers = parse(frame);
    REQUIRE(headers.kind == FrameKind::solicitation);
    CHECK(to_packet(frame, headers, PortId{1}).nd_target == "2001:db8::2"_ip);
    Bytes spoofed = frame;
    spoofed[kOuterIpv4 + 11] ^= 1;
    CHECK(reason(parse(spoofed)) == R::spoofed_mac);
    Bytes advertisement(kNeighbourFrame);
    write_unsolicited_advertisement(advertisement, {"2001:db8::1"_ip, kInner.source},
                                    NeighbourRole::host);
    CHECK(reason(parse(kTunnel4 + Layers{Payload{advertisement}})) == R::inner_nd);
}

TEST_CASE("Fragments: the first has ports, the others have none") {
    const Headers first = inner({Ipv4{.flags_and_offset = 0x2000}, Udp{.length = 2000}});
    CHECK(first.kind == FrameKind::connection);
    CHECK(first.has(kFragment));
    CHECK(first.has(kFirstFragment));
    CHECK(first.ports != 0);
    const Headers later = inner({Ipv4{.flags_and_offset = 0x0010}, Udp{}});
    CHECK(later.kind == FrameKind::connection);
    CHECK(later.has(kFragment));
    CHECK_FALSE(later.has(kFirstFragment));
    CHECK(later.ports == 0);
    const Headers later6 = inner({Ipv6{}, FragmentHeader{.offset_and_more = 8}, Payload{Bytes(3)}});
    CHECK(later6.has(kFragment));
    CHECK_FALSE(later6.has(kFirstFragment));
    CHECK(later6.ports == 0);
}

TEST_CASE("An IPv6 fragment that is the whole packet is none (RFC 6946)") {
    const Headers atomic = inner({Ipv6{}, FragmentHeader{.offset_and_more = 0}, Udp{}});
    CHECK(atomic.kind == FrameKind::connection);
    CHECK_FALSE(atomic.has(kFragment));
    CHECK_FALSE(atomic.has(kFirstFragment));
    CHECK(atomic.has(kOptions));
    CHECK(atomic.protocol == static_cast<std::uint8_t>(Protocol::udp));
    CHECK(atomic.ports != 0);
    // Reserved bits are ignored (RFC 8200 section 4.5), and its lengths are held to be whole.
    CHECK_FALSE(inner({Ipv6{}, FragmentHeader{.offset_and_more = 6}, Udp{}}).has(kFragment));
    CHECK(reason(inner({Ipv6{}, FragmentHeader{.offset_and_more = 0}, Udp{.length = 2000}})) ==
          DropReason::inner_bad_header);
    const Headers first =
        inner({Ipv6{}, FragmentHeader{.offset_and_more = 1}, Udp{.length = 2000}});
    CHECK(first.has(kFragment));
    CHECK(first.has(kFirstFragment));
}

TEST_CASE("Underlay and uplink: what is the gateway's own is local") {
    CHECK(parse({Ethernet{.destination = ethernet::kBroadcast}, Arp{}}).kind == FrameKind::local);
    CHECK(parse({Ethernet{}, Ipv4{.destination = kOwn[1]}, Icmp{}}).kind == FrameKind::local);
    CHECK(parse({Ethernet{}, Ipv6{.destination = kOwn[2]}, Icmp{.type = 128}}).kind ==
          FrameKind::local);
    CHECK(uplink({Ethernet{}, Ipv4{.destination = kOwn[1]}, Icmp{}}).kind == FrameKind::local);
    CHECK(uplink({Ethernet{.destination = ethernet::kBroadcast}, Arp{.target = kOwn[1]}}).kind ==
          FrameKind::local);
    CHECK(uplink({Ethernet{.destination = ethernet::kBroadcast}, Arp{}}).kind ==
          FrameKind::arp_request);
}

TEST_CASE("The uplink's frames are parsed as the inner ones are, with zone 0") {
    using R = DropReason;
    const Headers headers = uplink({Ethernet{}, Ipv4{}, Tcp{}});
    CHECK(headers.kind == FrameKind::connection);
    CHECK(headers.zone == 0);
    CHECK(headers.flags == 0);
    CHECK(headers.l3 == 14);
    CHECK(reason(uplink({Ethernet{.destination = kInner.destination}, Ipv4{}, Tcp{}})) ==
          R::outer_not_for_us);
    CHECK(reason(uplink({Vlan{}, Payload{Bytes(60)}})) != R::none);
    CHECK(reason(uplink({Ethernet{}, Vlan{}, Ipv4{}, Tcp{}})) == R::uplink_ethertype);
    CHECK(reason(uplink({Ethernet{}, Ipv4{.checksum = 1}, Tcp{}})) == R::inner_bad_checksum);
    // To the world a port 4789 is one like others.
    CHECK(uplink({Ethernet{}, Ipv4{}, Udp{.destination = 4789}}).kind == FrameKind::connection);
}

TEST_CASE("A frame that ends too early is truncated; one that is not at hand yet, incomplete") {
    Bytes solicitation(kNeighbourFrame);
    write_solicitation(solicitation, {"2001:db8::1"_ip, kInner.source}, "2001:db8::2"_ip);
    for (const Layers& layers :
         {kTunnel4 + Layers{kInner, Ipv4{.options = {1}}, Tcp{.options = {1}}, Payload{Bytes(9)}},
          kTunnel6 + Layers{kInner, Ipv6{}, Extension{}, Udp{}, Payload{Bytes(9)}},
          kTunnel4 + Layers{kInnerAll, Arp{.sender_mac = kInner.source}},
          kTunnel4 + Layers{Payload{solicitation}},
          kTunnel4 + Layers{kInner, Ipv4{}, Icmp{.type = 3}, Ipv4{}, Udp{}}}) {
        const Bytes whole = packet(layers);
        const auto length = static_cast<std::uint32_t>(whole.size());
        const Headers right = parse(whole);
        REQUIRE(right.kind != FrameKind::drop);
        for (std::uint32_t size = 0; size < length; ++size) {
            INFO(size);
            const Bytes piece(whole.begin(), whole.begin() + size);
            // The rest lies in another segment.
            const Headers part = parse_underlay(piece, length, kReceiver);
            CHECK((part.kind == FrameKind::incomplete || same(part, right)));
            // There is no rest: what an outer header says is not there.
            const DropReason why = reason(parse_underlay(piece, size, kReceiver));
            CHECK((why == DropReason::outer_truncated || why == DropReason::inner_truncated));
        }
    }
}

namespace {
// No frame that the straight line takes is another to the general parser; nor with any single octet
// of its headers damaged. How many it took.
template <Shape shape, class Parse>
unsigned taken_alike(const Layers& before, const std::vector<Layer>& networks,
                     Parse general_parser) {
    FastReceiver fast;
    std::memcpy(&fast.mac, kPort.bytes.data(), 6);
    fast.vtep = kVteps[0].to_v4().raw;
    unsigned taken = 0;
    for (const Layer& network : networks)
        for (const Layer& upper : {Layer{Tcp{.flags = tcp::kSyn}}, Layer{Tcp{.options = {1, 1}}},
                                   Layer{Udp{}}, Layer{Udp{.checksum = 0}}, Layer{Icmp{}}})
            for (const std::size_t size : {0U, 1U, 1400U}) {
                Bytes frame = packet(before + Layers{network, upper, Payload{filler(size)}});
                const Headers general = general_parser(frame);
                const auto length = static_cast<std::uint32_t>(frame.size());
                Headers straight;
                if (!parse_fast<shape>(frame.data(), length, length, fast, straight)) continue;
                ++taken;
                CHECK(same(straight, general));
                const std::size_t headers =
                    std::min(frame.size(), general.l4 + std::size_t{tcp::kSize});
                for (std::size_t at = 0; at < headers; ++at)
                    for (const std::uint8_t flip : {0x01, 0x10, 0x80, 0xff}) {
                        frame[at] ^= flip;
                        Headers damaged;
                        if (parse_fast<shape>(frame.data(), length, length, fast, damaged))
                            CHECK(same(damaged, general_parser(frame)));
                        frame[at] ^= flip;
                    }
            }
    return taken;
}
}  // namespace

TEST_CASE("Common frames in a straight line give what the general parser gives") {
    std::vector<Layer> ipv4, ipv6;
    for (const std::uint16_t fragment : {0, 0x4000, 0x2000, 0x0001})
        ipv4.push_back(Ipv4{.ttl = 9, .tos = 3, .flags_and_offset = fragment});
    for (const std::uint8_t version : {6, 5})
        ipv6.push_back(
            Ipv6{.hop_limit = 9, .traffic_class = 0x83, .flow_label = 0x12345, .version = version});
    const auto underlay = [](const Bytes& frame) { return parse(frame); };
    const auto uplink = [](const Bytes& frame) {
        return parse_uplink(frame, static_cast<std::uint32_t>(frame.size()), kReceiver);
    };
    // TCP and UDP, each of two kinds and three sizes, of those that are no fragments.
    CHECK(taken_alike<Shape::overlay_ipv4>(kTunnel4 + Layers{kInner}, ipv4, underlay) == 2 * 4 * 3);
    CHECK(taken_alike<Shape::overlay_ipv6>(kTunnel4 + Layers{kInner}, ipv6, underlay) == 4 * 3);
    CHECK(taken_alike<Shape::uplink_ipv4>(Layers{Ethernet{.destination = kPort}}, ipv4, uplink) ==
          2 * 4 * 3);
}
