// SPDX-License-Identifier: Apache-2.0
// Who changed what: the records that the store keeps with each change.
#include <boost/json/parse.hpp>
#include <charconv>

#include "controller/api/call.hpp"

namespace sluice::api {
namespace {

json::value as_json(const std::string& text) {
    boost::system::error_code error;
    auto value = text.empty() ? json::value() : json::parse(text, error);
    return error ? json::value() : value;
}

}  // namespace

void list_audit(const CallPtr& call) {
    store::AuditFilter filter;
    if (!call->is_admin()) filter.project = call->caller.project;
    for (const auto& [name, value] : call->parameters) {
        if (name == "limit") continue;
        if (name == "kind") {
            filter.kinds.push_back(value);
        } else if (name == "object_id") {
            filter.object_ids.push_back(value);
        } else if (name == "action") {
            filter.actions.push_back(value);
        } else if (name == "project_id") {
            if (!call->is_admin() && value != call->caller.project)
                return call->fail(404, "there is no project " + value);
            filter.project = value;
        } else if (name == "page_token") {
            const auto [end, error] =
                std::from_chars(value.data(), value.data() + value.size(), filter.after_number);
            if (error != std::errc{} || end != value.data() + value.size())
                return call->fail(400, "page_token is not one that a list has answered");
        } else {
            return call->fail(400, "unknown parameter " + name);
        }
    }
    const auto limit = call->number("limit", 100, 1, 1000);
    if (!limit) return;
    filter.limit = *limit + 1;
    const auto records = call->service.store().audit(filter);
    if (!records) return call->fail(records.error());

    json::array items;
    json::value next_page = nullptr;
    for (const auto& record : *records) {
        if (items.size() == *limit) {
            next_page = std::to_string((*records)[*limit - 1].number);
            break;
        }
        items.push_back(json::object{
            {"number", record.number},
            {"time", model::timestamp(record.time)},
            {"project_id", record.project.empty() ? json::value() : json::value(record.project)},
            {"actor", record.actor},
            {"request_id", record.request_id},
            {"action", record.action},
            {"kind", record.kind},
            {"object_id", record.object_id},
            {"object_name", record.object_name},
            {"before", as_json(record.before)},
            {"after", as_json(record.after)}});
    }
    call->answer(
        200, json::object{{"items", std::move(items)}, {"next_page_token", std::move(next_page)}});
}

}  // namespace sluice::api
