// SPDX-License-Identifier: Apache-2.0
#include "controller/api/problem.hpp"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>

namespace sluice::api {
namespace {

namespace json = boost::json;

struct Kind {
    unsigned status;
    std::string_view type;
    std::string_view title;
};
constexpr std::array<Kind, 16> kKinds{{
    {400, "bad-request", "The request is malformed"},
    {401, "unauthorized", "A valid token is required"},
    {403, "forbidden", "Not permitted"},
    {404, "not-found", "There is no such object"},
    {405, "method-not-allowed", "The method is not allowed here"},
    {408, "timeout", "The request took too long"},
    {409, "conflict", "The present state does not permit this"},
    {412, "precondition-failed", "The object has changed"},
    {413, "too-large", "The body is too large"},
    {415, "media-type", "The media type is not understood"},
    {422, "validation", "The request is not valid"},
    {431, "header-too-large", "The header is too large"},
    {500, "internal", "The controller failed"},
    {501, "not-implemented", "This release does not have this feature"},
    {502, "gateway", "A gateway did not answer as it should"},
    {503, "unavailable", "The controller cannot do this now"},
}};

unsigned status_of(Error::Code code) {
    switch (code) {
        case Error::Code::invalid:
        case Error::Code::unsupported:
            return 422;
        case Error::Code::conflict:
        case Error::Code::exhausted:
            return 409;
        case Error::Code::not_found:
            return 404;
        case Error::Code::unavailable:
            return 503;
        case Error::Code::read_only:
            return 403;
    }
    return 500;
}

}  // namespace

http::Response problem(unsigned status, std::string_view detail, const std::string& request_id,
                       const model::Problems& errors) {
    const auto* kind = std::find_if(kKinds.begin(), kKinds.end(),
                                    [&](const Kind& known) { return known.status == status; });
    if (kind == kKinds.end()) kind = kKinds.begin() + 12;
    json::object document{{"type", "/problems/" + std::string(kind->type)},
                          {"title", kind->title},
                          {"status", status},
                          {"detail", detail}};
    if (!errors.empty()) {
        json::array list;
        for (const auto& error : errors)
            list.push_back(json::object{{"pointer", error.pointer}, {"detail", error.detail}});
        document["errors"] = std::move(list);
    }
    document["request_id"] = request_id;
    http::Response response;
    response.status = status;
    response.content_type = "application/problem+json";
    response.body = json::serialize(document);
    return response;
}

http::Response problem_of(const model::Problems& errors, const std::string& request_id) {
    unsigned status = 0;
    const auto rank = [](unsigned value) { return value == 422 ? 1000U : 1000U - value; };
    for (const auto& error : errors) {
        const auto candidate = status_of(error.code);
        if (status == 0 || rank(candidate) > rank(status)) status = candidate;
    }
    const auto& first = *std::find_if(errors.begin(), errors.end(), [&](const auto& error) {
        return status_of(error.code) == status;
    });
    const auto detail = first.pointer.empty() ? first.detail : first.pointer + " " + first.detail;
    return problem(status, detail, request_id, errors);
}

http::Response problem_of(const Error& error, const std::string& request_id) {
    return problem(status_of(error.code), error.message, request_id);
}

}  // namespace sluice::api
