// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "controller/cli/commands.hpp"
#include "controller/cli/table.hpp"
#include "controller/cli/text.hpp"

namespace sluice::cli {
namespace {

using Columns = std::vector<std::string_view>;

std::string text_of(const json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    return value && !value->is_null() ? cell(*value) : std::string();
}

void print_items(Session& session, const json::array& items, const Columns& columns,
                 const Columns& dispensable) {
    if (session.as_json) {
        std::fputs(pretty(json::object{{"items", items}}).c_str(), stdout);
        return;
    }
    Table table;
    for (const auto name : columns) table.head.push_back(heading(name));
    for (const auto name : dispensable)
        if (const auto at = std::find(columns.begin(), columns.end(), name); at != columns.end())
            table.dispensable.push_back(static_cast<std::size_t>(at - columns.begin()));
    for (const auto& item : items) {
        auto& row = table.rows.emplace_back();
        for (const auto name : columns) {
            const auto* value = item.as_object().if_contains(name);
            row.push_back(value ? cell(*value) : "-");
        }
    }
    std::fputs(render_table(std::move(table), terminal_columns()).c_str(), stdout);
}

// --- explain ---------------------------------------------------------------------------

struct Question {
    std::string vpc, source, destination, protocol = "tcp";
    bool internet = false;
    std::string source_port, destination_port, icmp_type, icmp_code;
};

json::object body_of(Session& session, const Question& question) {
    json::object body;
    if (question.internet)
        body["internet"] = true;
    else
        body["vpc_id"] = session.names().resolve(*find_kind("vpc"), question.vpc);
    body["source"] = question.source;
    body["destination"] = question.destination;
    const FieldInfo protocol{"protocol", "protocol"};
    body["protocol"] = field_value(session, protocol, {question.protocol});
    const auto number = [&](std::string_view name, std::string_view flag, const std::string& text) {
        if (text.empty()) return;
        const FieldInfo field{name, flag, FieldType::number};
        body[name] = field_value(session, field, {text});
    };
    number("source_port", "source-port", question.source_port);
    number("destination_port", "destination-port", question.destination_port);
    number("icmp_type", "icmp-type", question.icmp_type);
    number("icmp_code", "icmp-code", question.icmp_code);
    return body;
}

void print_explanation(const json::object& answer) {
    const auto verdict = text_of(answer, "verdict");
    const auto reason = text_of(answer, "reason");
    const auto sentence = text_of(answer, "sentence");
    const std::string word = verdict == "forward" ? "allowed"
                             : verdict == "drop"  ? "denied"
                                                  : verdict;
    fmt::print("{}", word);
    if (verdict != "forward" && !reason.empty() && reason != "none")
        fmt::print(" ({}: {})", reason, sentence);
    if (const auto gateway = text_of(answer, "gateway"); !gateway.empty())
        fmt::print(", says gateway {}", gateway);
    fmt::print("\n");
    const auto* steps = answer.if_contains("steps");
    if (!steps || !steps->is_array()) return;
    std::vector<std::vector<std::string>> rows;
    for (const auto& step : steps->get_array()) {
        if (!step.is_object()) continue;
        const auto& object = step.get_object();
        std::string resource;
        if (const auto* found = object.if_contains("resource"); found && found->is_object())
            resource = fmt::format("{} {}", text_of(found->get_object(), "kind"),
                                   text_of(found->get_object(), "name"));
        // Where no rule matched: the groups that were asked.
        if (const auto groups = text_of(object, "groups"); resource.empty() && !groups.empty())
            resource = "none of " + groups;
        rows.push_back({"  " + text_of(object, "table"), text_of(object, "outcome"), resource,
                        text_of(object, "detail")});
    }
    std::fputs(
        render_table({{"  STEP", "OUTCOME", "DECIDED BY", "DETAIL"}, rows}, terminal_columns())
            .c_str(),
        stdout);
}

void add_explain(CLI::App& app, Session& session) {
    auto* command = app.add_subcommand(
        "explain", "why a packet would pass, or would not: every step, and what decided it");
    auto question = std::make_shared<Question>();
    auto* vpc = add_object_option(*command, "--vpc", question->vpc,
                                  "the VPC that the packet comes from", "vpc", session);
    command->add_flag("--internet", question->internet, "it comes from the internet")
        ->excludes(vpc);
    auto* source = command->add_option("--source", question->source, "its source address");
    source->required()->type_name("ADDRESS");
    auto* destination =
        command->add_option("--destination", question->destination, "its destination address");
    destination->required()->type_name("ADDRESS");
    auto* protocol = command->add_option("--protocol", question->protocol,
                                         "tcp (default), udp, icmp, icmpv6, … or a number");
    protocol->type_name("PROTOCOL");
    session.value_sources[source] = {ValueSource::endpoint_addresses};
    session.value_sources[destination] = {ValueSource::endpoint_addresses};
    session.value_sources[protocol] = {ValueSource::words, protocol_words()};
    command->add_option("--source-port", question->source_port, "its source port")
        ->type_name("NUMBER");
    command->add_option("--destination-port", question->destination_port, "its destination port")
        ->type_name("NUMBER");
    command->add_option("--icmp-type", question->icmp_type, "8: echo request")->type_name("NUMBER");
    command->add_option("--icmp-code", question->icmp_code, "ICMP code")->type_name("NUMBER");
    command->footer(
        "Example:\n  sluicectl explain --vpc prod --source 10.0.1.10 --destination 10.0.2.10 \\\n"
        "      --protocol tcp --destination-port 5432\n"
        "  sluicectl explain --internet --source 192.0.2.80 --destination 203.0.113.7 \\\n"
        "      --destination-port 443");
    command->callback([&session, question] {
        session.action = [&session, question] {
            if (question->vpc.empty() && !question->internet)
                throw Failure{usage, "where does it come from? --vpc NAME or --internet"};
            const json::value body = body_of(session, *question);
            const auto answer = session.api().call("POST", "/v1/explain", {}, &body);
            if (session.as_json) {
                std::fputs(pretty(answer).c_str(), stdout);
                return done;
            }
            const auto& object = answer.as_object();
            const auto* gateways = object.if_contains("gateways");
            if (!gateways) gateways = object.if_contains("items");
            if (!gateways || !gateways->is_array()) {
                print_explanation(object);
                return done;
            }
            for (const auto& gateway : gateways->get_array())
                print_explanation(gateway.as_object());
            return done;
        };
    });
}

// --- flows, drops, audit ---------------------------------------------------------------

struct Filter {
    std::string vpc, endpoint, limit;
};

std::string query_of(Session& session, const Filter& filter) {
    std::string query;
    if (!filter.vpc.empty()) {
        session.vpc = filter.vpc;  // the endpoint's name is looked up in it
        add_query(query, "vpc_id", session.names().resolve(*find_kind("vpc"), filter.vpc));
    }
    if (!filter.endpoint.empty())
        add_query(query, "endpoint_id",
                  session.names().resolve(*find_kind("endpoint"), filter.endpoint));
    add_query(query, "limit", filter.limit);
    return query;
}

json::array items_of(const json::value& answer) {
    const auto* items = answer.is_object() ? answer.get_object().if_contains("items") : nullptr;
    return items && items->is_array() ? items->get_array() : json::array{};
}

std::string protocol_name(const json::object& flow) {
    auto number = text_of(flow, "protocol");
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"1", "icmp"}, {"6", "tcp"}, {"17", "udp"}, {"58", "icmpv6"}, {"132", "sctp"}};
    for (const auto& [known, name] : kNames)
        if (number == known) return std::string(name);
    return number;
}

// "address:port"; without a port where the protocol has none.
std::string end_of(const json::object& flow, std::string_view address, std::string_view port,
                   bool has_ports) {
    auto text = text_of(flow, address);
    const auto number = text_of(flow, port);
    if (!has_ports || number.empty()) return text;
    return text.find(':') == std::string::npos ? text + ":" + number : "[" + text + "]:" + number;
}

// One flow as a line: ends as "address:port", counts of both directions in one cell.
json::object flow_line(const json::object& flow) {
    const auto protocol = protocol_name(flow);
    const bool has_ports = protocol == "tcp" || protocol == "udp" || protocol == "sctp";
    const auto ends = [&](const json::object& tuple) {
        return std::pair(end_of(tuple, "source", "source_port", has_ports),
                         end_of(tuple, "destination", "destination_port", has_ports));
    };
    const auto count = [&](std::string_view what) {
        const auto way = [&](std::string_view direction) -> std::string {
            const auto* side = flow.if_contains(direction);
            return side && side->is_object() ? text_of(side->get_object(), what) : "-";
        };
        return way("forward") + " / " + way("reverse");
    };
    const auto [source, destination] = ends(flow);
    std::string translated = "-";
    if (const auto* to = flow.if_contains("translated"); to && to->is_object()) {
        const auto [from, until] = ends(to->get_object());
        translated = from + " > " + until;
    }
    return {{"protocol", protocol},
            {"source", source},
            {"destination", destination},
            {"translated", translated},
            {"state", text_of(flow, "state")},
            {"packets", count("packets")},
            {"bytes", count("bytes")},
            {"age", text_of(flow, "age_seconds") + "s"},
            {"idle", text_of(flow, "idle_seconds") + "s"}};
}

// What an endpoint or a VPC has of what it may have, a measure a cell.
json::object limits_line(const json::object& item) {
    json::object line{
        {"gateway", item.if_contains("gateway") ? item.at("gateway") : json::value()},
        {"vpc", item.at("vpc")},
        {"endpoint", item.if_contains("endpoint") ? item.at("endpoint") : json::value("(all)")}};
    for (const auto* name : {"connections", "half_open", "new_per_second", "fragments"}) {
        const auto* measure = item.if_contains(name);
        if (!measure || !measure->is_object()) continue;
        const auto& object = measure->get_object();
        const auto limit = text_of(object, "limit");
        auto text = text_of(object, "used") + " / " + (limit.empty() ? "any" : limit);
        if (const auto refused = text_of(object, "refused"); refused != "0")
            text += " (" + refused + " refused)";
        line[name] = text;
    }
    return line;
}

void add_filter_command(CLI::App& app, Session& session, const std::string& name,
                        const std::string& purpose, const std::string& example,
                        const Columns& columns, bool by_endpoint) {
    auto* command = app.add_subcommand(name, purpose);
    auto filter = std::make_shared<Filter>();
    add_object_option(*command, "--vpc", filter->vpc, "only this VPC's", "vpc", session);
    if (by_endpoint)
        add_object_option(*command, "--endpoint", filter->endpoint, "only this endpoint's",
                          "endpoint", session);
    command->add_option("--limit", filter->limit, "at most so many")->type_name("NUMBER");
    command->footer("Example:\n  " + example);
    command->callback([&session, filter, name, columns] {
        session.action = [&session, filter, name, columns] {
            auto items =
                items_of(session.api().call("GET", "/v1/" + name, query_of(session, *filter)));
            if (name == "flows" && !session.as_json)
                for (auto& item : items) item = flow_line(item.as_object());
            if (name == "limits" && !session.as_json)
                for (auto& item : items) item = limits_line(item.as_object());
            print_items(session, items, columns, {"idle", "age", "bytes"});
            return done;
        };
    });
}

// "2026-01-31T12:00:00.000Z" to the second, as people write it; UTC.
std::string short_time(const json::object& record) {
    auto time = text_of(record, "time").substr(0, 19);
    std::replace(time.begin(), time.end(), 'T', ' ');
    return time;
}

void add_audit(CLI::App& app, Session& session) {
    auto* command = app.add_subcommand("audit", "who changed what");
    command->footer("Example:\n  sluicectl audit --limit 20");
    auto filter = std::make_shared<Filter>();
    command->add_option("--limit", filter->limit, "at most so many")->type_name("NUMBER");
    command->callback([&session, filter] {
        session.action = [&session, filter] {
            std::string query;
            add_query(query, "limit", filter->limit);
            auto items = items_of(session.api().call("GET", "/v1/audit", query));
            if (!session.as_json)
                for (auto& item : items) {
                    auto& record = item.as_object();
                    record["time"] = short_time(record);
                    // What has no name is called by its id, which has a column of its own.
                    if (text_of(record, "object_name") == text_of(record, "object_id"))
                        record["object_name"] = nullptr;
                }
            print_items(session, items,
                        {"time", "actor", "action", "kind", "object_name", "object_id"},
                        {"object_id", "actor"});
            return done;
        };
    });
}

}  // namespace

void add_query_commands(CLI::App& app, Session& session) {
    add_explain(app, session);
    add_filter_command(app, session, "flows", "live connections, and what they carried",
                       "sluicectl flows --endpoint web1",
                       {"protocol", "source", "destination", "translated", "state", "packets",
                        "bytes", "age", "idle"},
                       true);
    add_filter_command(app, session, "drops", "dropped packets by reason",
                       "sluicectl drops --vpc prod",
                       {"reason", "vpc", "packets", "resource", "sentence"}, false);
    add_filter_command(
        app, session, "limits", "connections, new ones a second, fragments: how many of how many",
        "sluicectl limits --vpc prod",
        {"vpc", "endpoint", "connections", "half_open", "new_per_second", "fragments", "gateway"},
        true);
    add_audit(app, session);
}

}  // namespace sluice::cli
