// SPDX-License-Identifier: Apache-2.0
// What is carried from endpoint to endpoint, octet by octet.
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

struct Cloud : Gateway {
    Cloud() {
        build_vpc();
        open_group();
        a = add_machine(5);     // host 2
        b = add_machine(6);     // host 1, the same subnet
        c = add_machine(8, 2);  // host 1, the other subnet
        for (Machine* machine : {&a, &b, &c}) {
            const std::string subnet = std::to_string(machine->subnet.value % 10);
            Machine six = *machine;
            six.address =
                ip(("fd00:" + subnet + "::" + std::to_string(machine->id.value % 100)).c_str());
            put(six.row(), six.source());
        }
    }
    static Machine six(Machine machine) {
        const std::string subnet = std::to_string(machine.subnet.value % 10);
        machine.address =
            ip(("fd00:" + subnet + "::" + std::to_string(machine.id.value % 100)).c_str());
        return machine;
    }
    Machine a, b, c;
};

Ipv4 between(const Machine& from, const Machine& to) {
    return {.source = from.address, .destination = to.address};
}
Ipv6 between6(const Machine& from, const Machine& to) {
    return {.source = from.address, .destination = to.address};
}

}  // namespace

TEST_CASE_METHOD(Cloud, "inside a subnet a frame arrives as it was sent, in the host's tunnel") {
    const Layers layers{between(a, b), Udp{}, Payload{filler(100)}};
    for (int i = 0; i < 3; ++i) {
        receive(kUnderlay, frame_of(a, layers, b.mac));
        const Tunnelled out = tunnelled();
        CHECK(out.vni == vni_of(a));
        CHECK(out.to == vtep_of(b.host));
        CHECK(out.frame == packet(Layers{Ethernet{a.mac, b.mac}} + layers));
    }
    CHECK(connections() == 1);
    CHECK(worker->counters().walks.read() == 1);
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Cloud, "replies hit the connection without a walk of their own") {
    receive(kUnderlay, frame_of(a, {between(a, b), Udp{.source = 1, .destination = 2}}, b.mac));
    CHECK(tunnelled().to == vtep_of(b.host));
    const Layers reply{between(b, a), Udp{.source = 2, .destination = 1}};
    receive(kUnderlay, frame_of(b, reply, a.mac));
    const Tunnelled out = tunnelled();
    CHECK(out.to == vtep_of(a.host));
    CHECK(out.frame == packet(Layers{Ethernet{b.mac, a.mac}} + reply));
    CHECK(worker->counters().walks.read() == 1);
}

TEST_CASE_METHOD(Cloud, "across subnets the gateway is a router: its MAC, TTL less one") {
    const auto sent = between(a, c);
    receive(kUnderlay, frame_of(a, {sent, Tcp{.flags = wire::tcp::kSyn}}));
    Ipv4 arrives = sent;
    arrives.ttl = 63;
    CHECK(inner() ==
          packet({Ethernet{kGatewayMac, c.mac}, arrives, Tcp{.flags = wire::tcp::kSyn}}));

    const Machine a6 = six(a), c6 = six(c);
    const auto sent6 = between6(a6, c6);
    receive(kUnderlay, frame_of(a6, {sent6, Tcp{.flags = wire::tcp::kSyn}}));
    Ipv6 arrives6 = sent6;
    arrives6.hop_limit = 63;
    CHECK(inner() ==
          packet({Ethernet{kGatewayMac, c.mac}, arrives6, Tcp{.flags = wire::tcp::kSyn}}));
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Cloud, "IPv6 inside a subnet, with extension headers, arrives as it was sent") {
    const Machine a6 = six(a), b6 = six(b);
    const Layers layers{between6(a6, b6), Extension{}, Udp{}, Payload{filler(33)}};
    for (int i = 0; i < 2; ++i) {
        receive(kUnderlay, frame_of(a6, layers, b.mac));
        CHECK(inner() == packet(Layers{Ethernet{a.mac, b.mac}} + layers));
    }
    CHECK(connections() == 1);
}

TEST_CASE_METHOD(Cloud, "a host reached over IPv6: the outer packet is IPv6, both ways") {
    const IpAddress vtep = ip("2001:db8:ff::13");
    put(openflow::HostRow{HostId{1}, {vtep}, Cookie{501}});
    const Layers layers{between(a, b), Udp{.source = 7, .destination = 8}};
    receive(kUnderlay, frame_of(a, layers, b.mac));
    const Tunnelled out = tunnelled();
    CHECK(out.to == vtep);
    CHECK(out.frame == packet(Layers{Ethernet{a.mac, b.mac}} + layers));

    const Layers reply{between(b, a), Udp{.source = 8, .destination = 7}};
    for (const std::optional<std::uint16_t> checksum : {std::optional<std::uint16_t>{0}, {}}) {
        receive(kUnderlay,
                packet(Layers{Ethernet{host_mac(vtep), kUnderlayMac},
                              Ipv6{.source = vtep, .destination = kVtep6},
                              Udp{.source = 50000, .destination = 4789, .checksum = checksum},
                              Vxlan{.vni = vni_of(b)}, Ethernet{b.mac, a.mac}} +
                       reply));
        CHECK(inner() == packet(Layers{Ethernet{b.mac, a.mac}} + reply));
    }
}

TEST_CASE_METHOD(Cloud, "a wrong outer UDP checksum is dropped, over chained buffers too") {
    const IpAddress vtep = vtep_of(a.host);
    const auto frame = [&](std::optional<std::uint16_t> checksum) {
        return packet(Layers{Ethernet{host_mac(vtep), kUnderlayMac},
                             Ipv4{.source = vtep, .destination = kVtep},
                             Udp{.source = 50000, .destination = 4789, .checksum = checksum},
                             Vxlan{.vni = vni_of(a)}, Ethernet{a.mac, b.mac}, between(a, b), Udp{},
                             Payload{filler(301)}});
    };
    for (const std::vector<std::size_t>& cuts :
         {std::vector<std::size_t>{}, std::vector<std::size_t>{130, 200}}) {
        receive(kUnderlay, frame({}), cuts);
        CHECK(inner().size() == 14 + 20 + 8 + 301);
        const auto before = drops(DropReason::outer_bad_checksum);
        receive(kUnderlay, frame(0x1234), cuts);
        CHECK(silent());
        CHECK(drops(DropReason::outer_bad_checksum) == before + 1);
    }
}

TEST_CASE_METHOD(Cloud, "headers may straddle buffers, wherever the first one ends") {
    const Layers layers{between(a, b), Tcp{.flags = wire::tcp::kSyn}, Payload{filler(200)}};
    const Bytes frame = frame_of(a, layers, b.mac);
    const Bytes right = packet(Layers{Ethernet{a.mac, b.mac}} + layers);
    for (std::size_t cut = 1; cut < 130; ++cut) {
        INFO(cut);
        receive(kUnderlay, frame, {cut});
        CHECK(inner() == right);
        receive(kUnderlay, frame, {cut, cut + 1, cut + 2, frame.size() - 1});
        CHECK(inner() == right);
    }
    CHECK(connections() == 1);
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Cloud, "a jumbo frame in many buffers goes as one") {
    put(nfv::LocalRow{VpcId{1}, ip("10.0.1.1"), kGatewayMac, SubnetId{11}, 120, RouteTableId{1},
                      8900, Cookie{301}});
    const Layers layers{between(a, b), Udp{}, Payload{filler(8000)}};
    receive(kUnderlay, frame_of(a, layers, b.mac), {1500, 3000, 4500, 6000, 7500});
    CHECK(inner() == packet(Layers{Ethernet{a.mac, b.mac}} + layers));
}

TEST_CASE_METHOD(Cloud, "padding behind the inner packet, and behind the outer one, stays here") {
    const Layers layers{between(a, b), Udp{}};
    Bytes padded = frame_of(a, layers + Layers{Payload{Bytes(18)}}, b.mac);
    // The inner IP packet is shorter than its frame.
    const Layers tight{Ethernet{a.mac, b.mac}, between(a, b), Udp{}};
    Bytes inside = frame_of(a,
                            {Ipv4{.source = a.address, .destination = b.address, .length = 28},
                             Udp{.length = 8}, Payload{Bytes(18)}},
                            b.mac);
    // (The builder's UDP checksum covers the padding: none is needed.)
    wire::store(&inside[50 + 14 + 20 + 6], be16{0});
    receive(kUnderlay, inside);
    Bytes out = inner();
    CHECK(out.size() == 14 + 28);

    Bytes outside = frame_of(a, layers, b.mac);
    outside.resize(outside.size() + 6, 0xee);
    receive(kUnderlay, outside);
    CHECK(inner() == packet(tight));
}

TEST_CASE_METHOD(Cloud, "TOS is copied outwards; ECN follows RFC 6040 inwards") {
    const auto through = [&](std::uint8_t outer, std::uint8_t inside) {
        const IpAddress vtep = vtep_of(a.host);
        receive(
            kUnderlay,
            packet({Ethernet{host_mac(vtep), kUnderlayMac},
                    Ipv4{.source = vtep, .destination = kVtep, .tos = outer},
                    Udp{.source = 50000, .destination = 4789, .checksum = 0},
                    Vxlan{.vni = vni_of(a)}, Ethernet{a.mac, b.mac},
                    Ipv4{.source = a.address, .destination = b.address, .tos = inside}, Udp{}}));
    };
    // Of the field: 0 not capable, 1 and 2 capable, 3 congested. Figure 4 of RFC 6040.
    constexpr int kDropped = -1;
    const int expected[4][4] = {{0, 0, 0, kDropped}, {1, 1, 1, 3}, {2, 1, 2, 3}, {3, 3, 3, 3}};
    for (std::uint8_t inside = 0; inside < 4; ++inside)
        for (std::uint8_t outer = 0; outer < 4; ++outer) {
            INFO("inner " << int{inside} << ", outer " << int{outer});
            // (0x28: a class that has to come through.)
            through(outer, static_cast<std::uint8_t>(0x28 | inside));
            if (expected[inside][outer] == kDropped) {
                CHECK(silent());
                CHECK(drops(DropReason::ecn_invalid) == 1);
                continue;
            }
            const Tunnelled out = tunnelled();
            const auto tos = static_cast<std::uint8_t>(0x28 | expected[inside][outer]);
            CHECK(out.outer[14 + wire::ipv4::kTos] == tos);
            CHECK(out.frame ==
                  packet({Ethernet{a.mac, b.mac},
                          Ipv4{.source = a.address, .destination = b.address, .tos = tos}, Udp{}}));
        }
}

TEST_CASE_METHOD(Cloud, "one flow has one outer source port, many have many") {
    std::vector<std::uint16_t> ports;
    for (std::uint16_t flow = 0; flow < 32; ++flow) {
        const Layers layers{between(a, b), Udp{.source = static_cast<std::uint16_t>(1000 + flow)}};
        receive(kUnderlay, frame_of(a, layers, b.mac));
        const auto first = tunnelled().source_port;
        receive(kUnderlay, frame_of(a, layers, b.mac));
        CHECK(tunnelled().source_port == first);
        ports.push_back(first);
    }
    std::sort(ports.begin(), ports.end());
    CHECK(std::unique(ports.begin(), ports.end()) - ports.begin() > 28);
}

TEST_CASE_METHOD(Cloud, "a full burst of new and known flows of both families") {
    for (int round = 0; round < 3; ++round) {
        for (std::uint16_t i = 0; i < 30; ++i) {
            const Udp udp{.source = static_cast<std::uint16_t>(i % 10 + 1)};
            if (i % 2 == 0)
                arrive(kUnderlay, frame_of(a, {between(a, b), udp}, b.mac));
            else
                arrive(kUnderlay, frame_of(six(a), {between6(six(a), six(b)), udp}, b.mac));
        }
        run();
        const auto frames = sent(kUnderlay);
        REQUIRE(frames.size() == 30);
        for (const Bytes& frame : frames) CHECK(taken_apart(frame).to == vtep_of(b.host));
    }
    CHECK(connections() == 10);
    CHECK(all_drops() == 0);
}

}  // namespace sluice::worker
