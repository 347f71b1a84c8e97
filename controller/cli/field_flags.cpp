// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iostream>
#include <iterator>

#include "controller/cli/commands.hpp"

namespace sluice::cli {
namespace {

constexpr std::string_view kNone = "none";  // clears a field

bool is_number(std::string_view text) {
    return !text.empty() && text.size() <= 18 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string content_of(const FieldInfo& field, const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    try {  // a folder can be opened, and throws when it is read
        if (file) return {std::istreambuf_iterator<char>(file), {}};
    } catch (const std::ios_base::failure&) {
    }
    throw Failure{usage, fmt::format("--{}: cannot read {}", field.flag, path)};
}

// The value itself, @FILE, or - for standard input.
json::value parse_json(const FieldInfo& field, const std::string& text) {
    std::string content = text;
    if (text == "-" || text == "@-") {
        content.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else if (text.starts_with('@')) {
        content = content_of(field, text.substr(1));
    }
    boost::system::error_code failed;
    auto value = json::parse(content, failed);
    if (failed)
        throw Failure{usage, fmt::format("--{}: not JSON ({}); {}", field.flag, failed.message(),
                                         field.help)};
    return value;
}

json::value boolean(const FieldInfo& field, std::string_view text) {
    if (text == "true" || text == "yes" || text == "on") return true;
    if (text == "false" || text == "no" || text == "off") return false;
    throw Failure{usage, fmt::format("--{}: true or false, not {}", field.flag, text)};
}

json::value number(const FieldInfo& field, const std::string& text) {
    if (!is_number(text))
        throw Failure{usage, fmt::format("--{}: a whole number, not {}", field.flag, text)};
    return std::stoull(text);
}

ValuesOf values_of(const FieldInfo& field, bool many) {
    if (!field.refers_to.empty())
        return {ValueSource::objects, {}, find_kind(field.refers_to), many};
    if (!field.words.empty()) return {ValueSource::words, field.words};
    if (field.type == FieldType::json) return {ValueSource::json_file};
    return {};
}

// "ingress|egress", "NAME|ID", "JSON|@FILE": what the help shows behind the flag.
std::string type_name(const FieldInfo& field, bool many) {
    if (!field.refers_to.empty()) return many ? "NAME|ID,…" : "NAME|ID";
    if (field.type == FieldType::json) return "JSON|@FILE|-";
    if (field.type == FieldType::number) return "NUMBER";
    if (field.type == FieldType::numbers) return "NAME=NUMBER,…";
    std::string words;
    for (const auto word : field.words) words += (words.empty() ? "" : "|") + std::string(word);
    return !words.empty() ? words : many ? "VALUE,…" : "VALUE";
}

std::string help_of(const FieldInfo& field) {
    std::string help(field.help);
    if (field.type != FieldType::numbers) return help;
    std::string names;
    for (const auto word : field.words) names += (names.empty() ? "" : ", ") + std::string(word);
    return help + ": " + names;
}

// connections=100 as a member; connections=none brings its default back, `none` all of them.
json::value members(const FieldInfo& field, const std::vector<std::string>& given) {
    if (given.size() == 1 && given.front() == kNone) return nullptr;
    json::object result;
    for (const auto& one : given) {
        const auto equals = one.find('=');
        const auto name = std::string_view(one).substr(0, equals);
        if (equals == std::string::npos ||
            std::find(field.words.begin(), field.words.end(), name) == field.words.end())
            throw Failure{usage, fmt::format("--{}: NAME=NUMBER, not {}; {}", field.flag, one,
                                             help_of(field))};
        const auto value = one.substr(equals + 1);
        result[name] = value == kNone ? json::value(nullptr) : number(field, value);
    }
    return result;
}

}  // namespace

void add_field_flags(CLI::App& command, std::span<const FieldInfo> fields, bool creating,
                     GivenValues& values, Session& session) {
    values.resize(fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto& field = fields[i];
        if (field.given == Given::never || (!creating && field.given == Given::create)) continue;
        const bool many = field.type == FieldType::list ||
                          field.type == FieldType::reference_list ||
                          field.type == FieldType::numbers;
        auto* option =
            command.add_option("--" + std::string(field.flag), values[i], help_of(field));
        option->type_name(type_name(field, many));
        session.value_sources[option] = values_of(field, many);
        // A repeated flag adds to a list and replaces anything else. One value a flag: CLI11 would
        // go on to eat names that follow, and take the brackets off JSON.
        if (many)
            option->delimiter(',')->expected(1)->multi_option_policy(
                CLI::MultiOptionPolicy::TakeAll);
        else
            option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        option->allow_extra_args(false);
        if (field.required && creating) option->required();
    }
}

json::value field_value(Session& session, const FieldInfo& field,
                        const std::vector<std::string>& given) {
    const bool none = given.size() == 1 && given.front() == kNone;
    const auto* referred = find_kind(field.refers_to);
    switch (field.type) {
        case FieldType::list:
        case FieldType::reference_list: {
            json::array items;
            if (none) return items;
            for (const auto& item : given)
                items.emplace_back(referred ? session.names().resolve(*referred, item) : item);
            return items;
        }
        case FieldType::reference:
            if (none) return nullptr;
            return json::value(target_id(session, *referred, given.front()));
        case FieldType::number:
            return none ? json::value(nullptr) : number(field, given.front());
        case FieldType::boolean:
            return boolean(field, given.front());
        case FieldType::numbers:
            return members(field, given);
        case FieldType::json:
            return parse_json(field, given.front());
        case FieldType::text:
            if (none) return nullptr;
            // A protocol may be a number.
            if (field.name == "protocol" && is_number(given.front()))
                return number(field, given.front());
            return json::value(given.front());
    }
    return nullptr;
}

void set_fields(Session& session, std::span<const FieldInfo> fields, const GivenValues& values,
                json::object& body) {
    for (std::size_t i = 0; i < fields.size(); ++i)
        if (!values[i].empty()) body[fields[i].name] = field_value(session, fields[i], values[i]);
}

void add_scope(CLI::App& command, const KindInfo& kind, Session& session) {
    if (!way_to_vpc(kind)) return;
    add_object_option(command, "--vpc", session.vpc, "look for names in this VPC", "vpc", session);
}

CLI::Option* add_object_option(CLI::App& command, const std::string& name, std::string& value,
                               const std::string& help, std::string_view kind, Session& session) {
    auto* option = command.add_option(name, value, help);
    if (name.starts_with("--")) option->type_name("NAME|ID");
    session.value_sources[option] = {ValueSource::objects, {}, find_kind(kind)};
    return option;
}

void add_target(CLI::App& command, const KindInfo& kind, std::string& target, Session& session) {
    const bool scoped = way_to_vpc(kind) != nullptr;
    add_object_option(command, "NAME|ID", target,
                      fmt::format("of the {}{}", title(kind), scoped ? "; or VPC/NAME" : ""),
                      kind.command, session)
        ->required();
    add_scope(command, kind, session);
}

std::string target_id(Session& session, const KindInfo& kind, const std::string& target) {
    auto id = session.names().resolve(kind, target);
    session.names().prefer_vpc_of(kind, id);
    return id;
}

void add_wait(CLI::App& command, std::string& seconds) {
    command.add_flag(
        "--wait{30}", seconds,
        "wait until every gateway that needs it has confirmed it, 30 seconds unless said");
}

}  // namespace sluice::cli
