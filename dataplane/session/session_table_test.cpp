// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/session_table.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace sluice;
using namespace sluice::session;

namespace {

Tuple tuple(std::uint32_t number) {
    Tuple result;
    result.source = IpAddress::v4(be32{0x0a000000 + number});
    result.destination = IpAddress::v4(be32{0x0a800001});
    result.protocol = 17;
    result.source_port = static_cast<std::uint16_t>(1024 + number % 60000);
    result.destination_port = 53;
    return result;
}

Tuple tuple_v6(std::uint32_t number) {
    Tuple result = tuple(number);
    result.source = result.destination = {};
    result.source.bytes = {0x20, 0x01, 0x0d, 0xb8};
    result.destination.bytes = {0x20, 0x01, 0x0d, 0xb8, 1};
    for (std::size_t i = 0; i < 4; ++i)
        result.source.bytes[12 + i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
    return result;
}

template <class Family>
struct Fixture {
    reclaim::Qsbr qsbr{1};
    SessionTable<Family> table;
    explicit Fixture(std::uint32_t capacity) : table({capacity, 1, {}, map_memory}, qsbr) {
        REQUIRE(table.ok());
        qsbr.online(0);
    }

    ConnectionIndex fill(const Tuple& forward, Vni zone = Vni{7}) {
        const ConnectionIndex number = table.take(0);
        if (number == kNoConnection) return number;
        auto& there = table.flow(forward_of(number));
        auto& back = table.flow(reverse_of(number));
        there.key = Family::Key::of(zone, forward);
        back.key = Family::Key::of(zone, *reversed(forward));
        for (auto* flow : {&there, &back}) {
            flow->state.packets = 0;
            flow->state.last_seen = 0;
        }
        return number;
    }
    FlowIndex find(const Tuple& wanted, Vni zone = Vni{7}) {
        const auto key = Family::Key::of(zone, wanted);
        return table.find(key, table.hash(key));
    }
    ConnectionIndex add(const Tuple& forward) {
        const ConnectionIndex number = fill(forward);
        REQUIRE(table.insert(0, number, TcpState::none) == Insertion::done);
        return number;
    }
};

}  // namespace

TEST_CASE("a connection is found by its key and by its replies' key, in its own zone only") {
    Fixture<Ipv4> fixture(100);
    const ConnectionIndex number = fixture.add(tuple(1));
    CHECK(fixture.find(tuple(1)) == forward_of(number));
    CHECK(fixture.find(*reversed(tuple(1))) == reverse_of(number));
    CHECK(fixture.find(tuple(1), Vni{8}) == kNoFlow);
    CHECK(fixture.find(tuple(2)) == kNoFlow);
}

TEST_CASE("a key and a tuple say the same") {
    Tuple ping = tuple(3);
    ping.protocol = 1;
    ping.source_port = 77;
    ping.destination_port = 8 << 8;
    for (const Tuple& one : {tuple(1), tuple(65000), ping}) {
        CHECK(KeyIpv4::of(Vni{5}, one).tuple() == one);
        CHECK(KeyIpv4::of(Vni{5}, one).zone() == Vni{5});
    }
    CHECK(KeyIpv6::of(Vni{0xffffff}, tuple_v6(9)).tuple() == tuple_v6(9));
    CHECK(KeyIpv6::of(Vni{0xffffff}, tuple_v6(9)).zone() == Vni{0xffffff});
}

TEST_CASE("a table holds as many connections as it was made for, and then refuses") {
    Fixture<Ipv4> fixture(50000);
    for (std::uint32_t i = 0; i < 50000; ++i) fixture.add(tuple(i));
    CHECK(fixture.table.take(0) == kNoConnection);
    for (std::uint32_t i = 0; i < 50000; ++i) {
        REQUIRE(fixture.find(tuple(i)) != kNoFlow);
        REQUIRE(fixture.find(*reversed(tuple(i))) != kNoFlow);
    }
}

TEST_CASE("the IPv6 table does the same") {
    Fixture<Ipv6> fixture(5000);
    for (std::uint32_t i = 0; i < 5000; ++i) fixture.add(tuple_v6(i));
    CHECK(fixture.table.take(0) == kNoConnection);
    for (std::uint32_t i = 0; i < 5000; ++i) {
        const FlowIndex flow = fixture.find(tuple_v6(i));
        REQUIRE(flow != kNoFlow);
        REQUIRE(fixture.find(*reversed(tuple_v6(i))).value == (flow.value ^ 1));
    }
}

TEST_CASE("an occupied key is told apart by direction, and nothing is inserted") {
    Fixture<Ipv4> fixture(100);
    fixture.add(tuple(1));
    const ConnectionIndex same = fixture.fill(tuple(1));
    CHECK(fixture.table.insert(0, same, TcpState::none) == Insertion::forward_exists);
    // Its forward key is free, its replies' key is not.
    fixture.table.flow(forward_of(same)).key = KeyIpv4::of(Vni{9}, tuple(1));
    CHECK(fixture.table.insert(0, same, TcpState::none) == Insertion::reverse_exists);
    CHECK(fixture.find(tuple(1), Vni{9}) == kNoFlow);
    fixture.table.give_back(0, same);
}

TEST_CASE("a connection whose two keys are equal is refused") {
    Fixture<Ipv4> fixture(100);
    Tuple self = tuple(1);
    self.destination = self.source;
    self.destination_port = self.source_port;
    const ConnectionIndex number = fixture.fill(self);
    CHECK(fixture.table.insert(0, number, TcpState::none) == Insertion::reverse_exists);
}

TEST_CASE("an ended connection is found no more, ends once, and rests before reuse") {
    Fixture<Ipv4> fixture(1);
    const ConnectionIndex number = fixture.add(tuple(1));
    CHECK(fixture.table.end(0, number) != 0);
    CHECK(fixture.table.end(0, number) == 0);
    CHECK(fixture.find(tuple(1)) == kNoFlow);
    CHECK(fixture.find(*reversed(tuple(1))) == kNoFlow);

    fixture.table.reclaim(0, 8);  // takes the token
    fixture.table.reclaim(0, 8);
    CHECK(fixture.table.take(0) == kNoConnection);
    fixture.qsbr.quiescent(0);
    fixture.table.reclaim(0, 8);
    CHECK(fixture.table.take(0) == number);
}

TEST_CASE("connections come and go for longer than the table is large") {
    Fixture<Ipv4> fixture(1000);
    std::vector<ConnectionIndex> live;
    std::uint32_t next = 0;
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 400; ++i) live.push_back(fixture.add(tuple(next++)));
        for (const ConnectionIndex number : live) REQUIRE(fixture.table.end(0, number) != 0);
        live.clear();
        fixture.table.reclaim(0, 1000);
        fixture.qsbr.quiescent(0);
        fixture.table.reclaim(0, 1000);
    }
    CHECK(fixture.table.high_water() <= 1000);
}

TEST_CASE("how long a connection may idle follows its protocol, its state and its answers") {
    Fixture<Ipv4> fixture(10);
    ZoneSettings zones(map_memory, 2);
    const ConnectionIndex number = fixture.add(tuple(1));
    const auto idle = [&](std::uint64_t seconds) {
        return fixture.table.idle_too_long(number, zones, Tick{ticks(seconds)});
    };
    // Unanswered: two minutes (RFC 4787 REQ-5).
    CHECK_FALSE(idle(119));
    CHECK(idle(122));
    // Answered: five minutes, since the last packet of either direction.
    fixture.table.flow(forward_of(number)).state.packets = 1;
    fixture.table.flow(reverse_of(number)).state.packets = 1;
    CHECK_FALSE(idle(299));
    fixture.table.flow(reverse_of(number)).state.last_seen = ticks(100);
    CHECK_FALSE(idle(399));
    CHECK(idle(402));
    // As its VPC says, another VPC's settings notwithstanding.
    ZoneValues values;
    values.timeouts[Timeout::udp] = ticks(1000);
    zones.set(0, values);
    values.timeouts[Timeout::udp] = ticks(120);
    zones.set(1, values);
    CHECK_FALSE(idle(1099));
    CHECK(idle(1102));
}

TEST_CASE("what a deleted VPC had is over at once; its slot's next VPC is open again") {
    Fixture<Ipv4> fixture(10);
    ZoneSettings zones(map_memory, 2);
    const ConnectionIndex number = fixture.add(tuple(1));
    const auto idle = [&] { return fixture.table.idle_too_long(number, zones, Tick{0}); };
    CHECK_FALSE(idle());
    zones.close(0);
    CHECK(idle());
    zones.set(0, {});
    CHECK_FALSE(idle());
}

TEST_CASE("counters grow beyond their 32 bits") {
    FlowState flow;
    Connection connection;
    for (int i = 0; i < 5; ++i) count(flow, connection, true, 0x4000'0000);
    CHECK(counted(flow, connection, true).octets == 5ULL * 0x4000'0000);
    CHECK(counted(flow, connection, true).packets == 5);
    CHECK(counted(FlowState{}, connection, false).octets == 0);
}
