// SPDX-License-Identifier: Apache-2.0
#include "controller/model/fields.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "controller/model/field_table.hpp"
#include "controller/model/items.hpp"

namespace sluice::model {
namespace {

// What every resource has, in the order in which it is shown.
constexpr std::string_view kReadOnlyMembers[] = {"created_at", "updated_at", "version", "status"};
constexpr std::size_t kMostTags = 50;

template <class T>
bool is_one_of(std::string_view name, const T& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void read_text(std::string& target, const json::value& value, const std::string& at,
               Problems& problems) {
    if (value.is_null()) {
        target.clear();
        return;
    }
    if (auto text = read_label(value, at, problems)) target = std::move(*text);
}

// A merge patch merges tags member by member, as it does a VPC's limits and time-outs.
void read_tags(std::map<std::string, std::string>& target, const json::value& value,
               Problems& problems) {
    if (value.is_null()) {
        target.clear();
        return;
    }
    if (!value.is_object()) {
        problems.push_back({"/tags", "must be an object of strings"});
        return;
    }
    for (const auto& member : value.get_object()) {
        const std::string key(member.key());
        const auto at = member_pointer("/tags", key);
        if (member.value().is_null()) {
            target.erase(key);
            continue;
        }
        if (key.empty())
            problems.push_back({at, "a tag's name is not empty"});
        else if (const auto wrong = check_label(key))
            problems.push_back({at, "the tag's name " + *wrong});
        read_text(target[key], member.value(), at, problems);
    }
    if (target.size() > kMostTags)
        problems.push_back({"/tags", "there are more than " + std::to_string(kMostTags) + " tags"});
}

template <class S>
void read_member(S& spec, const Field<S>* field, const KindInfo& kind, std::string_view name,
                 const json::value& value, Operation operation, bool is_admin, Problems& problems) {
    const auto at = member_pointer("", name);
    if (is_one_of(name, kind.not_enforced)) {
        problems.push_back({at, "is not enforced by this release", Error::Code::unsupported});
        return;
    }
    if (!field || (field->flags & kInternal) != 0) {
        problems.push_back({at, "is not a field of " + std::string(kind.path)});
        return;
    }
    if ((field->flags & kReadOnly) != 0) {
        problems.push_back({at, "is read-only"});
        return;
    }
    if ((field->flags & kAdmin) != 0 && !is_admin) {
        problems.push_back({at, "only an admin may set it", Error::Code::read_only});
        return;
    }
    const bool immutable = operation == Operation::patch && (field->flags & kImmutable) != 0;
    if ((field->flags & kRequired) != 0 && value.is_null()) {
        problems.push_back({at, immutable ? "cannot be changed" : "is required"});
        return;
    }
    const json::value before = immutable ? field->write(spec) : json::value();
    if (!field->read(spec, value, at, problems)) return;
    if (immutable && field->write(spec) != before) problems.push_back({at, "cannot be changed"});
}

}  // namespace

Spec make_spec(Kind kind) {
    switch (kind) {
        case Kind::vpc:
            return Vpc{};
        case Kind::subnet:
            return Subnet{};
        case Kind::host:
            return Host{};
        case Kind::endpoint:
            return Endpoint{};
        case Kind::security_group:
            return SecurityGroup{};
        case Kind::prefix_list:
            return PrefixList{};
        case Kind::external_pool:
            return ExternalPool{};
        case Kind::elastic_ip:
            return ElasticIp{};
        case Kind::route_table:
            return RouteTable{};
        case Kind::gateway:
            return Gateway{};
        case Kind::bandwidth:
            return Bandwidth{};
        case Kind::nat_gateway:
            return NatGateway{};
    }
    return {};
}

void read_fields(Resource& resource, const json::object& input, Operation operation, bool is_admin,
                 Problems& problems) {
    const KindInfo& kind = info(resource.kind());
    std::visit(
        [&]<class S>(S& spec) {
            const auto fields = fields_of<S>();
            for (const auto& member : input) {
                const std::string_view name(member.key());
                if (name == "id" || name == "project_id") continue;
                if (name == "name" && resource.kind() == Kind::gateway)
                    problems.push_back({"/name", "is the gateway's own and cannot be changed"});
                else if (name == "name")
                    read_text(resource.name, member.value(), "/name", problems);
                else if (name == "description")
                    read_text(resource.description, member.value(), "/description", problems);
                else if (name == "tags")
                    read_tags(resource.tags, member.value(), problems);
                else if (is_one_of(name, kReadOnlyMembers))
                    problems.push_back({member_pointer("", name), "is read-only"});
                else
                    read_member(spec, find_field(fields, name), kind, name, member.value(),
                                operation, is_admin, problems);
            }
            if (operation == Operation::patch) return;
            for (const auto& field : fields)
                if ((field.flags & kRequired) != 0 && !input.contains(field.name))
                    problems.push_back({member_pointer("", field.name), "is required"});
        },
        resource.spec);
}

std::optional<Rule> read_rule(const json::value& input, Problems& problems) {
    return read_struct(fields_of<Rule>(), input, "", problems);
}

json::value write_rule(const Rule& rule) {
    return write_struct(fields_of<Rule>(), rule, false);
}

json::object write_resource(const Resource& resource) {
    json::object result;
    result["id"] = to_string(resource.id);
    result["name"] = resource.name;
    result["description"] = resource.description;
    json::object tags;
    for (const auto& [key, value] : resource.tags) tags[key] = value;
    result["tags"] = std::move(tags);
    if (info(resource.kind()).in_project)
        result["project_id"] = resource.project;
    else
        result["project_id"] = nullptr;
    result["created_at"] = timestamp(resource.created_at);
    result["updated_at"] = timestamp(resource.updated_at);
    result["version"] = resource.version;
    std::visit(
        [&]<class S>(const S& spec) {
            for (auto& member : write_struct(fields_of<S>(), spec, false))
                result[member.key()] = member.value();
        },
        resource.spec);
    return result;
}

namespace {

json::value write_side(const ResourcePtr& mine, const ResourcePtr& theirs) {
    if (!mine) return nullptr;
    if (!theirs) return write_resource(*mine);
    const auto with = [&]<class S, class T>(std::vector<T> S::*list) {
        Resource reduced = *mine;
        reduced.as<S>().*list = items_only_in(mine->as<S>().*list, theirs->as<S>().*list);
        return json::value(write_resource(reduced));
    };
    switch (mine->kind()) {
        case Kind::security_group:
            return with(&SecurityGroup::rules);
        case Kind::route_table:
            return with(&RouteTable::routes);
        case Kind::prefix_list:
            return with(&PrefixList::cidrs);
        default:
            return write_resource(*mine);
    }
}

}  // namespace

std::pair<json::value, json::value> write_change(const Change& change) {
    return {write_side(change.before, change.after), write_side(change.after, change.before)};
}

std::optional<json::value> field_value(const Resource& resource, std::string_view name) {
    if (name == "id") return json::value(to_string(resource.id));
    if (name == "name") return json::value(resource.name);
    if (name == "description") return json::value(resource.description);
    if (name == "version") return json::value(resource.version);
    if (name == "project_id")
        return info(resource.kind()).in_project ? json::value(resource.project) : json::value();
    return std::visit(
        [&]<class S>(const S& spec) -> std::optional<json::value> {
            const auto* field = find_field(fields_of<S>(), name);
            if (!field || (field->flags & kInternal) != 0) return std::nullopt;
            return field->write(spec);
        },
        resource.spec);
}

bool has_field(Kind kind, std::string_view name) {
    Resource any;
    any.spec = make_spec(kind);
    return field_value(any, name).has_value();
}

void each_reference(const Resource& resource, const ReferenceVisitor& visit) {
    std::visit(
        [&]<class S>(const S& spec) { references_of_struct(fields_of<S>(), spec, "", visit); },
        resource.spec);
}

json::object request_schema(Kind kind, Operation operation) {
    json::object properties{{"name", Codec<std::string>::schema()},
                            {"description", Codec<std::string>::schema()},
                            {"tags", json::object{{"type", "object"}}}};
    json::array required;
    if (operation == Operation::create) properties["id"] = Codec<Uuid>::schema();
    std::visit(
        [&]<class S>(const S&) {
            for (const auto& field : fields_of<S>()) {
                if ((field.flags & (kInternal | kReadOnly)) != 0) continue;
                if (operation == Operation::patch && (field.flags & kImmutable) != 0) continue;
                properties[field.name] = field.schema();
                if (operation == Operation::create && (field.flags & kRequired) != 0)
                    required.emplace_back(field.name);
            }
        },
        make_spec(kind));
    json::object result{
        {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    if (!required.empty()) result["required"] = std::move(required);
    return result;
}

json::object response_schema(Kind kind) {
    json::object properties = request_schema(kind, Operation::create)["properties"].get_object();
    std::visit(
        [&]<class S>(const S&) {
            for (const auto& field : fields_of<S>())
                if ((field.flags & kReadOnly) != 0) properties[field.name] = field.schema();
        },
        make_spec(kind));
    properties["project_id"] = Codec<std::string>::schema();
    properties["created_at"] = string_schema("date-time");
    properties["updated_at"] = string_schema("date-time");
    properties["version"] = number_schema(1, std::numeric_limits<std::uint64_t>::max());
    properties["status"] = json::object{{"$ref", "#/components/schemas/status"}};
    return json::object{{"type", "object"}, {"properties", std::move(properties)}};
}

std::string timestamp(std::int64_t milliseconds) {
    const std::time_t seconds = milliseconds / 1000;
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[32];
    const auto length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    const auto rest = std::to_string(1000 + milliseconds % 1000).substr(1);
    return std::string(text, length) + "." + rest + "Z";
}

// --- Objects inside of objects -----------------------------------------------------------------

#define SLUICE_STRUCT_CODEC(T)                                                       \
    std::optional<T> Codec<T>::read(const json::value& value, const std::string& at, \
                                    Problems& problems) {                            \
        return read_struct(fields_of<T>(), value, at, problems);                     \
    }                                                                                \
    json::value Codec<T>::write(const T& value) {                                    \
        return write_struct(fields_of<T>(), value, false);                           \
    }                                                                                \
    json::value Codec<T>::schema() {                                                 \
        return struct_schema(fields_of<T>());                                        \
    }
SLUICE_STRUCT_CODEC(AllowedAddress)
SLUICE_STRUCT_CODEC(Rule)
SLUICE_STRUCT_CODEC(Route)
SLUICE_STRUCT_CODEC(VpcLimits)
SLUICE_STRUCT_CODEC(VpcTimeouts)
#undef SLUICE_STRUCT_CODEC

// Exactly one member says where a route leads; {"internet": true} or, as people write it,
// the bare word "internet" or "blackhole".
std::optional<RouteTarget> Codec<RouteTarget>::read(const json::value& value, const std::string& at,
                                                    Problems& problems) {
    RouteTarget target;
    if (value.is_string()) {
        target.internet = std::string_view(value.get_string()) == "internet";
        target.blackhole = std::string_view(value.get_string()) == "blackhole";
        if (target.internet || target.blackhole) return target;
        problems.push_back(
            {at, "must be internet, blackhole, {\"endpoint_id\": …} or {\"nat_gateway_id\": …}"});
        return std::nullopt;
    }
    if (value.is_object())
        if (value.get_object().contains("peering_id")) {
            problems.push_back({member_pointer(at, "peering_id"), "is not enforced by this release",
                                Error::Code::unsupported});
            return std::nullopt;
        }
    auto read = read_struct(fields_of<RouteTarget>(), value, at, problems);
    if (!read) return std::nullopt;
    const bool named[] = {read->endpoint_id.has_value(), read->nat_gateway_id.has_value(),
                          read->internet, read->blackhole};
    if (std::count(std::begin(named), std::end(named), true) != 1) {
        problems.push_back(
            {at, "must name exactly one of endpoint_id, nat_gateway_id, internet, blackhole"});
        return std::nullopt;
    }
    return read;
}
json::value Codec<RouteTarget>::write(const RouteTarget& value) {
    if (value.endpoint_id) return json::object{{"endpoint_id", to_string(value.endpoint_id->id)}};
    if (value.nat_gateway_id)
        return json::object{{"nat_gateway_id", to_string(value.nat_gateway_id->id)}};
    return json::object{{value.internet ? "internet" : "blackhole", true}};
}
json::value Codec<RouteTarget>::schema() {
    return struct_schema(fields_of<RouteTarget>());
}

}  // namespace sluice::model
