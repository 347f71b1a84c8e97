// SPDX-License-Identifier: Apache-2.0
// A request to change the desired state, checked against all of it, becomes a diff.
//
// Nothing is changed here: what is wrong is in the plan's problems, each with a JSON
// pointer into the request, and then there is no diff. Pure but for the numbers, ids and
// the time, which the caller hands in.
// Cost: follows the request and what it refers to, not the size of the cloud; checking a
// subnet or a VPC looks at the subnets of that VPC.
#pragma once

#include <functional>

#include "controller/model/codec.hpp"
#include "controller/model/state.hpp"
#include "controller/model/surroundings.hpp"

namespace sluice::model {

struct Caller {
    std::string project;  // of whom it acts for; empty: none in particular
    bool is_admin = false;
};
// Where an admin's objects go unless it says otherwise.
inline constexpr std::string_view kDefaultProject = "default";

struct Plan {
    Diff diff;
    Problems problems;
    [[nodiscard]] bool ok() const { return problems.empty(); }
};

// Where new things come from. `number` answers the first of a block of
// kNumbersPerObject, never used before.
struct Sources {
    std::function<std::uint64_t()> number;
    std::function<Uuid()> uuid;
    std::int64_t now = 0;  // milliseconds since 1970
};

class Planner {
  public:
    // `surroundings` may be null: nothing is known.
    Planner(const State& state, Sources sources, const Surroundings* surroundings = nullptr);

    // The first change of the diff is what was asked for; others go with it.
    Plan create(Kind kind, const json::object& input, const Caller& caller);
    Plan patch(const ResourcePtr& resource, const json::object& input, const Caller& caller);
    // Marks as being deleted, or says what still uses it.
    Plan remove(const ResourcePtr& resource);

    Plan add_rule(const ResourcePtr& group, const json::value& input);
    Plan remove_rule(const ResourcePtr& group, const Uuid& rule);

    // A gateway that connects for the first time.
    Plan add_gateway(const std::string& name);
    // Gives every VPC without gateway the one that carries the fewest.
    Plan place_vpcs();

  private:
    struct Draft;
    void check_references(Draft& draft);
    void complete(Draft& draft);
    void check_vpc(Draft& draft);
    void check_limits(Draft& draft);
    void check_subnet(Draft& draft);
    void check_host(Draft& draft);
    void check_endpoint(Draft& draft);
    void assign_addresses(Draft& draft, const Subnet& subnet, const Uuid& vpc);
    void check_security_group(Draft& draft);
    void check_prefix_list(Draft& draft);
    void check_external_pool(Draft& draft);
    void check_elastic_ip(Draft& draft);
    void choose_public_address(Draft& draft);
    std::optional<IpAddress> first_free(const ExternalPool& pool) const;
    void check_nat_gateway(Draft& draft);
    void check_nat_limits(Draft& draft);
    void share_nat_limit(Draft& draft, const Resource& nat);
    void check_route_table(Draft& draft);
    void check_claims(Draft& draft);
    Resource begin(Kind kind, std::string project);
    void add_vpc_companions(const Resource& vpc, Diff& diff);
    Plan finish(Draft& draft);
    std::string least_loaded_gateway(const std::map<std::string, std::size_t>& load) const;

    const State& state_;
    Sources sources_;
    const Surroundings& surroundings_;
};

// How far a tenant may raise a limit of its VPC; none: as far as it likes (shares of what is free
// hold whatever it sets).
struct Ceiling {
    std::optional<std::uint64_t> value;
    bool is_known = true;  // false: nobody has said it yet
};
Ceiling ceiling_of(const Vpc& vpc, std::string_view limit, const Surroundings& surroundings);

// "endpoint web1 (id)", for messages.
std::string describe(const Resource& resource);

// A rule as people read it: "ingress allow tcp 443 from 0.0.0.0/0".
std::string describe(const State& state, const Rule& rule);
std::string describe(const State& state, const Route& route);

}  // namespace sluice::model
