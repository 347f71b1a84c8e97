// SPDX-License-Identifier: Apache-2.0
// Completion scripts, generated from the very commands that are parsed.
#include <fmt/format.h>

#include <cstdio>

#include "controller/cli/commands.hpp"

namespace sluice::cli {
namespace {

struct Level {
    std::string path;  // "vpc create", empty for the program itself
    std::vector<std::string> words;
};

std::vector<Level> levels(const CLI::App& app, const std::string& path = {}) {
    std::vector<Level> result{{path, {}}};
    for (const auto* option : app.get_options())
        for (const auto& name : option->get_lnames()) result.front().words.push_back("--" + name);
    for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
        result.front().words.push_back(sub->get_name());
        auto below = levels(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name());
        result.insert(result.end(), below.begin(), below.end());
    }
    return result;
}

std::string join(const std::vector<std::string>& words) {
    std::string text;
    for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

// Which words may follow which commands, as a shell's `case` that sets a variable.
std::string cases(const CLI::App& app, std::string_view variable) {
    std::string text;
    for (const auto& level : levels(app))
        text += fmt::format("    \"{}\") {}=\"{}\" ;;\n", level.path, variable, join(level.words));
    return text;
}

constexpr std::string_view kBash =
    R"(# sluicectl completion for bash: source <(sluicectl completion bash)
_sluicectl() {{
  local path="" words="" word next
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -* ]] && continue
    next="${{path:+$path }}$word"
    case " {} " in *" ${{next// /,}} "*) path="$next" ;; esac
  done
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _sluicectl sluicectl
)";

constexpr std::string_view kZsh = R"(#compdef sluicectl
# sluicectl completion for zsh: source <(sluicectl completion zsh)
_sluicectl() {{
  local cmdpath="" allowed="" word next
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    [[ $word == -* ]] && continue
    next="${{cmdpath:+$cmdpath }}$word"
    case " {} " in *" ${{next// /,}} "*) cmdpath="$next" ;; esac
  done
  case "$cmdpath" in
{}  esac
  compadd -- ${{=allowed}}
}}
compdef _sluicectl sluicectl
)";

std::string paths(const CLI::App& app) {
    std::string text;
    for (const auto& level : levels(app)) {
        if (level.path.empty()) continue;
        std::string path = level.path;
        for (char& c : path)
            if (c == ' ') c = ',';
        text += (text.empty() ? "" : " ") + path;
    }
    return text;
}

std::string fish(const CLI::App& app) {
    std::string text = "# sluicectl completion for fish: sluicectl completion fish | source\n";
    for (const auto& level : levels(app)) {
        std::string condition = "__fish_use_subcommand";
        if (!level.path.empty()) {
            condition.clear();
            std::size_t begin = 0;
            while (begin < level.path.size()) {
                const auto end = std::min(level.path.find(' ', begin), level.path.size());
                condition += fmt::format("{}__fish_seen_subcommand_from {}",
                                         condition.empty() ? "" : "; and ",
                                         level.path.substr(begin, end - begin));
                begin = end + 1;
            }
        }
        for (const auto& word : level.words) {
            if (word.starts_with("--"))
                text +=
                    fmt::format("complete -c sluicectl -n '{}' -l {}\n", condition, word.substr(2));
            else
                text += fmt::format("complete -c sluicectl -f -n '{}' -a {}\n", condition, word);
        }
    }
    return text;
}

}  // namespace

void add_completion(CLI::App& app, Session& session) {
    auto* command = app.add_subcommand("completion", "print a completion script for a shell");
    auto shell = std::make_shared<std::string>();
    command->add_option("SHELL", *shell)->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    command->footer("Example:\n  source <(sluicectl completion bash)");
    command->callback([&app, &session, shell] {
        session.action = [&app, shell] {
            std::string text;
            if (*shell == "bash")
                text = fmt::format(kBash, paths(app), cases(app, "words"));
            else if (*shell == "zsh")
                text = fmt::format(kZsh, paths(app), cases(app, "allowed"));
            else
                text = fish(app);
            std::fputs(text.c_str(), stdout);
            return done;
        };
    });
}

}  // namespace sluice::cli
