// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/arguments.hpp"

#include <algorithm>

namespace sluice::cli {
namespace {

// No argument of a program holds a zero octet, so no name can be taken for a marked one.
constexpr char kMark = '\0';

bool is_number(std::string_view word) {
    return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

bool is_flag(std::string_view word) {
    return word.starts_with("--") && word.size() > 2;
}

}  // namespace

std::vector<std::string> prepared(const std::vector<std::string>& words) {
    std::vector<std::string> result;
    bool deleting = false;
    for (const auto& word : words) {
        const std::string_view before = result.empty() ? std::string_view() : result.back();
        const bool is_value = before == "--token" || before == "--api";
        if (is_number(word) && before == "--wait") {
            result.back() += "=" + word;
        } else if (is_flag(word) && word.find('=') == word.size() - 1) {
            result.push_back(word.substr(0, word.size() - 1));
            result.emplace_back();
        } else if (deleting && !is_value && word.starts_with('[')) {
            result.push_back(kMark + word);
        } else {
            result.push_back(word);
            deleting |= word == "delete";
        }
    }
    std::reverse(result.begin(), result.end());
    return result;
}

std::string unmarked(const std::string& word) {
    return word.starts_with(kMark) ? word.substr(1) : word;
}

}  // namespace sluice::cli
