// SPDX-License-Identifier: Apache-2.0
// Lists, page by page: filters by field (repeated: any of them), in the order of creation.
#include <algorithm>
#include <charconv>
#include <map>

#include "controller/api/call.hpp"

namespace sluice::api {
namespace {

constexpr std::uint64_t kMostItems = 1000;
constexpr std::uint64_t kUsualItems = 100;

using Filters = std::map<std::string, std::vector<std::string>>;

// A scalar matches its text; a list, if one of its items does.
bool matches(const json::value& value, const std::vector<std::string>& wanted) {
    const auto is = [&](std::string_view text) {
        return std::find(wanted.begin(), wanted.end(), text) != wanted.end();
    };
    if (value.is_string()) return is(value.get_string());
    if (value.is_bool()) return is(value.get_bool() ? "true" : "false");
    if (value.is_uint64()) return is(std::to_string(value.get_uint64()));
    if (value.is_int64()) return is(std::to_string(value.get_int64()));
    if (value.is_null()) return is("null");
    if (value.is_array())
        return std::any_of(value.get_array().begin(), value.get_array().end(),
                           [&](const json::value& item) { return matches(item, wanted); });
    return false;
}

bool passes(const Call& call, const model::Resource& resource, const Filters& filters) {
    return std::all_of(filters.begin(), filters.end(), [&](const auto& filter) {
        if (filter.first == "state")
            return matches(json::value(to_string(call.service.status(resource).state)),
                           filter.second);
        return matches(*model::field_value(resource, filter.first), filter.second);
    });
}

}  // namespace

void list_resources(const CallPtr& call, const model::KindInfo& kind) {
    Filters filters;
    std::uint64_t after = 0;
    for (const auto& [name, value] : call->parameters) {
        if (name == "limit") continue;
        if (name == "page_token") {
            const auto [end, error] =
                std::from_chars(value.data(), value.data() + value.size(), after);
            if (error != std::errc{} || end != value.data() + value.size())
                return call->fail(400, "page_token is not one that a list has answered");
        } else if (name == "state" || model::has_field(kind.kind, name)) {
            filters[name].push_back(value);
        } else {
            return call->fail(
                400, "unknown parameter " + name + ": not a field of " + std::string(kind.path));
        }
    }
    const auto limit = call->number("limit", kUsualItems, 1, kMostItems);
    if (!limit) return;

    json::array items;
    json::value next_page = nullptr;
    std::uint64_t last = 0;
    const auto& all = call->service.state().all(kind.kind);
    for (auto one = all.upper_bound(after); one != all.end(); ++one) {
        const auto& resource = *one->second;
        if (!call->may_see(resource) || !passes(*call, resource, filters)) continue;
        if (items.size() == *limit) {
            next_page = std::to_string(last);
            break;
        }
        last = one->first;
        items.push_back(show(call->service, resource));
    }
    call->answer(
        200, json::object{{"items", std::move(items)}, {"next_page_token", std::move(next_page)}});
}

}  // namespace sluice::api
