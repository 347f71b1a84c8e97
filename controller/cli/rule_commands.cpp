// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>

#include "controller/cli/commands.hpp"
#include "controller/cli/text.hpp"

namespace sluice::cli {
namespace {

struct Arguments {
    GivenValues values;
    std::string target, rule, port, destination, next_hop, wait;
};

std::string wait_query(const Arguments& given) {
    std::string query;
    add_query(query, "wait", given.wait);
    return query;
}

void add_rule(CLI::App& group, Session& session) {
    static const KindInfo& kind = *find_kind("security-group");
    auto* command = group.add_subcommand("add-rule", "add a rule to a security group");
    command->footer(
        "Example:\n  sluicectl security-group add-rule web --direction ingress --protocol tcp \\\n "
        "     --port 443\n  sluicectl security-group add-rule db --direction ingress --protocol "
        "tcp \\\n      --port 5432 --remote-group web --wait");
    auto given = std::make_shared<Arguments>();
    add_target(*command, kind, given->target, session);
    add_field_flags(*command, rule_fields(), true, given->values, session);
    command->add_option("--port", given->port, "destination port, or a range")
        ->type_name("PORT|FIRST-LAST")
        ->excludes("--port-min")
        ->excludes("--port-max");
    add_wait(*command, given->wait);
    command->callback([&session, given] {
        session.action = [&session, given] {
            const auto id = target_id(session, kind, given->target);
            json::object rule{{"action", "allow"}};
            set_fields(session, rule_fields(), given->values, rule);
            if (!given->port.empty()) {
                const auto dash = given->port.find('-');
                const FieldInfo port{"port", "port", FieldType::number};
                rule["port_min"] = field_value(session, port, {given->port.substr(0, dash)});
                rule["port_max"] = dash == std::string::npos
                                       ? rule["port_min"]
                                       : field_value(session, port, {given->port.substr(dash + 1)});
            }
            const json::value body = std::move(rule);
            const auto answer = session.api().call("POST", "/v1/security-groups/" + id + "/rules",
                                                   wait_query(*given), &body);
            if (session.as_json || !answer.is_object() || answer.get_object().contains("rules"))
                return show_resource(session, kind, answer, !given->wait.empty());
            const auto& made = answer.get_object();
            const auto* made_id = made.if_contains("id");
            fmt::print("{}  {}\n", made_id ? cell(*made_id) : "", describe_rule(made));
            return done;
        };
    });
}

void remove_rule(CLI::App& group, Session& session) {
    static const KindInfo& kind = *find_kind("security-group");
    auto* command = group.add_subcommand("remove-rule", "remove a rule from a security group");
    command->footer(
        "Example:\n  sluicectl security-group show web        # prints the ids\n  sluicectl "
        "security-group remove-rule web \\\n      1d296800-2252-4c9d-ba9a-522982ccd060");
    auto given = std::make_shared<Arguments>();
    add_target(*command, kind, given->target, session);
    auto* rule = command->add_option("RULE-ID", given->rule, "as `show` prints it")->required();
    session.value_sources[rule] = {ValueSource::rule_ids};
    add_wait(*command, given->wait);
    command->callback([&session, given] {
        session.action = [&session, given] {
            const auto id = target_id(session, kind, given->target);
            session.api().call("DELETE", "/v1/security-groups/" + id + "/rules/" + given->rule,
                               wait_query(*given));
            if (!session.as_json) fmt::print("rule {} removed\n", given->rule);
            return done;
        };
    });
}

json::object next_hop(Session& session, const std::string& text) {
    if (text == "internet" || text == "blackhole") return {{text, true}};
    constexpr std::string_view kEndpoint = "endpoint:";
    if (text.starts_with(kEndpoint))
        return {{"endpoint_id",
                 session.names().resolve(*find_kind("endpoint"), text.substr(kEndpoint.size()))}};
    constexpr std::string_view kNatGateway = "nat-gateway:";
    if (text.starts_with(kNatGateway))
        return {{"nat_gateway_id", session.names().resolve(*find_kind("nat-gateway"),
                                                           text.substr(kNatGateway.size()))}};
    throw Failure{
        usage, "--next-hop: internet, blackhole, endpoint:NAME or nat-gateway:NAME, not " + text};
}

// The routes of a table are one field; one is added or taken out of what is there now.
void change_routes(CLI::App& table, Session& session, bool add) {
    static const KindInfo& kind = *find_kind("route-table");
    auto* command =
        table.add_subcommand(add ? "add-route" : "remove-route",
                             add ? "add a route to a table, or replace it" : "remove a route");
    command->footer(
        add ? "Example:\n"
              "  sluicectl route-table add-route prod/main --destination 0.0.0.0/0 \\\n"
              "      --next-hop internet\n"
              "  sluicectl route-table add-route prod/main --destination 10.9.0.0/16 \\\n"
              "      --next-hop endpoint:firewall\n"
              "  sluicectl route-table add-route prod/main --destination 0.0.0.0/0 \\\n"
              "      --next-hop nat-gateway:out"
            : "Example:\n"
              "  sluicectl route-table remove-route prod/main --destination 0.0.0.0/0");
    auto given = std::make_shared<Arguments>();
    add_target(*command, kind, given->target, session);
    auto* destination =
        command->add_option("--destination", given->destination, "an address block")->required();
    destination->type_name("CIDR");
    session.value_sources[destination] = {ValueSource::route_destinations};
    if (add) {
        auto* hop = command->add_option("--next-hop", given->next_hop, "where its packets go");
        hop->required()->type_name("internet|blackhole|endpoint:NAME|nat-gateway:NAME");
        session.value_sources[hop] = {ValueSource::next_hops};
    }
    add_wait(*command, given->wait);
    command->callback([&session, given, add] {
        session.action = [&session, given, add] {
            const auto path = "/v1/route-tables/" + target_id(session, kind, given->target);
            const auto present = session.api().call("GET", path);
            json::array routes;
            bool found = false;
            for (const auto& route : present.at("routes").as_array()) {
                if (route.at("destination").as_string() == given->destination)
                    found = true;
                else
                    routes.push_back(route);
            }
            if (add)
                routes.push_back(json::object{{"destination", given->destination},
                                              {"next_hop", next_hop(session, given->next_hop)}});
            else if (!found)
                throw Failure{refused, "no route has the destination " + given->destination};
            const json::value body = json::object{{"routes", std::move(routes)}};
            return show_resource(session, kind,
                                 session.api().call("PATCH", path, wait_query(*given), &body),
                                 !given->wait.empty());
        };
    });
}

}  // namespace

void add_rule_commands(CLI::App& group, CLI::App& route_table, Session& session) {
    add_rule(group, session);
    remove_rule(group, session);
    change_routes(route_table, session, true);
    change_routes(route_table, session, false);
}

}  // namespace sluice::cli
