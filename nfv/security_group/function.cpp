// SPDX-License-Identifier: Apache-2.0
#include "nfv/security_group/function.hpp"

#include <map>

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
    std::shared_ptr<const RuleSet> rules;
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
    bool Established::*established_persists;
    bool Plan::*persists;
};
constexpr Side kEgress = {
    Direction::egress,         openflow::kEgressRule,         DropReason::egress_no_rule,
    DropReason::egress_denied, &Established::egress_persists, &Plan::egress_persists};
constexpr Side kIngress = {
    Direction::ingress,         openflow::kIngressRule,         DropReason::ingress_no_rule,
    DropReason::ingress_denied, &Established::ingress_persists, &Plan::ingress_persists};

// The rules of all the endpoint's groups are merged: the lowest API priority wins, then deny.
// Without a rule nothing passes. Returns the cookie of the rule that allows it, or 0.
Cookie judge(const State& state, WalkState& walk, const Side& side, const EndpointRecord& endpoint,
             const IpAddress& remote_address) {
    RemoteAddress remote(state.members, side.direction, endpoint.key.vpc, remote_address);
    Ruling ruling;
    for (const GroupId group : endpoint.groups())
        if (const RuleSetRecord* record = state.rules.find({side.direction, group}))
            ruling = record->rules->judge(walk.tuple, remote_address, remote, ruling);
    // Groups may refuse what they once admitted for good; what they allow anew is theirs again.
    if (!ruling.allow && walk.established != nullptr &&
        walk.established->*side.established_persists) {
        walk.note(side.table, Outcome::allow, {});
        walk.plan.*side.persists = true;
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
    walk.plan.*side.persists = ruling.persists;
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
        };
        std::map<std::pair<Direction, GroupId>, Rows> groups;
        for (const EntryChange& change : changes) {
            for (const bool added : {false, true}) {
                const openflow::Entry* entry = added ? change.after : change.before;
                if (entry == nullptr) continue;
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
            RuleSet next = there == nullptr ? RuleSet(rows.added)
                                            : there->rules->with(rows.removed, rows.added);
            if (next.rows().empty())
                state.rules.remove(where);
            else
                state.rules.put({where, std::make_shared<const RuleSet>(std::move(next))});
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
