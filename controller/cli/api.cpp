// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/api.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace sluice::cli {
namespace {

http::Origin origin_of(const std::string& url) {
    auto origin = http::parse_origin(url);
    if (!origin)
        throw Failure{usage, fmt::format("{} is no API address: {}", url, origin.error().message)};
    return *origin;
}

std::string text_of(const json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string lower_first(std::string text) {
    if (!text.empty()) text.front() = static_cast<char>(std::tolower(text.front()));
    return text;
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
    std::string lines;
    std::size_t count = 0;
    bool said = false;  // the detail is that of one of the errors
    if (const auto* errors = problem.if_contains("errors"); errors && errors->is_array())
        for (const auto& error : errors->get_array()) {
            if (!error.is_object()) continue;
            const auto pointer = text_of(error.get_object(), "pointer");
            const auto line =
                (pointer.empty() ? "" : pointer + " ") + text_of(error.get_object(), "detail");
            said |= line == detail;
            lines += "\n  " + line;
            ++count;
        }
    if (said && count > 1) result = lower_first(title);
    if (!said || count > 1) result += lines;
    if (const auto request = text_of(problem, "request_id"); !request.empty() && status >= 500)
        result += "\n  request " + request;
    return result;
}

Api::Api(const std::string& url, std::string token, std::chrono::seconds patience)
    : client_(origin_of(url), patience), token_(std::move(token)) {}

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

}  // namespace sluice::cli
