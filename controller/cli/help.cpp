// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/help.hpp"

#include "controller/cli/table.hpp"

namespace sluice::cli {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kNames = 30;  // where the descriptions begin

// A name, and beside or below it what it means.
std::string entry(const std::string& name, const std::string& meaning) {
    std::string text = "  " + name;
    const auto lines = wrapped(meaning, kColumns - kNames);
    bool first = text.size() < kNames - 1;
    if (!first && !meaning.empty()) text += "\n";
    for (const auto& line : lines) {
        text += first ? std::string(kNames - text.size(), ' ') : std::string(kNames, ' ');
        text += line + "\n";
        first = false;
    }
    if (meaning.empty()) text += "\n";
    return text;
}

}  // namespace

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
    if (is_positional) return option->get_name(true, false);
    std::string name = option->get_lnames().empty() ? option->get_name(false, true)
                                                    : "--" + option->get_lnames().front();
    if (!option->get_snames().empty()) name = "-" + option->get_snames().front() + ", " + name;
    // A flag with an optional number, see add_wait().
    if (name == "--wait") name += "[=SECONDS]";
    return name;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
    const bool flag = option->get_items_expected_max() == 0;
    return flag || option->get_positional() ? std::string() : " " + option->get_type_name();
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
    std::string meaning = option->get_description();
    if (option->get_required()) meaning += meaning.empty() ? "required" : " (required)";
    std::string name = make_option_name(option, is_positional);
    if (!is_positional) name += make_option_opts(option);
    return entry(name, meaning);
}

std::string HelpFormatter::make_description(const CLI::App* command) const {
    std::string text = command->get_description();
    if (text.empty()) return text;
    text.front() = static_cast<char>(std::toupper(text.front()));
    if (text.back() != '.') text += '.';
    std::string result;
    for (const auto& line : wrapped(text, kColumns)) result += line + "\n";
    return result + "\n";
}

std::string HelpFormatter::make_usage(const CLI::App* command, std::string) const {
    std::string text = "Usage: " + full_name(*command);
    if (!command->get_subcommands([](const CLI::App*) { return true; }).empty()) text += " COMMAND";
    bool optional = false;
    for (const auto* option : command->get_options()) {
        if (option->get_positional())
            text += " " + option->get_name(true, false) +
                    (option->get_items_expected_max() > 1 ? "…" : "");
        else if (option->get_required())
            text += " " + make_option_name(option, false) + make_option_opts(option);
        else
            optional = true;
    }
    if (optional) text += " [FLAGS]";
    std::string result;
    for (const auto& line : wrapped(text, kColumns - 4))
        result += (result.empty() ? "" : "    ") + line + "\n";
    return result;
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
    return entry(command->get_name(), command->get_description());
}

const CLI::App& innermost(const CLI::App& app) {
    const auto* command = &app;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
    return *command;
}

std::string full_name(const CLI::App& command) {
    return command.get_parent() ? full_name(*command.get_parent()) + " " + command.get_name()
                                : command.get_name();
}

}  // namespace sluice::cli
