// SPDX-License-Identifier: Apache-2.0
// The words of a command line, made ready for CLI11. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

// Last one first, as CLI11 takes them. `--wait 5` becomes `--wait=5` (the number is optional,
// and what follows without being one is a name); `--name=` becomes a flag and an empty value.
std::vector<std::string> prepared(const std::vector<std::string>& words);

// CLI11 takes "[a,b]" for two values where an argument may be repeated. Words that follow
// `delete` are marked against that, and what is read from them goes through this.
std::string unmarked(const std::string& word);

}  // namespace sluice::cli
