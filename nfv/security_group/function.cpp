// SPDX-License-Identifier: Apache-2.0
#include "nfv/security_group/function.hpp"

#include <map>
#include <optional>

#include "nfv/security_group/members.hpp"
#include "nfv/security_group/rule_set.hpp"

namespace sluice::nfv {
namespace {

using namespace policy;

struct RuleSetKey {
    Direction direction{};
    GroupId group;
    bool operator==(const RuleSetKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const {
        return finish(mix(mix(10, group.value), static_cast<std::uint64_t>(direction)));
    }
};
struct RuleSetRecord {
    using Traits = KeyedTraits<RuleSetRecord, RuleSetKey>;
    RuleSetKey key;
    std::shared_ptr<const RuleSet> rules;  // may be of no rule
    bool persists = false;                 // what they admitted survives them
};

struct State : FunctionState {
    Members members;
    PersistentMap<RuleSetRecord> rules;
};

const State& typed(const FunctionState& state) {
    return static_cast<const State&>(state);
}

// What differs between the two judgements.
struct Side {
    Direction direction;
    std::uint8_t table;
    DropReason no_rule, denied;
    GroupId Established::*was_admitted_by;
    GroupId Plan::*admitted_by;
};
constexpr Side kEgress = {Direction::egress,          openflow::kEgressRule,
                          DropReason::egress_no_rule, DropReason::egress_denied,
                          &Established::egress_group, &Plan::egress_group};
constexpr Side kIngress = {Direction::ingress,          openflow::kIngressRule,
                           DropReason::ingress_no_rule, DropReason::ingress_denied,
                           &Established::ingress_group, &Plan::ingress_group};

// Whether what a connection was admitted by, maybe long ago, still admits it whatever the groups
// of its endpoint say now.
bool still_admits(const State& state, const Side& side, const Established& established) {
    if (!established.asks_groups) return true;
    const GroupId group = established.*side.was_admitted_by;
    if (!group) return false;
    const RuleSetRecord* record = state.rules.find({side.direction, group});
    return record != nullptr && record->persists;
}

// The rules of all the endpoint's groups are merged: the lowest API priority wins, then deny.
// Without a rule nothing passes. Returns the cookie of the rule that allows it, or 0.
Cookie judge(const State& state, WalkState& walk, const Side& side, const EndpointRecord& endpoint,
             const IpAddress& remote_address) {
    RemoteAddress remote(state.members, side.direction, endpoint.key.vpc, remote_address);
    Ruling ruling;
    GroupId admitted_by;
    for (const GroupId group : endpoint.groups()) {
        const RuleSetRecord* record = state.rules.find({side.direction, group});
        if (record == nullptr) continue;
        const Ruling next = record->rules->judge(walk.tuple, remote_address, remote, ruling);
        if (next.priority == ruling.priority) continue;
        ruling = next;
        admitted_by = record->persists ? group : GroupId{};
    }
    // Groups may refuse what one of them admitted for good; what they allow anew is theirs again.
    if (!ruling.allow && walk.established != nullptr &&
        still_admits(state, side, *walk.established)) {
        walk.note(side.table, Outcome::allow, {});
        walk.plan.*side.admitted_by = walk.established->*side.was_admitted_by;
        return {};
    }
    if (!ruling) {
        walk.deny(side.table, side.no_rule, {});
        return {};
    }
    if (!ruling.allow) {
        walk.deny(side.table, side.denied, ruling.cookie);
        return {};
    }
    walk.note(side.table, Outcome::allow, ruling.cookie);
    walk.plan.*side.admitted_by = admitted_by;
    return ruling.cookie;
}

void judge_egress(const FunctionState& state, WalkState& walk) {
    walk.plan.path.egress_rule =
        judge(typed(state), walk, kEgress, *walk.source, walk.tuple.destination);
}

// As the destination receives it: after all translation.
void judge_ingress(const FunctionState& state, WalkState& walk) {
    walk.plan.path.ingress_rule =
        judge(typed(state), walk, kIngress, *walk.destination, walk.tuple.source);
}

bool is_rule_table(std::uint8_t table) {
    return table == openflow::kEgressRule || table == openflow::kIngressRule;
}

class SecurityGroup final : public NetworkFunction {
  public:
    [[nodiscard]] std::string_view name() const override { return "security_group"; }
    [[nodiscard]] std::span<const openflow::TableSchema* const> tables() const override {
        static constexpr const openflow::TableSchema* kTables[] = {
            &kEgressGroupSchema, &kEgressRuleSchema, &kIngressGroupSchema, &kIngressRuleSchema};
        return kTables;
    }
    [[nodiscard]] std::span<const Step> steps() const override {
        static constexpr Step kSteps[] = {{Stage::egress, &judge_egress},
                                          {Stage::ingress, &judge_ingress}};
        return kSteps;
    }
    [[nodiscard]] std::shared_ptr<const FunctionState> initial() const override {
        return std::make_shared<State>();
    }
    [[nodiscard]] Result<std::shared_ptr<const FunctionState>> apply(
        const FunctionState& before, std::span<const EntryChange> changes,
        Commit& commit) const override {
        return next_state<State>(before, [&](State& next) -> Result<void> {
            std::vector<EntryChange> rules;
            for (const EntryChange& change : changes) {
                if (is_rule_table(change.entry().key.table)) {
                    rules.push_back(change);
                    continue;
                }
                const auto row = GroupAddressRow::decode(change.entry());
                if (!row) return row.error();
                commit.concerns(row->vpc);
                if (change.after == nullptr)
                    next.members.remove(*row);
                else
                    next.members.put(*row);
            }
            return apply_rules(next, rules, commit);
        });
    }

  private:
    // Each group whose rules change is laid out once more, whole.
    static Result<void> apply_rules(State& state, std::span<const EntryChange> changes,
                                    Commit& commit) {
        struct Rows {
            std::vector<RuleRow> removed, added;
            std::optional<bool> persists;
        };
        std::map<std::pair<Direction, GroupId>, Rows> groups;
        for (const EntryChange& change : changes) {
            for (const bool added : {false, true}) {
                const openflow::Entry* entry = added ? change.after : change.before;
                if (entry == nullptr) continue;
                if (PersistingRow::is(*entry)) {
                    const auto row = PersistingRow::decode(*entry);
                    if (!row) return row.error();
                    groups[{row->direction, row->group}].persists = added;
                    // Who was once a member may be one no longer.
                    commit.concerns(row->vpc);
                    continue;
                }
                const auto row = RuleRow::decode(*entry);
                if (!row) return row.error();
                Rows& rows = groups[{row->direction, row->group}];
                (added ? rows.added : rows.removed).push_back(*row);
                commit.concerns(row->group);
            }
        }
        for (const auto& [key, rows] : groups) {
            const RuleSetKey where{key.first, key.second};
            const RuleSetRecord* there = state.rules.find(where);
            const bool persists = rows.persists.value_or(there != nullptr && there->persists);
            RuleSet next = there == nullptr ? RuleSet(rows.added)
                                            : there->rules->with(rows.removed, rows.added);
            if (next.rows().empty() && !persists)
                state.rules.remove(where);
            else
                state.rules.put(
                    {where, std::make_shared<const RuleSet>(std::move(next)), persists});
        }
        return {};
    }
};

}  // namespace

const NetworkFunction& security_group() {
    static const SecurityGroup function;
    return function;
}

}  // namespace sluice::nfv
