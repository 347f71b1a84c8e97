// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/shell_words.hpp"

#include <catch2/catch.hpp>

namespace sluice::cli {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("the word being typed is empty behind a space") {
    CHECK(split_shell_line("sluicectl vpc ").words == Words{"sluicectl", "vpc", ""});
    CHECK(split_shell_line("sluicectl  vp").words == Words{"sluicectl", "vp"});
    CHECK(split_shell_line("").words == Words{""});
}

TEST_CASE("quotes and backslashes are read as a shell does") {
    const auto open = split_shell_line(R"(a 'b c' "d \" e" f\ g "h )");
    CHECK(open.words == Words{"a", "b c", "d \" e", "f g", "h "});
    CHECK(open.in_quotes);
    CHECK_FALSE(split_shell_line("'a'").in_quotes);
    CHECK(split_shell_line("a ''").words == Words{"a", ""});
}

TEST_CASE("what is escaped is read back as it was") {
    const std::string word = "my $(rm -r *) `vpc` \"[1]\" 'x' a/b:c=d,e@f";
    CHECK(split_shell_line(shell_escaped(word)).words == Words{word});
}

}  // namespace
}  // namespace sluice::cli
