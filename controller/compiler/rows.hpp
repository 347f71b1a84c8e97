// SPDX-License-Identifier: Apache-2.0
// The smallest pieces of desired state that are compiled by themselves, and what each
// comes to. Private to the compiler.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "controller/model/state.hpp"
#include "dataplane/openflow/entry.hpp"
#include "nfv/security_group/table.hpp"

namespace sluice::compiler {

// A unit is compiled from the state alone, so compiling it again is always right; which
// units a change touches is the compiler's business (compiler.cpp).
struct Unit {
    enum class Kind : std::uint8_t {
        vpc,            // a: the VPC
        subnet,         // a: the subnet
        host,           // a: the host, b: the gateway
        endpoint,       // a: the endpoint
        group,          // a: the group
        rule,           // a: the group, b: the rule
        egress_member,  // a: the group, b: the endpoint; where egress rules name the group
        ingress_member,
        egress_list,  // a: the prefix list, b: the VPC; likewise
        ingress_list,
        routes,       // a: the route table
        elastic_ip,   // a: the elastic IP
        bandwidth,    // a: the bandwidth, b: the gateway
        nat_gateway,  // a: the NAT gateway
    };
    Kind kind{};
    model::Uuid a, b;
    auto operator<=>(const Unit&) const = default;
};

// How many rules of a direction name a group or prefix list as their remote, per VPC.
struct NamedBy {
    model::Uuid remote;
    nfv::Direction direction{};
    model::Uuid vpc;
    auto operator<=>(const NamedBy&) const = default;
};
using NamedCounts = std::map<NamedBy, std::size_t>;

struct Compiled {
    std::string gateway;  // empty: nothing is compiled
    std::vector<openflow::Entry> entries;
    std::vector<openflow::Meter> meters;
};

Compiled compile(const model::State& state, const NamedCounts& named, const Unit& unit);

}  // namespace sluice::compiler
