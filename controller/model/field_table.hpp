// SPDX-License-Identifier: Apache-2.0
// The rows of a field table, type-erased from member pointers. Private to the model.
#pragma once

#include <algorithm>

#include "controller/model/fields.hpp"

namespace sluice::model {

enum FieldFlag : unsigned {
    kRequired = 1,   // must be given on creation, cannot be cleared
    kImmutable = 2,  // only on creation
    kAdmin = 4,      // only an admin may set it
    kReadOnly = 8,   // shown, never accepted
    kInternal = 16,  // neither shown nor accepted; the store keeps it
};

template <class S>
struct Field {
    std::string_view name;
    unsigned flags;
    bool (*read)(S&, const json::value&, const std::string& at, Problems&);
    json::value (*write)(const S&);
    json::value (*schema)();
    bool (*refers)(const S&);  // false: `references` visits nothing
    void (*references)(const S&, const std::string& at, const ReferenceVisitor&);
};

// Whether a value may make references: a cheap look before pointers are built.
template <class T>
constexpr bool may_refer(const T&) {
    return false;
}
template <Kind K>
constexpr bool may_refer(const Ref<K>&) {
    return true;
}
inline bool may_refer(const Rule& value) {
    return value.remote_group_id.has_value() || value.remote_prefix_list_id.has_value();
}
inline bool may_refer(const RouteTarget& value) {
    return value.endpoint_id.has_value() || value.nat_gateway_id.has_value();
}
inline bool may_refer(const Route& value) {
    return may_refer(value.next_hop);
}
template <class T>
bool may_refer(const std::optional<T>& value) {
    return value && may_refer(*value);
}
template <class T>
bool may_refer(const std::vector<T>& value) {
    return std::any_of(value.begin(), value.end(), [](const T& item) { return may_refer(item); });
}

// What references a value makes, whatever it is nested in. A struct of several fields is
// asked through `references_of_struct`, by the overloads below.
template <class T>
void visit_references(const T&, const std::string&, const ReferenceVisitor&) {}
template <Kind K>
void visit_references(const Ref<K>& value, const std::string& at, const ReferenceVisitor& visit) {
    visit(K, value.id, at);
}
void visit_references(const Rule& value, const std::string& at, const ReferenceVisitor& visit);
void visit_references(const RouteTarget& value, const std::string& at,
                      const ReferenceVisitor& visit);
void visit_references(const Route& value, const std::string& at, const ReferenceVisitor& visit);
template <class T>
void visit_references(const std::optional<T>& value, const std::string& at,
                      const ReferenceVisitor& visit) {
    if (value) visit_references(*value, at, visit);
}
template <class T>
void visit_references(const std::vector<T>& value, const std::string& at,
                      const ReferenceVisitor& visit) {
    for (std::size_t i = 0; i < value.size(); ++i)
        if (may_refer(value[i])) visit_references(value[i], at + "/" + std::to_string(i), visit);
}

template <class Member>
struct MemberOf;
template <class S, class T>
struct MemberOf<T S::*> {
    using Struct = S;
    using Type = T;
};

// The tables (field_tables.cpp).
template <class S>
std::span<const Field<S>> fields_of();
template <class S>
bool merge_struct(std::span<const Field<S>> fields, S& target, const json::value& value,
                  const std::string& at, Problems& problems);

// Objects that a merge patch merges member by member (RFC 7396); any other is replaced.
template <>
std::span<const Field<VpcLimits>> fields_of<VpcLimits>();
template <>
std::span<const Field<VpcTimeouts>> fields_of<VpcTimeouts>();
template <class T>
constexpr bool kMerged = std::is_same_v<T, VpcLimits> || std::is_same_v<T, VpcTimeouts>;

template <auto Member>
constexpr auto field(std::string_view name, unsigned flags = 0) {
    using S = typename MemberOf<decltype(Member)>::Struct;
    using T = typename MemberOf<decltype(Member)>::Type;
    return Field<S>{
        name,
        flags,
        [](S& target, const json::value& value, const std::string& at, Problems& problems) {
            if (value.is_null()) {  // RFC 7396: back to the default
                target.*Member = S{}.*Member;
                return true;
            }
            if constexpr (kMerged<T>) {
                return merge_struct(fields_of<T>(), target.*Member, value, at, problems);
            } else {
                auto read = Codec<T>::read(value, at, problems);
                if (!read) return false;
                target.*Member = std::move(*read);
                return true;
            }
        },
        [](const S& source) { return Codec<T>::write(source.*Member); },
        [] { return Codec<T>::schema(); },
        [](const S& source) { return may_refer(source.*Member); },
        [](const S& source, const std::string& at, const ReferenceVisitor& visit) {
            visit_references(source.*Member, at, visit);
        }};
}

template <class S>
const Field<S>* find_field(std::span<const Field<S>> fields, std::string_view name) {
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field<S>& field) { return field.name == name; });
    return found == fields.end() ? nullptr : &*found;
}

// Reads those members that are given, into an object that is a value inside of another one: every
// member must be known.
template <class S>
bool merge_struct(std::span<const Field<S>> fields, S& target, const json::value& value,
                  const std::string& at, Problems& problems) {
    if (!value.is_object()) {
        problems.push_back({at, "must be an object"});
        return false;
    }
    const std::size_t before = problems.size();
    for (const auto& member : value.get_object()) {
        const std::string_view name(member.key());
        const auto* found = find_field(fields, name);
        const auto pointer = member_pointer(at, name);
        if (!found || (found->flags & kInternal) != 0)
            problems.push_back({pointer, "is not a known field"});
        else if ((found->flags & kRequired) != 0 && member.value().is_null())
            problems.push_back({pointer, "is required"});
        else
            found->read(target, member.value(), pointer, problems);
    }
    return problems.size() == before;
}

// Reads all of it.
template <class S>
std::optional<S> read_struct(std::span<const Field<S>> fields, const json::value& value,
                             const std::string& at, Problems& problems) {
    S result{};
    const std::size_t before = problems.size();
    merge_struct(fields, result, value, at, problems);
    if (!value.is_object()) return std::nullopt;
    for (const auto& field : fields)
        if ((field.flags & kRequired) != 0 && !value.get_object().contains(field.name))
            problems.push_back({member_pointer(at, field.name), "is required"});
    if (problems.size() != before) return std::nullopt;
    return result;
}

template <class S>
json::object write_struct(std::span<const Field<S>> fields, const S& source, bool with_internal) {
    json::object result;
    for (const auto& field : fields)
        if (with_internal || (field.flags & kInternal) == 0)
            result.emplace(field.name, field.write(source));
    return result;
}

template <class S>
void references_of_struct(std::span<const Field<S>> fields, const S& source, const std::string& at,
                          const ReferenceVisitor& visit) {
    for (const auto& field : fields)
        if (field.refers(source)) field.references(source, member_pointer(at, field.name), visit);
}

template <class S>
json::object struct_schema(std::span<const Field<S>> fields) {
    json::object properties;
    json::array required;
    for (const auto& field : fields) {
        if ((field.flags & kInternal) != 0) continue;
        properties[field.name] = field.schema();
        if ((field.flags & kRequired) != 0) required.emplace_back(field.name);
    }
    json::object result{
        {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    if (!required.empty()) result["required"] = std::move(required);
    return result;
}

}  // namespace sluice::model
