// SPDX-License-Identifier: Apache-2.0
#include "controller/api/names.hpp"

#include <algorithm>
#include <array>

namespace sluice::api {
namespace {

constexpr std::array<std::string_view, 7> kNumbered = {
    "vpc",        "source_vpc",      "destination_vpc",
    "endpoint",   "source_endpoint", "destination_endpoint",
    "nat_gateway"};

std::optional<std::uint64_t> as_number(const json::value& value) {
    boost::system::error_code error;
    const auto number = value.to_number<std::uint64_t>(error);
    if (error) return std::nullopt;
    return number;
}

std::string name_or_id(const model::Resource& resource) {
    return resource.name.empty() ? model::to_string(resource.id) : resource.name;
}

json::object reference(std::string_view kind, const model::Uuid& id, std::string name) {
    return {{"kind", kind}, {"id", model::to_string(id)}, {"name", std::move(name)}};
}

json::value id_and_name(const Call& call, std::uint64_t number) {
    if (number == 0) return nullptr;  // the outside
    const auto resource = call.service.state().by_number(number);
    if (!resource || !call.may_see(*resource)) return nullptr;
    return json::object{{"id", model::to_string(resource->id)}, {"name", resource->name}};
}

}  // namespace

bool may_see_number(const Call& call, std::uint64_t number) {
    const auto resource = number == 0 ? nullptr : call.service.state().by_number(number);
    return !resource || call.may_see(*resource);
}

json::value named_resource(const Call& call, std::uint64_t number) {
    const auto& state = call.service.state();
    const auto resource = number == 0 ? nullptr : state.by_number(number);
    if (!resource || !call.may_see(*resource)) return nullptr;
    if (const auto* group = std::get_if<model::SecurityGroup>(&resource->spec))
        for (const auto& rule : group->rules)
            if (rule.number == number) {
                auto result =
                    reference("security_group_rule", rule.id,
                              name_or_id(*resource) + ": " + model::describe(state, rule));
                result["security_group"] =
                    reference("security_group", resource->id, resource->name);
                return result;
            }
    if (const auto* table = std::get_if<model::RouteTable>(&resource->spec))
        for (const auto& route : table->routes)
            if (route.number == number)
                return reference("route_table", resource->id,
                                 name_or_id(*resource) + ": " + model::describe(state, route));
    return reference(model::info(resource->kind()).name, resource->id, name_or_id(*resource));
}

void name_numbers(const Call& call, json::value& value) {
    if (value.is_array()) {
        for (auto& item : value.get_array()) name_numbers(call, item);
        return;
    }
    if (!value.is_object()) return;
    auto& object = value.get_object();
    // What an object says of the side it calls source or destination, if that is foreign.
    for (const std::string side : {"source", "destination"}) {
        bool foreign = false;
        for (const auto* what : {"_vpc", "_endpoint"})
            if (const auto* number = object.if_contains(side + what))
                if (const auto known = as_number(*number)) foreign |= !may_see_number(call, *known);
        if (foreign)
            for (const auto* what : {"", "_vpc", "_endpoint", "_port"}) object.erase(side + what);
    }
    for (const auto key : kNumbered)
        if (auto* number = object.if_contains(key))
            if (const auto known = as_number(*number)) *number = id_and_name(call, *known);
    // The groups that were asked, where none of their rules decided.
    if (auto* groups = object.if_contains("groups"); groups && groups->is_array())
        for (auto& group : groups->get_array())
            if (const auto known = as_number(group)) group = id_and_name(call, *known);
    if (const auto* cookie = object.if_contains("cookie")) {
        const auto known = as_number(*cookie);
        object["resource"] = known ? named_resource(call, *known) : json::value();
        object.erase("cookie");
    }
    for (auto& member : object) name_numbers(call, member.value());
}

}  // namespace sluice::api
