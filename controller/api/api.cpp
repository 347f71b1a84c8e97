// SPDX-License-Identifier: Apache-2.0
#include "controller/api/api.hpp"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "controller/api/call.hpp"
#include "controller/api/json_input.hpp"

namespace sluice::api {
namespace {

// Kinds and features of the API that later releases bring.
constexpr std::array<std::string_view, 7> kLaterKinds = {
    "load-balancers", "peerings", "gpu-servers", "traces", "quotas", "batch", "watch"};
constexpr std::array<std::string_view, 2> kLaterHeaders = {"If-Match", "Idempotency-Key"};

template <class Names>
bool is_one_of(std::string_view name, const Names& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<std::vector<std::string>> split_path(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
        if (path.front() != '/') return std::nullopt;
        path.remove_prefix(1);
        const auto end = std::min(path.find('/'), path.size());
        auto part = http::percent_decode(path.substr(0, end));
        if (!part || (part->empty() && end != path.size())) return std::nullopt;
        if (!part->empty()) parts.push_back(std::move(*part));  // a slash at the end is none
        path.remove_prefix(end);
    }
    return parts;
}

void method_not_allowed(const CallPtr& call, const char* allowed) {
    auto response = problem(405, "allowed: " + std::string(allowed), call->request_id);
    response.headers.push_back({"Allow", allowed});
    call->answer(std::move(response));
}

void route_kind(const CallPtr& call, const model::KindInfo& kind) {
    const auto& path = call->path;
    const auto& method = call->request.method;
    const bool writes = method != "GET";
    if (writes && kind.admin_only && !call->is_admin())
        return call->fail(403, "only an admin may write " + std::string(kind.path));
    if (path.size() == 1) {
        if (method == "GET") return list_resources(call, kind);
        if (method == "POST" && kind.created_by_api) return create_resource(call, kind);
        return method_not_allowed(call, kind.created_by_api ? "GET, POST" : "GET");
    }
    if (path.size() == 2) {
        if (method == "GET") return get_resource(call, kind, path[1]);
        if (method == "PATCH") return patch_resource(call, kind, path[1]);
        if (method == "DELETE" && kind.created_by_api) return delete_resource(call, kind, path[1]);
        return method_not_allowed(call, kind.created_by_api ? "GET, PATCH, DELETE" : "GET, PATCH");
    }
    if (kind.kind == model::Kind::security_group && path[2] == "rules") {
        if (path.size() == 3)
            return method == "POST" ? create_rule(call, path[1]) : method_not_allowed(call, "POST");
        if (path.size() == 4)
            return method == "DELETE" ? delete_rule(call, path[1], path[3])
                                      : method_not_allowed(call, "DELETE");
    }
    call->fail(404, "there is nothing at " + call->request.path);
}

void route(const CallPtr& call) {
    const auto& path = call->path;
    const auto& method = call->request.method;
    const auto only = [&](const char* allowed, void (*handler)(const CallPtr&)) {
        if (path.size() != 1) return call->fail(404, "there is nothing at " + call->request.path);
        if (method != allowed) return method_not_allowed(call, allowed);
        handler(call);
    };
    for (const auto name : kLaterHeaders)
        if (!call->request.header(name).empty())
            return call->fail(501, std::string(name) + " is not supported by this release");
    if (call->parameter("dry_run"))
        return call->fail(501, "dry_run is not supported by this release");
    if (path.empty()) return call->fail(404, "there is nothing at " + call->request.path);
    if (is_one_of(path[0], kLaterKinds))
        return call->fail(501, path[0] + " are not supported by this release");
    if (path[0] == "explain") return only("POST", explain);
    if (path[0] == "flows") return only("GET", list_flows);
    if (path[0] == "drops") return only("GET", list_drops);
    if (path[0] == "limits") return only("GET", list_limits);
    if (path[0] == "audit") return only("GET", list_audit);
    const auto* kind = model::find_kind(path[0]);
    if (!kind) return call->fail(404, "there is no kind " + path[0]);
    const bool writes = method != "GET";
    if (writes && call->caller.role != Role::admin && call->caller.role != Role::member)
        return call->fail(
            403, "a " + std::string(to_string(call->caller.role)) + " token may only read");
    route_kind(call, *kind);
}

}  // namespace

void Call::answer(http::Response response) {
    if (!respond) return;
    response.headers.push_back({"X-Request-Id", request_id});
    std::exchange(respond, nullptr)(std::move(response));
}

void Call::answer(unsigned status, const json::value& content) {
    answer(http::Response{status, "application/json", {}, json::serialize(content)});
}

std::optional<json::object> Call::body() {
    auto parsed = parse_body(request.body);
    if (!parsed) {
        fail(400, parsed.error().message);
        return std::nullopt;
    }
    json::value value = *std::move(parsed);
    if (!value.is_object()) {
        fail(422, "the body must be an object");
        return std::nullopt;
    }
    return std::move(value.get_object());
}

bool Call::only_parameters(std::initializer_list<std::string_view> known) {
    for (const auto& [name, value] : parameters)
        if (!is_one_of(name, known)) {
            fail(400, "unknown parameter " + name);
            return false;
        }
    return true;
}

const std::string* Call::parameter(std::string_view name) const {
    const std::string* found = nullptr;
    for (const auto& [key, value] : parameters)
        if (key == name) found = &value;
    return found;
}

std::optional<std::uint64_t> Call::number(std::string_view name, std::uint64_t otherwise,
                                          std::uint64_t least, std::uint64_t most) {
    const auto* text = parameter(name);
    if (!text) return otherwise;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size() || value < least ||
        value > most) {
        fail(400, std::string(name) + " must be a whole number from " + std::to_string(least) +
                      " to " + std::to_string(most));
        return std::nullopt;
    }
    return value;
}

// Whether a page in some browser of this machine made it ask: only browsers send an Origin, and a
// name that somebody else gave to this address (DNS rebinding) is not the loopback's.
bool is_browsers(const http::Request& request) {
    auto host = request.header("Host");
    host = host.substr(0, host.starts_with('[') ? host.find(']') + 1 : host.find(':'));
    const bool number = host.find_first_not_of("0123456789.") == std::string_view::npos;
    const bool loopback = host.empty() || host == "localhost" || host == "[::1]" ||
                          (number && host.starts_with("127."));
    return !loopback || !request.header("Origin").empty();
}

struct Api::Impl {
    Service& service;
    Tokens tokens;
    std::string openapi = json::serialize(openapi_document());

    [[nodiscard]] const Token* caller(const http::Request& request) const {
        constexpr std::string_view scheme = "Bearer ";
        const auto header = request.header("Authorization");
        return header.starts_with(scheme) ? tokens.find(header.substr(scheme.size())) : nullptr;
    }
    static http::Response unknown(const http::Request& request, const std::string& request_id) {
        const bool sent = request.header("Authorization").starts_with("Bearer ");
        auto response = problem(401,
                                sent ? "this token is unknown; send one of the file that the "
                                       "controller's api.tokens names (SIGHUP: it is read again)"
                                     : "send Authorization: Bearer TOKEN",
                                request_id);
        response.headers.push_back({"WWW-Authenticate", "Bearer"});
        return response;
    }
    // Why a request is not listened to, by its head.
    [[nodiscard]] std::optional<http::Response> refusal(const http::Request& head,
                                                        const std::string& request_id) const {
        if (tokens.required())
            return caller(head) ? std::nullopt : std::optional(unknown(head, request_id));
        if (!is_browsers(head)) return std::nullopt;
        return problem(403,
                       "without tokens the API answers programs of this machine, not browsers (an "
                       "Origin header, or a Host that is not the loopback); configure tokens",
                       request_id);
    }
};

Api::Api(Service& service, Tokens tokens) : impl_(new Impl{service, std::move(tokens)}) {}
Api::~Api() = default;

void Api::set_tokens(Tokens tokens) {
    impl_->tokens = std::move(tokens);
}

std::optional<http::Response> Api::admit(const http::Request& head) const {
    auto request_id = model::to_string(model::random_uuid());
    auto response = impl_->refusal(head, request_id);
    if (response) response->headers.push_back({"X-Request-Id", std::move(request_id)});
    return response;
}

void Api::handle(http::Request request, http::Respond respond) {
    const auto call =
        std::make_shared<Call>(impl_->service, std::move(request), std::move(respond));
    call->request_id = model::to_string(model::random_uuid());

    auto path = split_path(call->request.path);
    auto parameters = http::parse_query(call->request.query);
    if (!path || !parameters) return call->fail(400, "the request's target is malformed");
    const auto is_text = [](const auto& all, const auto& of) {
        return std::all_of(all.begin(), all.end(), of);
    };
    if (!is_text(*path, [](const auto& part) { return http::is_utf8(part); }) ||
        !is_text(*parameters, [](const auto& pair) {
            return http::is_utf8(pair.first) && http::is_utf8(pair.second);
        }))
        return call->fail(400, "the request's target is not UTF-8");
    if (path->empty() || path->front() != "v1")
        return call->fail(404, "there is nothing at " + call->request.path);
    path->erase(path->begin());
    call->path = std::move(*path);
    call->parameters = std::move(*parameters);

    // Once more after admit(): tokens may have changed while the body came.
    if (auto refusal = impl_->refusal(call->request, call->request_id))
        return call->answer(std::move(*refusal));
    call->caller = impl_->tokens.required() ? *impl_->caller(call->request)
                                            : Token{{}, "local", {}, Role::admin};
    if (call->path == std::vector<std::string>{"openapi.json"}) {
        if (call->request.method != "GET") return method_not_allowed(call, "GET");
        return call->answer(http::Response{200, "application/json", {}, impl_->openapi});
    }
    route(call);
}

http::Response Api::refuse(unsigned status, const std::string& detail) {
    return problem(status, detail, model::to_string(model::random_uuid()));
}

http::Limits Api::limits() {
    return {};
}

}  // namespace sluice::api
