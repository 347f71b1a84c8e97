// SPDX-License-Identifier: Apache-2.0
// One request on its way through the API, and the handlers it may reach. Private to it.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "controller/api/problem.hpp"
#include "controller/api/service.hpp"
#include "controller/api/tokens.hpp"
#include "controller/model/fields.hpp"
#include "dataplane/http/server.hpp"

namespace sluice::api {

namespace json = boost::json;
using Parameters = std::vector<std::pair<std::string, std::string>>;

// Shared by whatever answers it in the end; answering twice does nothing.
struct Call : std::enable_shared_from_this<Call> {
    Call(Service& served, http::Request wanted, http::Respond answer)
        : service(served), request(std::move(wanted)), respond(std::move(answer)) {}

    Service& service;
    http::Request request;
    http::Respond respond;
    std::string request_id;
    Token caller;
    std::vector<std::string> path;  // after /v1, decoded
    Parameters parameters;

    [[nodiscard]] bool is_admin() const { return caller.role == Role::admin; }
    [[nodiscard]] model::Caller as_caller() const { return {caller.project, is_admin()}; }
    [[nodiscard]] Actor actor() const {
        return {caller.name + " (" + std::string(to_string(caller.role)) + ")", request_id};
    }
    // Whether the caller may know of it at all.
    [[nodiscard]] bool may_see(const model::Resource& resource) const {
        return is_admin() || !model::info(resource.kind()).in_project ||
               resource.project == caller.project;
    }

    void answer(http::Response response);
    void answer(unsigned status, const json::value& body);
    void fail(unsigned status, const std::string& detail) {
        answer(problem(status, detail, request_id));
    }
    void fail(const model::Problems& problems) { answer(problem_of(problems, request_id)); }
    void fail(const Error& error) { answer(problem_of(error, request_id)); }

    // The body as an object; otherwise it has been answered.
    std::optional<json::object> body();
    // False, and answered, where a parameter is not among the known ones.
    bool only_parameters(std::initializer_list<std::string_view> known);
    // The last value of a parameter.
    [[nodiscard]] const std::string* parameter(std::string_view name) const;
    // A whole number within bounds; otherwise it has been answered.
    std::optional<std::uint64_t> number(std::string_view name, std::uint64_t otherwise,
                                        std::uint64_t least, std::uint64_t most);
};
using CallPtr = std::shared_ptr<Call>;

// A resource with its status, as the API shows it.
json::object show(const Service& service, const model::Resource& resource);

// The handlers (resources.cpp, list.cpp, audit.cpp, queries.cpp, openapi.cpp).
void create_resource(const CallPtr& call, const model::KindInfo& kind);
void get_resource(const CallPtr& call, const model::KindInfo& kind, const std::string& id);
void patch_resource(const CallPtr& call, const model::KindInfo& kind, const std::string& id);
void delete_resource(const CallPtr& call, const model::KindInfo& kind, const std::string& id);
void create_rule(const CallPtr& call, const std::string& group);
void delete_rule(const CallPtr& call, const std::string& group, const std::string& rule);
void list_resources(const CallPtr& call, const model::KindInfo& kind);
void list_audit(const CallPtr& call);
void explain(const CallPtr& call);
void list_flows(const CallPtr& call);
void list_drops(const CallPtr& call);
void list_limits(const CallPtr& call);
json::object openapi_document();

// The object a path names, if the caller may see it; otherwise it has been answered.
model::ResourcePtr find_or_fail(const CallPtr& call, model::Kind kind, const std::string& id);

}  // namespace sluice::api
