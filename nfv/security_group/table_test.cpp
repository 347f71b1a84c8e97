// SPDX-License-Identifier: Apache-2.0
#include "nfv/security_group/table.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "tests/unit/row_round_trip.hpp"

namespace sluice::nfv {
namespace {

RuleRow any_rule(GroupId group, Cookie cookie) {
    RuleRow row;
    row.direction = *rc::gen::element(Direction::egress, Direction::ingress);
    row.group = group;
    row.allow = *rc::gen::arbitrary<bool>();
    row.priority = static_cast<std::uint16_t>(*rc::gen::inRange(1, 32001));
    row.family = *rc::family();
    row.cookie = cookie;
    switch (*rc::gen::inRange(0, 4)) {
        case 0:
            break;
        case 1:
            row.protocol = *rc::gen::arbitrary<std::uint8_t>();
            break;
        case 2: {
            row.protocol = *rc::gen::element<std::uint8_t>(6, 17, 132);
            row.port_min = *rc::gen::arbitrary<std::uint16_t>();
            row.port_max = static_cast<std::uint16_t>(*rc::gen::inRange<int>(row.port_min, 65536));
            break;
        }
        default:
            row.protocol = row.family == Family::ipv4 ? std::uint8_t{1} : std::uint8_t{58};
            row.icmp_type = *rc::gen::arbitrary<std::uint8_t>();
            if (*rc::gen::arbitrary<bool>()) row.icmp_code = *rc::gen::arbitrary<std::uint8_t>();
    }
    switch (*rc::gen::inRange(0, 3)) {
        case 0:
            break;
        case 1: {
            const auto prefix = *rc::prefix(row.family);
            if (prefix.family_length() > 0) row.remote_prefix = prefix;
            break;
        }
        default:
            row.remote_group = *rc::gen::arbitrary<GroupId>();
    }
    return row;
}

TEST_CASE("rows of the security group tables survive encoding and decoding") {
    rc::prop("rules", [](GroupId group, Cookie cookie) {
        const RuleRow row = any_rule(group, cookie);
        tests::check_round_trip(
            row.direction == Direction::egress ? kEgressRuleSchema : kIngressRuleSchema, row);
    });
    rc::prop("groups that persist", [](GroupId group, VpcId vpc, Cookie cookie) {
        for (const Direction direction : {Direction::egress, Direction::ingress}) {
            const PersistingRow row{direction, group, vpc, cookie};
            CHECK(PersistingRow::is(row.encode()));
            tests::check_round_trip(
                direction == Direction::egress ? kEgressRuleSchema : kIngressRuleSchema, row);
        }
    });
    rc::prop("rules are no groups", [](GroupId group, Cookie cookie) {
        CHECK_FALSE(PersistingRow::is(any_rule(group, cookie).encode()));
    });
    rc::prop("blocks", [](VpcId vpc, Prefix remote, GroupId group, Cookie cookie) {
        tests::check_round_trip(kEgressGroupSchema,
                                GroupAddressRow{Direction::egress, vpc, remote, group, cookie});
        tests::check_round_trip(kIngressGroupSchema,
                                GroupAddressRow{Direction::ingress, vpc, remote, group, cookie});
    });
}

TEST_CASE("a deny rule goes nowhere, an allow rule goes on") {
    RuleRow row;
    row.group = GroupId{1};
    CHECK(row.encode().next == openflow::kHost);
    row.direction = Direction::egress;
    CHECK(row.encode().next == openflow::kRoute);
    row.allow = false;
    CHECK_FALSE(row.encode().next.has_value());
}

TEST_CASE("at equal API priority the deny has the higher wire priority") {
    CHECK(wire_priority(1000, false) > wire_priority(1000, true));
    CHECK(wire_priority(1000, true) > wire_priority(1001, false));
}

TEST_CASE("a priority that no rule of the API has is refused") {
    RuleRow row;
    row.group = GroupId{1};
    auto entry = row.encode();
    entry.key.priority = 65000;
    CHECK_FALSE(RuleRow::decode(entry).ok());
    entry.key.priority = wire_priority(1000, false);  // but it goes on
    CHECK_FALSE(RuleRow::decode(entry).ok());
}

TEST_CASE("an address may belong to several groups, each by an entry of its own") {
    const Prefix block = Prefix::host(IpAddress::v4(be32{0x0a000001}));
    const auto one = GroupAddressRow{Direction::ingress, VpcId{1}, block, GroupId{1}, {}}.encode();
    const auto two = GroupAddressRow{Direction::ingress, VpcId{1}, block, GroupId{2}, {}}.encode();
    CHECK(one.key != two.key);
}

}  // namespace
}  // namespace sluice::nfv
