// SPDX-License-Identifier: Apache-2.0
#include "nfv/security_group/table.hpp"

#include "dataplane/openflow/row.hpp"

namespace sluice::nfv {
namespace {

using namespace openflow;

// What differs between the tables of the two directions.
struct Side {
    std::uint8_t group_table, rule_table, after;
    Field vpc, remote;
};
constexpr Side kEgress = {kEgressGroup, kEgressRule, kRoute, Field::source_vpc,
                          Field::destination_ip};
constexpr Side kIngress = {kIngressGroup, kIngressRule, kHost, Field::destination_vpc,
                           Field::source_ip};
constexpr const Side& side(Direction direction) {
    return direction == Direction::egress ? kEgress : kIngress;
}

template <const Side& S>
constexpr FieldSpec kGroupMatch[] = {
    {Field::ether_type, MatchKind::exact, true, "the family of the block"},
    {S.remote, MatchKind::union_prefix, false, "a block of the other side's addresses"},
    {S.vpc, MatchKind::exact, true, "the VPC of the endpoint under judgement"},
    // Part of the identity: a block belongs to many groups, each by an entry of its own.
    {Field::remote_group, MatchKind::member, true,
     "the group or prefix list the block belongs to"}};
template <const Side& S>
constexpr std::uint8_t kGroupNext[] = {S.rule_table};

template <const Side& S>
constexpr FieldSpec kRuleMatch[] = {
    {Field::ether_type, MatchKind::exact, false,
     "the family of the packet; absent: no rule, but the group's own entry"},
    {S.remote, MatchKind::prefix, false, "a block the other side must be in"},
    {Field::ip_protocol, MatchKind::exact, false, "the protocol; absent: any"},
    {Field::icmp_type, MatchKind::exact, false, "for ICMP; absent: any"},
    {Field::icmp_code, MatchKind::exact, false, "for ICMP; absent: any"},
    {Field::group, MatchKind::member, true, "the group whose members the rule is for"},
    {Field::remote_group, MatchKind::member, false,
     "a group or prefix list the other side must be in"},
    {Field::destination_ports, MatchKind::range, false,
     "low 16 bits: first port, high 16 bits: last; absent: any"}};
template <const Side& S>
constexpr SetSpec kRuleSet[] = {
    {S.vpc, false, false, "the group's VPC; in its own entry only"},
    {Field::setting, false, true,
     "persist_established: what its rules admitted survives them; in the group's own entry only"}};
template <const Side& S>
constexpr std::uint8_t kRuleNext[] = {S.after};

template <const Side& S>
constexpr TableSchema group_schema(std::string_view name) {
    return {.id = S.group_table,
            .name = name,
            .owner = "nfv/security_group",
            .purpose = "which groups and prefix lists the other side's address belongs to",
            .match = kGroupMatch<S>,
            .set = {},
            .next = kGroupNext<S>,
            .next_required = true,
            .has_priority = false,
            .has_meter = false,
            .built_in = false,
            .capacity = 1U << 20};
}

template <const Side& S>
constexpr TableSchema rule_schema(std::string_view name) {
    return {.id = S.rule_table,
            .name = name,
            .owner = "nfv/security_group",
            .purpose = "what the members of a group may do; a rule without next denies",
            .match = kRuleMatch<S>,
            .set = kRuleSet<S>,
            .next = kRuleNext<S>,
            .next_required = false,
            .has_priority = true,
            .has_meter = false,
            .built_in = false,
            .capacity = 1U << 19};
}

// Of a group's own entry: below every rule's, 999 to 64,998.
constexpr std::uint16_t kOwnPriority = 1;

Direction direction_of(std::uint8_t table) {
    return table == kEgressGroup || table == kEgressRule ? Direction::egress : Direction::ingress;
}

}  // namespace

constexpr TableSchema kEgressGroupSchema = group_schema<kEgress>("egress_group");
constexpr TableSchema kIngressGroupSchema = group_schema<kIngress>("ingress_group");
constexpr TableSchema kEgressRuleSchema = rule_schema<kEgress>("egress_rule");
constexpr TableSchema kIngressRuleSchema = rule_schema<kIngress>("ingress_rule");

Entry GroupAddressRow::encode() const {
    const Side& s = side(direction);
    return EntryBuilder(s.group_table, cookie)
        .match(s.remote, remote)
        .match(s.vpc, vpc)
        .match(Field::remote_group, group)
        .next(s.rule_table)
        .build();
}

Result<GroupAddressRow> GroupAddressRow::decode(const Entry& entry) {
    GroupAddressRow row;
    row.direction = direction_of(entry.key.table);
    const Side& s = side(row.direction);
    EntryReader reader(
        row.direction == Direction::egress ? kEgressGroupSchema : kIngressGroupSchema, entry);
    row.vpc = reader.match_id<VpcId>(s.vpc);
    row.remote = reader.prefix(s.remote);
    row.group = reader.match_id<GroupId>(Field::remote_group);
    row.cookie = entry.cookie;
    return reader.result(row);
}

Entry RuleRow::encode() const {
    const Side& s = side(direction);
    EntryBuilder builder(s.rule_table, cookie);
    builder.priority(wire_priority(priority, allow)).match(Field::group, group);
    if (remote_prefix)
        builder.match(s.remote, *remote_prefix);
    else
        builder.family(family);
    if (protocol) builder.match(Field::ip_protocol, std::uint64_t{*protocol});
    if (port_min != 0 || port_max != 65535)
        builder.match(Field::destination_ports, std::uint64_t{port_max} << 16 | port_min);
    if (icmp_type) builder.match(Field::icmp_type, std::uint64_t{*icmp_type});
    if (icmp_code) builder.match(Field::icmp_code, std::uint64_t{*icmp_code});
    if (remote_group) builder.match(Field::remote_group, *remote_group);
    if (allow) builder.next(s.after);
    return builder.build();
}

Result<RuleRow> RuleRow::decode(const Entry& entry) {
    RuleRow row;
    row.direction = direction_of(entry.key.table);
    const Side& s = side(row.direction);
    EntryReader reader(row.direction == Direction::egress ? kEgressRuleSchema : kIngressRuleSchema,
                       entry);
    row.group = reader.match_id<GroupId>(Field::group);
    row.family = reader.family();
    row.allow = entry.next.has_value();
    row.priority = static_cast<std::uint16_t>((65000 - entry.key.priority) / 2);
    if (entry.key.priority > 64999 || wire_priority(row.priority, row.allow) != entry.key.priority)
        reader.fail(Field::group,
                    "priority must be 65000 - 2 x (1 to 32000), less one for an allow rule");
    if (!entry.set.empty()) reader.fail(Field::setting, "a rule has no settings, its group has");
    if (reader.find_match(s.remote)) row.remote_prefix = reader.prefix(s.remote);
    if (const auto value = reader.find_match(Field::ip_protocol))
        row.protocol = static_cast<std::uint8_t>(value->low);
    if (const auto ports = reader.find_match(Field::destination_ports)) {
        row.port_min = static_cast<std::uint16_t>(ports->low);
        row.port_max = static_cast<std::uint16_t>(ports->low >> 16);
    }
    if (const auto value = reader.find_match(Field::icmp_type))
        row.icmp_type = static_cast<std::uint8_t>(value->low);
    if (const auto value = reader.find_match(Field::icmp_code))
        row.icmp_code = static_cast<std::uint8_t>(value->low);
    if (reader.find_match(Field::remote_group))
        row.remote_group = reader.match_id<GroupId>(Field::remote_group);
    row.cookie = entry.cookie;
    return reader.result(row);
}

bool PersistingRow::is(const Entry& entry) {
    return entry.key.priority == kOwnPriority;
}

Entry PersistingRow::encode() const {
    const Side& s = side(direction);
    EntryBuilder builder(s.rule_table, cookie);
    builder.priority(kOwnPriority).match(Field::group, group).set(s.vpc, vpc);
    openflow::Settings().put(Setting::persist_established, 1).encode(builder);
    return builder.build();
}

Result<PersistingRow> PersistingRow::decode(const Entry& entry) {
    PersistingRow row;
    row.direction = direction_of(entry.key.table);
    const Side& s = side(row.direction);
    EntryReader reader(row.direction == Direction::egress ? kEgressRuleSchema : kIngressRuleSchema,
                       entry);
    row.group = reader.match_id<GroupId>(Field::group);
    row.vpc = reader.set_id<VpcId>(s.vpc);
    row.cookie = entry.cookie;
    if (entry.key.match.size() != 1 || entry.next)
        reader.fail(Field::group, "the group's own entry matches the group alone and goes nowhere");
    if (!openflow::Settings::decode(entry).get(Setting::persist_established))
        reader.fail(Field::setting, "the group's own entry sets persist_established");
    return reader.result(row);
}

}  // namespace sluice::nfv
