// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/tables.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "tests/unit/row_round_trip.hpp"

namespace sluice::openflow {
namespace {

using tests::check_round_trip;

TEST_CASE("the rows of the core tables survive encoding and decoding") {
    rc::prop("port", [](PortId port, bool uplink) {
        check_round_trip(kPortSchema, PortRow{port, uplink ? Side::uplink : Side::underlay});
    });
    rc::prop("vni", [](Vni vni, VpcId vpc, Cookie cookie) {
        check_round_trip(kVniSchema, VniRow{vni, vpc, cookie});
    });
    rc::prop("route", [](RouteTableId table, Prefix prefix, EndpointId endpoint, Cookie cookie) {
        const auto hop = static_cast<NextHop>(*rc::gen::inRange(1, 5));
        check_round_trip(kRouteSchema,
                         RouteRow{table, prefix, hop,
                                  hop == NextHop::endpoint ? endpoint : EndpointId{}, cookie});
    });
    rc::prop("endpoint", [](VpcId vpc, IpAddress address, EndpointId endpoint, SubnetId subnet,
                            HostId host, MacAddress mac, Cookie cookie) {
        const auto count = *rc::gen::inRange<std::size_t>(0, 17);
        const auto groups =
            *rc::gen::unique<std::vector<GroupId>>(count, rc::gen::arbitrary<GroupId>());
        check_round_trip(kEndpointSchema,
                         EndpointRow{vpc, address, endpoint, subnet, host, mac, groups, cookie});
    });
    rc::prop("host", [](HostId host, Cookie cookie) {
        const auto count = *rc::gen::inRange<std::size_t>(1, 4);
        auto vteps = *rc::gen::unique<std::vector<IpAddress>>(
            count, rc::gen::suchThat<IpAddress>(
                       [](const IpAddress& address) { return !address.is_multicast(); }));
        check_round_trip(kHostSchema, HostRow{host, vteps, cookie});
    });
}

TEST_CASE("a route to the internet goes on to elastic_ip, a local one to endpoint") {
    const RouteTableId table{7};
    const auto any = Prefix::any(Family::ipv4);
    CHECK(RouteRow{table, any, NextHop::internet, {}, {}}.encode().next == kElasticIp);
    CHECK(RouteRow{table, any, NextHop::local, {}, {}}.encode().next == kEndpoint);
    CHECK(RouteRow{table, any, NextHop::endpoint, EndpointId{3}, {}}.encode().next == kEndpoint);
}

TEST_CASE("a blackhole is an entry that goes nowhere") {
    const auto entry =
        RouteRow{RouteTableId{7}, Prefix::any(Family::ipv6), NextHop::blackhole, {}, {}}.encode();
    CHECK_FALSE(entry.next.has_value());
    CHECK(validate(kRouteSchema, entry).ok());
}

TEST_CASE("a default route is an entry without destination; the ether type tells its family") {
    const auto entry =
        RouteRow{RouteTableId{7}, Prefix::any(Family::ipv6), NextHop::internet, {}, {}}.encode();
    REQUIRE(entry.key.match.size() == 2);
    const auto row = RouteRow::decode(entry);
    REQUIRE(row.ok());
    CHECK(row->destination == Prefix::any(Family::ipv6));
}

TEST_CASE("a route whose next hop and next table disagree is refused") {
    auto entry =
        RouteRow{RouteTableId{7}, Prefix::any(Family::ipv4), NextHop::internet, {}, {}}.encode();
    entry.next = kEndpoint;
    CHECK_FALSE(RouteRow::decode(entry).ok());
}

TEST_CASE("an endpoint of 17 groups is refused") {
    EndpointRow row{VpcId{1},
                    IpAddress::v4(be32{0x0a000001}),
                    EndpointId{1},
                    SubnetId{1},
                    HostId{1},
                    MacAddress::from_value(0x020000000001),
                    {},
                    {}};
    for (std::uint32_t i = 1; i <= 17; ++i) row.groups.push_back(GroupId{i});
    CHECK_FALSE(EndpointRow::decode(row.encode()).ok());
    row.groups.pop_back();
    CHECK(EndpointRow::decode(row.encode()).ok());
}

TEST_CASE("the core tables are in order, and only port is built in") {
    std::uint8_t last = 0;
    for (const TableSchema* schema : core_tables()) {
        CHECK((schema->id > last || schema->id == kPort));
        CHECK(schema->built_in == (schema->id == kPort));
        for (const auto next : schema->next) CHECK(next > schema->id);
        last = schema->id;
    }
}

TEST_CASE("the hash of an entry depends on all that it says") {
    const Entry entry = EndpointRow{
        VpcId{1},
        IpAddress::v4(be32{0x0a000001}),
        EndpointId{1},
        SubnetId{1},
        HostId{1},
        MacAddress::from_value(0x020000000001),
        {GroupId{1}, GroupId{2}},
        Cookie{9}}.encode();
    const auto hash = entry_hash(entry);
    auto other = entry;
    other.cookie = Cookie{10};
    CHECK(entry_hash(other) != hash);
    other = entry;
    std::swap(other.set[4], other.set[5]);
    CHECK(entry_hash(other) != hash);
    other = entry;
    other.next.reset();
    CHECK(entry_hash(other) != hash);
    other = entry;
    other.key.match[1].value.low ^= 1;
    CHECK(entry_hash(other) != hash);
    CHECK(key_hash(other.key) != key_hash(entry.key));
}

TEST_CASE("the hash is the same on every machine") {
    // Both ends of the digest must agree across releases; a change here is a change of protocol.
    CHECK(meter_hash(Meter{MeterId{1}, 20000, 2000}) == 0x54544efd6890b880ULL);
    CHECK(entry_hash(VniRow{Vni{5000}, VpcId{7}, Cookie{42}}.encode()) == 0x2050d7cb40bd322eULL);
}

}  // namespace
}  // namespace sluice::openflow
