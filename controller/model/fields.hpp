// SPDX-License-Identifier: Apache-2.0
// The declarative field tables of the API's kinds. One table per kind drives reading and
// merge patches (RFC 7396) with JSON pointers, writing, the references between resources,
// and the OpenAPI document.
//
// Pure functions over plain values; safe from any thread. Cost: linear in the input.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "controller/model/codec.hpp"

namespace sluice::model {

// How a kind appears in the API.
struct KindInfo {
    Kind kind;
    std::string_view path;     // "security-groups"
    std::string_view name;     // "security_group"
    std::string_view purpose;  // one sentence
    bool in_project;           // false: belongs to none, all may read and name it
    bool admin_only;           // who may write
    bool created_by_api;       // false: gateways, which appear by themselves
    // Fields of the contract that this release does not enforce: named, they are refused.
    std::span<const std::string_view> not_enforced;
};
const KindInfo& info(Kind kind);
std::span<const KindInfo> all_kinds();
const KindInfo* find_kind(std::string_view path);

enum class Operation : std::uint8_t { create, patch };

// Reads the members of `input` that belong to the caller into `resource`, which holds the
// defaults (create) or the present values (patch): name, description, tags and the kind's
// fields. `id` and `project_id` are the API's business and skipped. Adds a problem for
// each unknown, unenforced, read-only, immutable, admin-only, missing or malformed one;
// then `resource` is not to be used.
void read_fields(Resource& resource, const json::object& input, Operation operation, bool is_admin,
                 Problems& problems);
// The same for a rule that is posted by itself.
std::optional<Rule> read_rule(const json::value& input, Problems& problems);

// As the API shows it, without status.
json::object write_resource(const Resource& resource);
json::value write_rule(const Rule& rule);
// Both sides of a change as write_resource() shows them, for its record. Of the long lists
// (rules, routes, blocks) only the items that are not on the other side, too: a record costs
// what has changed, however much there is.
std::pair<json::value, json::value> write_change(const Change& change);

// One field as write_resource() shows it; nothing where the kind has no such field. The
// cheap way to filter a long list.
std::optional<json::value> field_value(const Resource& resource, std::string_view name);
bool has_field(Kind kind, std::string_view name);

// The kind's default values.
Spec make_spec(Kind kind);

// Calls back for each reference that a resource makes: to what, and by which member.
using ReferenceVisitor = std::function<void(Kind kind, const Uuid& id, const std::string& pointer)>;
void each_reference(const Resource& resource, const ReferenceVisitor& visit);

// JSON Schemas of the request and response bodies of a kind.
json::object request_schema(Kind kind, Operation operation);
json::object response_schema(Kind kind);

// "2026-01-31T12:00:00.000Z" (RFC 3339).
std::string timestamp(std::int64_t milliseconds);

}  // namespace sluice::model
