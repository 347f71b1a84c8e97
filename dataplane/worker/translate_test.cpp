// SPDX-License-Identifier: Apache-2.0
// Elastic addresses: what leaves and enters by the uplink, octet by octet.
#include <chrono>

#include "dataplane/worker/state.hpp"
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

struct Internet : Gateway {
    Internet() {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        put(openflow::RouteRow{RouteTableId{1},
                               Prefix::any(Family::ipv4),
                               openflow::NextHop::internet,
                               {},
                               Cookie{450}},
            openflow::RouteRow{RouteTableId{1},
                               Prefix::any(Family::ipv6),
                               openflow::NextHop::internet,
                               {},
                               Cookie{451}});
        put(outwards(a, public_a), inwards(a, public_a));
        put(outwards(b, public_b), inwards(b, public_b));
    }
    static nfv::ElasticIpRow outwards(const Machine& machine, const IpAddress& address) {
        return {machine.vpc, machine.address, address, {}, Cookie{700}};
    }
    static nfv::PublicAddressRow inwards(const Machine& machine, const IpAddress& address) {
        return {address, machine.vpc, machine.address, {}, Cookie{701}};
    }
    // What the router on the uplink sees, and what a machine does.
    static Bytes on_uplink(const Layers& layers) {
        return packet(Layers{Ethernet{kUplinkMac, kRouterMac}} + layers);
    }
    static Bytes at(const Machine& machine, const Layers& layers) {
        return packet(Layers{Ethernet{kGatewayMac, machine.mac}} + layers);
    }
    static Ipv4 ip4(const IpAddress& source, const IpAddress& destination, std::uint8_t ttl = 64) {
        return {.source = source, .destination = destination, .ttl = ttl};
    }
    static Layers from_to(const Ipv4& header, const Layer& upper) {
        return {header, upper, Payload{filler(61)}};
    }
    // A transport header of each kind, towards the server and back.
    struct Pair {
        Layer request, reply;
    };
    static std::vector<Pair> transports() {
        return {
            {Tcp{.source = 1025, .destination = 443, .flags = wire::tcp::kSyn},
             Tcp{.source = 443, .destination = 1025, .flags = wire::tcp::kSyn | wire::tcp::kAck}},
            {Udp{.source = 1025, .destination = 53}, Udp{.source = 53, .destination = 1025}},
            {Udp{.source = 1026, .destination = 53, .checksum = 0},
             Udp{.source = 53, .destination = 1026, .checksum = 0}},
            {Icmp{.type = 8, .identifier = 99}, Icmp{.type = 0, .identifier = 99}}};
    }

    const IpAddress public_a = ip("203.0.113.5"), public_b = ip("203.0.113.6");
    const IpAddress server = ip("198.51.100.1"), router = ip("198.51.100.254");
    Machine a, b;
};

}  // namespace

TEST_CASE_METHOD(Internet, "outwards and back: the elastic address outside, the private one in") {
    for (const auto& [request, reply] : transports())
        for (int i = 0; i < 2; ++i) {
            receive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), request)));
            CHECK(uplinked() == on_uplink(from_to(ip4(public_a, server, 63), request)));
            receive(kUplink, from_internet(from_to(ip4(server, public_a, 50), reply)));
            const Tunnelled out = tunnelled();
            CHECK(out.vni == vni_of(a));
            CHECK(out.to == vtep_of(a.host));
            CHECK(out.frame == at(a, from_to(ip4(server, a.address, 49), reply)));
        }
    CHECK(connections() == transports().size());
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Internet,
                 "after a restart replies pick up what came in, though groups let nothing out") {
    shared.restarted.store(Clock{}.nanoseconds(rte_rdtsc()));
    nfv::RuleRow out;
    out.direction = nfv::Direction::egress;
    out.group = kOpen;
    out.family = Family::ipv4;
    out.cookie = Cookie{601};
    remove(out);
    const Tcp reply{.source = 443, .destination = 1025, .flags = wire::tcp::kAck};
    const Tcp more{.source = 1025, .destination = 443, .flags = wire::tcp::kAck};
    receive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), reply)));
    CHECK(uplinked() == on_uplink(from_to(ip4(public_a, server, 63), reply)));
    receive(kUplink, from_internet(from_to(ip4(server, public_a), more)));
    CHECK(inner() == at(a, from_to(ip4(server, a.address, 63), more)));
    CHECK(connections() == 1);
}

TEST_CASE_METHOD(Internet, "inwards and back") {
    for (const auto& [request, reply] : transports())
        for (int i = 0; i < 2; ++i) {
            receive(kUplink, from_internet(from_to(ip4(server, public_a), request)));
            CHECK(inner() == at(a, from_to(ip4(server, a.address, 63), request)));
            receive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), reply)));
            CHECK(uplinked() == on_uplink(from_to(ip4(public_a, server, 63), reply)));
        }
    CHECK(connections() == transports().size());
}

TEST_CASE_METHOD(Internet, "hairpin: to a neighbour's elastic address, and to one's own") {
    for (const Machine* target : {&b, &a}) {
        const IpAddress& address = target == &b ? public_b : public_a;
        for (const auto& [request, reply] : transports())
            for (int i = 0; i < 2; ++i) {
                receive(kUnderlay, frame_of(a, from_to(ip4(a.address, address), request)));
                const Bytes there = inner();
                const Bytes expected =
                    at(*target, from_to(ip4(public_a, target->address, 63), request));
                CHECK(there == expected);
                receive(kUnderlay,
                        frame_of(*target, from_to(ip4(target->address, public_a), reply)));
                CHECK(inner() == at(a, from_to(ip4(address, a.address, 63), reply)));
            }
    }
    CHECK(all_drops() == 0);
    CHECK(sent(kUplink).empty());
}

TEST_CASE_METHOD(Internet, "an ICMP error from the internet finds the endpoint, quote and all") {
    for (const Pair& pair : transports()) {
        const Layer& request = pair.request;
        const Layers original = from_to(ip4(a.address, server), request);
        receive(kUnderlay, frame_of(a, original));
        uplinked();
        const Icmp unreachable{.type = 3, .code = 1, .identifier = 0, .sequence = 0};
        // A router complains about what it saw, TTL gone down.
        const auto error = [&](const IpAddress& source, const IpAddress& to, std::uint8_t ttl) {
            return Layers{ip4(router, to, ttl), unreachable,
                          Payload{packet(from_to(ip4(source, server, 1), request))}};
        };
        receive(kUplink, from_internet(error(public_a, public_a, 60)));
        CHECK(inner() == at(a, error(a.address, a.address, 59)));
    }
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Internet, "an ICMP error from outside has a sender that can be there") {
    const Layer request = Udp{.source = 1025, .destination = 53};
    receive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), request)));
    uplinked();
    const auto error = [&](const IpAddress& from) {
        return from_internet({ip4(from, public_a),
                              Icmp{.type = 3, .code = 1, .identifier = 0, .sequence = 0},
                              Payload{packet(from_to(ip4(public_a, server, 1), request))}});
    };
    check_dropped(kUplink, error(b.address), DropReason::private_on_uplink);
    check_dropped(kUplink, error(public_b), DropReason::spoofed_ip);
    check_dropped(kUplink, error(kUplinkAddress), DropReason::spoofed_ip);
    receive(kUplink, error(router));
    CHECK(sent(kUnderlay).size() == 1);
}

TEST_CASE_METHOD(Internet, "a packet from outside does not come from the gateway itself") {
    check_dropped(kUplink, from_internet(from_to(ip4(kUplinkAddress, public_a), Udp{})),
                  DropReason::spoofed_ip);
}

TEST_CASE_METHOD(Internet, "an ICMP error of the endpoint leaves with the elastic address") {
    const Layer request = Udp{.source = 5000, .destination = 33434};
    receive(kUplink, from_internet(from_to(ip4(server, public_a), request)));
    const Bytes arrived = inner();
    const Icmp unreachable{.type = 3, .code = 3, .identifier = 0, .sequence = 0};
    receive(kUnderlay, frame_of(a, {ip4(a.address, server), unreachable,
                                    Payload{Bytes(arrived.begin() + 14, arrived.end())}}));
    CHECK(uplinked() == on_uplink({ip4(public_a, server, 63), unreachable,
                                   Payload{packet(from_to(ip4(server, public_a, 63), request))}}));
}

TEST_CASE_METHOD(Internet,
                 "ICMP errors that quote no connection, or come from another, are dropped") {
    const Icmp unreachable{.type = 3, .code = 1, .identifier = 0, .sequence = 0};
    const Layer request = Udp{.source = 1025, .destination = 53};
    const auto error = [&](const IpAddress& to) {
        return from_internet(Layers{ip4(router, to), unreachable,
                                    Payload{packet(from_to(ip4(to, server), request))}});
    };
    check_dropped(kUplink, error(public_a), DropReason::icmp_error_unmatched);
    receive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), request)));
    uplinked();
    check_dropped(kUplink, error(public_b), DropReason::icmp_error_unmatched);
    // Another tenant of the VPC quotes a's packets.
    receive(kUplink,
            from_internet(from_to(ip4(server, public_a), Udp{.source = 9, .destination = 9})));
    inner();
    check_dropped(kUnderlay,
                  frame_of(b, {ip4(b.address, server), unreachable,
                               Payload{packet(from_to(ip4(server, a.address),
                                                      Udp{.source = 9, .destination = 9}))}}),
                  DropReason::icmp_error_unmatched);
}

TEST_CASE_METHOD(Internet,
                 "a large packet from the internet: fragments, or an error to its sender") {
    const Layers whole{ip4(server, public_a), Udp{.source = 53, .destination = 2000},
                       Payload{filler(1472)}};
    const Bytes seen = packet({ip4(server, a.address, 63), Udp{.source = 53, .destination = 2000},
                               Payload{filler(1472)}});
    for (int i = 0; i < 2; ++i) {
        receive(kUplink, from_internet(whole));
        const auto frames = sent(kUnderlay);
        REQUIRE(frames.size() == 2);
        Bytes payload;
        for (const Bytes& frame : frames) {
            const Tunnelled out = taken_apart(frame);
            const std::span<const std::uint8_t> packet = std::span{out.frame}.subspan(14);
            CHECK(packet.size() <= 1450);
            CHECK(wire::ipv4_header_checksum_ok(packet.first(20)));
            CHECK(wire::load16(&packet[wire::ipv4::kLength]).host() == packet.size());
            CHECK((wire::load16(&packet[wire::ipv4::kFragment]).host() & 0x1fff) * 8U ==
                  payload.size());
            payload.insert(payload.end(), packet.begin() + 20, packet.end());
        }
        CHECK(payload == Bytes(seen.begin() + 20, seen.end()));
    }

    Ipv4 rigid = ip4(server, public_a);
    rigid.flags_and_offset = wire::ipv4::kDontFragment;
    const Layers too_big{rigid, Udp{.source = 53, .destination = 2000}, Payload{filler(1472)}};
    receive(kUplink, from_internet(too_big));
    Bytes quoted = packet(too_big);
    quoted.resize(548);
    CHECK(uplinked() == on_uplink({Ipv4{.source = kUplinkAddress,
                                        .destination = server,
                                        .tos = 0xc0,
                                        .identification = 0,
                                        .flags_and_offset = wire::ipv4::kDontFragment},
                                   Icmp{.type = 3, .code = 4, .identifier = 0, .sequence = 1450},
                                   Payload{quoted}}));
    CHECK(drops(DropReason::too_big) == 1);
}

TEST_CASE_METHOD(Internet, "what must not be translated, or must not leave, does not") {
    check_dropped(kUnderlay, frame_of(a, from_to(ip4(a.address, server), Udp{.destination = 4791})),
                  DropReason::roce_not_translated);
    Machine six = a;
    six.address = ip("fd00:1::5");
    put(six.row(), six.source());
    check_dropped(
        kUnderlay,
        frame_of(six, {Ipv6{.source = six.address, .destination = ip("2001:db8::99")}, Udp{}}),
        DropReason::private_on_uplink);
    const Machine bare = add_machine(7);
    check_dropped(kUnderlay, frame_of(bare, from_to(ip4(bare.address, server), Udp{})),
                  DropReason::no_elastic_ip);
    check_dropped(kUplink, from_internet(from_to(ip4(server, ip("203.0.113.77")), Udp{})),
                  DropReason::unknown_public_address);
}

TEST_CASE_METHOD(Internet,
                 "detached, an elastic address carries nothing any more, in no direction") {
    const Layer request = Tcp{.source = 1025, .destination = 443, .flags = wire::tcp::kSyn};
    receive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), request)));
    uplinked();
    remove(outwards(a, public_a), inwards(a, public_a));
    check_dropped(
        kUplink,
        from_internet(from_to(ip4(server, public_a), Tcp{.source = 443, .destination = 1025})),
        DropReason::policy_changed);
    receive(kUnderlay,
            frame_of(a, from_to(ip4(a.address, server), Tcp{.source = 1025, .destination = 443})));
    CHECK(silent());
    CHECK(connections() == 0);
}

TEST_CASE_METHOD(Internet,
                 "moved, an elastic address leads to the other endpoint, and old ones end") {
    const Layers request = from_to(ip4(server, public_a), Udp{.source = 53, .destination = 2000});
    receive(kUplink, from_internet(request));
    CHECK(tunnelled().frame ==
          at(a, from_to(ip4(server, a.address, 63), Udp{.source = 53, .destination = 2000})));
    remove(outwards(a, public_a), outwards(b, public_b), inwards(b, public_b));
    put(outwards(b, public_a), inwards(b, public_a));
    receive(kUplink, from_internet(request));
    CHECK(tunnelled().frame ==
          at(b, from_to(ip4(server, b.address, 63), Udp{.source = 53, .destination = 2000})));
    CHECK(connections() == 1);
    receive(kUnderlay,
            frame_of(a, from_to(ip4(a.address, server), Udp{.source = 2000, .destination = 53})));
    CHECK(silent());
    CHECK(drops(DropReason::no_elastic_ip) == 1);
}

TEST_CASE_METHOD(Internet, "who gets an elastic address may use every port of it at once") {
    const auto request_of = [&](const Machine& machine) {
        return frame_of(
            machine, from_to(ip4(machine.address, server), Udp{.source = 2000, .destination = 53}));
    };
    receive(kUnderlay, request_of(a));
    (void)uplinked();
    remove(outwards(a, public_a), outwards(b, public_b), inwards(b, public_b));
    put(outwards(b, public_a), inwards(b, public_a));
    // The connection of its former owner has not had a packet since, and still has the key.
    receive(kUnderlay, request_of(b));
    CHECK(uplinked() ==
          on_uplink(from_to(ip4(public_a, server, 63), Udp{.source = 2000, .destination = 53})));
    CHECK(connections() == 1);
}

TEST_CASE_METHOD(Internet,
                 "a meter lets its burst pass, delays some of the rest and drops the others") {
    put_meter(MeterId{1}, 1000);  // 1 Mbit/s, 100 kbit at once
    nfv::ElasticIpRow row = outwards(a, public_a);
    row.meter = MeterId{1};
    put(row);
    const Layers request{ip4(a.address, server), Udp{.source = 9, .destination = 9},
                         Payload{filler(1222)}};  // 1,250 octets: 10 kbit, 10 ms
    constexpr std::size_t kSent = 30;
    for (std::size_t i = 0; i < kSent; ++i) arrive(kUnderlay, frame_of(a, request));
    run();
    std::size_t passed = sent(kUplink).size();
    CHECK(passed >= 9);
    CHECK(passed < kSent);
    const std::uint64_t dropped = drops(DropReason::metered);
    CHECK(passed + dropped <= kSent);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (passed + dropped < kSent && std::chrono::steady_clock::now() < end) {
        worker->turn();
        passed += sent(kUplink).size();
    }
    CHECK(passed + dropped == kSent);
}

}  // namespace sluice::worker
