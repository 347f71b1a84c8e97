// SPDX-License-Identifier: Apache-2.0
// What the gateway itself says: to tenants, to its own links, to the internet.
#include "dataplane/wire/neighbour.hpp"
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

struct Cloud : Gateway {
    Cloud() {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        c = add_machine(8, 2);
        a6 = with(a, "fd00:1::5");
        b6 = with(b, "fd00:1::6");
        c6 = with(c, "fd00:2::8");
    }
    Machine with(Machine machine, const char* address) {
        machine.address = ip(address);
        put(machine.row(), machine.source());
        return machine;
    }
    // What comes back to a, in its host's tunnel.
    Bytes back() {
        const Tunnelled out = tunnelled();
        CHECK(out.to == vtep_of(a.host));
        CHECK(out.vni == vni_of(a));
        return out.frame;
    }
    static Ipv4 error_header(const IpAddress& from, const IpAddress& to) {
        return {.source = from,
                .destination = to,
                .tos = 0xc0,
                .identification = 0,
                .flags_and_offset = wire::ipv4::kDontFragment};
    }

    const IpAddress gateway = ip("10.0.1.1"), gateway6 = ip("fd00:1::1");
    Machine a, b, c, a6, b6, c6;
};

const Icmp kExpired{.type = 11, .code = 0, .identifier = 0, .sequence = 0};
const Icmp kExpired6{.type = 3, .code = 0, .identifier = 0, .sequence = 0};

}  // namespace

TEST_CASE_METHOD(Cloud,
                 "traceroute sees the gateway between subnets, on the first packet and later") {
    const Layers dying{Ipv4{.source = a.address, .destination = c.address, .ttl = 1},
                       Udp{.destination = 33434}, Payload{filler(12)}};
    const Layers dying6{Ipv6{.source = a6.address, .destination = c6.address, .hop_limit = 1},
                        Udp{.destination = 33434}, Payload{filler(12)}};
    for (int i = 0; i < 2; ++i) {
        receive(kUnderlay, frame_of(a, dying));
        CHECK(back() == packet({Ethernet{kGatewayMac, a.mac}, error_header(gateway, a.address),
                                kExpired, Payload{packet(dying)}}));
        receive(kUnderlay, frame_of(a6, dying6));
        CHECK(back() == packet({Ethernet{kGatewayMac, a.mac},
                                Ipv6{.source = gateway6, .destination = a6.address}, kExpired6,
                                Payload{packet(dying6)}}));
    }
    CHECK(drops(DropReason::ttl_expired) == 4);
}

TEST_CASE_METHOD(Cloud, "inside a subnet nothing is routed: a TTL of one arrives") {
    const Layers layers{Ipv4{.source = a.address, .destination = b.address, .ttl = 1}, Udp{}};
    receive(kUnderlay, frame_of(a, layers, b.mac));
    CHECK(inner() == packet(Layers{Ethernet{a.mac, b.mac}} + layers));
}

TEST_CASE_METHOD(Cloud, "a TTL or hop limit of zero goes nowhere, inside a subnet either") {
    const auto four = [&](std::uint8_t ttl) {
        return frame_of(a, {Ipv4{.source = a.address, .destination = b.address, .ttl = ttl}, Udp{}},
                        b.mac);
    };
    const auto six = [&](std::uint8_t ttl) {
        return frame_of(
            a6, {Ipv6{.source = a6.address, .destination = b6.address, .hop_limit = ttl}, Udp{}},
            b.mac);
    };
    for (int round = 0; round < 2; ++round) {  // as a first packet, and as one of a connection
        check_dropped(kUnderlay, four(0), DropReason::ttl_expired);
        check_dropped(kUnderlay, six(0), DropReason::ttl_expired);
        receive(kUnderlay, four(1));
        CHECK_FALSE(silent());
        receive(kUnderlay, six(1));
        CHECK_FALSE(silent());
    }
}

TEST_CASE_METHOD(Cloud, "a subnet's MTU beyond what the underlay carries is not believed") {
    for (std::uint32_t i = 1; i <= 2; ++i)  // the port carries 9,000, the tunnel takes 50 of them
        put(nfv::LocalRow{VpcId{1}, ip(i == 1 ? "10.0.1.1" : "10.0.2.1"), kGatewayMac,
                          SubnetId{10 + i}, 120, RouteTableId{1}, 9500, Cookie{300 + i}});
    const auto sized = [&](std::size_t size) {
        return Layers{Ipv4{.source = a.address,
                           .destination = c.address,
                           .flags_and_offset = wire::ipv4::kDontFragment},
                      Udp{}, Payload{filler(size - 28)}};
    };
    const std::vector<std::size_t> cuts{1500, 3000, 4500, 6000, 7500};
    receive(kUnderlay, frame_of(a, sized(8951)), cuts);
    Bytes quoted = packet(sized(8951));
    quoted.resize(548);
    CHECK(back() ==
          packet({Ethernet{kGatewayMac, a.mac}, error_header(gateway, a.address),
                  Icmp{.type = 3, .code = 4, .identifier = 0, .sequence = 8950}, Payload{quoted}}));
    receive(kUnderlay, frame_of(a, sized(8950)), cuts);
    CHECK_FALSE(silent());
}

TEST_CASE_METHOD(Cloud, "too big with DF, or in IPv6: the sender learns the tenant's MTU") {
    const Layers big{Ipv4{.source = a.address,
                          .destination = c.address,
                          .flags_and_offset = wire::ipv4::kDontFragment},
                     Udp{}, Payload{filler(1430)}};
    receive(kUnderlay, frame_of(a, big));
    Bytes quoted = packet(big);
    quoted.resize(548);
    CHECK(back() ==
          packet({Ethernet{kGatewayMac, a.mac}, error_header(gateway, a.address),
                  Icmp{.type = 3, .code = 4, .identifier = 0, .sequence = 1450}, Payload{quoted}}));
    const Layers big6{Ipv6{.source = a6.address, .destination = c6.address}, Udp{},
                      Payload{filler(1430)}};
    receive(kUnderlay, frame_of(a6, big6));
    quoted = packet(big6);
    quoted.resize(1232);
    CHECK(back() ==
          packet({Ethernet{kGatewayMac, a.mac}, Ipv6{.source = gateway6, .destination = a6.address},
                  Icmp{.type = 2, .code = 0, .identifier = 0, .sequence = 1450}, Payload{quoted}}));
    CHECK(drops(DropReason::too_big) == 2);
}

TEST_CASE_METHOD(Cloud, "the gateway address answers ping, and nothing else") {
    receive(kUnderlay, frame_of(a, {Ipv4{.source = a.address, .destination = gateway, .ttl = 9},
                                    Icmp{}, Payload{filler(56)}}));
    CHECK(back() ==
          packet({Ethernet{kGatewayMac, a.mac}, Ipv4{.source = gateway, .destination = a.address},
                  Icmp{.type = 0}, Payload{filler(56)}}));
    receive(kUnderlay, frame_of(a6, {Ipv6{.source = a6.address, .destination = gateway6},
                                     Icmp{.type = 128}, Payload{filler(56)}}));
    CHECK(back() ==
          packet({Ethernet{kGatewayMac, a.mac}, Ipv6{.source = gateway6, .destination = a6.address},
                  Icmp{.type = 129}, Payload{filler(56)}}));
    check_dropped(kUnderlay,
                  frame_of(a, {Ipv4{.source = a.address, .destination = gateway}, Udp{}}),
                  DropReason::gateway_protocol);
    CHECK(connections() == 0);
}

TEST_CASE_METHOD(Cloud, "a ping of many buffers comes back whole") {
    const Layers request{Ipv4{.source = a.address, .destination = gateway}, Icmp{},
                         Payload{filler(1400)}};
    receive(kUnderlay, frame_of(a, request), {110, 700});
    CHECK(back() ==
          packet({Ethernet{kGatewayMac, a.mac}, Ipv4{.source = gateway, .destination = a.address},
                  Icmp{.type = 0}, Payload{filler(1400)}}));
}

TEST_CASE_METHOD(Cloud, "a ping with record route, as ping -R sends, comes back without") {
    Bytes route(40);
    route[0] = 7;
    route[1] = 39;
    route[2] = 4;
    receive(kUnderlay,
            frame_of(a, {Ipv4{.source = a.address, .destination = gateway, .options = route},
                         Icmp{}, Payload{filler(56)}}));
    CHECK(back() ==
          packet({Ethernet{kGatewayMac, a.mac}, Ipv4{.source = gateway, .destination = a.address},
                  Icmp{.type = 0}, Payload{filler(56)}}));
}

TEST_CASE_METHOD(Cloud,
                 "ARP: the gateway answers for itself and for every endpoint of the subnet") {
    const auto asked = [&](const IpAddress& target) {
        return frame_of(a, {Arp{.sender_mac = a.mac, .sender = a.address, .target = target}},
                        wire::ethernet::kBroadcast);
    };
    for (const auto& [address, mac] :
         {std::pair{gateway, kGatewayMac}, std::pair{b.address, b.mac}}) {
        receive(kUnderlay, asked(address));
        CHECK(back() == packet({Ethernet{mac, a.mac}, Arp{.operation = wire::arp::kReply,
                                                          .sender_mac = mac,
                                                          .sender = address,
                                                          .target_mac = a.mac,
                                                          .target = a.address}}));
    }
    // Nobody, somebody of another subnet, oneself (a gratuitous announcement).
    for (const auto& address : {ip("10.0.1.99"), c.address, a.address}) {
        receive(kUnderlay, asked(address));
        CHECK(silent());
    }
}

TEST_CASE_METHOD(Cloud, "ND: the same, a router for its own address alone") {
    const auto asked = [&](const IpAddress& target) {
        Bytes frame(wire::kNeighbourFrame);
        wire::write_solicitation(frame, {a6.address, a.mac}, target);
        return frame_of(a6, {Payload{Bytes(frame.begin() + 14, frame.end())}},
                        wire::load_mac(frame.data()));
    };
    for (const auto& [address, mac] :
         {std::pair{gateway6, kGatewayMac}, std::pair{b6.address, b.mac}}) {
        Bytes frame = asked(address);
        wire::store(&frame[50 + 12], wire::ethernet::kIpv6);
        receive(kUnderlay, frame);
        const Bytes answer = back();
        const auto message = wire::parse_advertisement(answer);
        REQUIRE(message);
        CHECK(wire::load_mac(answer.data()) == a.mac);
        CHECK(wire::load_mac(&answer[6]) == mac);
        CHECK(message->target == address);
        CHECK(message->target_link == mac);
        CHECK(message->solicited);
        CHECK(message->router == (address == gateway6));
    }
    Bytes frame = asked(ip("fd00:1::99"));
    wire::store(&frame[50 + 12], wire::ethernet::kIpv6);
    receive(kUnderlay, frame);
    CHECK(silent());
}

TEST_CASE_METHOD(Cloud, "nobody there, no route: the sender is told") {
    receive(kUnderlay,
            frame_of(a, {Ipv4{.source = a.address, .destination = ip("10.0.2.99")}, Udp{}}));
    const Bytes nobody = back();
    CHECK(nobody[14 + 20] == 3);
    CHECK(nobody[14 + 21] == 1);
    receive(kUnderlay,
            frame_of(a, {Ipv4{.source = a.address, .destination = ip("172.16.0.1")}, Udp{}}));
    const Bytes nowhere = back();
    CHECK(nowhere[14 + 20] == 3);
    CHECK(nowhere[14 + 21] == 0);
    CHECK(drops(DropReason::unknown_destination) == 1);
    CHECK(drops(DropReason::no_route) == 1);
    // Never to one who is not who he says.
    Machine liar = a;
    liar.mac = b.mac;
    receive(kUnderlay,
            frame_of(liar, {Ipv4{.source = a.address, .destination = ip("172.16.0.1")}, Udp{}}));
    CHECK(silent());
}

TEST_CASE_METHOD(Cloud, "errors are limited: a flood gets a burst of them and no more") {
    const Bytes frame =
        frame_of(a, {Ipv4{.source = a.address, .destination = c.address, .ttl = 1}, Udp{}});
    std::size_t answers = 0;
    for (int turn = 0; turn < 16; ++turn) {
        for (int i = 0; i < 30; ++i) arrive(kUnderlay, frame);
        run();
        answers += sent(kUnderlay).size();
    }
    CHECK(answers >= session::AnswerLimits::kBurst);
    CHECK(answers < session::AnswerLimits::kBurst * 3);
    CHECK(drops(DropReason::ttl_expired) == 16 * 30);
}

TEST_CASE_METHOD(Cloud, "on the underlay the gateway is a host: ARP, ND and ping, and it listens") {
    const IpAddress vtep = vtep_of(HostId{1});
    const MacAddress mac = host_mac(vtep);
    receive(kUnderlay, packet({Ethernet{mac, wire::ethernet::kBroadcast},
                               Arp{.sender_mac = mac, .sender = vtep, .target = kVtep}}));
    CHECK(sent(kUnderlay) == std::vector<Bytes>{packet(
                                 {Ethernet{kUnderlayMac, mac}, Arp{.operation = wire::arp::kReply,
                                                                   .sender_mac = kUnderlayMac,
                                                                   .sender = kVtep,
                                                                   .target_mac = mac,
                                                                   .target = vtep}})});
    NeighbourMessage heard;
    REQUIRE(worker->neighbours().pop(heard));
    CHECK(heard.address == vtep);
    CHECK(heard.mac == mac);
    CHECK_FALSE(heard.solicited);

    receive(kUnderlay, packet({Ethernet{mac, kUnderlayMac}, Arp{.operation = wire::arp::kReply,
                                                                .sender_mac = mac,
                                                                .sender = vtep,
                                                                .target_mac = kUnderlayMac,
                                                                .target = kVtep}}));
    CHECK(silent());
    REQUIRE(worker->neighbours().pop(heard));
    CHECK(heard.solicited);

    receive(kUnderlay, packet({Ethernet{mac, kUnderlayMac},
                               Ipv4{.source = vtep, .destination = kVtep}, Icmp{}}));
    CHECK(sent(kUnderlay) == std::vector<Bytes>{packet({Ethernet{kUnderlayMac, mac},
                                                        Ipv4{.source = kVtep, .destination = vtep},
                                                        Icmp{.type = 0}})});

    const IpAddress vtep6 = ip("2001:db8:ff::13");
    Bytes asked(wire::kNeighbourFrame);
    wire::write_solicitation(asked, {vtep6, host_mac(vtep6)}, kVtep6);
    receive(kUnderlay, asked);
    const auto frames = sent(kUnderlay);
    REQUIRE(frames.size() == 1);
    const auto answer = wire::parse_advertisement(frames[0]);
    REQUIRE(answer);
    CHECK(answer->target == kVtep6);
    CHECK(answer->target_link == kUnderlayMac);
    REQUIRE(worker->neighbours().pop(heard));
    CHECK(heard.address == vtep6);
    receive(kUnderlay, packet({Ethernet{host_mac(vtep6), kUnderlayMac},
                               Ipv6{.source = vtep6, .destination = kVtep6}, Icmp{.type = 128}}));
    CHECK(sent(kUnderlay) ==
          std::vector<Bytes>{
              packet({Ethernet{kUnderlayMac, host_mac(vtep6)},
                      Ipv6{.source = kVtep6, .destination = vtep6}, Icmp{.type = 129}})});
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Cloud, "on the uplink it answers ARP for its own and for elastic addresses") {
    put(nfv::PublicAddressRow{ip("203.0.113.5"), a.vpc, a.address, {}, Cookie{701}});
    const auto asked = [&](const IpAddress& target) {
        return packet({Ethernet{kRouterMac, wire::ethernet::kBroadcast},
                       Arp{.sender_mac = kRouterMac, .sender = kNextHop, .target = target}});
    };
    for (const auto& address : {kUplinkAddress, ip("203.0.113.5")}) {
        receive(kUplink, asked(address));
        CHECK(uplinked() ==
              packet({Ethernet{kUplinkMac, kRouterMac}, Arp{.operation = wire::arp::kReply,
                                                            .sender_mac = kUplinkMac,
                                                            .sender = address,
                                                            .target_mac = kRouterMac,
                                                            .target = kNextHop}}));
    }
    receive(kUplink, asked(ip("203.0.113.99")));
    CHECK(silent());
    receive(kUplink, packet({Ethernet{kRouterMac, kUplinkMac},
                             Ipv4{.source = kNextHop, .destination = kUplinkAddress}, Icmp{}}));
    CHECK(uplinked() ==
          packet({Ethernet{kUplinkMac, kRouterMac},
                  Ipv4{.source = kUplinkAddress, .destination = kNextHop}, Icmp{.type = 0}}));
}

}  // namespace sluice::worker
