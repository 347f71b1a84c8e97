// SPDX-License-Identifier: Apache-2.0
// Lines as shells write them (POSIX, Shell Command Language, 2.2 Quoting). Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct ShellWords {
    std::vector<std::string> words;  // unquoted; the last is what is being typed, maybe empty
    bool in_quotes = false;          // of the last word
};

ShellWords split_shell_line(std::string_view line);

// Backslashes before whatever a shell would not take as itself.
std::string shell_escaped(std::string_view word);

}  // namespace sluice::cli
