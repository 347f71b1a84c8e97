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
        VniRow row{vni, vpc, cookie};
        for (const SettingSpec& setting : settings())
            if ((setting.tables >> kVni & 1) != 0 && *rc::gen::arbitrary<bool>())
                row.settings.put(setting.id,
                                 *rc::gen::inRange(setting.minimum, setting.maximum + 1));
        check_round_trip(kVniSchema, row);
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

TEST_CASE("settings: unknown ones, another table's, out of range, and twice are refused by name") {
    const auto refusal = [](std::initializer_list<SettingValue> values) {
        EntryBuilder builder(kVni, Cookie{1});
        builder.match(Field::tunnel_id, Vni{5}).set(Field::source_vpc, VpcId{5}).next(kSource);
        for (const SettingValue value : values) builder.set(Field::setting, pack_setting(value));
        const auto wrong = check(kVniSchema, builder.build());
        return wrong ? wrong->error.message : "taken";
    };
    CHECK(refusal({{Setting::connections, 5}, {Setting::udp, 120}}) == "taken");
    CHECK(refusal({{static_cast<Setting>(15), 5}}) == "there is no setting 15");
    CHECK(refusal({{Setting::persist_established, 1}}) ==
          "the setting persist_established is none of this table's");
    CHECK(refusal({{Setting::udp, 119}}) == "udp is 120 to 432000 seconds");
    CHECK(refusal({{Setting::udp, 120}, {Setting::udp, 121}}) == "udp is set twice");
}

TEST_CASE(
    "every setting has a number, a name, a range that has its default, and tables of its own") {
    std::vector<Setting> numbers;
    for (const SettingSpec& setting : settings()) {
        INFO(setting.name);
        numbers.push_back(setting.id);
        CHECK(find_setting(setting.id) == &setting);
        CHECK(setting.minimum <= setting.maximum);
        CHECK(setting.maximum < 1U << 24);
        CHECK(setting.tables != 0);
        CHECK_FALSE(setting.meaning.empty());
        const bool is_limit = setting.id < Setting::tcp_established;
        const bool is_given = setting.id == Setting::persist_established;
        CHECK((is_limit || is_given || setting.id >= Setting::nat_ports_per_endpoint ||
               (setting.otherwise >= setting.minimum && setting.otherwise <= setting.maximum)));
    }
    CHECK(std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
          numbers.end());
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
