// SPDX-License-Identifier: Apache-2.0
// A resource in the making, with everything its checks need. Private to the planner.
#pragma once

#include "controller/model/planner.hpp"

namespace sluice::model {

struct Planner::Draft {
    Resource resource;
    ResourcePtr before;  // nothing on creation
    bool rules_given = false;
    std::optional<std::size_t> new_rules;  // how many of the last are; none: any may be
    bool only_if_free = false;
    bool is_admin = false;     // who asks for it
    json::value limits_given;  // of a VPC, as they were given
    Problems problems;
    Diff companions;

    void ask_as(const Caller& caller, const json::object& input) {
        is_admin = caller.is_admin;
        limits_given = json::object{};
        if (const auto* given = input.if_contains("limits")) limits_given = *given;
    }
    void fail(std::string pointer, std::string detail, Error::Code code = Error::Code::invalid) {
        problems.push_back({std::move(pointer), std::move(detail), code});
    }
    void conflict(std::string pointer, std::string detail) {
        fail(std::move(pointer), std::move(detail), Error::Code::conflict);
    }
    template <class S>
    S& spec() {
        return resource.as<S>();
    }
    // The present value of the kind, or nothing on creation.
    template <class S>
    const S* old() const {
        return before ? &before->as<S>() : nullptr;
    }
};

// Makes rules what they are kept as: ids, numbers, families and ports filled in; adds
// what is wrong, duplicates too. `present` are the group's rules so far.
struct RuleChecks {
    const State& state;
    const Resource& group;
    const std::vector<Rule>& present;
    const Sources& sources;
    Problems& problems;
};
// The last of `rules` is new, the others are `checks.present`.
void normalise_last_rule(std::vector<Rule>& rules, const std::string& pointer, RuleChecks checks);
void normalise_rules(std::vector<Rule>& rules, const std::string& pointer, RuleChecks checks);
std::vector<Rule> egress_allow_rules(const Sources& sources);

}  // namespace sluice::model
