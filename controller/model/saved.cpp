// SPDX-License-Identifier: Apache-2.0
#include "controller/model/saved.hpp"

#include <algorithm>

#include "controller/model/field_table.hpp"
#include "controller/model/items.hpp"

namespace sluice::model {
namespace {

// Calls back with a kind's list of parts, if it has one.
template <class S, class F>
void with_parts(S& spec, F use) {
    using Plain = std::remove_const_t<S>;
    if constexpr (std::is_same_v<Plain, SecurityGroup>) use(spec.rules);
    if constexpr (std::is_same_v<Plain, RouteTable>) use(spec.routes);
}
bool is_list_of_parts(std::string_view field) {
    return field == "rules" || field == "routes";
}

template <class T>
std::vector<std::uint64_t> numbers_in_order(const std::vector<T>& items) {
    std::vector<std::uint64_t> numbers;
    numbers.reserve(items.size());
    for (const T& item : items) numbers.push_back(item.number);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

template <class T>
void changed_parts(const std::vector<T>& before, const std::vector<T>& after,
                   PartChanges& changes) {
    for (const T& item : items_only_in(after, before))
        changes.put.emplace(item.number, Codec<T>::write(item));
    const auto kept = numbers_in_order(after);
    for (const T& item : before)
        if (!std::binary_search(kept.begin(), kept.end(), item.number))
            changes.removed.push_back(item.number);
}

template <class T>
bool load_parts(std::vector<T>& items, const json::object& spec, const Parts& parts,
                Problems& problems) {
    const auto* numbers = spec.if_contains("numbers");
    if (!numbers || !numbers->is_array()) return false;
    const bool is_inside = !items.empty();  // read with the other fields
    if (is_inside && items.size() != numbers->get_array().size()) return false;
    for (std::size_t i = 0; i < numbers->get_array().size(); ++i) {
        boost::system::error_code error;
        const auto number = numbers->get_array()[i].to_number<std::uint64_t>(error);
        if (error) return false;
        if (!is_inside) {
            const auto part = parts.find(number);
            if (part == parts.end()) return false;
            auto item = Codec<T>::read(part->second, "/" + std::to_string(i), problems);
            if (!item) return true;  // the problem says it
            items.push_back(*std::move(item));
        }
        items[i].number = number;
    }
    return true;
}

}  // namespace

json::object save(const Resource& resource) {
    json::object spec;
    std::visit(
        [&]<class S>(const S& source) {
            for (const auto& field : fields_of<S>())
                if (!is_list_of_parts(field.name)) spec[field.name] = field.write(source);
            with_parts(source, [&](const auto& parts) {
                json::array numbers;
                numbers.reserve(parts.size());
                for (const auto& part : parts) numbers.emplace_back(part.number);
                spec["numbers"] = std::move(numbers);
            });
        },
        resource.spec);
    if (std::holds_alternative<Vpc>(resource.spec) && resource.as<Vpc>().vni == Vni{0})
        spec.erase("vni");
    json::object tags;
    for (const auto& [key, value] : resource.tags) tags[key] = value;
    return json::object{{"name", resource.name},
                        {"description", resource.description},
                        {"tags", std::move(tags)},
                        {"created_at", resource.created_at},
                        {"updated_at", resource.updated_at},
                        {"spec", std::move(spec)}};
}

PartChanges save_parts(const Change& change) {
    PartChanges changes;
    std::visit(
        [&]<class S>(const S&) {
            static const S kNone{};
            const S& before = change.before ? change.before->as<S>() : kNone;
            const S& after = change.after ? change.after->as<S>() : kNone;
            with_parts(before, [&](const auto& old) {
                with_parts(after, [&](const auto& now) {
                    if constexpr (std::is_same_v<decltype(old), decltype(now)>)
                        changed_parts(old, now, changes);
                });
            });
        },
        change.either().spec);
    return changes;
}

Result<Resource> load(Kind kind, const json::object& saved, const Parts& parts) {
    Resource resource;
    resource.spec = make_spec(kind);
    Problems problems;
    const auto* spec = saved.if_contains("spec");
    const auto* created = saved.if_contains("created_at");
    const auto* updated = saved.if_contains("updated_at");
    if (!spec || !spec->is_object() || !created || !created->is_int64() || !updated ||
        !updated->is_int64())
        return Error{Error::Code::invalid, "a stored object lacks a member", {}};
    resource.created_at = created->get_int64();
    resource.updated_at = updated->get_int64();
    // Whatever an earlier release has admitted is loaded.
    const auto load_text = [&](std::string& target, const json::value& text) {
        if (text.is_string())
            target = std::string(text.get_string());
        else
            problems.push_back({"/", "a text is not a string"});
    };
    if (const auto* name = saved.if_contains("name")) load_text(resource.name, *name);
    if (const auto* text = saved.if_contains("description")) load_text(resource.description, *text);
    if (const auto* tags = saved.if_contains("tags"); tags && tags->is_object())
        for (const auto& tag : tags->get_object()) load_text(resource.tags[tag.key()], tag.value());
    bool is_numbered = true;
    std::visit(
        [&]<class S>(S& target) {
            for (const auto& field : fields_of<S>())
                if (const auto* value = spec->get_object().if_contains(field.name))
                    field.read(target, *value, member_pointer("", field.name), problems);
            with_parts(target, [&](auto& items) {
                is_numbered = load_parts(items, spec->get_object(), parts, problems);
            });
        },
        resource.spec);
    if (!is_numbered) return Error{Error::Code::invalid, "a stored object lacks its numbers", {}};
    if (!problems.empty())
        return Error{Error::Code::invalid,
                     "a stored object is malformed: " + problems.front().detail,
                     problems.front().pointer};
    return resource;
}

}  // namespace sluice::model
