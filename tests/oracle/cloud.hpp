// SPDX-License-Identifier: Apache-2.0
// The controller for the oracle: desired state in the API's shape through the controller's
// model and compiler into table entries, without a network in between.
//
// Threads: one. Ownership: everything it builds; `Tables` is the caller's and outlives it.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/compiler/compiler.hpp"
#include "dataplane/openflow/backend.hpp"
#include "dataplane/policy/adjacency.hpp"
#include "dataplane/policy/function.hpp"

namespace sluice::oracle {

// The gateway that the entries go to.
class Tables {
  public:
    virtual ~Tables() = default;
    // Makes the entries take effect. Answers the zones whose connections are to be judged again.
    // Throws std::runtime_error when it refuses them.
    virtual std::vector<policy::ZoneSlot> commit(const openflow::Changes& changes) = 0;
};

// All that sluiced is made of.
std::vector<const policy::NetworkFunction*> network_functions();
std::string text_of(const Error& error);

class Cloud {
  public:
    explicit Cloud(Tables& tables);

    // [{kind, id, spec | null}] as one change of the desired state: compiled, committed.
    // Throws std::runtime_error when a part of the product refuses it.
    std::vector<policy::ZoneSlot> apply(const boost::json::array& changes);

    // What the entries with this cookie, or of the object with this register number, were
    // compiled from; null if there is nothing.
    [[nodiscard]] boost::json::value id_of(std::uint64_t number) const;
    // {elastic IP, "out" | "in"}
    [[nodiscard]] boost::json::value meter_of(MeterId meter) const;
    // The gateway's MAC towards a subnet.
    [[nodiscard]] MacAddress gateway_mac(const std::string& subnet) const;

  private:
    std::uint64_t new_number();
    model::ResourcePtr find(model::Kind kind, const model::Uuid& id) const;
    model::ResourcePtr make(model::Kind kind, const model::Uuid& id, boost::json::object spec);
    void number_parts(model::Kind kind, boost::json::object& spec);

    Tables& tables_;
    model::State state_;
    std::unique_ptr<compiler::Compiler> compiler_;
    std::uint64_t revision_ = 1;
    std::uint64_t last_number_ = 0;
    // Of rules by their ids and of routes by what they say; they outlive a change of the
    // rest of their group or table.
    std::map<std::string, std::uint64_t> part_numbers_;
    std::map<std::uint64_t, std::string> parts_by_number_;
};

}  // namespace sluice::oracle
