// SPDX-License-Identifier: Apache-2.0
#include "nfv/gateway_address/table.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "tests/unit/row_round_trip.hpp"

namespace sluice::nfv {
namespace {

TEST_CASE("rows of `local` survive encoding and decoding") {
    rc::prop("local", [](VpcId vpc, IpAddress address, MacAddress mac, SubnetId subnet,
                         RouteTableId table, Cookie cookie) {
        const auto length = *rc::gen::inRange(address.is_v4() ? 96 : 0, 129);
        const auto mtu = *rc::gen::inRange(576, 65536);
        tests::check_round_trip(
            kLocalSchema, LocalRow{vpc, address, mac, subnet, static_cast<std::uint8_t>(length),
                                   table, static_cast<std::uint16_t>(mtu), cookie});
    });
}

TEST_CASE("an IPv4 subnet whose prefix length is not out of 128 bits is refused") {
    LocalRow row{VpcId{1},
                 IpAddress::v4(be32{0x0a000001}),
                 MacAddress::from_value(0x020000000001),
                 SubnetId{1},
                 24,
                 RouteTableId{1},
                 1500,
                 {}};
    CHECK_FALSE(LocalRow::decode(row.encode()).ok());
    row.prefix_length = 96 + 24;
    CHECK(LocalRow::decode(row.encode()).ok());
}

}  // namespace
}  // namespace sluice::nfv
