// SPDX-License-Identifier: Apache-2.0
// Desired state in, table entries out, per gateway and incrementally.
//
// Pure: no I/O, no clock; what it holds is a function of the state alone, whatever the
// history (the property its test checks). Threads: one. Ownership: the state outlives it.
// Cost: a change compiles only the units it touches (rows.hpp), found through the state's
// indexes: an endpoint its own rows and its memberships, a rule its one row, the first
// rule that names a group the rows of that group's members.
//
// Where things go: a VPC and all in it to the VPC's gateway, hosts to every gateway, an
// elastic IP to the gateway of its endpoint's VPC. What is being deleted is compiled as
// if it were gone.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "controller/compiler/gateway_tables.hpp"
#include "controller/model/state.hpp"

namespace sluice::compiler {

struct Unit;

class Compiler {
  public:
    // Compiles all of it, as `revision`.
    Compiler(const model::State& state, std::uint64_t revision);
    ~Compiler();
    Compiler(const Compiler&) = delete;
    Compiler& operator=(const Compiler&) = delete;

    // Call after State::apply(diff). Answers what changes at each gateway that is known,
    // nothing for most; every gateway is then at `revision`.
    std::map<std::string, openflow::Changes> update(const model::Diff& diff,
                                                    std::uint64_t revision);

    // Nothing for a gateway that is not known. The pointer holds while it is.
    [[nodiscard]] const GatewayTables* gateway(const std::string& name) const;
    [[nodiscard]] const std::map<std::string, std::unique_ptr<GatewayTables>>& gateways() const {
        return gateways_;
    }

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    std::map<std::string, std::unique_ptr<GatewayTables>> gateways_;
};

}  // namespace sluice::compiler
