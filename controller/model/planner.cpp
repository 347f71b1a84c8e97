// SPDX-License-Identifier: Apache-2.0
#include "controller/model/planner.hpp"

#include <algorithm>

#include "controller/model/draft.hpp"
#include "controller/model/fields.hpp"

namespace sluice::model {
namespace {

constexpr std::size_t kNamedUsers = 10;
const Surroundings kNothingKnown;

// References to kinds that belong to no project are anyone's to make.
bool may_refer(const Resource& from, const Resource& to) {
    return !info(to.kind()).in_project || from.project == to.project;
}

std::string users_of(const State& state, const Resource& resource,
                     const std::function<bool(const Resource&)>& ignore) {
    std::string names;
    std::size_t count = 0;
    for (std::size_t kind = 0; kind < kKinds; ++kind)
        state.each_referrer(resource.id, static_cast<Kind>(kind), [&](const ResourcePtr& user) {
            if (user->id == resource.id || user->deleting || ignore(*user)) return true;
            if (++count <= kNamedUsers) names += (names.empty() ? "" : ", ") + describe(*user);
            return count <= kNamedUsers;
        });
    return count > kNamedUsers ? names + ", …" : names;
}

bool goes_with_its_vpc(const Resource& resource) {
    const auto* group = std::get_if<SecurityGroup>(&resource.spec);
    const auto* table = std::get_if<RouteTable>(&resource.spec);
    return (group && group->is_default) || (table && table->is_main);
}

Change mark_deleting(const ResourcePtr& resource, std::int64_t now) {
    auto after = std::make_shared<Resource>(*resource);
    after->deleting = true;
    after->updated_at = now;
    ++after->version;
    return {resource, std::move(after)};
}

}  // namespace

std::string describe(const Resource& resource) {
    std::string text(info(resource.kind()).name);
    if (!resource.name.empty()) text += " " + resource.name;
    return text + " (" + to_string(resource.id) + ")";
}

Planner::Planner(const State& state, Sources sources, const Surroundings* surroundings)
    : state_(state),
      sources_(std::move(sources)),
      surroundings_(surroundings ? *surroundings : kNothingKnown) {}

Resource Planner::begin(Kind kind, std::string project) {
    Resource resource;
    resource.id = sources_.uuid();
    resource.number = sources_.number();
    resource.spec = make_spec(kind);
    resource.project = info(kind).in_project ? std::move(project) : std::string();
    resource.created_at = resource.updated_at = sources_.now;
    return resource;
}

Plan Planner::create(Kind kind, const json::object& input, const Caller& caller) {
    std::string project = caller.project.empty() ? std::string(kDefaultProject) : caller.project;
    Draft draft;
    if (const auto* given = input.if_contains("project_id"); given && !given->is_null()) {
        const auto text = read_label(*given, "/project_id", draft.problems);
        if (!info(kind).in_project)
            draft.fail("/project_id", std::string(info(kind).path) + " belong to no project");
        else if (text && text->empty())
            draft.fail("/project_id", "must not be empty");
        else if (text && *text != project && !caller.is_admin)
            draft.fail("/project_id", "is not the token's project", Error::Code::read_only);
        else if (text)
            project = *text;
    }
    draft.resource = begin(kind, std::move(project));
    if (const auto* given = input.if_contains("id"); given && !given->is_null())
        if (const auto id = Codec<Uuid>::read(*given, "/id", draft.problems)) {
            draft.resource.id = *id;
            for (const auto& any : all_kinds())
                if (const auto taken = state_.find(any.kind, *id))
                    draft.conflict("/id", "is taken");
        }
    draft.rules_given = input.contains("rules");
    draft.ask_as(caller, input);
    read_fields(draft.resource, input, Operation::create, caller.is_admin, draft.problems);
    return finish(draft);
}

Plan Planner::patch(const ResourcePtr& resource, const json::object& input, const Caller& caller) {
    Draft draft;
    draft.resource = *resource;
    draft.before = resource;
    draft.rules_given = true;
    draft.ask_as(caller, input);
    json::object rest = input;
    if (resource->kind() == Kind::elastic_ip)
        if (const auto* only = rest.if_contains("only_if_free")) {
            if (const auto value = Codec<bool>::read(*only, "/only_if_free", draft.problems))
                draft.only_if_free = *value;
            rest.erase("only_if_free");
        }
    for (const auto* fixed : {"id", "project_id"})
        if (const auto* given = rest.if_contains(fixed)) {
            const std::string present =
                fixed == std::string_view("id") ? to_string(resource->id) : resource->project;
            if (*given != json::value(present))
                draft.fail(member_pointer("", fixed), "cannot be changed");
        }
    read_fields(draft.resource, rest, Operation::patch, caller.is_admin, draft.problems);
    return finish(draft);
}

Plan Planner::finish(Draft& draft) {
    if (draft.before && draft.before->deleting)
        draft.conflict("", describe(*draft.before) + " is being deleted");
    if (draft.problems.empty()) check_references(draft);
    if (draft.problems.empty()) complete(draft);
    if (draft.problems.empty()) check_claims(draft);
    if (!draft.problems.empty()) return {{}, std::move(draft.problems)};

    if (draft.before) {
        // A patch that changes nothing is no new version.
        if (draft.resource == *draft.before) return {};
        ++draft.resource.version;
        draft.resource.updated_at = sources_.now;
    }
    Plan plan;
    plan.diff.push_back({draft.before, std::make_shared<Resource>(std::move(draft.resource))});
    for (auto& companion : draft.companions) plan.diff.push_back(std::move(companion));
    return plan;
}

void Planner::check_references(Draft& draft) {
    each_reference(draft.resource, [&](Kind kind, const Uuid& id, const std::string& pointer) {
        if (id == draft.resource.id && kind == draft.resource.kind()) return;  // itself
        const auto target = state_.find(kind, id);
        // What belongs to someone else does not exist, as far as anyone can tell.
        if (!target || !may_refer(draft.resource, *target))
            draft.fail(pointer, "there is no " + std::string(info(kind).name) + " " + to_string(id),
                       Error::Code::not_found);
        else if (target->deleting)
            draft.conflict(pointer, describe(*target) + " is being deleted");
    });
}

void Planner::complete(Draft& draft) {
    switch (draft.resource.kind()) {
        case Kind::vpc:
            check_vpc(draft);
            return check_limits(draft);
        case Kind::subnet:
            return check_subnet(draft);
        case Kind::host:
            return check_host(draft);
        case Kind::endpoint:
            return check_endpoint(draft);
        case Kind::security_group:
            return check_security_group(draft);
        case Kind::prefix_list:
            return check_prefix_list(draft);
        case Kind::external_pool:
            return check_external_pool(draft);
        case Kind::elastic_ip:
            return check_elastic_ip(draft);
        case Kind::route_table:
            return check_route_table(draft);
        case Kind::nat_gateway:
            return check_nat_gateway(draft);
        case Kind::gateway:
        case Kind::bandwidth:
            return;
    }
}

void Planner::check_claims(Draft& draft) {
    for (const auto& claim : claims_of(state_, draft.resource)) {
        const auto holder = state_.holder(claim);
        if (!holder || holder->id == draft.resource.id) continue;
        const bool own = holder->project == draft.resource.project || holder->project.empty();
        const std::string by = own ? " by " + describe(*holder) : "";
        switch (claim.what) {
            case Claim::What::vni:
                draft.conflict("/vni", "is taken" + by);
                break;
            case Claim::What::address:
                draft.conflict(draft.resource.kind() == Kind::endpoint
                                   ? (claim.value.is_v4() ? "/ip" : "/ipv6")
                                   : (claim.value.is_v4() ? "/gateway_ip" : "/gateway_ipv6"),
                               sluice::to_string(claim.value) + " is taken" + by);
                break;
            case Claim::What::mac:
                draft.conflict("/mac", "is taken" + by);
                break;
            case Claim::What::source:
                draft.conflict("/allowed_addresses",
                               "the same address with the same MAC is used" + by);
                break;
            case Claim::What::vtep:
                draft.conflict("/vteps", sluice::to_string(claim.value) + " is taken" + by);
                break;
            case Claim::What::public_address:
                draft.conflict("/address", "is taken" + by);
                break;
            case Claim::What::route_table:
            case Claim::What::default_group:
                draft.conflict("/vpc_id", "has one already");
                break;
        }
    }
}

Plan Planner::remove(const ResourcePtr& resource) {
    Plan plan;
    if (resource->deleting) return plan;
    if (goes_with_its_vpc(*resource)) {
        plan.problems.push_back({"", "it is deleted with its VPC only", Error::Code::conflict});
        return plan;
    }
    const bool is_vpc = resource->kind() == Kind::vpc;
    const auto users = users_of(
        state_, *resource, [&](const Resource& user) { return is_vpc && goes_with_its_vpc(user); });
    if (!users.empty()) {
        plan.problems.push_back({"", "it is used by " + users, Error::Code::conflict});
        return plan;
    }
    plan.diff.push_back(mark_deleting(resource, sources_.now));
    if (is_vpc)
        for (const auto kind : {Kind::security_group, Kind::route_table})
            state_.each_referrer(resource->id, kind, [&](const ResourcePtr& user) {
                if (!user->deleting) plan.diff.push_back(mark_deleting(user, sources_.now));
                return true;
            });
    return plan;
}

Plan Planner::add_rule(const ResourcePtr& group, const json::value& input) {
    Draft draft;
    draft.resource = *group;
    draft.before = group;
    draft.rules_given = true;
    const auto rule = read_rule(input, draft.problems);
    if (rule) draft.spec<SecurityGroup>().rules.push_back(*rule);
    draft.new_rules = 1;
    auto plan = finish(draft);
    // Pointers are into the rule that was posted.
    const auto prefix = "/rules/" + std::to_string(group->as<SecurityGroup>().rules.size());
    for (auto& problem : plan.problems)
        if (problem.pointer.starts_with(prefix)) problem.pointer.erase(0, prefix.size());
    return plan;
}

Plan Planner::remove_rule(const ResourcePtr& group, const Uuid& rule) {
    Draft draft;
    draft.resource = *group;
    draft.before = group;
    draft.rules_given = true;
    std::erase_if(draft.spec<SecurityGroup>().rules,
                  [&](const Rule& present) { return present.id == rule; });
    draft.new_rules = 0;
    return finish(draft);
}

Plan Planner::add_gateway(const std::string& name) {
    Resource gateway = begin(Kind::gateway, {});
    gateway.name = name;
    return {{{nullptr, std::make_shared<Resource>(std::move(gateway))}}, {}};
}

std::string Planner::least_loaded_gateway(const std::map<std::string, std::size_t>& load) const {
    std::map<std::string, std::size_t> usable;  // by name, so that a tie has one outcome
    for (const auto& [number, gateway] : state_.all(Kind::gateway))
        if (gateway->as<Gateway>().admin_state == AdminState::up)
            usable[gateway->name] = load.contains(gateway->name) ? load.at(gateway->name) : 0;
    const auto least =
        std::min_element(usable.begin(), usable.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return least == usable.end() ? std::string() : least->first;
}

Plan Planner::place_vpcs() {
    Plan plan;
    if (!state_.vpcs_by_gateway().contains({})) return plan;  // all have their place
    std::map<std::string, std::size_t> load = state_.vpcs_by_gateway();
    for (const auto& [number, vpc] : state_.all(Kind::vpc)) {
        if (!vpc->as<Vpc>().gateway.empty() || vpc->deleting) continue;
        const auto chosen = least_loaded_gateway(load);
        if (chosen.empty()) break;
        auto placed = std::make_shared<Resource>(*vpc);
        placed->as<Vpc>().gateway = chosen;
        ++load[chosen];
        plan.diff.push_back({vpc, std::move(placed)});
    }
    return plan;
}

}  // namespace sluice::model
