// SPDX-License-Identifier: Apache-2.0
// Who is refused a new connection, by which reason, and who is not.
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;
using session::LimitDefaults;

struct Limited : Gateway {
    explicit Limited(const LimitDefaults& defaults = LimitDefaults::none())
        : Gateway(without_time(), with(defaults)) {
        build_vpc();
        open_group();
        a = add_machine(5);  // host 2
        b = add_machine(6);  // host 1, the same subnet
        c = add_machine(7);  // host 2
        zone = policy::zone_of(store.current(), vni_of(a)).value;
    }
    // Rates fill up again only when the test says so.
    static WorkerOptions without_time() {
        WorkerOptions options;
        options.clock = &now;
        return options;
    }
    static inline std::uint64_t now = 1'000'000'000;
    static session::SessionOptions with(const LimitDefaults& defaults) {
        session::SessionOptions options;
        options.ipv4_capacity = options.ipv6_capacity = 1024;
        options.limits = defaults;
        return options;
    }

    [[nodiscard]] Bytes syn(const Machine& from, const Machine& to, std::uint16_t port,
                            std::uint8_t flags = wire::tcp::kSyn) const {
        return frame_of(from,
                        {Ipv4{.source = from.address, .destination = to.address},
                         Tcp{.source = port, .destination = 80, .sequence = 1000, .flags = flags}},
                        to.mac);
    }
    [[nodiscard]] Bytes reply(const Machine& from, const Machine& to, std::uint16_t port,
                              std::uint8_t flags) const {
        return frame_of(
            from,
            {Ipv4{.source = from.address, .destination = to.address},
             Tcp{.source = 80, .destination = port, .acknowledgement = 1001, .flags = flags}},
            to.mac);
    }
    void pass(const Bytes& frame) {
        receive(kUnderlay, frame);
        CHECK(sent(kUnderlay).size() == 1);
    }
    void handshake(const Machine& from, const Machine& to, std::uint16_t port) {
        pass(syn(from, to, port));
        pass(reply(to, from, port, wire::tcp::kSyn | wire::tcp::kAck));
        pass(syn(from, to, port, wire::tcp::kAck));
    }
    [[nodiscard]] session::Limits::Use use() const { return sessions.limits.use(zone); }
    [[nodiscard]] session::Limits::Use use(const Machine& of) const {
        return sessions.limits.use(of.id);
    }
    [[nodiscard]] std::uint64_t evicted() const {
        return worker->counters().zone[zone].connections_evicted.read();
    }

    Machine a, b, c;
    std::uint32_t zone = 0;
};

LimitDefaults vpc(SessionLimits limits) {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.vpc = limits;
    return defaults;
}
LimitDefaults endpoint(SessionLimits limits) {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.endpoint = limits;
    return defaults;
}

}  // namespace

TEST_CASE_METHOD(Limited, "a connection is half open until its handshake is over") {
    pass(syn(a, b, 1000));
    CHECK(use().connections[0] == 1);
    CHECK(use().half_open[0] == 1);
    CHECK(use(a).half_open[0] == 1);
    pass(reply(b, a, 1000, wire::tcp::kSyn | wire::tcp::kAck));
    CHECK(use().half_open[0] == 1);
    pass(syn(a, b, 1000, wire::tcp::kAck));
    CHECK(use().connections[0] == 1);
    CHECK(use().half_open[0] == 0);
    CHECK(use(a).connections[0] == 1);
    CHECK(use(a).half_open[0] == 0);
    CHECK(use(b).connections[0] == 0);
}

TEST_CASE_METHOD(Limited, "what is no TCP is half open until the first reply") {
    const auto datagram = [&](const Machine& from, const Machine& to, std::uint16_t source,
                              std::uint16_t destination) {
        return frame_of(from,
                        {Ipv4{.source = from.address, .destination = to.address},
                         Udp{.source = source, .destination = destination}},
                        to.mac);
    };
    pass(datagram(a, b, 7, 9));
    pass(datagram(a, b, 7, 9));
    CHECK(use().half_open[0] == 1);
    pass(datagram(b, a, 9, 7));
    CHECK(use().half_open[0] == 0);
    pass(datagram(b, a, 9, 7));
    CHECK(use().connections[0] == 1);
    CHECK(use().half_open[0] == 0);
}

TEST_CASE("the VPC's unanswered connections: an old one goes for a new one, none established") {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.vpc_half_open = 2;
    Limited gateway(defaults);
    gateway.handshake(gateway.a, gateway.b, 999);
    constexpr std::uint16_t kFlood = 2000;
    std::size_t passed = 0;
    for (std::uint16_t port = 1000; port < 1000 + kFlood; ++port) {
        gateway.receive(kUnderlay, gateway.syn(gateway.c, gateway.b, port));
        passed += gateway.sent(kUnderlay).size();
    }
    const auto refused = gateway.drops(DropReason::vpc_half_open);
    CHECK(gateway.all_drops() == refused);
    CHECK(passed == kFlood - refused);
    CHECK(gateway.use().half_open[0] == kFlood - refused - gateway.evicted());
    CHECK(gateway.use().half_open[0] <= 1024 / 5);
    CHECK(gateway.evicted() > kFlood / 2);
    gateway.pass(gateway.syn(gateway.a, gateway.b, 999, wire::tcp::kAck));
}

TEST_CASE("an endpoint's unanswered connections make room among themselves") {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.endpoint_half_open = 1;
    Limited gateway(defaults);
    gateway.pass(gateway.syn(gateway.a, gateway.b, 999));
    for (std::uint16_t port = 1000; port < 2000; ++port)
        gateway.receive(kUnderlay, gateway.syn(gateway.c, gateway.b, port));
    gateway.sent(kUnderlay);
    CHECK(gateway.use(gateway.c).half_open[0] <= 1024 / 9);
    CHECK(gateway.use(gateway.a).half_open[0] == 1);
    CHECK(gateway.drops(DropReason::vpc_half_open) == 0);
    gateway.pass(gateway.reply(gateway.b, gateway.a, 999, wire::tcp::kSyn | wire::tcp::kAck));
}

TEST_CASE("where no old one is found the new one is refused by reason") {
    Limited gateway(endpoint({0, 1, 0}));
    gateway.pass(gateway.syn(gateway.c, gateway.b, 1));
    for (std::uint16_t port = 100; port < 140; ++port)
        gateway.handshake(gateway.a, gateway.b, port);
    // The next sixteen records are A's.
    gateway.pass(gateway.syn(gateway.c, gateway.b, 2));
    gateway.check_dropped(kUnderlay, gateway.syn(gateway.c, gateway.b, 3),
                          DropReason::endpoint_half_open);
}

TEST_CASE("a VPC that has its share is refused by reason; what is established lives") {
    Limited gateway(vpc({3, 0, 0}));
    for (std::uint16_t port = 1; port <= 3; ++port) gateway.handshake(gateway.a, gateway.b, port);
    gateway.check_dropped(kUnderlay, gateway.syn(gateway.c, gateway.b, 9),
                          DropReason::vpc_connections);
    for (std::uint16_t port = 1; port <= 3; ++port)
        gateway.pass(gateway.syn(gateway.a, gateway.b, port, wire::tcp::kAck));
    CHECK(gateway.evicted() == 0);
}

TEST_CASE("an endpoint that has its share is refused; its neighbours are not") {
    Limited gateway(endpoint({2, 0, 0}));
    gateway.handshake(gateway.a, gateway.b, 1);
    gateway.handshake(gateway.a, gateway.b, 2);
    gateway.check_dropped(kUnderlay, gateway.syn(gateway.a, gateway.b, 3),
                          DropReason::endpoint_connections);
    gateway.handshake(gateway.c, gateway.b, 3);
}

TEST_CASE("connections that are over make room for new ones") {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.vpc_connections = 8;  // half of the table
    Limited gateway(defaults);
    constexpr std::uint16_t kMany = 1500;
    for (std::uint16_t port = 1; port <= kMany; ++port) {
        gateway.receive(kUnderlay, gateway.syn(gateway.a, gateway.b, port));
        gateway.receive(kUnderlay, gateway.reply(gateway.b, gateway.a, port,
                                                 wire::tcp::kRst | wire::tcp::kAck));
        gateway.sent(kUnderlay);
    }
    CHECK(gateway.use().connections[0] <= 512);
    CHECK(gateway.evicted() > 900);
    CHECK(gateway.use().half_open[0] == 0);
}

TEST_CASE("the rate is charged before the walk, policy's refusals included") {
    Limited gateway(endpoint({0, 0, 1}));
    gateway.pass(gateway.syn(gateway.a, gateway.b, 1));
    for (std::uint16_t port = 2; port <= 16; ++port)
        gateway.check_dropped(kUnderlay, gateway.syn(gateway.a, gateway.b, port, wire::tcp::kAck),
                              DropReason::tcp_not_syn);
    const std::uint64_t walks = gateway.worker->counters().walks.read();
    gateway.sent(kUnderlay);
    gateway.check_dropped(kUnderlay, gateway.syn(gateway.a, gateway.b, 100),
                          DropReason::endpoint_connection_rate);
    CHECK(gateway.worker->counters().walks.read() == walks);
    CHECK(gateway.worker->counters()
              .zone[gateway.zone]
              .drops[static_cast<std::size_t>(DropReason::endpoint_connection_rate)]
              .read() == 1);
    // Its connections go on, and so do its neighbours' new ones.
    gateway.pass(gateway.syn(gateway.a, gateway.b, 1));
    gateway.pass(gateway.syn(gateway.c, gateway.b, 1));
}

TEST_CASE("a VPC that opens too many a second is refused by reason") {
    Limited gateway(vpc({0, 0, 1}));
    for (std::uint16_t port = 1; port <= 16; ++port)
        gateway.pass(gateway.syn(port % 2 == 0 ? gateway.a : gateway.c, gateway.b, port));
    gateway.check_dropped(kUnderlay, gateway.syn(gateway.a, gateway.b, 100),
                          DropReason::vpc_connection_rate);
}

TEST_CASE("who passes for a neighbour does not use up the neighbour's rate") {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.endpoint.per_second = 1;
    Limited gateway(defaults);
    // C's host, C's MAC, but A's address; then A's MAC too.
    Machine spoofer = gateway.c;
    spoofer.address = gateway.a.address;
    for (std::uint16_t port = 0; port < 50; ++port) {
        if (port == 25) {
            spoofer.mac = gateway.a.mac;
            spoofer.host = gateway.b.host;
        }
        gateway.receive(kUnderlay, gateway.syn(spoofer, gateway.b, port));
        CHECK(gateway.silent());
    }
    CHECK(gateway.drops(DropReason::vpc_connection_rate) == 34);
    gateway.handshake(gateway.a, gateway.b, 1);
}

TEST_CASE("a flood from outside is the address's that it is for") {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.endpoint.per_second = 1;
    Limited gateway(defaults);
    const IpAddress elastic = ip("198.51.100.7"), other = ip("198.51.100.8");
    for (const auto& [machine, address] :
         {std::pair{gateway.a, elastic}, std::pair{gateway.b, other}})
        gateway.put(nfv::ElasticIpRow{machine.vpc, machine.address, address, {}, Cookie{700}},
                    nfv::PublicAddressRow{address, machine.vpc, machine.address, {}, Cookie{701}});
    const auto from_outside = [&](const IpAddress& to, std::uint16_t port) {
        return Gateway::from_internet({Ipv4{.source = ip("8.8.8.8"), .destination = to},
                                       Tcp{.source = port, .flags = wire::tcp::kSyn}});
    };
    for (std::uint16_t port = 0; port < 100; ++port)
        gateway.receive(kUplink, from_outside(elastic, port));
    CHECK(gateway.sent(kUnderlay).size() == 16);
    // Counted where the address belongs.
    CHECK(gateway.worker->counters()
              .zone[gateway.zone]
              .drops[static_cast<std::size_t>(DropReason::endpoint_connection_rate)]
              .read() == 84);
    gateway.receive(kUplink, from_outside(other, 1));
    CHECK(gateway.sent(kUnderlay).size() == 1);
    gateway.handshake(gateway.a, gateway.b, 1);
}

TEST_CASE("what comes for an address is charged to whoever has it, not to who had it") {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.vpc.per_second = 1;
    Limited gateway(defaults);
    const IpAddress elastic = ip("198.51.100.7");
    const auto own = [&](const Machine& machine) {
        return nfv::ElasticIpRow{machine.vpc, machine.address, elastic, {}, Cookie{700}};
    };
    const auto back = [&](const Machine& machine) {
        return nfv::PublicAddressRow{elastic, machine.vpc, machine.address, {}, Cookie{701}};
    };
    std::uint16_t port = 0;
    // How many got as far as a walk.
    const auto flood = [&] {
        const auto before = gateway.worker->counters().walks.read();
        for (int i = 0; i < 100; ++i)
            gateway.receive(kUplink, Gateway::from_internet(
                                         {Ipv4{.source = ip("8.8.8.8"), .destination = elastic},
                                          Tcp{.source = port++, .flags = wire::tcp::kSyn}}));
        gateway.sent(kUnderlay);
        return gateway.worker->counters().walks.read() - before;
    };
    const auto refused = [&](std::uint32_t zone) {
        return gateway.worker->counters()
            .zone[zone]
            .drops[static_cast<std::size_t>(DropReason::vpc_connection_rate)]
            .read();
    };
    gateway.put(own(gateway.a), back(gateway.a));
    CHECK(flood() == 1 + 16);  // nobody knows whose the first is for
    CHECK(refused(gateway.zone) == 83);
    // Nobody's: no VPC is charged.
    gateway.remove(own(gateway.a), back(gateway.a));
    CHECK(flood() == 100);
    CHECK(gateway.drops(DropReason::unknown_public_address) == 100);
    CHECK(refused(gateway.zone) == 83);
    // Another VPC's, which has a rate of its own.
    gateway.build_vpc(2);
    const Machine next = gateway.add_machine(9, 1, {Gateway::kOpen}, 2);
    const auto zone = policy::zone_of(gateway.store.current(), gateway.vni_of(next)).value;
    gateway.put(own(next), back(next));
    CHECK(flood() == 1 + 16);
    CHECK(refused(zone) == 83);
    CHECK(refused(gateway.zone) == 83);
    // The VPC goes, and its slot becomes another's: the address was never that one's.
    gateway.remove(own(next), back(next), next.row(), next.source());
    const openflow::VniRow vpc{gateway.vni_of(next), next.vpc, {}};
    gateway.remove(vpc);
    gateway.worker->turn();
    gateway.store.reclaim();
    gateway.put(openflow::VniRow{Vni{7777}, VpcId{3}, Cookie{3}});
    CHECK(policy::zone_of(gateway.store.current(), Vni{7777}).value == zone);
    CHECK(flood() == 100);
    CHECK(refused(zone) == 83);
}

TEST_CASE("a flood fills neither the table nor the way of another VPC") {
    Limited gateway(LimitDefaults{});
    // As many as there are records, thrice over: a ninth of them stay.
    for (std::uint32_t i = 0; i < 3 * 1024; ++i)
        gateway.receive(kUnderlay,
                        gateway.syn(gateway.a, gateway.b, static_cast<std::uint16_t>(1000 + i)));
    gateway.sent(kUnderlay);
    CHECK(gateway.use().connections[0] < 1024 / 8);
    CHECK(gateway.drops(DropReason::session_table_full) == 0);
    CHECK(gateway.evicted() > 2048);
    gateway.handshake(gateway.c, gateway.b, 1);
}

TEST_CASE_METHOD(Limited, "a VPC's own limits hold at once, for it and each of its endpoints") {
    const auto set = [&](const openflow::Settings& settings) {
        put(openflow::VniRow{vni_of(a), a.vpc, Cookie{1}, settings});
    };
    using enum openflow::Setting;
    pass(syn(a, b, 1));
    pass(syn(a, b, 2));
    const auto walked = worker->counters().rewalks.read();
    set(openflow::Settings().put(endpoint_connections, 2));
    handshake(c, b, 1);  // nobody is judged again for it, and the others have theirs
    CHECK(worker->counters().rewalks.read() == walked);
    pass(reply(b, a, 1, wire::tcp::kSyn | wire::tcp::kAck));
    pass(reply(b, a, 2, wire::tcp::kSyn | wire::tcp::kAck));
    pass(syn(a, b, 1, wire::tcp::kAck));
    pass(syn(a, b, 2, wire::tcp::kAck));
    check_dropped(kUnderlay, syn(a, b, 3), DropReason::endpoint_connections);
    CHECK(sessions.limits.refused(a.id).connections == 1);
    set(openflow::Settings().put(connections, 3));
    check_dropped(kUnderlay, syn(c, b, 3), DropReason::vpc_connections);
    set(openflow::Settings().put(endpoint_new_per_second, 1));
    for (std::uint16_t i = 0; i < 16; ++i) receive(kUnderlay, syn(a, c, 100 + i));
    sent(kUnderlay);
    check_dropped(kUnderlay, syn(a, c, 200), DropReason::endpoint_connection_rate);
    CHECK(sessions.limits.refused(a.id).per_second >= 1);
    set({});
    pass(syn(b, c, 4));
}

TEST_CASE_METHOD(Limited, "a deleted VPC's connections end; its slot is another's only then") {
    handshake(a, b, 1);
    const openflow::VniRow vpc{vni_of(a), a.vpc, {}};
    remove(vpc);
    CHECK_FALSE(sessions.vacant(zone));
    CHECK(sessions.zones.closed(zone));
    // Nobody sends: ageing finds it, long before its time-out.
    for (int turns = 0; turns < 1000 && !sessions.vacant(zone); ++turns) {
        now += 10'000'000;
        worker->turn();
    }
    CHECK(sessions.vacant(zone));
    CHECK(connections() == 0);
    put(vpc);
    CHECK_FALSE(sessions.zones.closed(policy::zone_of(store.current(), vni_of(a)).value));
}

}  // namespace sluice::worker
