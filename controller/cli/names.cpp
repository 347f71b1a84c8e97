// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "controller/cli/table.hpp"

namespace sluice::cli {
namespace {

bool is_uuid(std::string_view text) {
    if (text.size() != 36) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash != (text[i] == '-')) return false;
        if (!dash && std::string_view("0123456789abcdefABCDEF").find(text[i]) == std::string::npos)
            return false;
    }
    return true;
}

std::string path_of(const KindInfo& kind) {
    return "/v1/" + std::string(kind.path);
}

std::string text_of(const json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

void Names::look_in(const std::string& vpc) {
    if (!vpc.empty()) vpc_ = resolve(*find_kind("vpc"), vpc);
}

void Names::prefer_vpc_of(const KindInfo& kind, const std::string& id) {
    if (about_kind_ || !in_vpc(kind)) return;
    about_kind_ = &kind;
    about_id_ = id;
}

std::string Names::resolve(const KindInfo& kind, const std::string& name_or_id) {
    if (is_uuid(name_or_id)) return name_or_id;
    // The API takes an absent filter for "any"; an empty name must not come to that.
    if (name_or_id.empty())
        throw Failure{refused, fmt::format("the name of the {} is empty", kind.command)};
    const bool scoped = in_vpc(kind) && kind.command != "vpc";
    auto found = named(kind, name_or_id, scoped ? vpc_ : std::string());
    // A name may hold a slash itself, so it is looked for as it is first.
    if (const auto slash = name_or_id.find('/');
        found.empty() && scoped && slash != 0 && slash < name_or_id.size() - 1) {
        const auto vpc = resolve(*find_kind("vpc"), name_or_id.substr(0, slash));
        if (!vpc_.empty() && vpc != vpc_)
            throw Failure{usage, fmt::format("{} is not in the VPC that --vpc says", name_or_id)};
        found = named(kind, name_or_id.substr(slash + 1), vpc);
    }
    if (found.size() > 1 && scoped && about_kind_) {
        const auto vpc = vpc_of(*about_kind_, object(*about_kind_, about_id_));
        json::array preferred;
        for (const auto& item : found)
            if (vpc_of(kind, item.as_object()) == vpc) preferred.push_back(item);
        if (!preferred.empty()) found = std::move(preferred);
    }
    if (found.empty())
        throw Failure{refused, fmt::format("no {} is named {}{}", kind.command, name_or_id,
                                           scoped && !vpc_.empty()
                                               ? " in VPC " + name_of(*find_kind("vpc"), vpc_)
                                               : "")};
    if (found.size() > 1) throw Failure{refused, ambiguous(kind, name_or_id, found)};
    return text_of(found.front().as_object(), "id");
}

json::array Names::named(const KindInfo& kind, const std::string& name, const std::string& vpc) {
    std::string query;
    add_query(query, "name", name);
    const bool direct = !vpc.empty() && find_field(kind, "vpc_id");
    if (direct) add_query(query, "vpc_id", vpc);
    auto found = api_.list(path_of(kind), query);
    if (vpc.empty() || direct) return found;
    json::array inside;
    for (const auto& item : found)
        if (vpc_of(kind, item.as_object()) == vpc) inside.push_back(item);
    return inside;
}

std::string Names::ambiguous(const KindInfo& kind, const std::string& name,
                             const json::array& found) {
    const auto& vpcs = *find_kind("vpc");
    const bool scoped = in_vpc(kind) && kind.command != "vpc";
    std::vector<std::vector<std::string>> rows;
    bool projects = false;
    bool several_vpcs = false;
    std::string first_vpc;
    for (const auto& item : found) {
        const auto& candidate = item.as_object();
        const auto vpc = scoped ? vpc_of(kind, candidate) : std::string();
        if (rows.empty()) first_vpc = vpc;
        several_vpcs |= vpc != first_vpc;
        projects |=
            text_of(candidate, "project_id") != text_of(found.front().as_object(), "project_id");
        rows.push_back({"  " + text_of(candidate, "id"), text_of(candidate, "name")});
        if (scoped) rows.back().push_back(vpc.empty() ? "-" : name_of(vpcs, vpc));
        rows.back().push_back(text_of(candidate, "project_id"));
    }
    std::vector<std::string> head{"  ID", "NAME"};
    if (scoped) head.emplace_back("VPC");
    head.emplace_back("PROJECT");
    if (!projects) {
        head.pop_back();
        for (auto& row : rows) row.pop_back();
    }
    auto table = render_table({head, rows});
    table.pop_back();
    return fmt::format(
        "{} {}s are named {}: {}\n{}", found.size(), kind.command, name,
        several_vpcs ? "say which by --vpc NAME, as VPC/NAME, or by its id" : "say which by its id",
        table);
}

std::string Names::name_of(const KindInfo& kind, const std::string& id) {
    const auto& all = list_all(kind);
    const auto found = all.find(id);
    const auto name = found == all.end() ? std::string() : text_of(found->second, "name");
    return name.empty() ? id : name;
}

std::string Names::vpc_of(const KindInfo& kind, const json::object& item) {
    if (kind.command == "vpc") return text_of(item, "id");
    const auto* field = way_to_vpc(kind);
    auto id = field ? text_of(item, field->name) : std::string();
    if (id.empty() || field->refers_to == "vpc") return id;
    const auto& next = *find_kind(field->refers_to);
    return vpc_of(next, object(next, id));
}

json::array Names::inside(const KindInfo& kind, json::array items) {
    if (vpc_.empty() || !in_vpc(kind)) return items;
    // One listing of what leads to the VPC, not a question for each item.
    for (const auto* field = way_to_vpc(kind); field && field->refers_to != "vpc";
         field = way_to_vpc(*find_kind(field->refers_to)))
        list_all(*find_kind(field->refers_to));
    json::array result;
    for (auto& item : items)
        if (vpc_of(kind, item.as_object()) == vpc_) result.push_back(std::move(item));
    return result;
}

const json::object& Names::object(const KindInfo& kind, const std::string& id) {
    auto& known = known_[kind.command];
    if (const auto found = known.objects.find(id); found != known.objects.end())
        return found->second;
    return known.objects[id] = api_.call("GET", path_of(kind) + "/" + id).as_object();
}

const Names::Objects& Names::list_all(const KindInfo& kind) {
    auto& known = known_[kind.command];
    if (!known.all)
        for (auto& item : api_.list(path_of(kind), "limit=1000"))
            known.objects[text_of(item.as_object(), "id")] = std::move(item.as_object());
    known.all = true;
    return known.objects;
}

}  // namespace sluice::cli
