// SPDX-License-Identifier: Apache-2.0
// The commands of sluicectl, added to a CLI11 application. Parsing selects an action; main
// runs it afterwards, so that nothing is sent before the whole line is understood.
#pragma once

#include <CLI/App.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/cli/api.hpp"
#include "controller/cli/kinds.hpp"
#include "controller/cli/names.hpp"
#include "controller/cli/value_source.hpp"

namespace sluice::cli {

// What the options of the whole program say, and the API they lead to.
struct Session {
    std::string url = "http://127.0.0.1:8080";
    std::string token;
    bool as_json = false;
    std::function<ExitStatus()> action;

    // --vpc of commands that have it for names alone; empty: names are looked up everywhere.
    std::string vpc;

    // Where the values of options come from; filled while the commands are added.
    ValueSources value_sources;
    // For how long an answer is waited for. The default is longer than any ?wait=.
    std::chrono::seconds patience{330};

    Api& api() {
        if (!api_) api_ = std::make_unique<Api>(url, token, patience);
        return *api_;
    }
    Names& names() {
        if (!names_) {
            names_ = std::make_unique<Names>(api());
            names_->look_in(vpc);
        }
        return *names_;
    }

  private:
    std::unique_ptr<Api> api_;
    std::unique_ptr<Names> names_;
};

// vpc, subnet, endpoint, …: create, list, show, update, delete.
void add_kind_commands(CLI::App& app, Session& session);
// add-rule, remove-rule, add-route, remove-route.
void add_rule_commands(CLI::App& group, CLI::App& route_table, Session& session);
// explain, flows, drops, audit.
void add_query_commands(CLI::App& app, Session& session);
// completion bash|zsh|fish.
void add_completion(CLI::App& app, Session& session);
// What the completion scripts call, instead of a command line that is parsed:
// `bash LINE WORDBREAKS`, or `zsh|fish WORD…`, the last of which is being typed.
ExitStatus complete(const CLI::App& app, Session& session, const std::vector<std::string>& words);

// --- shared by them --------------------------------------------------------------------

// The values given for each field, in the order of the fields.
using GivenValues = std::vector<std::vector<std::string>>;

// Adds a flag for each field; `required` ones are so only on creation.
void add_field_flags(CLI::App& command, std::span<const FieldInfo> fields, bool creating,
                     GivenValues& values, Session& session);
// The JSON of what was given for a field, names resolved to ids. Throws Failure.
json::value field_value(Session& session, const FieldInfo& field,
                        const std::vector<std::string>& given);
// Adds each given field to the object.
void set_fields(Session& session, std::span<const FieldInfo> fields, const GivenValues& values,
                json::object& body);

// An option or argument that names an object of a kind.
CLI::Option* add_object_option(CLI::App& command, const std::string& name, std::string& value,
                               const std::string& help, std::string_view kind, Session& session);
// --vpc NAME|ID, in which names are looked up; nothing for kinds outside of VPCs.
void add_scope(CLI::App& command, const KindInfo& kind, Session& session);
// NAME|ID of what the command is about.
void add_target(CLI::App& command, const KindInfo& kind, std::string& target, Session& session);
// Its id; names in the rest of the command then mean what is in its VPC.
std::string target_id(Session& session, const KindInfo& kind, const std::string& target);

// --wait[=SECONDS]: 30 without a number, at most 300.
void add_wait(CLI::App& command, std::string& seconds);

// Prints a resource, and answers `pending` where it was waited for in vain.
ExitStatus show_resource(Session& session, const KindInfo& kind, const json::value& resource,
                         bool waited);

}  // namespace sluice::cli
