// SPDX-License-Identifier: Apache-2.0
// Tables 4, 5 (egress) and 13, 14 (ingress): which sets an address belongs to, and what
// the groups of an endpoint allow.
#pragma once

#include <optional>

#include "dataplane/openflow/tables.hpp"

namespace sluice::nfv {

enum class Direction : std::uint8_t { egress, ingress };

// egress_group, ingress_group: one block of the other side's addresses that belongs to a
// security group (a member's address) or to a prefix list. Several rows may match one
// address; all of them count.
struct GroupAddressRow {
    Direction direction = Direction::ingress;
    VpcId vpc;
    Prefix remote;
    GroupId group;
    Cookie cookie;
    [[nodiscard]] openflow::Entry encode() const;
    static Result<GroupAddressRow> decode(const openflow::Entry& entry);
};

// egress_rule, ingress_rule: one rule of a group.
struct RuleRow {
    Direction direction = Direction::ingress;
    GroupId group;
    bool allow = true;
    std::uint16_t priority = 1000;  // of the API, 1–32,000: the lowest wins, then deny
    Family family = Family::ipv4;
    std::optional<std::uint8_t> protocol;  // none: every protocol
    std::uint16_t port_min = 0;            // destination ports; 0–65,535: every port
    std::uint16_t port_max = 65535;
    std::optional<std::uint8_t> icmp_type;
    std::optional<std::uint8_t> icmp_code;
    std::optional<Prefix> remote_prefix;  // of `family`
    std::optional<GroupId> remote_group;  // a group or a prefix list
    Cookie cookie;
    [[nodiscard]] openflow::Entry encode() const;
    static Result<RuleRow> decode(const openflow::Entry& entry);
};

// egress_rule, ingress_rule: the group's own entry, which is there as long as connections that its
// rules have admitted survive those (persist_established). It decides about no packet.
struct PersistingRow {
    Direction direction = Direction::ingress;
    GroupId group;
    VpcId vpc;  // the group's
    Cookie cookie;
    // Whether the entry of a rule table is one of these, and no rule.
    static bool is(const openflow::Entry& entry);
    [[nodiscard]] openflow::Entry encode() const;
    static Result<PersistingRow> decode(const openflow::Entry& entry);
};

// 65,000 − 2 × priority − (allow ? 1 : 0): at equal API priority a deny is found first.
constexpr std::uint16_t wire_priority(std::uint16_t priority, bool allow) {
    return static_cast<std::uint16_t>(65000 - 2 * priority - (allow ? 1 : 0));
}

extern const openflow::TableSchema kEgressGroupSchema;
extern const openflow::TableSchema kEgressRuleSchema;
extern const openflow::TableSchema kIngressGroupSchema;
extern const openflow::TableSchema kIngressRuleSchema;

}  // namespace sluice::nfv
