// SPDX-License-Identifier: Apache-2.0
#include "nfv/security_group/rule_set.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/arbitrary.hpp"

namespace sluice::nfv {
namespace {

struct SetOfGroups {
    std::set<std::uint32_t> groups;
    bool contain(GroupId group) { return groups.contains(group.value); }
};

// The contract read out, rule by rule.
bool fits(const RuleRow& row, const Tuple& tuple, const IpAddress& remote, SetOfGroups& groups) {
    if (row.family != remote.family()) return false;
    if (row.protocol && *row.protocol != tuple.protocol) return false;
    const bool has_ports = tuple.protocol == 6 || tuple.protocol == 17 || tuple.protocol == 132;
    if (row.protocol && has_ports &&
        (tuple.destination_port < row.port_min || tuple.destination_port > row.port_max))
        return false;
    if (row.icmp_type && *row.icmp_type != tuple.destination_port >> 8) return false;
    if (row.icmp_code && *row.icmp_code != (tuple.destination_port & 0xff)) return false;
    if (row.remote_prefix && !row.remote_prefix->contains(remote)) return false;
    return !row.remote_group || groups.contain(*row.remote_group);
}

Ruling by_scan(const std::vector<RuleRow>& rows, const Tuple& tuple, const IpAddress& remote,
               SetOfGroups& groups) {
    Ruling best;
    for (const RuleRow& row : rows) {
        const auto priority = wire_priority(row.priority, row.allow);
        if (priority > best.priority && fits(row, tuple, remote, groups))
            best = {priority, row.allow, row.cookie};
    }
    return best;
}

// Out of few values, so that rules and packets meet.
IpAddress some_address(Family family) {
    const auto low = *rc::gen::inRange<std::uint32_t>(0, 8);
    if (family == Family::ipv4) return IpAddress::v4(be32{0x0a000000 | low});
    IpAddress address{{0xfd}};
    address.bytes[15] = static_cast<std::uint8_t>(low);
    return address;
}

RuleRow some_rule(std::uint16_t priority) {
    RuleRow row;
    row.group = GroupId{1};
    row.priority = priority;
    row.allow = *rc::gen::arbitrary<bool>();
    row.cookie = Cookie{priority};
    row.family = *rc::family();
    if (*rc::gen::inRange(0, 4) > 0)
        row.protocol = *rc::gen::element<std::uint8_t>(1, 6, 17, 47, 58, 132);
    if (row.protocol == 6 || row.protocol == 17 || row.protocol == 132) {
        row.port_min = static_cast<std::uint16_t>(*rc::gen::inRange(0, 10));
        row.port_max = static_cast<std::uint16_t>(*rc::gen::inRange<int>(row.port_min, 12));
    }
    if (row.protocol == (row.family == Family::ipv4 ? 1 : 58) && *rc::gen::arbitrary<bool>()) {
        row.icmp_type = static_cast<std::uint8_t>(*rc::gen::inRange(0, 3));
        if (*rc::gen::arbitrary<bool>())
            row.icmp_code = static_cast<std::uint8_t>(*rc::gen::inRange(0, 3));
    }
    switch (*rc::gen::inRange(0, 3)) {
        case 0:
            break;
        case 1:
            row.remote_prefix = Prefix{some_address(row.family),
                                       static_cast<std::uint8_t>(*rc::gen::inRange(97, 129))}
                                    .without_host_bits();
            break;
        default:
            row.remote_group = GroupId{*rc::gen::inRange(1U, 4U)};
    }
    return row;
}

TEST_CASE("the vectors find the rule that a plain scan finds") {
    rc::prop("any rules, any packet", [] {
        const auto count = *rc::gen::inRange<std::uint16_t>(0, 150);
        std::vector<RuleRow> rows;
        for (std::uint16_t i = 0; i < count; ++i)
            rows.push_back(some_rule(static_cast<std::uint16_t>(i + 1)));
        const RuleSet set(rows);
        for (int i = 0; i < 20; ++i) {
            const Family family = *rc::family();
            Tuple tuple;
            tuple.protocol = *rc::gen::element<std::uint8_t>(1, 6, 17, 47, 58, 132);
            tuple.destination_port = tuple.protocol == 1 || tuple.protocol == 58
                                         ? static_cast<std::uint16_t>(*rc::gen::inRange(0, 4) << 8 |
                                                                      *rc::gen::inRange(0, 4))
                                         : static_cast<std::uint16_t>(*rc::gen::inRange(0, 14));
            const IpAddress remote = some_address(family);
            SetOfGroups groups{*rc::gen::arbitrary<bool>() ? std::set<std::uint32_t>{1, 3}
                                                           : std::set<std::uint32_t>{}};
            Ruling before;
            before.priority = *rc::gen::element<std::uint16_t>(0, 64900);
            const Ruling wanted = by_scan(rows, tuple, remote, groups);
            const Ruling found = set.judge(tuple, remote, groups, before);
            if (wanted.priority > before.priority) {
                RC_ASSERT(found.priority == wanted.priority);
                RC_ASSERT(found.cookie == wanted.cookie);
                RC_ASSERT(found.allow == wanted.allow);
            } else {
                RC_ASSERT(found.priority == before.priority);
            }
        }
    });
}

TEST_CASE("the answer is the same wherever in a step of 32 the rule stands") {
    for (std::uint16_t count = 1; count <= 100; ++count) {
        std::vector<RuleRow> rows;
        for (std::uint16_t i = 0; i < count; ++i) {
            RuleRow row;
            row.group = GroupId{1};
            row.priority = static_cast<std::uint16_t>(i + 1);
            row.protocol = 6;
            row.port_min = row.port_max = static_cast<std::uint16_t>(1000 + i);
            row.cookie = Cookie{i};
            rows.push_back(row);
        }
        const RuleSet set(rows);
        SetOfGroups none;
        Tuple tuple;
        tuple.protocol = 6;
        for (std::uint16_t i = 0; i < count; ++i) {
            tuple.destination_port = static_cast<std::uint16_t>(1000 + i);
            CHECK(set.judge(tuple, IpAddress::v4(be32{1}), none, {}).cookie == Cookie{i});
        }
        tuple.destination_port = 0;  // what padding is filled with
        CHECK_FALSE(set.judge(tuple, IpAddress::v4(be32{1}), none, {}));
    }
}

}  // namespace
}  // namespace sluice::nfv
