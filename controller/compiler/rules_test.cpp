// SPDX-License-Identifier: Apache-2.0
// Every combination of a rule's fields: what the API admits becomes exactly one row that says the
// same, what it refuses becomes none.
#include <catch2/catch.hpp>

#include "controller/compiler/fixture.hpp"
#include "nfv/security_group/table.hpp"

using namespace sluice;
using namespace sluice::compiler;

namespace {

// One field's possible values: as JSON members (without the comma), empty where absent.
using Values = std::vector<std::string>;

struct Combination {
    std::string direction, action, priority, family, protocol, ports, icmp, remote;
    [[nodiscard]] std::string json() const {
        std::string text = R"("direction":")" + direction + "\"";
        for (const auto* member : {&action, &priority, &family, &protocol, &ports, &icmp, &remote})
            if (!member->empty()) text += "," + *member;
        return "{" + text + "}";
    }
};

const Values kActions = {"", R"("action":"allow")", R"("action":"deny")"};
const Values kPriorities = {"", R"("priority":1)", R"("priority":32000)"};
const Values kFamilies = {"", R"("family":"ipv4")", R"("family":"ipv6")"};
const Values kProtocols = {"",
                           R"("protocol":"tcp")",
                           R"("protocol":"udp")",
                           R"("protocol":"sctp")",
                           R"("protocol":"icmp")",
                           R"("protocol":"icmpv6")",
                           R"("protocol":"gre")",
                           R"("protocol":"esp")",
                           R"("protocol":89)",
                           R"("protocol":0)",
                           R"("protocol":255)"};
const Values kPorts = {"", R"("port_min":443)", R"("port_min":0,"port_max":65535)",
                       R"("port_min":1000,"port_max":2000)"};
const Values kIcmp = {"", R"("icmp_type":0)", R"("icmp_type":255,"icmp_code":0)",
                      R"("icmp_type":3,"icmp_code":4)"};

bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

// What the API's own documentation says of the combination.
bool is_sensible(const Combination& rule) {
    const bool ported =
        has(rule.protocol, "tcp") || has(rule.protocol, "udp") || has(rule.protocol, "sctp");
    const bool v4 = has(rule.protocol, "\"icmp\""), v6 = has(rule.protocol, "icmpv6");
    const bool remote4 = has(rule.remote, "0/8") || has(rule.remote, "0.0.0.0/0");
    const bool remote6 = has(rule.remote, "fd00");
    if (!rule.ports.empty() && !ported) return false;
    if (!rule.icmp.empty() && !v4 && !v6) return false;
    if (has(rule.family, "ipv4") && (v6 || remote6)) return false;
    if (has(rule.family, "ipv6") && (v4 || remote4)) return false;
    return !(v4 && remote6) && !(v6 && remote4);
}

std::optional<std::uint64_t> number_in(const std::string& text, const std::string& member) {
    const auto at = text.find("\"" + member + "\":");
    if (at == std::string::npos) return std::nullopt;
    const char* digits = text.c_str() + at + member.size() + 3;
    if (*digits < '0' || *digits > '9') return std::nullopt;
    return std::strtoull(digits, nullptr, 10);
}

}  // namespace

TEST_CASE("every combination of a rule's fields is one row that says the same, or is refused") {
    Cloud cloud;
    const auto vpc = cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8"]})");
    const auto group = cloud.make(Kind::security_group, R"({"rules":[],"vpc_id":)" + id(vpc) + "}");
    const auto other = cloud.make(Kind::security_group, R"({"rules":[],"vpc_id":)" + id(vpc) + "}");
    const auto list = cloud.make(Kind::prefix_list, R"({"cidrs":["172.16.0.0/12"]})");
    const Values remotes = {"",
                            R"("remote_cidr":"10.0.0.0/8")",
                            R"("remote_cidr":"0.0.0.0/0")",
                            R"("remote_cidr":"fd00:1::/32")",
                            R"("remote_group_id":)" + id(other),
                            R"("remote_prefix_list_id":)" + id(list)};
    const std::map<std::string, std::uint8_t> numbers = {
        {"tcp", 6},     {"udp", 17}, {"sctp", 132}, {"icmp\"", 1},
        {"icmpv6", 58}, {"gre", 47}, {"esp", 50}};
    std::size_t admitted = 0, refused = 0, wrong = 0;
    const auto& tables = *cloud.incremental.gateway("gw1");

    const auto check = [&](const Combination& rule) {
        const auto text = rule.json();
        INFO(text);
        const auto plan =
            cloud.planner().add_rule(cloud.state.find(group->kind(), group->id), json::parse(text));
        if (plan.ok() != is_sensible(rule)) {
            CHECK(plan.ok() == is_sensible(rule));
            ++wrong;
            return;
        }
        if (!plan.ok()) return void(++refused);
        ++admitted;
        REQUIRE(cloud.apply(plan));
        const bool egress = rule.direction == "egress";
        const auto id_of = plan.diff.front().after->as<SecurityGroup>().rules.back();
        const auto table = egress ? openflow::kEgressRule : openflow::kIngressRule;
        std::optional<nfv::RuleRow> row;
        std::size_t rows = 0;
        tables.visit(table, [&](const openflow::Entry& entry) {
            if (entry.cookie != Cookie{id_of.number}) return;
            const auto decoded = nfv::RuleRow::decode(entry);
            if (decoded) row = *decoded;
            ++rows;
        });
        REQUIRE(rows == 1);
        REQUIRE(row);
        bool same = row->group == GroupId{group->register_number()};
        same &= row->direction == (egress ? nfv::Direction::egress : nfv::Direction::ingress);
        same &= row->allow == !has(rule.action, "deny");
        same &= row->priority == number_in(rule.priority, "priority").value_or(1000);
        const bool v6 =
            has(rule.family, "ipv6") || has(rule.remote, "fd00") || has(rule.protocol, "icmpv6");
        same &= row->family == (v6 ? Family::ipv6 : Family::ipv4);
        std::optional<std::uint8_t> protocol;
        if (const auto number = number_in(rule.protocol, "protocol"))
            protocol = static_cast<std::uint8_t>(*number);
        for (const auto& [word, number] : numbers)
            if (has(rule.protocol, word.c_str())) protocol = number;
        same &= row->protocol == protocol;
        const auto low = number_in(rule.ports, "port_min");
        same &= row->port_min == low.value_or(0);
        same &= row->port_max ==
                number_in(rule.ports, "port_max").value_or(low ? *low : std::uint64_t{65535});
        same &= row->icmp_type.has_value() == !rule.icmp.empty();
        if (row->icmp_type) same &= *row->icmp_type == number_in(rule.icmp, "icmp_type");
        same &= row->icmp_code.has_value() == has(rule.icmp, "icmp_code");
        if (row->icmp_code) same &= *row->icmp_code == number_in(rule.icmp, "icmp_code");
        // A remote of everything is spelt either way.
        const bool any = has(rule.remote, "0.0.0.0/0");
        same &= any || row->remote_prefix.has_value() == has(rule.remote, "remote_cidr");
        if (has(rule.remote, "10.0.0.0/8"))
            same &= *row->remote_prefix == *parse_prefix("10.0.0.0/8");
        if (has(rule.remote, "fd00")) same &= *row->remote_prefix == *parse_prefix("fd00:1::/32");
        std::optional<GroupId> remote;
        if (has(rule.remote, "group")) remote = GroupId{other->register_number()};
        if (has(rule.remote, "list")) remote = GroupId{list->register_number()};
        same &= row->remote_group == remote;
        CHECK(same);
        wrong += same ? 0 : 1;
        REQUIRE(cloud.apply(
            cloud.planner().remove_rule(cloud.state.find(group->kind(), group->id), id_of.id)));
    };

    for (const auto* direction : {"ingress", "egress"})
        for (const auto& action : kActions)
            for (const auto& priority : kPriorities)
                for (const auto& family : kFamilies)
                    for (const auto& protocol : kProtocols)
                        for (const auto& ports : kPorts)
                            for (const auto& icmp : kIcmp)
                                for (const auto& remote : remotes) {
                                    check({direction, action, priority, family, protocol, ports,
                                           icmp, remote});
                                    REQUIRE(wrong < 10);  // the rest would say the same
                                }
    CHECK(admitted + refused == 2U * 3 * 3 * 3 * 11 * 4 * 4 * 6);
    CHECK(admitted > 5000);
    CHECK(count(tables, openflow::kIngressRule) == 2);  // of the VPC's default group
    CHECK(count(tables, openflow::kIngressGroup) == 0);
}
