// SPDX-License-Identifier: Apache-2.0
// What may come next on a command line.
//
// Subcommands and flags are those of the very commands that are parsed; values are words of the
// field tables, files, or names and ids that the API lists. The API is asked once or twice, for at
// most a second each; whatever goes wrong means no candidates, never a message.
#pragma once

#include <string>
#include <vector>

#include "controller/cli/commands.hpp"

namespace sluice::cli {

struct Candidate {
    std::string word;     // replaces the last of the words
    std::string meaning;  // beside it, where the shell shows that; may be empty
};

// `words` begins behind the program's name; its last is what is being typed, maybe empty.
std::vector<Candidate> candidates(const CLI::App& app, Session& session,
                                  const std::vector<std::string>& words);

}  // namespace sluice::cli
