// SPDX-License-Identifier: Apache-2.0
#include "controller/api/telemetry.hpp"

#include "controller/model/fields.hpp"

namespace sluice::api {
namespace {

// A label's value: backslash, quote and line end are escaped.
std::string label(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (c == '\\' || c == '"') result += '\\';
        result += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    return result;
}

std::string metrics(const Service& service) {
    std::string text;
    const auto describe = [&](const char* name, const char* help, const char* type = "gauge") {
        text += std::string("# TYPE ") + name + " " + type + "\n# HELP " + name + " " + help + "\n";
    };
    describe("sluice_controller_objects", "Objects of the desired state.");
    for (const auto& kind : model::all_kinds())
        text += "sluice_controller_objects{kind=\"" + std::string(kind.path) + "\"} " +
                std::to_string(service.state().all(kind.kind).size()) + "\n";
    describe("sluice_controller_revision", "Changes of the desired state since the start.");
    text += "sluice_controller_revision " + std::to_string(service.revision()) + "\n";
    describe("sluice_controller_gateway_up", "1 while the gateway holds what it should.");
    for (const auto& [name, tables] : service.compiler().gateways())
        text += "sluice_controller_gateway_up{gateway=\"" + label(name) + "\"} " +
                (service.report(name).state == "active" ? "1" : "0") + "\n";
    describe("sluice_controller_table_entries", "Table entries that a gateway should hold.");
    for (const auto& [name, tables] : service.compiler().gateways())
        text += "sluice_controller_table_entries{gateway=\"" + label(name) + "\"} " +
                std::to_string(tables->size()) + "\n";
    describe("sluice_controller_withheld_objects", "Objects that a gateway refuses.");
    for (const auto& [name, tables] : service.compiler().gateways())
        text += "sluice_controller_withheld_objects{gateway=\"" + label(name) + "\"} " +
                std::to_string(service.report(name).withheld) + "\n";
    const auto count = [&](const char* name, const char* help,
                           std::uint64_t GatewayReport::*counted) {
        describe(name, help, "counter");
        for (const auto& [gateway, tables] : service.compiler().gateways())
            text += std::string(name) + "_total{gateway=\"" + label(gateway) + "\"} " +
                    std::to_string(service.report(gateway).*counted) + "\n";
    };
    count("sluice_controller_foreign_changes",
          "Times a gateway's tables were found changed by another writer, and put right.",
          &GatewayReport::foreign_changes);
    count("sluice_controller_entries_put", "Table entries sent to a gateway.",
          &GatewayReport::entries_put);
    count("sluice_controller_entries_removed", "Table entries removed from a gateway.",
          &GatewayReport::entries_removed);
    return text + "# EOF\n";
}

}  // namespace

http::Response telemetry(const Service& service, const http::Request& request) {
    if (request.method != "GET") return {405, "text/plain", {{"Allow", "GET"}}, "GET only\n"};
    if (request.path == "/health") return {200, "text/plain", {}, "ok\n"};
    if (request.path == "/metrics")
        return {200,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                {},
                metrics(service)};
    return {404, "text/plain", {}, "/metrics and /health are here\n"};
}

}  // namespace sluice::api
