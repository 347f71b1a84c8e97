// SPDX-License-Identifier: Apache-2.0
// The OpenAPI 3.1 document, written from the field tables.
#include "controller/api/call.hpp"

namespace sluice::api {
namespace {

json::object reference(const std::string& schema) {
    return {{"$ref", "#/components/schemas/" + schema}};
}
json::object content(json::object schema) {
    return {{"application/json", json::object{{"schema", std::move(schema)}}}};
}
json::object answer(const char* description, json::object schema) {
    return {{"description", description}, {"content", content(std::move(schema))}};
}
json::object parameter(std::string_view name, const char* in, json::object schema) {
    return {{"name", name},
            {"in", in},
            {"required", std::string_view(in) == "path"},
            {"schema", std::move(schema)}};
}
json::object problem_answer() {
    return {{"description", "a problem document (RFC 9457)"},
            {"content", json::object{{"application/problem+json",
                                      json::object{{"schema", reference("problem")}}}}}};
}

json::object operation(const std::string& id, const std::string& summary, const char* status,
                       json::object success, json::array parameters) {
    return {
        {"operationId", id},
        {"summary", summary},
        {"parameters", std::move(parameters)},
        {"responses", json::object{{status, std::move(success)}, {"default", problem_answer()}}}};
}

json::object with_body(json::object operation, json::object schema) {
    operation["requestBody"] =
        json::object{{"required", true}, {"content", content(std::move(schema))}};
    return operation;
}

const json::object kString{{"type", "string"}};
const json::object kInteger{{"type", "integer"}};

json::object array_of(const json::object& items) {
    return {{"type", "array"}, {"items", items}};
}

// What an answer says beside the fields (add_read_only of resources.cpp).
json::object computed(model::Kind kind) {
    switch (kind) {
        case model::Kind::vpc:
            return {{"gateway", kString}};
        case model::Kind::subnet:
            return {{"available_ips", kInteger}};
        case model::Kind::endpoint:
            return {{"enforcement", json::object{{"type", "object"}}}};
        case model::Kind::elastic_ip:
            return {{"nat_gateway_id", json::object{{"type", json::array{"string", "null"}}}}};
        case model::Kind::bandwidth:
            return {{"elastic_ip_ids", array_of(kString)}};
        case model::Kind::gateway:
            return {{"address", kString},
                    {"state", kString},
                    {"reason", kString},
                    {"generation", kInteger},
                    {"sessions", kInteger},
                    {"capacity", kInteger},
                    {"last_seen", json::object{{"type", json::array{"string", "null"}}}}};
        default:
            return {};
    }
}

void add_kind(const model::KindInfo& kind, json::object& paths, json::object& schemas) {
    const std::string name(kind.name), path(kind.path);
    auto response = model::response_schema(kind.kind);
    for (auto& property : computed(kind.kind))
        response["properties"].as_object()[property.key()] = std::move(property.value());
    schemas[name] = std::move(response);
    schemas[name + "_list"] = json::object{
        {"type", "object"},
        {"properties",
         json::object{{"items", json::object{{"type", "array"}, {"items", reference(name)}}},
                      {"next_page_token", json::object{{"type", json::array{"string", "null"}}}}}}};
    const auto wait = parameter("wait", "query", kInteger);
    const auto id = parameter("id", "path", kString);

    json::array filters{parameter("limit", "query", kInteger),
                        parameter("page_token", "query", kString)};
    json::object collection{
        {"get", operation("list_" + name, "list " + path, "200",
                          answer("a page", reference(name + "_list")), std::move(filters))}};
    json::object item{
        {"get", operation("get_" + name, "read one: " + std::string(kind.purpose), "200",
                          answer("it", reference(name)), {id})},
        {"patch", with_body(operation("patch_" + name, "change by merge patch", "200",
                                      answer("the changed one", reference(name)), {id, wait}),
                            model::request_schema(kind.kind, model::Operation::patch))}};
    if (kind.created_by_api) {
        collection["post"] = with_body(operation("create_" + name, "create", "201",
                                                 answer("the new one", reference(name)), {wait}),
                                       model::request_schema(kind.kind, model::Operation::create));
        item["delete"] = operation("delete_" + name, "delete", "202",
                                   answer("it is being deleted", reference(name)), {id, wait});
    }
    paths["/v1/" + path] = std::move(collection);
    paths["/v1/" + path + "/{id}"] = std::move(item);
}

// The rules of a group, one at a time.
void add_rules(json::object& paths, json::object& schemas) {
    const auto request = model::Codec<model::Rule>::schema();
    json::object properties = request.at("properties").as_object();
    properties["security_group_id"] = kString;
    properties["status"] = reference("status");
    schemas["rule"] = json::object{{"type", "object"}, {"properties", std::move(properties)}};
    const std::string rules = "/v1/security-groups/{id}/rules";
    const auto wait = parameter("wait", "query", kInteger);
    const auto id = parameter("id", "path", kString);
    auto create = operation("create_rule", "add a rule", "201",
                            answer("the new one", reference("rule")), {id, wait});
    paths[rules] = json::object{{"post", with_body(std::move(create), request.as_object())}};
    auto remove = operation("delete_rule", "delete a rule", "202",
                            json::object{{"description", "it is being deleted"}},
                            {id, parameter("rule", "path", kString), wait});
    remove["responses"].as_object()["204"] =
        json::object{{"description", "every gateway is without it"}};
    paths[rules + "/{rule}"] = json::object{{"delete", std::move(remove)}};
}

}  // namespace

json::object openapi_document() {
    json::object paths;
    json::object schemas{
        {"status",
         json::object{{"type", "object"},
                      {"properties",
                       json::object{{"state", json::object{{"enum", json::array{"pending", "active",
                                                                                "degraded", "error",
                                                                                "deleting"}}}},
                                    {"reason", kString},
                                    {"observed_version", kInteger},
                                    {"gateways", json::object{{"type", "array"}}}}}}},
        {"problem",
         json::object{{"type", "object"},
                      {"properties", json::object{{"type", kString},
                                                  {"title", kString},
                                                  {"status", kInteger},
                                                  {"detail", kString},
                                                  {"request_id", kString},
                                                  {"errors", json::object{{"type", "array"}}}}}}}};
    for (const auto& kind : model::all_kinds()) add_kind(kind, paths, schemas);
    add_rules(paths, schemas);
    const auto plain = [&](const char* path, const char* method, const char* summary) {
        paths[path] = json::object{
            {method, operation(summary, summary, "200",
                               answer("the answer", json::object{{"type", "object"}}), {})}};
    };
    plain("/v1/explain", "post", "explain");
    plain("/v1/flows", "get", "flows");
    plain("/v1/drops", "get", "drops");
    plain("/v1/limits", "get", "limits");
    plain("/v1/audit", "get", "audit");
    return {{"openapi", "3.1.0"},
            {"info", json::object{{"title", "Sluice"}, {"version", SLUICE_VERSION}}},
            {"paths", std::move(paths)},
            {"components",
             json::object{
                 {"schemas", std::move(schemas)},
                 {"securitySchemes",
                  json::object{{"token", json::object{{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace sluice::api
