// SPDX-License-Identifier: Apache-2.0
// Completion: scripts for three shells, all of which ask `sluicectl complete` what may come next.
#include <fmt/format.h>

#include <cstdio>

#include "controller/cli/commands.hpp"
#include "controller/cli/complete.hpp"
#include "controller/cli/shell_words.hpp"

namespace sluice::cli {
namespace {

constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

// bash takes a line apart at COMP_WORDBREAKS and replaces the last piece: `complete` answers
// pieces.
constexpr std::string_view kBash =
    R"(# sluicectl completion for bash: source <(sluicectl completion bash)
_sluicectl() {
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]/#\~/$HOME}" complete bash \
    "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/:@=] ]] && compopt -o nospace
}
complete -F _sluicectl sluicectl
)";

constexpr std::string_view kZsh = R"(#compdef sluicectl
# sluicectl completion for zsh: source <(sluicectl completion zsh)
_sluicectl() {
  local -a all closed open closed_shown open_shown
  local line value
  all=("${(@f)$("${(Q)words[1]/#\~/$HOME}" complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "$all[@]"; do
    value="${line%%$'\t'*}"
    [[ -n $value ]] || continue
    if [[ $value == *[/:@=] ]]; then
      open+=("$value") open_shown+=("${line/$'\t'/  -- }")
    else
      closed+=("$value") closed_shown+=("${line/$'\t'/  -- }")
    fi
  done
  (( $#closed )) && compadd -l -d closed_shown -a closed
  (( $#open )) && compadd -l -S '' -d open_shown -a open
}
if [[ $funcstack[1] == _sluicectl ]]; then
  _sluicectl "$@"
else
  compdef _sluicectl sluicectl
fi
)";

constexpr std::string_view kFish =
    R"(# sluicectl completion for fish: sluicectl completion fish | source
function __sluicectl_complete
  set -l words (commandline -opc)
  $words[1] complete fish $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c sluicectl -f -a '(__sluicectl_complete)'
)";

void print_for_bash(const CLI::App& app, Session& session, const std::string& line,
                    const std::string& breaks) {
    auto split = split_shell_line(line);
    split.words.erase(split.words.begin());
    if (split.words.empty()) return;
    // What bash leaves alone: up to the last character at which it takes words apart; but an @
    // belongs to the piece behind it (readline's rl_special_prefixes).
    const auto& typed = split.words.back();
    auto kept = split.in_quotes ? 0 : typed.find_last_of(breaks) + 1;
    if (kept > 0 && typed[kept - 1] == '@') --kept;
    for (const auto& candidate : candidates(app, session, split.words)) {
        const auto piece = candidate.word.substr(kept);
        fmt::print("{}\n", split.in_quotes ? piece : shell_escaped(piece));
    }
}

// A control character would end the line or the field.
std::string one_line(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
    return text;
}

}  // namespace

ExitStatus complete(const CLI::App& app, Session& session, const std::vector<std::string>& words) {
    if (words.size() == 3 && words[0] == "bash") {
        print_for_bash(app, session, words[1], words[2]);
    } else if (words.size() > 1) {
        for (const auto& candidate : candidates(app, session, {words.begin() + 1, words.end()}))
            fmt::print("{}{}{}\n", one_line(candidate.word), candidate.meaning.empty() ? "" : "\t",
                       one_line(candidate.meaning));
    }
    return done;
}

void add_completion(CLI::App& app, Session& session) {
    auto* command = app.add_subcommand("completion", "print a completion script for a shell");
    auto shell = std::make_shared<std::string>();
    auto* option = command->add_option("SHELL", *shell, "bash, zsh or fish")
                       ->required()
                       ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    session.value_sources[option] = {ValueSource::words, kShells};
    command->footer(
        "Completes commands, flags and their values; names and ids come from the API that\n"
        "SLUICE_API and SLUICE_TOKEN say.\n\n"
        "bash, in ~/.bashrc:                  source <(sluicectl completion bash)\n"
        "zsh, in ~/.zshrc, after compinit:    source <(sluicectl completion zsh)\n"
        "fish, in ~/.config/fish/config.fish: sluicectl completion fish | source");
    command->callback([&session, shell] {
        session.action = [shell] {
            const auto text = *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish;
            std::fwrite(text.data(), 1, text.size(), stdout);
            return done;
        };
    });
}

}  // namespace sluice::cli
