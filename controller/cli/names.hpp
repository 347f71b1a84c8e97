// SPDX-License-Identifier: Apache-2.0
// Names for ids, and back.
//
// Names of subnets, groups, tables, endpoints are unique within no more than their VPC: every VPC
// has a `default` and a `main`. What a name means is found in this order: the VPC that --vpc or
// VPC/NAME says; else, among several of that name, the one in the VPC that the command is about.
//
// One object, one thread. Objects that were fetched are kept for the run of the command.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "controller/cli/api.hpp"
#include "controller/cli/kinds.hpp"

namespace sluice::cli {

class Names {
  public:
    explicit Names(Api& api) : api_(api) {}

    // --vpc NAME|ID: names mean what is inside of it and nothing else.
    void look_in(const std::string& vpc);
    // What the command is about: its VPC decides between several of one name.
    void prefer_vpc_of(const KindInfo& kind, const std::string& id);

    // The id of what is named so, or the UUID itself. Throws Failure for none or several.
    std::string resolve(const KindInfo& kind, const std::string& name_or_id);
    // The name behind an id, or the id itself; the kind is listed once.
    std::string name_of(const KindInfo& kind, const std::string& id);
    // The id of the VPC that an object belongs to; empty if it belongs to none.
    std::string vpc_of(const KindInfo& kind, const json::object& object);
    // Only those in the VPC of look_in(), if there is one.
    json::array inside(const KindInfo& kind, json::array items);

  private:
    using Objects = std::map<std::string, json::object>;
    struct Known {
        Objects objects;
        bool all = false;
    };
    const json::object& object(const KindInfo& kind, const std::string& id);
    const Objects& list_all(const KindInfo& kind);
    json::array named(const KindInfo& kind, const std::string& name, const std::string& vpc);
    std::string ambiguous(const KindInfo& kind, const std::string& name, const json::array& found);

    Api& api_;
    std::string vpc_;
    const KindInfo* about_kind_ = nullptr;
    std::string about_id_;
    std::map<std::string_view, Known> known_;
};

}  // namespace sluice::cli
