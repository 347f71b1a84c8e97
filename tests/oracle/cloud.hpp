// SPDX-License-Identifier: Apache-2.0
// The product for the oracle: desired state in the API's shape through the controller's
// model and compiler into a policy store, without a network in between.
//
// Threads: one. Ownership: everything it builds.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/compiler/compiler.hpp"
#include "dataplane/policy/store.hpp"

namespace sluice::oracle {

class Cloud {
  public:
    Cloud();

    // [{kind, id, spec | null}] as one change of the desired state: compiled, committed.
    // Answers the zones whose connections are to be judged again. Throws
    // std::runtime_error when a part of the product refuses it.
    std::vector<policy::ZoneSlot> apply(const boost::json::array& changes);

    [[nodiscard]] const policy::Snapshot& policy() const { return store_->current(); }
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
    std::vector<policy::ZoneSlot> commit(const openflow::Changes& changes);

    model::State state_;
    std::unique_ptr<compiler::Compiler> compiler_;
    std::uint64_t revision_ = 1;
    std::uint64_t last_number_ = 0;
    // Of rules by their ids and of routes by what they say; they outlive a change of the
    // rest of their group or table.
    std::map<std::string, std::uint64_t> part_numbers_;
    std::map<std::uint64_t, std::string> parts_by_number_;

    policy::AdjacencyTable adjacencies_{1024};
    policy::SourceTable sources_{1024};
    reclaim::Qsbr qsbr_{1};
    std::unique_ptr<policy::Pipeline> pipeline_;
    std::unique_ptr<policy::Store> store_;
};

}  // namespace sluice::oracle
