// SPDX-License-Identifier: Apache-2.0
// One resource at a time: create, read, patch, delete; and a group's rules.
#include <boost/json/serialize.hpp>

#include "controller/api/call.hpp"
#include "controller/model/address.hpp"

namespace sluice::api {
namespace {

constexpr std::uint64_t kLongestWait = 300;  // seconds

json::object show_status(const Service& service, const model::Resource& resource) {
    const Status status = service.status(resource);
    json::array gateways;
    for (const auto& gateway : status.gateways)
        gateways.push_back(json::object{{"name", gateway.name},
                                        {"state", to_string(gateway.state)},
                                        {"reason", gateway.reason}});
    return {{"state", to_string(status.state)},
            {"reason", status.reason},
            {"observed_version", status.observed_version},
            {"gateways", std::move(gateways)}};
}

// What a subnet's blocks have left.
std::uint64_t available_addresses(const model::State& state, const model::Resource& resource) {
    const auto& subnet = resource.as<model::Subnet>();
    const auto& block = subnet.cidr ? subnet.cidr : subnet.ipv6_cidr;
    const std::uint64_t usable = block ? model::count_usable(*block) : 0;
    const std::uint64_t used = state.count_referrers(resource.id, model::Kind::endpoint) + 1;
    return usable > used ? usable - used : 0;
}

// Where its tunnels end; until it says so, where it connected from.
std::string vteps_or(const model::GatewayFacts& facts, const std::string& otherwise) {
    std::string text;
    for (const auto& vtep : facts.vteps)
        text += (text.empty() ? "" : ", ") + sluice::to_string(vtep);
    return text.empty() ? otherwise : text;
}

void add_read_only(const Service& service, const model::Resource& resource, json::object& shown) {
    switch (resource.kind()) {
        case model::Kind::subnet:
            shown["available_ips"] = available_addresses(service.state(), resource);
            break;
        case model::Kind::bandwidth: {
            json::array sharing;
            service.state().each_referrer(resource.id, model::Kind::elastic_ip,
                                          [&](const model::ResourcePtr& elastic) {
                                              sharing.emplace_back(model::to_string(elastic->id));
                                              return true;
                                          });
            shown["elastic_ip_ids"] = std::move(sharing);
            break;
        }
        case model::Kind::elastic_ip: {
            const auto nat = service.state().nat_gateway_of(resource);
            shown["nat_gateway_id"] = nat ? json::value(model::to_string(nat->id)) : nullptr;
            break;
        }
        case model::Kind::vpc:
            shown["gateway"] = Service::gateway_of(resource);
            break;
        case model::Kind::endpoint:
            shown["enforcement"] = json::object{{"ip", "gateway"}, {"rdma", "none"}};
            break;
        case model::Kind::gateway: {
            const auto report = service.report(resource.name);
            shown["address"] = vteps_or(report.facts, report.address);
            shown["state"] = report.state;
            shown["reason"] = report.reason;
            shown["generation"] = report.generation;
            shown["sessions"] = report.sessions;
            shown["capacity"] = report.capacity;
            shown["last_seen"] = report.last_seen == 0
                                     ? json::value(nullptr)
                                     : json::value(model::timestamp(report.last_seen));
            break;
        }
        default:
            break;
    }
}

void answer_resource(const CallPtr& call, unsigned status, const model::Resource& resource) {
    http::Response response;
    response.status = status;
    response.headers.push_back({"ETag", "\"" + std::to_string(resource.version) + "\""});
    if (status == 201)
        response.headers.push_back({"Location", "/v1/" +
                                                    std::string(model::info(resource.kind()).path) +
                                                    "/" + model::to_string(resource.id)});
    response.body = json::serialize(show(call->service, resource));
    call->answer(std::move(response));
}

// Commits a plan and answers with the object, at once or once it has settled.
void finish_write(const CallPtr& call, const model::Plan& plan, model::Kind kind,
                  const model::Uuid& id, unsigned status) {
    if (!plan.ok()) return call->fail(plan.problems);
    const auto seconds = call->number("wait", 0, 0, kLongestWait);
    if (!seconds) return;
    if (auto done = call->service.commit(plan, call->actor()); !done)
        return call->fail(done.error());
    const auto answer = [call, kind, id, status] {
        const auto resource = call->service.state().find(kind, id);
        if (!resource) return call->answer(http::Response{204, {}, {}, {}});
        answer_resource(call, status, *resource);
    };
    if (*seconds == 0) return answer();
    call->service.when_settled(kind, id, std::chrono::seconds(*seconds), answer);
}

// The rule that was posted, inside of its group.
void answer_rule(const CallPtr& call, const model::Uuid& group, const model::Uuid& rule) {
    const auto resource = call->service.state().find(model::Kind::security_group, group);
    if (!resource) return call->fail(404, "the group is gone");
    for (const auto& one : resource->as<model::SecurityGroup>().rules)
        if (one.id == rule) {
            json::object shown = model::write_rule(one).get_object();
            shown["security_group_id"] = model::to_string(group);
            shown["status"] = show_status(call->service, *resource);
            return call->answer(201, shown);
        }
    call->fail(404, "the rule is gone");
}

}  // namespace

json::object show(const Service& service, const model::Resource& resource) {
    json::object shown = model::write_resource(resource);
    add_read_only(service, resource, shown);
    shown["status"] = show_status(service, resource);
    return shown;
}

model::ResourcePtr find_or_fail(const CallPtr& call, model::Kind kind, const std::string& id) {
    const auto uuid = model::parse_uuid(id);
    auto resource = uuid ? call->service.state().find(kind, *uuid) : nullptr;
    if (resource && call->may_see(*resource)) return resource;
    call->fail(404, "there is no " + std::string(model::info(kind).name) + " " + id);
    return nullptr;
}

void create_resource(const CallPtr& call, const model::KindInfo& kind) {
    if (!call->only_parameters({"wait"})) return;
    const auto input = call->body();
    if (!input) return;
    const auto plan = call->service.planner().create(kind.kind, *input, call->as_caller());
    const auto id = plan.ok() ? plan.diff.front().after->id : model::Uuid{};
    finish_write(call, plan, kind.kind, id, 201);
}

void get_resource(const CallPtr& call, const model::KindInfo& kind, const std::string& id) {
    if (!call->only_parameters({})) return;
    if (const auto resource = find_or_fail(call, kind.kind, id))
        answer_resource(call, 200, *resource);
}

void patch_resource(const CallPtr& call, const model::KindInfo& kind, const std::string& id) {
    if (!call->only_parameters({"wait"})) return;
    const auto resource = find_or_fail(call, kind.kind, id);
    if (!resource) return;
    const auto input = call->body();
    if (!input) return;
    finish_write(call, call->service.planner().patch(resource, *input, call->as_caller()),
                 kind.kind, resource->id, 200);
}

void delete_resource(const CallPtr& call, const model::KindInfo& kind, const std::string& id) {
    if (!call->only_parameters({"wait"})) return;
    if (const auto resource = find_or_fail(call, kind.kind, id))
        finish_write(call, call->service.planner().remove(resource), kind.kind, resource->id, 202);
}

void create_rule(const CallPtr& call, const std::string& group_id) {
    if (!call->only_parameters({"wait"})) return;
    const auto group = find_or_fail(call, model::Kind::security_group, group_id);
    if (!group) return;
    const auto input = call->body();
    if (!input) return;
    const auto plan = call->service.planner().add_rule(group, *input);
    if (!plan.ok()) return call->fail(plan.problems);
    const auto seconds = call->number("wait", 0, 0, kLongestWait);
    if (!seconds) return;
    if (auto done = call->service.commit(plan, call->actor()); !done)
        return call->fail(done.error());
    const auto rule = plan.diff.front().after->as<model::SecurityGroup>().rules.back().id;
    const auto answer = [call, id = group->id, rule] { answer_rule(call, id, rule); };
    if (*seconds == 0) return answer();
    call->service.when_settled(model::Kind::security_group, group->id,
                               std::chrono::seconds(*seconds), answer);
}

void delete_rule(const CallPtr& call, const std::string& group_id, const std::string& rule_id) {
    if (!call->only_parameters({"wait"})) return;
    const auto group = find_or_fail(call, model::Kind::security_group, group_id);
    if (!group) return;
    const auto uuid = model::parse_uuid(rule_id);
    const auto& rules = group->as<model::SecurityGroup>().rules;
    const bool there = uuid && std::any_of(rules.begin(), rules.end(),
                                           [&](const auto& rule) { return rule.id == *uuid; });
    if (!there) return call->fail(404, "the group has no rule " + rule_id);
    const auto plan = call->service.planner().remove_rule(group, *uuid);
    if (!plan.ok()) return call->fail(plan.problems);
    const auto seconds = call->number("wait", 0, 0, kLongestWait);
    if (!seconds) return;
    if (auto done = call->service.commit(plan, call->actor()); !done)
        return call->fail(done.error());
    // The rule is gone when the group without it is in force.
    const auto answer = [call, id = group->id] {
        const auto now = call->service.state().find(model::Kind::security_group, id);
        const bool active = !now || call->service.status(*now).state == Status::State::active;
        call->answer(http::Response{active ? 204U : 202U, {}, {}, {}});
    };
    if (*seconds == 0) return answer();
    call->service.when_settled(model::Kind::security_group, group->id,
                               std::chrono::seconds(*seconds), answer);
}

}  // namespace sluice::api
