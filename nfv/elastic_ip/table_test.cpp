// SPDX-License-Identifier: Apache-2.0
#include "nfv/elastic_ip/table.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "tests/unit/row_round_trip.hpp"

namespace sluice::nfv {
namespace {

TEST_CASE("rows of `elastic_ip` and `public_address` survive encoding and decoding") {
    rc::prop("both", [](VpcId vpc, MeterId meter, Cookie cookie) {
        const auto family = *rc::family();
        const auto inside = *rc::ip_address(family);
        const auto outside = *rc::ip_address(family);
        tests::check_round_trip(kElasticIpSchema,
                                ElasticIpRow{vpc, inside, outside, meter, cookie});
        tests::check_round_trip(kPublicAddressSchema,
                                PublicAddressRow{outside, vpc, inside, meter, cookie});
    });
}

TEST_CASE("a public address that is not attached leads nowhere") {
    const auto address = IpAddress::v4(be32{0xcb007105});
    const auto entry = PublicAddressRow{address, {}, {}, {}, Cookie{5}}.encode();
    CHECK_FALSE(entry.next.has_value());
    CHECK(openflow::validate(kPublicAddressSchema, entry).ok());
    const auto row = PublicAddressRow::decode(entry);
    REQUIRE(row.ok());
    CHECK(row->private_address.is_none());
    CHECK(row->vpc == kOutside);
}

TEST_CASE("the public address of a NAT gateway names it and nothing else") {
    PublicAddressRow row;
    row.public_address = IpAddress::v4(be32{0xcb007105});
    row.nat_gateway = NatGatewayId{7};
    auto entry = row.encode();
    CHECK(openflow::validate(kPublicAddressSchema, entry).ok());
    const auto decoded = PublicAddressRow::decode(entry);
    REQUIRE(decoded.ok());
    CHECK(decoded->nat_gateway == NatGatewayId{7});
    CHECK(decoded->private_address.is_none());
    entry.set.push_back({openflow::Field::destination_vpc, openflow::U128::of(3)});
    CHECK_FALSE(PublicAddressRow::decode(entry).ok());
    row.public_address = IpAddress{{0x20, 0x01}};
    CHECK_FALSE(PublicAddressRow::decode(row.encode()).ok());
}

TEST_CASE("a translation between families is refused") {
    const auto entry =
        ElasticIpRow{VpcId{1}, IpAddress::v4(be32{0x0a000001}), IpAddress{{0x20, 0x01}}, {}, {}}
            .encode();
    CHECK_FALSE(openflow::validate(kElasticIpSchema, entry).ok());
}

}  // namespace
}  // namespace sluice::nfv
