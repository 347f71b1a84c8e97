// SPDX-License-Identifier: Apache-2.0
// A cloud that is changed by API requests and compiled step by step. For tests only.
#pragma once

#include <boost/json/parse.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controller/compiler/compiler.hpp"
#include "controller/model/planner.hpp"

namespace sluice::compiler {

using namespace model;

// A cloud that is changed by API requests, and its compiler, kept up step by step.
class Cloud {
  public:
    Cloud() { apply(planner().add_gateway("gw1")); }

    Planner planner() {
        return {state,
                {.number = [this] { return number += kNumbersPerObject; },
                 .uuid =
                     [this] {
                         Uuid id;
                         const auto value = ++ids;
                         for (std::size_t i = 0; i < 8; ++i)
                             id.bytes[15 - i] = static_cast<std::uint8_t>(value >> (8 * i));
                         return id;
                     },
                 .now = 0}};
    }
    bool apply(const Plan& plan) {
        if (!plan.ok()) return false;
        state.apply(plan.diff);
        last = incremental.update(plan.diff, ++revision);
        if (on_update) on_update(last);
        return true;
    }
    ResourcePtr make(Kind kind, const std::string& body) {
        const auto plan = planner().create(kind, json::parse(body).get_object(), {{}, true});
        return apply(plan) ? plan.diff.front().after : nullptr;
    }
    bool patch(const ResourcePtr& resource, const std::string& body) {
        return apply(planner().patch(state.find(resource->kind(), resource->id),
                                     json::parse(body).get_object(), {{}, true}));
    }
    bool remove(const ResourcePtr& resource) {
        return apply(planner().remove(state.find(resource->kind(), resource->id)));
    }
    // As the gateways confirm: what was being deleted is gone.
    void finish(const ResourcePtr& resource) {
        Plan plan;
        plan.diff.push_back({state.find(resource->kind(), resource->id), nullptr});
        apply(plan);
    }
    ResourcePtr any(Kind kind, std::size_t choice) const {
        std::vector<ResourcePtr> alive;
        for (const auto& [n, resource] : state.all(kind))
            if (!resource->deleting) alive.push_back(resource);
        return alive.empty() ? nullptr : alive[choice % alive.size()];
    }

    State state;
    std::uint64_t number = 0, ids = 0, revision = 1;
    Compiler incremental{state, 1};
    std::map<std::string, openflow::Changes> last;
    std::function<void(const std::map<std::string, openflow::Changes>&)> on_update;
};

inline std::string id(const ResourcePtr& resource) {
    return "\"" + to_string(resource->id) + "\"";
}

inline std::vector<openflow::Entry> entries(const GatewayTables& tables) {
    std::vector<openflow::Entry> all;
    for (const auto table : kProgrammedTables)
        tables.visit(table, [&](const openflow::Entry& entry) { all.push_back(entry); });
    return all;
}
inline std::vector<openflow::Meter> meters(const GatewayTables& tables) {
    std::vector<openflow::Meter> all;
    tables.visit_meters([&](const openflow::Meter& meter) { all.push_back(meter); });
    return all;
}
inline std::size_t count(const GatewayTables& tables, std::uint8_t table) {
    std::size_t found = 0;
    tables.visit(table, [&](const openflow::Entry&) { ++found; });
    return found;
}

}  // namespace sluice::compiler
