// SPDX-License-Identifier: Apache-2.0
// What makes a security group, its rules and a prefix list right.
#include <algorithm>
#include <map>
#include <set>

#include "controller/model/draft.hpp"

namespace sluice::model {
namespace {

constexpr std::size_t kMostRules = 1000;

constexpr std::uint8_t kIcmp = 1, kTcp = 6, kUdp = 17, kIcmpv6 = 58, kSctp = 132;

bool has_ports(const std::optional<Protocol>& protocol) {
    return protocol &&
           (protocol->number == kTcp || protocol->number == kUdp || protocol->number == kSctp);
}
bool is_icmp(const std::optional<Protocol>& protocol) {
    return protocol && (protocol->number == kIcmp || protocol->number == kIcmpv6);
}

// What two rules must differ in: rules of one signature would be one table entry, and
// removing one of them would remove both. "Everything" has one spelling here.
Rule signature(Rule rule) {
    rule.id = {};
    rule.number = 0;
    if (rule.remote_cidr && *rule.remote_cidr == Prefix::any(*rule.family))
        rule.remote_cidr.reset();
    if (rule.port_min == 0 && rule.port_max == 65535) {
        rule.port_min.reset();
        rule.port_max.reset();
    }
    return rule;
}

void fill_in(Rule& rule) {
    if (!rule.family) {
        if (rule.remote_cidr)
            rule.family = rule.remote_cidr->family();
        else
            rule.family =
                rule.protocol && rule.protocol->number == kIcmpv6 ? Family::ipv6 : Family::ipv4;
    }
    if (rule.port_min && !rule.port_max) rule.port_max = rule.port_min;
}

void check_rule(const Rule& rule, const std::string& at, const RuleChecks& checks) {
    const auto fail = [&](const char* member, std::string detail) {
        checks.problems.push_back({at + "/" + member, std::move(detail), Error::Code::invalid});
    };
    if (rule.protocol && rule.protocol->number == kIcmp && rule.family == Family::ipv6)
        fail("protocol", "icmp is IPv4's; IPv6 has icmpv6");
    if (rule.protocol && rule.protocol->number == kIcmpv6 && rule.family == Family::ipv4)
        fail("protocol", "icmpv6 is IPv6's; IPv4 has icmp");
    if ((rule.port_min || rule.port_max) && !has_ports(rule.protocol))
        fail(rule.port_min ? "port_min" : "port_max", "only tcp, udp and sctp have ports");
    if (rule.port_max && !rule.port_min) fail("port_min", "is required with port_max");
    if (rule.port_min && rule.port_max && *rule.port_min > *rule.port_max)
        fail("port_max", "is less than port_min");
    if (rule.icmp_type && !is_icmp(rule.protocol))
        fail("icmp_type", "only icmp and icmpv6 have types");
    if (rule.icmp_code && !rule.icmp_type) fail("icmp_code", "is of no use without icmp_type");
    if (static_cast<int>(rule.remote_cidr.has_value()) +
            static_cast<int>(rule.remote_group_id.has_value()) +
            static_cast<int>(rule.remote_prefix_list_id.has_value()) >
        1)
        fail(rule.remote_group_id ? "remote_group_id" : "remote_prefix_list_id",
             "a rule has at most one remote");
    if (rule.remote_cidr && rule.remote_cidr->family() != rule.family)
        fail("remote_cidr", "is not of the rule's family");
    if (rule.remote_group_id && rule.remote_group_id->id != checks.group.id) {
        const auto remote = checks.state.find(*rule.remote_group_id);
        if (remote && remote->as<SecurityGroup>().vpc_id != checks.group.as<SecurityGroup>().vpc_id)
            fail("remote_group_id", "is a group of another VPC");
    }
}

std::string remote_text(const State& state, const Rule& rule) {
    const auto named = [](const ResourcePtr& resource, const char* kind) {
        if (!resource) return std::string(kind);
        return std::string(kind) + " " +
               (resource->name.empty() ? to_string(resource->id) : resource->name);
    };
    if (rule.remote_cidr) return sluice::to_string(*rule.remote_cidr);
    if (rule.remote_group_id) return named(state.find(*rule.remote_group_id), "group");
    if (rule.remote_prefix_list_id)
        return named(state.find(*rule.remote_prefix_list_id), "prefix list");
    return rule.family == Family::ipv6 ? "::/0" : "0.0.0.0/0";
}

}  // namespace

std::vector<Rule> egress_allow_rules(const Sources& sources) {
    std::vector<Rule> rules;
    for (const auto family : {Family::ipv4, Family::ipv6}) {
        Rule rule;
        rule.id = sources.uuid();
        rule.number = sources.number();
        rule.direction = RuleDirection::egress;
        rule.family = family;
        rules.push_back(rule);
    }
    return rules;
}

void normalise_last_rule(std::vector<Rule>& rules, const std::string& pointer, RuleChecks checks) {
    Rule& rule = rules.back();
    const auto at = pointer + "/" + std::to_string(rules.size() - 1);
    fill_in(rule);
    check_rule(rule, at, checks);
    if (rule.id.is_nil()) rule.id = checks.sources.uuid();
    if (rule.number == 0) rule.number = checks.sources.number();
    const Rule wanted = signature(rule);
    for (const Rule& present : checks.present) {
        if (signature(present) == wanted)
            checks.problems.push_back(
                {at, "the group has this rule already", Error::Code::conflict});
        if (present.id == rule.id)
            checks.problems.push_back({at + "/id", "is taken", Error::Code::conflict});
    }
}

void normalise_rules(std::vector<Rule>& rules, const std::string& pointer, RuleChecks checks) {
    std::map<Rule, const Rule*> present_by_signature;
    std::map<Uuid, const Rule*> present_by_id;
    for (const auto& rule : checks.present) {
        present_by_signature.emplace(signature(rule), &rule);
        present_by_id.emplace(rule.id, &rule);
    }
    std::set<Rule> signatures;
    std::set<Uuid> ids;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        Rule& rule = rules[i];
        const auto at = pointer + "/" + std::to_string(i);
        fill_in(rule);
        check_rule(rule, at, checks);
        if (!signatures.insert(signature(rule)).second) {
            checks.problems.push_back(
                {at, "the group has this rule already", Error::Code::conflict});
            continue;
        }
        // A rule that stays what it was keeps its id and number, named or not.
        if (rule.id.is_nil())
            if (const auto same = present_by_signature.find(signature(rule));
                same != present_by_signature.end())
                rule.id = same->second->id;
        if (const auto same = present_by_id.find(rule.id); same != present_by_id.end())
            rule.number = same->second->number;
        if (rule.id.is_nil()) rule.id = checks.sources.uuid();
        if (rule.number == 0) rule.number = checks.sources.number();
        if (!ids.insert(rule.id).second)
            checks.problems.push_back({at + "/id", "is taken", Error::Code::conflict});
    }
}

void Planner::check_security_group(Draft& draft) {
    auto& group = draft.spec<SecurityGroup>();
    if (!draft.rules_given) group.rules = egress_allow_rules(sources_);
    if (group.rules.size() > kMostRules)
        draft.fail("/rules", "has more than " + std::to_string(kMostRules) + " rules");
    const auto* old = draft.old<SecurityGroup>();
    static const std::vector<Rule> kNone;
    const RuleChecks checks{state_, draft.resource, old ? old->rules : kNone, sources_,
                            draft.problems};
    if (!draft.new_rules) return normalise_rules(group.rules, "/rules", checks);
    if (*draft.new_rules > 0) normalise_last_rule(group.rules, "/rules", checks);
}

void Planner::check_prefix_list(Draft& draft) {
    const auto& cidrs = draft.spec<PrefixList>().cidrs;
    std::set<Prefix> seen;  // how many there may be is kMostItems'
    for (std::size_t i = 0; i < cidrs.size(); ++i)
        if (!seen.insert(cidrs[i]).second)
            draft.fail("/cidrs/" + std::to_string(i), "occurs twice");
}

std::string describe(const State& state, const Rule& rule) {
    const bool ingress = rule.direction == RuleDirection::ingress;
    std::string text = ingress ? "ingress " : "egress ";
    text += rule.action == RuleAction::allow ? "allow" : "deny";
    if (rule.protocol) {
        const auto word = Codec<Protocol>::write(*rule.protocol);
        text += " " + (word.is_string() ? std::string(word.get_string())
                                        : "protocol " + std::to_string(rule.protocol->number));
    }
    if (rule.port_min && rule.port_max) {
        text += " " + std::to_string(*rule.port_min);
        if (rule.port_max != rule.port_min) text += "-" + std::to_string(*rule.port_max);
    }
    if (rule.icmp_type) text += " type " + std::to_string(*rule.icmp_type);
    return text + (ingress ? " from " : " to ") + remote_text(state, rule);
}

std::string describe(const State& state, const Route& route) {
    std::string text = sluice::to_string(route.destination) + " → ";
    if (route.next_hop.internet) return text + "internet";
    if (route.next_hop.blackhole) return text + "blackhole";
    if (route.next_hop.nat_gateway_id) {
        const auto nat = state.find(*route.next_hop.nat_gateway_id);
        return text + (nat ? describe(*nat) : "NAT gateway");
    }
    const auto endpoint = state.find(*route.next_hop.endpoint_id);
    return text + (endpoint ? describe(*endpoint) : "endpoint");
}

}  // namespace sluice::model
