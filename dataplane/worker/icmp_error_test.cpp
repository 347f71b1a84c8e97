// SPDX-License-Identifier: Apache-2.0
// ICMP errors about packets of connections: each reaches the end that sent what it quotes, as if
// nobody had translated anything, in every direction and through every kind of translation.
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

// One end of a connection, inside or on the internet.
struct End {
    const Machine* machine = nullptr;  // nullptr: outside
    IpAddress address;                 // its own
    IpAddress seen;                    // what the other end takes for it
};

struct Errors : Gateway {
    explicit Errors(const session::SessionOptions& tables = small_tables()) : Gateway({}, tables) {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        c = add_machine(8, 2);
        put(openflow::RouteRow{RouteTableId{1},
                               Prefix::any(Family::ipv4),
                               openflow::NextHop::internet,
                               {},
                               Cookie{450}});
        for (const auto& [machine, address] : {std::pair{a, public_a}, std::pair{b, public_b}})
            put(nfv::ElasticIpRow{machine.vpc, machine.address, address, {}, Cookie{700}},
                nfv::PublicAddressRow{address, machine.vpc, machine.address, {}, Cookie{701}});
    }

    // Sends an IP packet of one end; what arrives at the other.
    Bytes carry(const End& from, const End& to, const Layers& layers, MacAddress mac) {
        receive(from, layers, mac);
        const Bytes frame = to.machine != nullptr ? inner() : uplinked();
        return {frame.begin() + wire::ethernet::kSize, frame.end()};
    }
    void receive(const End& from, const Layers& layers, MacAddress mac) {
        if (from.machine != nullptr)
            Gateway::receive(kUnderlay, frame_of(*from.machine, layers, mac));
        else
            Gateway::receive(kUplink, from_internet(layers));
    }

    struct Exchange {
        Layer request, reply;
    };
    static std::vector<Exchange> exchanges() {
        using namespace wire::tcp;
        return {{Tcp{.source = 1025, .destination = 443, .sequence = 1000, .flags = kSyn},
                 Tcp{.source = 443,
                     .destination = 1025,
                     .sequence = 5000,
                     .acknowledgement = 1001,
                     .flags = kSyn | kAck}},
                {Udp{.source = 1025, .destination = 53}, Udp{.source = 53, .destination = 1025}},
                {Udp{.source = 1026, .destination = 53, .checksum = 0},
                 Udp{.source = 53, .destination = 1026, .checksum = 0}},
                {Icmp{.type = 8, .identifier = 99}, Icmp{.type = 0, .identifier = 99}}};
    }

    // What `from` sends to `to` arrives; whoever is `reporter` complains about it: `from` gets the
    // error, which quotes its packet as it sent it, but for the TTL.
    void check_error(const End& from, const End& to, const Layer& upper, const Bytes& options,
                     std::uint8_t hops, MacAddress there, MacAddress back,
                     const std::optional<IpAddress>& met_by) {
        const auto sent = [&](std::uint8_t ttl) {
            return Layers{
                Ipv4{
                    .source = from.address, .destination = to.seen, .ttl = ttl, .options = options},
                upper, Payload{filler(61)}};
        };
        const Bytes arrived = carry(from, to, sent(64), there);
        const Bytes original = packet(sent(static_cast<std::uint8_t>(64 - hops)));
        REQUIRE(arrived.size() == original.size());
        const std::size_t shortest = 20 + options.size() + 8;
        for (const std::size_t size : {arrived.size(), arrived.size() - 20, shortest}) {
            const Icmp unreachable{.type = 3, .code = 3, .identifier = 0, .sequence = 0};
            const auto first = [&](const Bytes& octets) {
                return Payload{
                    {octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(size)}};
            };
            const Ipv4 error{.source = met_by.value_or(to.address),
                             .destination = from.seen,
                             .options = options};
            const Bytes got = carry(to, from, {error, unreachable, first(arrived)}, back);
            Ipv4 expected = error;
            expected.source = met_by.value_or(to.seen);
            expected.destination = from.address;
            expected.ttl = static_cast<std::uint8_t>(64 - hops);
            CHECK(got == packet({expected, unreachable, first(original)}));
        }
        CHECK(all_drops() == 0);
    }
    // Errors about the request and about the reply, of every kind of connection.
    void check_both_directions(const End& initiator, const End& responder, std::uint8_t hops,
                               MacAddress to_responder, MacAddress to_initiator,
                               const std::optional<IpAddress>& met_by = {}) {
        for (const Bytes& options : {Bytes{}, Bytes{1, 1, 1, 1}})
            for (const Exchange& exchange : exchanges()) {
                // A router of the internet sees what leaves, not what arrives.
                const auto by = [&](const End& end) {
                    return end.machine == nullptr ? met_by : std::optional<IpAddress>{};
                };
                check_error(initiator, responder, exchange.request, options, hops, to_responder,
                            to_initiator, by(responder));
                check_error(responder, initiator, exchange.reply, options, hops, to_initiator,
                            to_responder, by(initiator));
            }
        CHECK(connections() == exchanges().size());
    }

    const IpAddress public_a = ip("203.0.113.5"), public_b = ip("203.0.113.6");
    const IpAddress server = ip("198.51.100.1"), router = ip("198.51.100.254");
    Machine a, b, c;
};

}  // namespace

TEST_CASE_METHOD(Errors, "inside a subnet errors pass as they are, about requests and replies") {
    check_both_directions({&a, a.address, a.address}, {&b, b.address, b.address}, 0, b.mac, a.mac);
}

TEST_CASE_METHOD(Errors, "across subnets errors pass with a TTL of one less") {
    check_both_directions({&a, a.address, a.address}, {&c, c.address, c.address}, 1, kGatewayMac,
                          kGatewayMac);
}

TEST_CASE_METHOD(Errors, "opened outwards: errors are translated in both directions") {
    const End inside{&a, a.address, public_a}, outside{nullptr, server, server};
    SECTION("of the ends") {
        check_both_directions(inside, outside, 1, kGatewayMac, kGatewayMac);
    }
    SECTION("of a router on the internet: its own address stays") {
        check_both_directions(inside, outside, 1, kGatewayMac, kGatewayMac, router);
    }
}

TEST_CASE_METHOD(Errors, "opened inwards: errors are translated in both directions") {
    const End inside{&a, a.address, public_a}, outside{nullptr, server, server};
    SECTION("of the ends") {
        check_both_directions(outside, inside, 1, kGatewayMac, kGatewayMac);
    }
    SECTION("of a router on the internet: its own address stays") {
        check_both_directions(outside, inside, 1, kGatewayMac, kGatewayMac, router);
    }
}

TEST_CASE_METHOD(Errors, "hairpin: errors are translated on both sides") {
    check_both_directions({&a, a.address, public_a}, {&b, b.address, public_b}, 1, kGatewayMac,
                          kGatewayMac);
}

TEST_CASE_METHOD(Errors, "IPv6 errors pass, with extension headers outside and in the quote") {
    const auto six = [&](Machine machine, const char* address) {
        machine.address = ip(address);
        put(machine.row(), machine.source());
        return machine;
    };
    const Machine a6 = six(a, "fd00:1::5"), b6 = six(b, "fd00:1::6"), c6 = six(c, "fd00:2::8");
    for (const Machine& to : {b6, c6}) {
        const bool bridged = to.id == b6.id;
        const auto hops = static_cast<std::uint8_t>(bridged ? 64 : 63);
        const auto request = [&](std::uint8_t limit) {
            return Layers{Ipv6{.source = a6.address, .destination = to.address, .hop_limit = limit},
                          Extension{}, Udp{.source = 1, .destination = 2}, Payload{filler(40)}};
        };
        receive({&a6, {}, {}}, request(64), bridged ? to.mac : kGatewayMac);
        const Bytes frame = inner();
        const auto error = [&](std::uint8_t limit) {
            return Layers{Ipv6{.source = to.address, .destination = a6.address, .hop_limit = limit},
                          Extension{}, Icmp{.type = 1, .code = 4, .identifier = 0, .sequence = 0},
                          Payload{Bytes(frame.begin() + 14, frame.end())}};
        };
        CHECK(Bytes(frame.begin() + 14, frame.end()) == packet(request(hops)));
        receive({&to, {}, {}}, error(64), bridged ? a6.mac : kGatewayMac);
        const Bytes got = inner();
        CHECK(Bytes(got.begin() + 14, got.end()) == packet(error(hops)));
    }
    CHECK(connections() == 2);
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Errors, "a router inside the VPC complains about what it was to pass on") {
    const IpAddress beyond = ip("172.16.0.1"), behind = ip("172.16.9.9");
    put(openflow::RouteRow{RouteTableId{1}, block("172.16.0.0/12"), openflow::NextHop::endpoint,
                           c.id, Cookie{451}},
        nfv::SourceRow{c.vpc, c.mac, Prefix::any(Family::ipv4), c.id, c.host, Cookie{452}});
    const auto sent = [&](std::uint8_t ttl) {
        return Layers{Ipv4{.source = a.address, .destination = beyond, .ttl = ttl},
                      Udp{.source = 1025, .destination = 33434}, Payload{filler(12)}};
    };
    Gateway::receive(kUnderlay, frame_of(a, sent(64)));
    inner();
    const auto error = [&](const IpAddress& from, std::uint8_t ttl) {
        return Layers{Ipv4{.source = from, .destination = a.address, .ttl = ttl},
                      Icmp{.type = 11, .code = 0, .identifier = 0, .sequence = 0},
                      Payload{packet(sent(63))}};
    };
    for (const IpAddress& from : {c.address, behind, beyond}) {
        Gateway::receive(kUnderlay, frame_of(c, error(from, 64)));
        CHECK(inner() == packet(Layers{Ethernet{kGatewayMac, a.mac}} + error(from, 63)));
    }
    // Nobody else: not under his own name, nor under another's.
    check_dropped(kUnderlay, frame_of(b, error(b.address, 64)), DropReason::icmp_error_unmatched);
    check_dropped(kUnderlay, frame_of(b, error(c.address, 64)), DropReason::spoofed_ip);
    Machine forger = b;
    forger.mac = c.mac;
    forger.host = a.host;
    check_dropped(kUnderlay, frame_of(forger, error(c.address, 64)), DropReason::spoofed_vtep);
}

TEST_CASE(
    "errors that must be walked are charged like first packets, and go on when they are few") {
    session::SessionOptions tables = Gateway::small_tables();
    tables.limits.endpoint.per_second = 1;
    Errors gateway(tables);
    const Layers sent{Ipv4{.source = gateway.a.address, .destination = gateway.b.address},
                      Udp{.source = 9000, .destination = 53}, Payload{filler(12)}};
    gateway.Gateway::receive(kUnderlay, gateway.frame_of(gateway.a, sent, gateway.b.mac));
    gateway.inner();
    const auto about = [](const IpAddress& from, const IpAddress& to, const Layers& quoted) {
        return Layers{Ipv4{.source = from, .destination = to},
                      Icmp{.type = 3, .code = 1, .identifier = 0, .sequence = 0},
                      Payload{packet(quoted)}};
    };
    const auto walks = [&] { return gateway.worker->counters().walks.read(); };
    const auto rate = [&] { return gateway.drops(DropReason::endpoint_connection_rate); };

    // A machine complains, and complains, of what is none of its business.
    auto before = walks();
    const Bytes forged = gateway.frame_of(
        gateway.c, about(gateway.c.address, gateway.a.address, sent), gateway.a.mac);
    for (int i = 0; i < 100; ++i) gateway.Gateway::receive(kUnderlay, forged);
    CHECK(gateway.silent());
    CHECK(walks() - before == 16);
    CHECK(gateway.drops(DropReason::icmp_error_unmatched) == 16);
    CHECK(rate() == 84);
    // The other end's own errors take no walk.
    before = walks();
    for (int i = 0; i < 100; ++i) {
        gateway.Gateway::receive(
            kUnderlay,
            gateway.frame_of(gateway.b, about(gateway.b.address, gateway.a.address, sent),
                             gateway.a.mac));
        gateway.inner();
    }
    CHECK(walks() == before);
    // From the internet, by destination.
    const Layers nothing{Ipv4{.source = gateway.public_a, .destination = gateway.server}, Udp{}};
    for (int i = 0; i < 100; ++i)
        gateway.Gateway::receive(
            kUplink, Gateway::from_internet(about(gateway.router, gateway.public_a, nothing)));
    CHECK(walks() - before == 16);
    CHECK(rate() == 84 + 84);
    // Who asks for neighbours all the time is told no more than that.
    before = walks();
    for (int i = 0; i < 100; ++i)
        gateway.Gateway::receive(kUnderlay,
                                 gateway.frame_of(gateway.b,
                                                  {Arp{.sender_mac = gateway.b.mac,
                                                       .sender = gateway.b.address,
                                                       .target = gateway.a.address}},
                                                  MacAddress::from_value(0xffffffffffff)));
    CHECK(gateway.sent(kUnderlay).size() == 16);
    CHECK(walks() - before == 16);
}

TEST_CASE_METHOD(Errors, "a turn walks no more errors than first packets") {
    const Layers nothing{Ipv4{.source = public_a, .destination = server}, Udp{}};
    const Layers error{Ipv4{.source = router, .destination = public_a},
                       Icmp{.type = 3, .code = 1, .identifier = 0, .sequence = 0},
                       Payload{packet(nothing)}};
    for (int i = 0; i < 32; ++i) arrive(kUplink, from_internet(error));
    run();
    CHECK(drops(DropReason::icmp_error_unmatched) == 16);
    CHECK(drops(DropReason::walk_budget) == 16);
}

TEST_CASE_METHOD(Errors, "no tenant's own address leaves on an error") {
    const IpAddress other = ip("10.0.1.77");
    put(nfv::SourceRow{a.vpc, a.mac, Prefix::host(other), a.id, a.host, Cookie{453}});
    const Layers request{Ipv4{.source = server, .destination = public_a},
                         Udp{.source = 9000, .destination = 53}, Payload{filler(12)}};
    Gateway::receive(kUplink, from_internet(request));
    const Bytes arrived = inner();
    Gateway::receive(kUnderlay,
                     frame_of(a, {Ipv4{.source = other, .destination = server},
                                  Icmp{.type = 3, .code = 1, .identifier = 0, .sequence = 0},
                                  Payload{Bytes(arrived.begin() + 14, arrived.end())}}));
    CHECK(wire::load_v4(&uplinked()[wire::ethernet::kSize + wire::ipv4::kSource]) == public_a);
}

TEST_CASE_METHOD(Errors, "ICMPv6 errors about packets with an authentication header pass") {
    const auto with = [&](Machine machine, const char* address6) {
        machine.address = ip(address6);
        put(machine.row(), machine.source());
        return machine;
    };
    const Machine a6 = with(a, "fd00:1::5"), b6 = with(b, "fd00:1::6");
    const Layers sent{Ipv6{.source = a6.address, .destination = b6.address},
                      Extension{.kind = wire::ipv6::kAuthentication, .body = Bytes(14)},
                      Udp{.source = 9000, .destination = 53}, Payload{filler(12)}};
    Gateway::receive(kUnderlay, frame_of(a6, sent, b6.mac));
    const Bytes arrived = inner();
    const Layers error{Ipv6{.source = b6.address, .destination = a6.address},
                       Icmp{.type = 1, .code = 4, .identifier = 0, .sequence = 0},
                       Payload{Bytes(arrived.begin() + wire::ethernet::kSize, arrived.end())}};
    Gateway::receive(kUnderlay, frame_of(b6, error, a6.mac));
    CHECK(inner() == packet(Layers{Ethernet{b6.mac, a6.mac}} + error));
    CHECK(connections() == 1);
}

TEST_CASE_METHOD(Errors, "an error opens nothing, and there is none about an error") {
    const auto quoting = [](const Ipv4& outer, const Layers& quoted) {
        return Layers{outer, Icmp{.type = 3, .code = 1, .identifier = 0, .sequence = 0},
                      Payload{packet(quoted)}};
    };
    const Ipv4 forth{.source = a.address, .destination = b.address};
    const Ipv4 back{.source = b.address, .destination = a.address};
    check_dropped(kUnderlay, frame_of(b, quoting(back, {forth, Udp{}}), a.mac),
                  DropReason::icmp_error_unmatched);
    CHECK(connections() == 0);
    // The error itself passes, an error about it does not.
    Gateway::receive(kUnderlay, frame_of(a, {forth, Udp{}}, b.mac));
    inner();
    const Layers error = quoting(back, {forth, Udp{}});
    Gateway::receive(kUnderlay, frame_of(b, error, a.mac));
    inner();
    check_dropped(kUnderlay, frame_of(a, quoting(forth, error), b.mac),
                  DropReason::icmp_error_unmatched);
    CHECK(connections() == 1);
}

}  // namespace sluice::worker
