// SPDX-License-Identifier: Apache-2.0
#include "nfv/anti_spoof/table.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "tests/unit/row_round_trip.hpp"

namespace sluice::nfv {
namespace {

TEST_CASE("rows of `source` survive encoding and decoding") {
    rc::prop("source", [](VpcId vpc, MacAddress mac, Prefix address, EndpointId endpoint,
                          HostId host, Cookie cookie) {
        tests::check_round_trip(kSourceSchema,
                                SourceRow{vpc, mac, address, endpoint, host, cookie});
    });
}

TEST_CASE("a source check that is off is a row for each family, of length zero") {
    const auto row = SourceRow{VpcId{1},
                               MacAddress::from_value(0x020000000001),
                               Prefix::any(Family::ipv6),
                               EndpointId{2},
                               HostId{3},
                               Cookie{4}};
    const auto decoded = SourceRow::decode(row.encode());
    REQUIRE(decoded.ok());
    CHECK(decoded->address == Prefix::any(Family::ipv6));
    CHECK(decoded->endpoint == EndpointId{2});
    CHECK(decoded->host == HostId{3});
}

TEST_CASE("an entry without its sets decodes to an error that names the field") {
    auto entry =
        SourceRow{VpcId{1}, {}, Prefix::any(Family::ipv4), EndpointId{2}, HostId{3}, {}}.encode();
    entry.set.pop_back();
    const auto decoded = SourceRow::decode(entry);
    REQUIRE_FALSE(decoded.ok());
    CHECK(decoded.error().path == "source.host");
}

}  // namespace
}  // namespace sluice::nfv
