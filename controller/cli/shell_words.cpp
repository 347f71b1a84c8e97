// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/shell_words.hpp"

namespace sluice::cli {

ShellWords split_shell_line(std::string_view line) {
    ShellWords result;
    std::string word;
    bool begun = false;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
            if (begun) result.words.push_back(word);
            word.clear();
            begun = false;
            continue;
        }
        begun = true;
        if (c == '\\' && quote != '\'' && i + 1 < line.size())
            word += line[++i];
        else if (quote != 0 ? c == quote : c == '\'' || c == '"')
            quote = quote != 0 ? char{0} : c;
        else
            word += c;
    }
    result.words.push_back(word);
    result.in_quotes = quote != 0;
    return result;
}

std::string shell_escaped(std::string_view word) {
    constexpr std::string_view kSpecial = " \t\n\\\"'`$&|;<>()[]{}*?!#~";
    std::string result;
    for (const char c : word) {
        if (kSpecial.find(c) != std::string::npos) result += '\\';
        result += c;
    }
    return result;
}

}  // namespace sluice::cli
