// SPDX-License-Identifier: Apache-2.0
#include "nfv/nat_gateway/table.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "dataplane/openflow/settings.hpp"
#include "tests/unit/row_round_trip.hpp"

namespace sluice::nfv {
namespace {

using openflow::Setting;

NatGatewayRow row() {
    NatGatewayRow result;
    result.nat_gateway = NatGatewayId{7};
    result.addresses = {IpAddress::v4(be32{0xcb007105})};
    result.cookie = Cookie{9};
    return result;
}

openflow::Entry with(Setting id, std::uint32_t value) {
    openflow::Entry entry = row().encode();
    std::erase_if(entry.set, [&](const openflow::SetField& set) {
        return set.field == openflow::Field::setting &&
               openflow::unpack_setting(set.value.low).id == id;
    });
    entry.set.push_back(
        {openflow::Field::setting, openflow::U128::of(openflow::pack_setting({id, value}))});
    return entry;
}

TEST_CASE("a NAT gateway's row survives encoding and decoding") {
    rc::prop("any", [](NatGatewayId id, MeterId meter, Cookie cookie) {
        NatGatewayRow any;
        any.nat_gateway = id;
        for (int left = *rc::gen::inRange(1, 17), i = 0; i < left; ++i)
            any.addresses.push_back(IpAddress::v4(be32{0xcb007100U + static_cast<unsigned>(i)}));
        any.ports_per_endpoint = *rc::gen::inRange(1U, 65U) * kNatBlockPorts;
        any.mapping = static_cast<NatMapping>(*rc::gen::inRange(0, 2));
        if (any.mapping == NatMapping::endpoint_independent)
            any.filtering = static_cast<NatFiltering>(*rc::gen::inRange(0, 3));
        any.meter = meter;
        any.cookie = cookie;
        tests::check_round_trip(kNatGatewaySchema, any);
    });
}

TEST_CASE("a route to a NAT gateway survives encoding and decoding") {
    openflow::RouteRow route;
    route.table = RouteTableId{3};
    route.destination = Prefix::any(Family::ipv4);
    route.next_hop = openflow::NextHop::nat_gateway;
    route.nat_gateway = NatGatewayId{7};
    const auto entry = route.encode();
    CHECK(openflow::validate(openflow::kRouteSchema, entry).ok());
    CHECK(entry.next == openflow::kElasticIp);
    CHECK(openflow::RouteRow::decode(entry)->nat_gateway == NatGatewayId{7});
}

TEST_CASE("a route names a NAT gateway exactly where its next hop is one") {
    openflow::RouteRow route;
    route.table = RouteTableId{3};
    route.destination = Prefix::any(Family::ipv4);
    route.next_hop = openflow::NextHop::internet;
    auto entry = route.encode();
    entry.set.push_back({openflow::Field::nat_gateway, openflow::U128::of(7)});
    CHECK(openflow::validate(openflow::kRouteSchema, entry).ok());
    CHECK_FALSE(openflow::RouteRow::decode(entry).ok());
}

TEST_CASE("settings of a NAT gateway that are left out have their defaults (RFC 4787)") {
    openflow::Entry entry = row().encode();
    std::erase_if(entry.set, [](const openflow::SetField& set) {
        return set.field == openflow::Field::setting;
    });
    const auto decoded = NatGatewayRow::decode(entry);
    REQUIRE(decoded.ok());
    CHECK(decoded->ports_per_endpoint == 1024);
    CHECK(decoded->mapping == NatMapping::endpoint_independent);
    CHECK(decoded->filtering == NatFiltering::address_and_port_dependent);
}

TEST_CASE("a NAT gateway's settings out of range or in contradiction are refused") {
    const auto valid = [](const openflow::Entry& entry) {
        return openflow::validate(kNatGatewaySchema, entry).ok() &&
               NatGatewayRow::decode(entry).ok();
    };
    CHECK(valid(row().encode()));
    CHECK_FALSE(valid(with(Setting::nat_ports_per_endpoint, 63)));
    CHECK_FALSE(valid(with(Setting::nat_ports_per_endpoint, 100)));
    CHECK_FALSE(valid(with(Setting::nat_ports_per_endpoint, 4160)));
    CHECK_FALSE(valid(with(Setting::nat_mapping, 2)));
    CHECK_FALSE(valid(with(Setting::nat_filtering, 3)));
    CHECK_FALSE(valid(with(Setting{255}, 1)));
    auto twice = row().encode();
    twice.set.push_back({openflow::Field::setting,
                         openflow::U128::of(openflow::pack_setting({Setting::nat_mapping, 1}))});
    CHECK_FALSE(valid(twice));

    NatGatewayRow open = row();
    open.mapping = NatMapping::address_and_port_dependent;
    open.filtering = NatFiltering::endpoint_independent;
    CHECK_FALSE(valid(open.encode()));
    NatGatewayRow ipv6 = row();
    ipv6.addresses = {IpAddress{{0x20, 0x01}}};
    CHECK_FALSE(valid(ipv6.encode()));
    NatGatewayRow many = row();
    for (unsigned i = 0; i < kNatMaximumAddresses; ++i)
        many.addresses.push_back(IpAddress::v4(be32{0xcb007200U + i}));
    CHECK_FALSE(valid(many.encode()));
    NatGatewayRow none = row();
    none.addresses.clear();
    CHECK_FALSE(valid(none.encode()));
}

}  // namespace
}  // namespace sluice::nfv
