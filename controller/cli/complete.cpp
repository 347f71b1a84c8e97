// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/complete.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "controller/cli/text.hpp"

namespace sluice::cli {
namespace {

// A person waits for it.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr std::string_view kOnePage = "limit=1000";

bool is_flag(std::string_view word) {
    return word.starts_with('-') && word.size() > 1;
}

bool takes_value(const CLI::Option& option) {
    return option.get_items_expected_min() > 0;
}

// Everything on the line before the word that is being typed.
struct Line {
    const CLI::App* command;
    const CLI::Option* waiting = nullptr;  // the flag whose value is being typed
    std::vector<std::string> positionals;
    std::set<const CLI::Option*> seen;
    std::map<std::string, std::string> values;  // by flag

    std::string value(const std::string& flag) const {
        const auto found = values.find(flag);
        return found == values.end() ? std::string() : found->second;
    }
};

const CLI::Option* find_flag(const CLI::App* command, const std::string& name) {
    for (; command; command = command->get_parent())
        if (const auto* option = command->get_option_no_throw(name)) return option;
    return nullptr;
}

const CLI::App* find_subcommand(const CLI::App& command, const std::string& name) {
    const auto found =
        command.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; });
    return found.empty() ? nullptr : found.front();
}

Line read(const CLI::App& app, const std::vector<std::string>& words) {
    Line line{&app, nullptr, {}, {}, {}};
    std::string flag;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const auto& word = words[i];
        if (line.waiting) {
            line.values[flag] = word;
            line.waiting = nullptr;
        } else if (is_flag(word)) {
            const auto equals = word.find('=');
            flag = word.substr(0, equals);
            const auto* option = find_flag(line.command, flag);
            if (!option) continue;
            line.seen.insert(option);
            if (equals != std::string::npos)
                line.values[flag] = word.substr(equals + 1);
            else if (takes_value(*option))
                line.waiting = option;
        } else if (flag == "--wait" && words[i - 1] == flag &&
                   word.find_first_not_of("0123456789") == std::string::npos) {
            continue;  // its number
        } else if (const auto* sub = find_subcommand(*line.command, word)) {
            line.command = sub;
        } else {
            line.positionals.push_back(word);
        }
    }
    return line;
}

class Completer {
  public:
    Completer(Session& session, const Line& line) : session_(session), line_(line) {
        if (const auto url = line.value("--api"); !url.empty()) session.url = url;
        if (const auto token = line.value("--token"); !token.empty()) session.token = token;
        session.vpc = line.value("--vpc");
        session.patience = kPatience;
    }

    // `written` stays in front of every candidate, `typed` is what they begin with.
    void values(const CLI::Option& option, std::string written, std::string typed) {
        const auto known = session_.value_sources.find(&option);
        if (known == session_.value_sources.end()) return;
        const auto& of = known->second;
        if (const auto comma = typed.rfind(','); of.list && comma != std::string::npos) {
            written += typed.substr(0, comma + 1);
            typed.erase(0, comma + 1);
        }
        written_ = written;
        typed_ = typed;
        switch (of.source) {
            case ValueSource::anything:
                return;
            case ValueSource::words:
                for (const auto word : of.words) offer(std::string(word));
                return;
            case ValueSource::objects:
                return objects(*of.kind, {});
            case ValueSource::json_file:
                return files();
            case ValueSource::next_hops:
                offer("internet", "to the internet");
                offer("blackhole", "dropped in silence");
                next_hops("endpoint", "to an endpoint");
                return next_hops("nat-gateway", "to the internet, behind its addresses");
            case ValueSource::endpoint_addresses:
                for (const auto& item : items(*find_kind("endpoint")))
                    for (const auto* family : {"ip", "ipv6"})
                        offer(text(item, family), text(item, "name"));
                return;
            case ValueSource::rule_ids:
                for (const auto& rule : parts("security-group", "rules"))
                    offer(text(rule, "id"), describe_rule(rule.as_object()));
                return;
            case ValueSource::route_destinations:
                for (const auto& route : parts("route-table", "routes"))
                    offer(text(route, "destination"), describe_route(route.as_object()));
                return;
        }
    }

    void offer(const std::string& word, const std::string& meaning = {}) {
        if (!word.empty() && word.starts_with(typed_)) result.push_back({written_ + word, meaning});
    }
    void type(const std::string& typed) { typed_ = typed; }

    std::vector<Candidate> result;

  private:
    static std::string text(const json::value& item, std::string_view name) {
        const auto* value = item.as_object().if_contains(name);
        return value && value->is_string() ? std::string(value->get_string()) : std::string();
    }

    json::array items(const KindInfo& kind) {
        auto answer =
            session_.api().call("GET", "/v1/" + std::string(kind.path), std::string(kOnePage));
        return session_.names().inside(kind, std::move(answer.at("items").as_array()));
    }

    void objects(const KindInfo& kind, const std::string& before) {
        const auto all = items(kind);
        std::map<std::string, int> times;
        for (const auto& item : all) ++times[text(item, "name")];
        const bool by_vpc = typed_.find('/') != std::string::npos;
        for (const auto& item : all) {
            const auto id = text(item, "id");
            const auto name = text(item, "name");
            // A name that several have is offered in the form that tells them apart.
            if (way_to_vpc(kind) && !name.empty() && (times[name] > 1 || by_vpc)) {
                auto& names = session_.names();
                const auto vpc = names.vpc_of(kind, item.as_object());
                const auto vpc_name = vpc.empty() ? vpc : names.name_of(*find_kind("vpc"), vpc);
                if (!vpc.empty()) offer(fmt::format("{}{}/{}", before, vpc_name, name), id);
            } else {
                offer(before + name, id);
            }
            // Ids only for who has begun to type one, or where there is no name.
            if (name.empty() || typed_.size() > before.size()) offer(before + id, name);
        }
    }

    // The rules or routes of what the command is about.
    json::array parts(std::string_view command, std::string_view field) {
        if (line_.positionals.empty()) return {};
        const auto& kind = *find_kind(command);
        const auto id = session_.names().resolve(kind, line_.positionals.front());
        const auto object = session_.api().call("GET", "/v1/" + std::string(kind.path) + "/" + id);
        return object.at(field).as_array();
    }

    // The prefix alone until it is written; then who can follow it.
    void next_hops(std::string_view kind, const std::string& meaning) {
        const auto before = std::string(kind) + ":";
        if (typed_.starts_with(before))
            objects(*find_kind(kind), before);
        else
            offer(before, meaning);
    }

    void files() {
        if (!typed_.starts_with('@')) {
            offer("@", "read from a file");
            offer("-", "read from standard input");
            return;
        }
        const auto path = typed_.substr(1);
        const auto slash = path.rfind('/');
        const auto folder = slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
        std::error_code failed;
        std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, failed);
        for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
            const auto name = entry->path().filename().string();
            // Hidden ones for who asks for them.
            if (name.starts_with('.') && path.substr(folder.size()).empty()) continue;
            std::error_code ignored;
            offer(fmt::format("@{}{}{}", folder, name, entry->is_directory(ignored) ? "/" : ""));
        }
    }

    Session& session_;
    const Line& line_;
    std::string written_;
    std::string typed_;
};

void flags(Completer& completer, const Line& line) {
    for (const auto* command = line.command; command; command = command->get_parent())
        for (const auto* option : command->get_options()) {
            if (option->get_lnames().empty() || option->get_group().empty()) continue;
            const bool again = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
            if (line.seen.count(option) != 0 && !again) continue;
            completer.offer("--" + option->get_lnames().front(), option->get_description());
        }
}

void next(Completer& completer, const Line& line, const std::string& typed) {
    if (line.waiting) return completer.values(*line.waiting, {}, typed);
    completer.type(typed);
    if (typed.starts_with("-")) {
        const auto equals = typed.find('=');
        if (equals == std::string::npos) return flags(completer, line);
        const auto* option = find_flag(line.command, typed.substr(0, equals));
        if (option)
            completer.values(*option, typed.substr(0, equals + 1), typed.substr(equals + 1));
        return;
    }
    std::size_t position = 0;
    for (const auto* option : line.command->get_options()) {
        if (!option->get_positional()) continue;
        // The last one of a command may be given several times.
        if (position++ < line.positionals.size() && option->get_items_expected_max() == 1) continue;
        return completer.values(*option, {}, typed);
    }
    for (const auto* sub : line.command->get_subcommands([](const CLI::App*) { return true; }))
        completer.offer(sub->get_name(), sub->get_description());
    if (completer.result.empty() && typed.empty()) flags(completer, line);
}

}  // namespace

std::vector<Candidate> candidates(const CLI::App& app, Session& session,
                                  const std::vector<std::string>& words) {
    if (words.empty()) return {};
    const auto line = read(app, words);
    Completer completer(session, line);
    try {
        next(completer, line, words.back());
    } catch (const Failure&) {
    } catch (const std::exception&) {  // an answer that is not the API's
    }
    return std::move(completer.result);
}

}  // namespace sluice::cli
