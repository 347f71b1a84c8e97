// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "controller/cli/arguments.hpp"
#include "controller/cli/commands.hpp"
#include "controller/cli/table.hpp"
#include "controller/cli/text.hpp"

namespace sluice::cli {
namespace {

// What a subcommand was given. Lives as long as the callback that holds it.
struct Arguments {
    GivenValues values;
    std::string id, name, description, project, target, wait;
    std::vector<std::string> tags, targets;
};
using ArgumentsPtr = std::shared_ptr<Arguments>;

std::string path_of(const KindInfo& kind) {
    return "/v1/" + std::string(kind.path);
}

const json::value* member(const json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    return value && !value->is_null() ? value : nullptr;
}

// A field's value for people: references by name, rules and routes in words.
std::string show_value(Session& session, const KindInfo& kind, std::string_view name,
                       const json::value& value) {
    const auto* field = find_field(kind, name);
    const auto* referred = field ? find_kind(field->refers_to) : nullptr;
    if (referred && value.is_string())
        return session.names().name_of(*referred, std::string(value.get_string()));
    if (referred && value.is_array()) {
        json::array names;
        for (const auto& item : value.get_array())
            names.emplace_back(session.names().name_of(*referred, cell(item)));
        return cell(names);
    }
    return cell(value);
}

std::string column(Session& session, const KindInfo& kind, const json::object& item,
                   std::string_view name) {
    // `state` is the kind's own field where it has one, else that of the status.
    const auto* value = member(item, name);
    if (!value && name == "state")
        if (const auto* status = member(item, "status"); status && status->is_object())
            value = member(status->get_object(), "state");
    if (!value) return "-";
    if ((name == "rules" || name == "routes") && value->is_array())
        return std::to_string(value->get_array().size());
    return show_value(session, kind, name, *value);
}

// The group's rules or the table's routes, one a line, ids first so that they can be taken.
std::string several_lines(Session& session, std::string_view name, const json::array& items) {
    static const KindInfo& group = *find_kind("security-group");
    static const KindInfo& list = *find_kind("prefix-list");
    static const KindInfo& endpoint = *find_kind("endpoint");
    static const KindInfo& nat_gateway = *find_kind("nat-gateway");
    std::string text;
    const auto by_name = [&](json::object& object, std::string_view field, const KindInfo& kind) {
        if (const auto* id = member(object, field); id && id->is_string())
            object[field] = session.names().name_of(kind, std::string(id->get_string()));
    };
    for (const auto& item : items) {
        if (!item.is_object()) continue;
        auto object = item.get_object();
        if (name == "rules") {
            by_name(object, "remote_group_id", group);
            by_name(object, "remote_prefix_list_id", list);
            const auto* id = member(object, "id");
            text += fmt::format("{}  {}\n", id ? cell(*id) : "", describe_rule(object));
        } else {
            if (auto* hop = object.if_contains("next_hop"); hop && hop->is_object()) {
                by_name(hop->get_object(), "endpoint_id", endpoint);
                by_name(hop->get_object(), "nat_gateway_id", nat_gateway);
            }
            text += describe_route(object) + "\n";
        }
    }
    return text.empty() ? "-" : text;
}

std::string with_article(const std::string& noun) {
    return (std::string_view("aeiou").find(noun.front()) == std::string_view::npos ? "a " : "an ") +
           noun;
}

// "Example:" below the help of a command.
void set_example(CLI::App& command, const KindInfo& kind, std::string_view verb,
                 std::string_view rest) {
    command.footer(fmt::format("Example:\n  sluicectl {} {} {}", kind.command, verb, rest));
}

void add_common(CLI::App& command, Arguments& given) {
    command.add_option("--name", given.name, "a name, by which it can be called")
        ->type_name("NAME");
    command.add_option("--description", given.description, "what it is for")->type_name("TEXT");
    command.add_option("--tag", given.tags, "may be repeated")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void set_common(const CLI::App& command, const Arguments& given, json::object& body) {
    if (command.count("--name") != 0) body["name"] = given.name;
    if (command.count("--description") != 0) body["description"] = given.description;
    if (given.tags.empty()) return;
    json::object tags;
    for (const auto& tag : given.tags) {
        const auto equals = tag.find('=');
        if (equals == std::string::npos) throw Failure{usage, "--tag: KEY=VALUE, not " + tag};
        tags[tag.substr(0, equals)] = tag.substr(equals + 1);
    }
    body["tags"] = std::move(tags);
}

void add_create(CLI::App& group, const KindInfo& kind, Session& session) {
    auto* command = group.add_subcommand("create", "create " + with_article(title(kind)));
    auto given = std::make_shared<Arguments>();
    command->footer("Example:\n  " + std::string(kind.example));
    add_common(*command, *given);
    add_field_flags(*command, kind.fields, true, given->values, session);
    command->add_option("--id", given->id, "the UUID that it shall have")->type_name("UUID");
    if (!find_field(kind, "vpc_id")) add_scope(*command, kind, session);
    add_wait(*command, given->wait);
    command->callback([&session, &kind, command, given] {
        session.action = [&session, &kind, command, given] {
            json::object body;
            set_common(*command, *given, body);
            set_fields(session, kind.fields, given->values, body);
            if (!given->id.empty()) body["id"] = given->id;
            std::string query;
            add_query(query, "wait", given->wait);
            const json::value sent = std::move(body);
            return show_resource(session, kind,
                                 session.api().call("POST", path_of(kind), query, &sent),
                                 !given->wait.empty());
        };
    });
}

void add_list(CLI::App& group, const KindInfo& kind, Session& session) {
    auto* command =
        group.add_subcommand("list", "list " + title(kind) + "s, all or those that flags select");
    command->footer(fmt::format(
        "Columns that do not fit the terminal are left out; --json has everything.\n\n"
        "Example:\n  sluicectl {0} list\n  sluicectl {0} list --json | jq -r '.items[].id'",
        kind.command));
    auto given = std::make_shared<Arguments>();
    command->add_option("--name", given->name, "only those of this name")->type_name("NAME");
    // Only what the API can filter by: fields of one value.
    std::vector<FieldInfo> simple;
    for (auto field : kind.fields)
        if (field.given != Given::never && field.type != FieldType::json &&
            field.type != FieldType::list && field.type != FieldType::reference_list &&
            field.type != FieldType::numbers) {
            field.given = Given::create_or_update;
            field.required = false;
            field.help = "only those with this value";
            simple.push_back(field);
        }
    auto fields = std::make_shared<std::vector<FieldInfo>>(std::move(simple));
    add_field_flags(*command, *fields, false, given->values, session);
    const bool has_vpc = find_field(kind, "vpc_id") != nullptr;
    if (!has_vpc && way_to_vpc(kind))
        add_object_option(*command, "--vpc", session.vpc, "only those in this VPC", "vpc", session);
    command->callback([&session, &kind, given, fields] {
        session.action = [&session, &kind, given, fields] {
            std::string query;
            add_query(query, "name", given->name);
            for (std::size_t i = 0; i < fields->size(); ++i)
                if (!given->values[i].empty())
                    add_query(query, (*fields)[i].name,
                              cell(field_value(session, (*fields)[i], given->values[i])));
            const auto items =
                session.names().inside(kind, session.api().list(path_of(kind), query));
            if (session.as_json) {
                std::fputs(pretty(json::object{{"items", items}}).c_str(), stdout);
                return done;
            }
            Table table;
            for (const auto name : kind.columns) table.head.push_back(heading(name));
            for (const auto name : kind.dispensable)
                table.dispensable.push_back(static_cast<std::size_t>(
                    std::find(kind.columns.begin(), kind.columns.end(), name) -
                    kind.columns.begin()));
            for (const auto& item : items) {
                auto& row = table.rows.emplace_back();
                for (const auto name : kind.columns)
                    row.push_back(column(session, kind, item.as_object(), name));
            }
            std::fputs(render_table(std::move(table), terminal_columns()).c_str(), stdout);
            return done;
        };
    });
}

void add_show(CLI::App& group, const KindInfo& kind, Session& session) {
    auto* command =
        group.add_subcommand("show", "show everything about " + with_article(title(kind)));
    set_example(*command, kind, "show", kind.sample);
    auto given = std::make_shared<Arguments>();
    add_target(*command, kind, given->target, session);
    command->callback([&session, &kind, given] {
        session.action = [&session, &kind, given] {
            const auto id = target_id(session, kind, given->target);
            return show_resource(session, kind, session.api().call("GET", path_of(kind) + "/" + id),
                                 false);
        };
    });
}

void add_update(CLI::App& group, const KindInfo& kind, Session& session) {
    auto* command = group.add_subcommand("update", "change " + with_article(title(kind)) +
                                                       ": what flags say; `none` clears a field");
    set_example(*command, kind, "update", fmt::format("{} {}", kind.sample, kind.change));
    auto given = std::make_shared<Arguments>();
    add_target(*command, kind, given->target, session);
    if (kind.creatable) add_common(*command, *given);
    add_field_flags(*command, kind.fields, false, given->values, session);
    add_wait(*command, given->wait);
    command->callback([&session, &kind, command, given] {
        session.action = [&session, &kind, command, given] {
            const bool nothing = std::all_of(given->values.begin(), given->values.end(),
                                             [](const auto& one) { return one.empty(); });
            json::object body;
            if (kind.creatable) set_common(*command, *given, body);
            if (nothing && body.empty())
                throw Failure{usage, "nothing to change: give a flag, see --help"};
            // The target first: names beside it mean what is in its VPC.
            const auto id = target_id(session, kind, given->target);
            set_fields(session, kind.fields, given->values, body);
            std::string query;
            add_query(query, "wait", given->wait);
            const json::value sent = std::move(body);
            return show_resource(
                session, kind, session.api().call("PATCH", path_of(kind) + "/" + id, query, &sent),
                !given->wait.empty());
        };
    });
}

void add_delete(CLI::App& group, const KindInfo& kind, Session& session) {
    auto* command = group.add_subcommand("delete", "delete one or several " + title(kind) + "s");
    set_example(*command, kind, "delete", kind.sample);
    auto given = std::make_shared<Arguments>();
    auto* targets =
        command
            ->add_option("NAME|ID", given->targets,
                         way_to_vpc(kind) ? "one or several; or VPC/NAME" : "one or several")
            ->required();
    session.value_sources[targets] = {ValueSource::objects, {}, &kind};
    add_scope(*command, kind, session);
    add_wait(*command, given->wait);
    command->callback([&session, &kind, given] {
        session.action = [&session, &kind, given] {
            // All names first: a wrong one stops the command before anything is gone.
            std::vector<std::string> ids;
            for (const auto& target : given->targets)
                ids.push_back(session.names().resolve(kind, unmarked(target)));
            for (std::size_t i = 0; i < ids.size(); ++i) {
                std::string query;
                add_query(query, "wait", given->wait);
                session.api().call("DELETE", path_of(kind) + "/" + ids[i], query);
                if (!session.as_json)
                    fmt::print("{} {} deleted\n", kind.command, unmarked(given->targets[i]));
            }
            return done;
        };
    });
}

}  // namespace

ExitStatus show_resource(Session& session, const KindInfo& kind, const json::value& resource,
                         bool waited) {
    std::string state;
    std::string reason;
    std::vector<std::pair<std::string, std::string>> pairs;
    if (resource.is_object()) {
        for (const auto& item : resource.get_object()) {
            const std::string_view name = item.key();
            if (name == "status" && item.value().is_object()) {
                const auto& status = item.value().get_object();
                if (const auto* value = member(status, "state")) state = cell(*value);
                if (const auto* value = member(status, "reason")) reason = cell(*value);
                auto& shown = pairs.emplace_back("status", state).second;
                if (!reason.empty() && reason != "-") shown.append(": ").append(reason);
            } else if ((name == "rules" || name == "routes") && item.value().is_array()) {
                pairs.emplace_back(name, several_lines(session, name, item.value().get_array()));
            } else {
                // A reference is shown by name, so it is not called an id.
                const auto* field = find_field(kind, name);
                pairs.emplace_back(field && !field->refers_to.empty() ? field->flag : name,
                                   show_value(session, kind, name, item.value()));
            }
        }
    }
    std::fputs((session.as_json ? pretty(resource) : render_pairs(pairs)).c_str(), stdout);
    if (!waited || state.empty() || state == "active") return done;
    fmt::print(stderr, "sluicectl: still {}{}\n", state, reason.empty() ? "" : ": " + reason);
    return pending;
}

void add_kind_commands(CLI::App& app, Session& session) {
    for (const auto& kind : kinds()) {
        auto* group = app.add_subcommand(std::string(kind.command), std::string(kind.purpose));
        group->require_subcommand(0, 1)->fallthrough();
        group->footer("Example:\n  " + std::string(kind.example));
        if (kind.creatable) add_create(*group, kind, session);
        add_list(*group, kind, session);
        add_show(*group, kind, session);
        add_update(*group, kind, session);
        if (kind.creatable) add_delete(*group, kind, session);
        // Last: subcommands inherit the heading of what they are added to.
        group->group("Resources");
    }
    add_rule_commands(*app.get_subcommand("security-group"), *app.get_subcommand("route-table"),
                      session);
}

}  // namespace sluice::cli
