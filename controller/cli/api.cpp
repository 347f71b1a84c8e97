// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/api.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>

#include "controller/cli/text.hpp"

namespace sluice::cli {
namespace {

// Longer than any ?wait= that the command line offers.
constexpr auto kTimeout = std::chrono::seconds(330);

http::Origin origin_of(const std::string& url) {
    auto origin = http::parse_origin(url);
    if (!origin)
        throw Failure{usage, fmt::format("{} is no API address: {}", url, origin.error().message)};
    return *origin;
}

bool is_uuid(std::string_view text) {
    if (text.size() != 36) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash != (text[i] == '-')) return false;
        if (!dash && std::string_view("0123456789abcdefABCDEF").find(text[i]) == text.npos)
            return false;
    }
    return true;
}

std::string text_of(const json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

void add_query(std::string& query, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    if (!query.empty()) query += '&';
    query += http::percent_encode(name) + "=" + http::percent_encode(value);
}

std::string describe_problem(unsigned status, const std::string& body) {
    boost::system::error_code failed;
    const auto parsed = json::parse(body, failed);
    if (failed || !parsed.is_object()) return fmt::format("status {}: {}", status, body);
    const auto& problem = parsed.get_object();
    const auto detail = text_of(problem, "detail");
    const auto title = text_of(problem, "title");
    std::string result = detail.empty() ? fmt::format("{} ({})", title, status) : detail;
    if (const auto* errors = problem.if_contains("errors"); errors && errors->is_array())
        for (const auto& error : errors->get_array()) {
            if (!error.is_object()) continue;
            const auto pointer = text_of(error.get_object(), "pointer");
            result += fmt::format("\n  {}: {}", pointer.empty() ? "the body" : pointer,
                                  text_of(error.get_object(), "detail"));
        }
    if (const auto request = text_of(problem, "request_id"); !request.empty() && status >= 500)
        result += "\n  request " + request;
    return result;
}

Api::Api(const std::string& url, std::string token)
    : client_(origin_of(url), kTimeout), token_(std::move(token)) {}

json::value Api::call(std::string_view method, const std::string& path, const std::string& query,
                      const json::value* body) {
    http::Request request;
    request.method = std::string(method);
    request.path = path;
    request.query = query;
    request.headers.push_back({"Accept", "application/json"});
    if (!token_.empty()) request.headers.push_back({"Authorization", "Bearer " + token_});
    if (body) {
        request.headers.push_back({"Content-Type", method == "PATCH"
                                                       ? "application/merge-patch+json"
                                                       : "application/json"});
        request.body = json::serialize(*body);
    }
    const auto response = client_.send(request);
    if (!response)
        throw Failure{unreachable,
                      fmt::format("the controller does not answer: {}\n  (its address is --api or "
                                  "SLUICE_API)",
                                  response.error().message)};
    if (response->status == 401)
        throw Failure{refused, describe_problem(401, response->body) +
                                   "\n  (the token is --token or SLUICE_TOKEN)"};
    if (response->status >= 300)
        throw Failure{refused, describe_problem(response->status, response->body)};
    if (response->body.empty()) return nullptr;
    boost::system::error_code failed;
    auto parsed = json::parse(response->body, failed);
    if (failed) throw Failure{unreachable, "the answer is not JSON: is this the controller's API?"};
    return parsed;
}

json::array Api::list(const std::string& path, const std::string& query) {
    json::array result;
    std::string token;
    do {
        std::string page = query;
        add_query(page, "page_token", token);
        const auto answer = call("GET", path, page);
        token.clear();
        if (!answer.is_object()) break;
        if (const auto* items = answer.get_object().if_contains("items");
            items && items->is_array())
            result.insert(result.end(), items->get_array().begin(), items->get_array().end());
        token = text_of(answer.get_object(), "next_page_token");
    } while (!token.empty());
    return result;
}

std::string Api::resolve(const KindInfo& kind, const std::string& name_or_id) {
    if (is_uuid(name_or_id)) return name_or_id;
    // The API takes an absent filter for "any"; an empty name must not come to that.
    if (name_or_id.empty())
        throw Failure{refused, fmt::format("the name of the {} is empty", kind.command)};
    std::string query;
    add_query(query, "name", name_or_id);
    const auto found = list("/v1/" + std::string(kind.path), query);
    if (found.empty())
        throw Failure{refused, fmt::format("no {} is named {}", kind.command, name_or_id)};
    if (found.size() > 1) {
        std::string ids;
        for (const auto& item : found) ids += "\n  " + text_of(item.as_object(), "id");
        throw Failure{refused, fmt::format("{} {}s are named {}; take the id:{}", found.size(),
                                           kind.command, name_or_id, ids)};
    }
    return text_of(found.front().as_object(), "id");
}

std::string Api::name_of(const KindInfo& kind, const std::string& id) {
    auto [known, added] = names_.try_emplace(kind.command);
    if (added)
        for (const auto& item : list("/v1/" + std::string(kind.path), "limit=1000"))
            known->second[text_of(item.as_object(), "id")] = text_of(item.as_object(), "name");
    const auto found = known->second.find(id);
    return found == known->second.end() || found->second.empty() ? id : found->second;
}

}  // namespace sluice::cli
