// SPDX-License-Identifier: Apache-2.0
// Connections through a NAT gateway, octet by octet, and what becomes of their ports.
#include <set>
#include <thread>

#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

session::SessionOptions quick_tables() {
    session::SessionOptions options = Gateway::small_tables();
    options.ipv4_capacity = 16384;   // nobody is at a limit of sessions
    options.ports.rest = {3, 3, 3};  // a fifth of a second
    options.ports.blocks = 4096;
    return options;
}

struct Shared : Gateway {
    explicit Shared(WorkerOptions options = {}) : Gateway(options, quick_tables()) {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        c = add_machine(8, 2);
        openflow::RouteRow route{RouteTableId{1},
                                 Prefix::any(Family::ipv4),
                                 openflow::NextHop::nat_gateway,
                                 {},
                                 Cookie{450}};
        route.nat_gateway = gateway.nat_gateway;
        put(route, gateway, public_row(address));
    }
    static nfv::NatGatewayRow row() {
        nfv::NatGatewayRow result;
        result.nat_gateway = NatGatewayId{7};
        result.addresses = {ip("203.0.113.9")};
        result.cookie = Cookie{900};
        return result;
    }
    static nfv::PublicAddressRow public_row(const IpAddress& public_address) {
        nfv::PublicAddressRow result{public_address, {}, {}, {}, Cookie{901}};
        result.nat_gateway = NatGatewayId{7};
        return result;
    }
    void attach(const Machine& machine, const IpAddress& elastic) {
        put(nfv::ElasticIpRow{machine.vpc, machine.address, elastic, {}, Cookie{700}},
            nfv::PublicAddressRow{elastic, machine.vpc, machine.address, {}, Cookie{701}});
    }
    static Bytes on_uplink(const Layers& layers) {
        return packet(Layers{Ethernet{kUplinkMac, kRouterMac}} + layers);
    }
    static Bytes at(const Machine& machine, const Layers& layers) {
        return packet(Layers{Ethernet{kGatewayMac, machine.mac}} + layers);
    }
    static Ipv4 ip4(const IpAddress& source, const IpAddress& destination, std::uint8_t ttl = 64) {
        // Atomic (RFC 6864): its identification stays.
        return {.source = source,
                .destination = destination,
                .ttl = ttl,
                .flags_and_offset = wire::ipv4::kDontFragment};
    }
    static Layers from_to(const Ipv4& header, const Layer& upper) {
        return {header, upper, Payload{filler(61)}};
    }
    // The source port (ICMP: the identifier) of an IP packet behind an Ethernet header.
    static std::uint16_t port_of(const Bytes& frame) {
        const std::size_t l4 = 14 + 20;
        return wire::load16(&frame[frame[14 + 9] == 1 ? l4 + 4 : l4]).host();
    }
    static std::uint16_t identification_of(const Bytes& frame) {
        return wire::load16(&frame[14 + wire::ipv4::kIdentification]).host();
    }
    Bytes open(const Machine& machine, const IpAddress& to, const Layer& upper) {
        receive(kUnderlay, frame_of(machine, from_to(ip4(machine.address, to), upper)));
        return uplinked();
    }
    static Udp udp(std::uint16_t source, std::uint16_t destination) {
        return {.source = source, .destination = destination};
    }
    std::uint32_t live() const {
        std::uint32_t sum = 0;
        sessions.ports.visit([&](const session::PortTable::Use& use) {
            for (const std::uint32_t ports : use.live) sum += ports;
        });
        return sum;
    }
    // Ends everything, as policy does: no route any more.
    void end_all(const std::vector<Bytes>& frames) {
        openflow::RouteRow route{RouteTableId{1},
                                 Prefix::any(Family::ipv4),
                                 openflow::NextHop::blackhole,
                                 {},
                                 Cookie{450}};
        put(route);
        for (const Bytes& frame : frames) receive(kUnderlay, frame);
    }
    void wait(int milliseconds) {
        for (int i = 0; i < milliseconds; i += 10) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            run();
        }
    }
    std::vector<session::BlockEvent> events() {
        std::vector<session::BlockEvent> result;
        session::BlockEvent event;
        while (worker->blocks().pop(event)) result.push_back(event);
        return result;
    }

    const IpAddress address = ip("203.0.113.9"), server = ip("198.51.100.1");
    const IpAddress other = ip("198.51.100.2"), router = ip("198.51.100.254");
    nfv::NatGatewayRow gateway = row();
    Machine a, b, c;
};

// Time passes as the test says.
std::uint64_t clock_now = 1'000'000'000;
struct Timed : Shared {
    Timed() : Shared(options()) {}
    static WorkerOptions options() {
        WorkerOptions result;
        result.clock = &clock_now;
        return result;
    }
    void pass(int seconds) {
        for (int i = 0; i < 20 * seconds; ++i) {
            clock_now += 50'000'000;
            run();
        }
    }
};

}  // namespace

TEST_CASE_METHOD(Shared, "out with the NAT gateway's address and a port, and back") {
    using namespace wire::tcp;
    struct Case {
        std::function<Layer(std::uint16_t)> request, reply;
    };
    const std::vector<Case> cases = {
        {[](std::uint16_t port) -> Layer {
             return Tcp{.source = port, .destination = 443, .flags = kSyn};
         },
         [](std::uint16_t port) -> Layer {
             return Tcp{.source = 443, .destination = port, .flags = kSyn | kAck};
         }},
        {[](std::uint16_t port) -> Layer { return Udp{.source = port, .destination = 53}; },
         [](std::uint16_t port) -> Layer { return Udp{.source = 53, .destination = port}; }},
        {[](std::uint16_t port) -> Layer {
             return Udp{.source = port, .destination = 54, .checksum = 0};
         },
         [](std::uint16_t port) -> Layer {
             return Udp{.source = 54, .destination = port, .checksum = 0};
         }},
        {[](std::uint16_t port) -> Layer { return Icmp{.type = 8, .identifier = port}; },
         [](std::uint16_t port) -> Layer { return Icmp{.type = 0, .identifier = port}; }}};
    for (const auto& [request, reply] : cases)
        for (const Machine* machine : {&a, &b}) {
            const Bytes out = open(*machine, server, request(1025));
            const std::uint16_t port = port_of(out);
            CHECK(port >= 1024);
            CHECK(out == on_uplink(from_to(ip4(address, server, 63), request(port))));
            for (int i = 0; i < 2; ++i) {
                receive(kUplink, from_internet(from_to(ip4(server, address, 50), reply(port))));
                CHECK(inner() ==
                      at(*machine, from_to(ip4(server, machine->address, 49), reply(1025))));
            }
        }
    CHECK(connections() == 8);
    // The two kinds of UDP have one private port each, so one mapping.
    CHECK(live() == 6);
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Shared, "one private port is one public port for every destination") {
    const std::uint16_t port = port_of(open(a, server, udp(4000, 53)));
    CHECK(port_of(open(a, other, udp(4000, 53))) == port);
    CHECK(port_of(open(a, server, udp(4000, 54))) == port);
    CHECK(port_of(open(a, server, udp(4001, 53))) != port);
    CHECK(live() == 2);
    CHECK(connections() == 4);
}

TEST_CASE_METHOD(Shared, "address- and port-dependent: one port serves many destinations") {
    gateway.mapping = nfv::NatMapping::address_and_port_dependent;
    gateway.ports_per_endpoint = 64;
    put(gateway);
    std::map<IpAddress, std::set<std::uint16_t>> ports;
    std::set<std::uint16_t> all;
    for (std::uint16_t i = 0; i < 300; ++i) {
        const IpAddress& to = i % 3 == 0 ? server : i % 3 == 1 ? other : router;
        const auto port = port_of(open(a, to, udp(static_cast<std::uint16_t>(4000 + i), 53)));
        // To one destination every connection has a port of its own.
        if (ports[to].size() < 64) CHECK(ports[to].insert(port).second);
        all.insert(port);
        if (ports[to].size() == 64) break;
    }
    CHECK(all.size() == 64);
    CHECK(live() == 64);
    // 64 to one destination and no more; other destinations have room.
    std::uint16_t next = 9000;
    while (ports[server].size() < 64) {
        receive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), udp(next++, 53))));
        const auto frames = sent(kUplink);
        REQUIRE(next < 9200);
        if (!frames.empty()) ports[server].insert(port_of(frames[0]));
    }
    check_dropped(kUnderlay, frame_of(a, from_to(ip4(a.address, server), udp(9999, 53))),
                  DropReason::nat_endpoint_ports);
    CHECK(live() == 64);
    open(a, ip("198.51.100.77"), udp(9999, 53));
}

TEST_CASE_METHOD(Shared, "an endpoint has so many ports and no more; its connections go on") {
    gateway.ports_per_endpoint = 64;
    put(gateway);
    const Bytes first = open(a, server, udp(4000, 53));
    for (std::uint16_t i = 1; i < 64; ++i)
        open(a, server, udp(static_cast<std::uint16_t>(4000 + i), 53));
    const Layers refused = from_to(ip4(a.address, server), udp(5000, 53));
    check_dropped(kUnderlay, frame_of(a, refused), DropReason::nat_endpoint_ports);
    DropSample sample;
    REQUIRE(worker->samples().pop(sample));
    CHECK(sample.tuple.destination == server);
    CHECK(sample.decided_by == Cookie{900});
    CHECK(open(a, server, udp(4000, 53)) == first);
    CHECK(port_of(open(a, other, udp(4000, 53))) == port_of(first));
    open(b, server, udp(4000, 53));
    CHECK(live() == 65);
}

TEST_CASE_METHOD(Shared, "ports rest when their connections end, though the endpoint be deleted") {
    std::vector<Bytes> frames;
    std::set<std::uint16_t> ports;
    for (std::uint16_t i = 0; i < 70; ++i) {
        const auto source = static_cast<std::uint16_t>(4000 + i);
        ports.insert(port_of(open(a, server, udp(source, 53))));
        frames.push_back(frame_of(a, from_to(ip4(a.address, server), udp(source, 53))));
    }
    const auto assigned = events();
    REQUIRE(assigned.size() == 2);
    CHECK(assigned[0].assigned);
    CHECK(assigned[0].owner == session::NatOwner{NatGatewayId{7}, a.id});
    CHECK(IpAddress::v4(assigned[0].address) == address);
    CHECK(assigned[0].space == session::PortSpace::udp);
    for (const std::uint16_t port : ports)
        CHECK(((port >= assigned[0].first_port && port < assigned[0].first_port + 64) ||
               (port >= assigned[1].first_port && port < assigned[1].first_port + 64)));
    CHECK(live() == 70);
    remove(a.row(), a.source());
    for (const Bytes& frame : frames) receive(kUnderlay, frame);
    CHECK(live() == 0);
    CHECK(connections() == 0);
    CHECK(sent(kUplink).empty());
    // Whoever comes meanwhile gets none of them.
    CHECK(events().empty());
    for (std::uint16_t i = 0; i < 200; ++i)
        CHECK(ports.count(port_of(open(b, server, udp(static_cast<std::uint16_t>(i + 1), 53)))) ==
              0);
    wait(3000);
    unsigned released = 0;
    for (const auto& event : events())
        if (!event.assigned && event.owner.endpoint == a.id) ++released;
    CHECK(released == 2);
}

TEST_CASE_METHOD(Shared, "at exhaustion nothing leaves untranslated, and live connections go on") {
    // Somebody else has all of the address's blocks.
    const std::vector<be32> addresses{address.to_v4()};
    const Bytes first = open(a, server, udp(4000, 53));
    for (std::uint32_t i = 1;; ++i) {
        const session::PortRequest request{.owner = {NatGatewayId{7}, EndpointId{100000 + i}},
                                           .space = session::PortSpace::udp,
                                           .inside = {be32{i}, 1},
                                           .addresses = addresses};
        if (sessions.ports.take(request, addresses[0], session::PortTable::Want::any, i, {})
                .reason != DropReason::none)
            break;
    }
    check_dropped(kUnderlay, frame_of(b, from_to(ip4(b.address, server), udp(4000, 53))),
                  DropReason::nat_ports_exhausted);
    DropSample sample;
    REQUIRE(worker->samples().pop(sample));
    CHECK(sample.tuple.destination == server);
    CHECK(sample.decided_by == Cookie{900});
    CHECK(open(a, server, udp(4000, 53)) == first);
    open(a, server, udp(4001, 53));
    // TCP has ports of its own.
    open(b, server, Tcp{.source = 4000, .destination = 80, .flags = wire::tcp::kSyn});
}

TEST_CASE_METHOD(Shared, "a VPC has its share of the gateway's blocks, whatever addresses it has") {
    const Bytes first = open(a, server, udp(4000, 53));
    const std::uint32_t zone = store.current().core.vpcs.find(a.vpc)->slot.value;
    CHECK(sessions.ports.held(zone) == 1);
    const auto take = [&](std::uint32_t endpoint, std::uint32_t of_zone) {
        // Another NAT gateway, with an address for each 500 endpoints.
        const std::array<be32, 1> its_own{be32{0xc6336400 + endpoint / 500}};
        const session::PortRequest request{.owner = {NatGatewayId{8}, EndpointId{endpoint}},
                                           .space = session::PortSpace::udp,
                                           .inside = {be32{endpoint}, 1},
                                           .addresses = its_own,
                                           .zone = of_zone};
        return sessions.ports.take(request, its_own[0], session::PortTable::Want::any, 0, {})
            .reason;
    };
    std::uint32_t count = 1;
    while (take(100'000 + count, zone) == DropReason::none) REQUIRE(++count < 4096);
    CHECK(count == 2048);
    check_dropped(kUnderlay, frame_of(b, from_to(ip4(b.address, server), udp(4000, 53))),
                  DropReason::nat_blocks_exhausted);
    DropSample sample;
    REQUIRE(worker->samples().pop(sample));
    CHECK(sample.tuple.destination == server);
    CHECK(sample.decided_by == Cookie{900});
    CHECK(open(a, server, udp(4000, 53)) == first);
    open(a, server, udp(4001, 53));
    CHECK(take(200'000, zone + 1) == DropReason::none);
    // A VPC that is deleted is not yet forgotten: others would pay for its ports.
    CHECK_FALSE(sessions.vacant(zone + 1));
}

TEST_CASE_METHOD(Shared, "hairpin: a server with an elastic IP sees the NAT gateway's address") {
    const IpAddress elastic = ip("203.0.113.5");
    attach(c, elastic);
    for (int i = 0; i < 2; ++i) {
        receive(kUnderlay, frame_of(a, from_to(ip4(a.address, elastic), udp(4000, 53))));
        const Bytes there = inner();
        const std::uint16_t port = port_of(there);
        CHECK(there == at(c, from_to(ip4(address, c.address, 63), udp(port, 53))));
        receive(kUnderlay, frame_of(c, from_to(ip4(c.address, address), udp(53, port))));
        CHECK(inner() == at(a, from_to(ip4(elastic, a.address, 63), udp(53, 4000))));
    }
    CHECK(all_drops() == 0);
    CHECK(sent(kUplink).empty());
}

TEST_CASE_METHOD(Shared, "filtering: who may open a connection to a mapped port") {
    const std::uint16_t port = port_of(open(a, server, udp(4000, 53)));
    const auto from = [&](const IpAddress& who, std::uint16_t source) {
        return from_internet(from_to(ip4(who, address), udp(source, port)));
    };
    check_dropped(kUplink, from(server, 54), DropReason::nat_filtered);
    check_dropped(kUplink, from(other, 53), DropReason::nat_filtered);
    check_dropped(
        kUplink,
        from_internet(from_to(ip4(server, address), udp(53, static_cast<std::uint16_t>(port ^ 1)))),
        DropReason::nat_unmapped);

    gateway.filtering = nfv::NatFiltering::endpoint_independent;
    put(gateway);
    receive(kUplink, from(other, 99));
    CHECK(inner() == at(a, from_to(ip4(other, a.address, 63), udp(99, 4000))));
    receive(kUnderlay, frame_of(a, from_to(ip4(a.address, other), udp(4000, 99))));
    CHECK(uplinked() == on_uplink(from_to(ip4(address, other, 63), udp(port, 99))));
    CHECK(live() == 1);
    // Tightened: what was let in is no longer.
    gateway.filtering = nfv::NatFiltering::address_and_port_dependent;
    put(gateway);
    check_dropped(kUplink, from(other, 99), DropReason::policy_changed);
    check_dropped(kUplink, from(other, 99), DropReason::nat_filtered);
    receive(kUplink, from_internet(from_to(ip4(server, address), udp(53, port))));
    CHECK(inner() == at(a, from_to(ip4(server, a.address, 63), udp(53, 4000))));
}

TEST_CASE_METHOD(Shared,
                 "who comes to a mapped port may take the room of the connection that has it") {
    gateway.filtering = nfv::NatFiltering::endpoint_independent;
    put(gateway);
    const std::uint16_t port = port_of(open(a, server, udp(4000, 53)));
    // Nobody has answered it yet.
    const policy::ZoneSlot zone = policy::zone_of(store.current(), vni_of(a));
    sessions.limits.set(zone.value, {.vpc = {}, .endpoint = {.connections = 1}});
    receive(kUplink, from_internet(from_to(ip4(other, address), udp(99, port))));
    CHECK(inner() == at(a, from_to(ip4(other, a.address, 63), udp(99, 4000))));
    CHECK(live() == 1);
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Shared, "address-dependent filtering: any port of whom the endpoint talks to") {
    gateway.filtering = nfv::NatFiltering::address_dependent;
    put(gateway);
    const std::uint16_t port = port_of(open(a, server, udp(4000, 53)));
    receive(kUplink, from_internet(from_to(ip4(server, address), udp(54, port))));
    CHECK(inner() == at(a, from_to(ip4(server, a.address, 63), udp(54, 4000))));
    check_dropped(kUplink, from_internet(from_to(ip4(other, address), udp(54, port))),
                  DropReason::nat_filtered);
    CHECK(connections() == 2);
}

TEST_CASE_METHOD(Shared,
                 "filtering that becomes address-dependent knows whom a port has talked to") {
    const Bytes before = open(a, server, udp(4000, 53));
    const std::uint16_t port = port_of(before);
    const Bytes another_port = from_internet(from_to(ip4(server, address), udp(54, port)));
    check_dropped(kUplink, another_port, DropReason::nat_filtered);
    gateway.filtering = nfv::NatFiltering::address_dependent;
    put(gateway);
    CHECK(open(a, server, udp(4000, 53)) == before);
    receive(kUplink, another_port);
    CHECK(inner() == at(a, from_to(ip4(server, a.address, 63), udp(54, 4000))));
    check_dropped(kUplink, from_internet(from_to(ip4(other, address), udp(54, port))),
                  DropReason::nat_filtered);
    CHECK(connections() == 2);
}

TEST_CASE_METHOD(Shared,
                 "a connection outlives the attachment of an elastic IP; a new one has it") {
    const Bytes before = open(a, server, udp(4000, 53));
    const std::uint16_t port = port_of(before);
    attach(a, ip("203.0.113.5"));
    CHECK(open(a, server, udp(4000, 53)) == before);
    receive(kUplink, from_internet(from_to(ip4(server, address), udp(53, port))));
    CHECK(inner() == at(a, from_to(ip4(server, a.address, 63), udp(53, 4000))));
    CHECK(open(a, server, udp(4001, 53)) ==
          on_uplink(from_to(ip4(ip("203.0.113.5"), server, 63), udp(4001, 53))));
    CHECK(live() == 1);
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Shared, "a NAT gateway that loses the address ends the connections that have it") {
    const std::uint16_t port = port_of(open(a, server, udp(4000, 53)));
    const IpAddress next = ip("203.0.113.10");
    gateway.addresses = {next};
    put(gateway, public_row(next));
    const Bytes after = open(a, server, udp(4000, 53));
    CHECK(after == on_uplink(from_to(ip4(next, server, 63), udp(port_of(after), 53))));
    check_dropped(kUplink, from_internet(from_to(ip4(server, address), udp(53, port))),
                  DropReason::nat_unmapped);
    CHECK(connections() == 1);
    CHECK(live() == 1);
}

TEST_CASE_METHOD(Timed,
                 "an address that a NAT gateway loses is rid of its ports though they idle") {
    port_of(open(a, server, udp(4000, 53)));
    open(b, server, Tcp{.source = 4000, .destination = 443, .flags = wire::tcp::kSyn});
    CHECK(events().size() == 2);
    pass(4);
    CHECK(live() == 2);  // what is allowed stays
    const IpAddress next = ip("203.0.113.10");
    gateway.addresses = {next};
    put(gateway, public_row(next));
    pass(4);
    CHECK(connections() == 0);
    CHECK(live() == 0);
    const auto released = events();
    REQUIRE(released.size() == 2);
    for (const auto& event : released) {
        CHECK_FALSE(event.assigned);
        CHECK(event.address == address.to_v4());
    }
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Timed, "however many it had, they are gone within a round of ageing") {
    gateway.ports_per_endpoint = 1024;
    put(gateway);
    for (std::uint16_t i = 0; i < 200; ++i) {
        const auto from = static_cast<std::uint16_t>(4000 + i);
        receive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), udp(from, 53))));
        CHECK(sent(kUplink).size() == 1);
    }
    const IpAddress next = ip("203.0.113.10");
    gateway.addresses = {next};
    put(gateway, public_row(next));
    // A whole round at once, as much as there is time for.
    clock_now += 3'000'000'000;
    for (int turn = 0; turn < 100; ++turn) run();
    CHECK(connections() == 0);
}

TEST_CASE_METHOD(Shared, "connections through a NAT gateway are not picked up in their middle") {
    shared.restarted = 1;
    using namespace wire::tcp;
    check_dropped(kUnderlay,
                  frame_of(a, from_to(ip4(a.address, server),
                                      Tcp{.source = 4000, .destination = 80, .flags = kAck})),
                  DropReason::tcp_not_syn);
    CHECK(live() == 0);
}

TEST_CASE_METHOD(Shared, "ICMP errors find the endpoint, their quotes translated, both ways") {
    const Icmp unreachable{.type = 3, .code = 1, .identifier = 0, .sequence = 0};
    const std::vector<std::function<Layer(std::uint16_t)>> requests = {
        [](std::uint16_t port) -> Layer {
            return Tcp{.source = port, .destination = 443, .flags = wire::tcp::kSyn};
        },
        [](std::uint16_t port) -> Layer { return Udp{.source = port, .destination = 53}; },
        [](std::uint16_t port) -> Layer { return Icmp{.type = 8, .identifier = port}; }};
    for (const auto& request : requests) {
        const std::uint16_t port = port_of(open(a, server, request(1025)));
        const auto error = [&](const IpAddress& seen, std::uint16_t quoted, std::uint8_t ttl) {
            return Layers{ip4(router, seen, ttl), unreachable,
                          Payload{packet(from_to(ip4(seen, server, 1), request(quoted)))}};
        };
        receive(kUplink, from_internet(error(address, port, 60)));
        CHECK(inner() == at(a, error(a.address, 1025, 59)));
    }
    // From the endpoint about a reply.
    const std::uint16_t port = port_of(open(a, server, udp(4000, 53)));
    receive(kUplink, from_internet(from_to(ip4(server, address), udp(53, port))));
    const Bytes got = inner();
    const auto error = [&](const IpAddress& from, std::uint16_t quoted, std::uint8_t ttl,
                           std::uint8_t inner_ttl) {
        return Layers{ip4(from, server, ttl), Icmp{.type = 3, .code = 3, .identifier = 0},
                      Payload{packet(from_to(ip4(server, from, inner_ttl), udp(53, quoted)))}};
    };
    receive(kUnderlay, frame_of(a, error(a.address, 4000, 64, 63)));
    CHECK(uplinked() == on_uplink(error(address, port, 63, 63)));
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Shared, "fragments follow their first one through the NAT gateway") {
    const Bytes whole = packet({ip4(a.address, server), udp(4000, 53), Payload{filler(1200)}});
    const Bytes payload(whole.begin() + 20, whole.end());
    const auto piece = [&](std::size_t from, std::size_t to, bool more) {
        Ipv4 header = ip4(a.address, server);
        header.identification = 77;
        header.protocol = 17;
        header.flags_and_offset = static_cast<std::uint16_t>(from / 8 | (more ? 0x2000 : 0));
        return frame_of(a, {header, Payload{{payload.begin() + static_cast<std::ptrdiff_t>(from),
                                             payload.begin() + static_cast<std::ptrdiff_t>(to)}}});
    };
    receive(kUnderlay, piece(0, 800, true));
    const Bytes first = uplinked();
    receive(kUnderlay, piece(800, payload.size(), false));
    const Bytes second = uplinked();
    CHECK(port_of(first) >= 1024);
    for (const Bytes* frame : {&first, &second})
        CHECK(wire::load_v4(&(*frame)[14 + wire::ipv4::kSource]) == address);
    CHECK(identification_of(first) == identification_of(second));
    CHECK(connections() == 1);
    CHECK(live() == 1);
}

TEST_CASE_METHOD(Shared, "datagrams of two endpoints with one identification leave with two") {
    const auto number = [&](const Machine& from) {
        Ipv4 header = ip4(from.address, server);
        header.identification = 77;
        header.flags_and_offset = 0;
        receive(kUnderlay, frame_of(from, from_to(header, udp(4000, 53))));
        return identification_of(uplinked());
    };
    const std::uint16_t first = number(a);
    CHECK(number(b) != first);
    CHECK(number(a) != first);
}

TEST_CASE_METHOD(Shared, "errors of two endpoints with one identification leave with two") {
    const auto number = [&](const Machine& from, std::uint16_t flags) {
        const std::uint16_t port = port_of(open(from, server, udp(4000, 53)));
        receive(kUplink, from_internet(from_to(ip4(server, address), udp(53, port))));
        const Bytes got = inner();
        Ipv4 header = ip4(from.address, server);
        header.identification = 77;
        header.flags_and_offset = flags;
        receive(kUnderlay, frame_of(from, {header, Icmp{.type = 3, .code = 3, .identifier = 0},
                                           Payload{{got.begin() + 14, got.end()}}}));
        const Bytes error = uplinked();
        header.source = address;
        header.identification = identification_of(error);
        header.ttl = 63;
        const Ipv4 quoted = ip4(server, address, 63);
        CHECK(error == on_uplink({header, Icmp{.type = 3, .code = 3, .identifier = 0},
                                  Payload{packet(from_to(quoted, udp(53, port)))}}));
        return identification_of(error);
    };
    const std::uint16_t first = number(a, 0);
    CHECK(first != 77);
    CHECK(number(b, 0) != first);
    CHECK(number(a, 0) != first);
    // Atomic ones keep theirs.
    CHECK(number(a, wire::ipv4::kDontFragment) == 77);
}

TEST_CASE_METHOD(Shared, "a walk of an earlier moment takes no port that is another's by now") {
    // Two first packets in one burst, of one private port: one connection, one port.
    arrive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), udp(4000, 53))));
    arrive(kUnderlay, frame_of(a, from_to(ip4(a.address, server), udp(4000, 53))));
    arrive(kUnderlay, frame_of(a, from_to(ip4(a.address, other), udp(4000, 53))));
    run();
    const auto frames = sent(kUplink);
    REQUIRE(frames.size() == 3);
    CHECK(port_of(frames[0]) == port_of(frames[2]));
    CHECK(live() == 1);
    CHECK(connections() == 2);
}

}  // namespace sluice::worker
