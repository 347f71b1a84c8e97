// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/arguments.hpp"

#include <catch2/catch.hpp>

namespace sluice::cli {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("the words come last one first") {
    CHECK(prepared({"vpc", "list"}) == Words{"list", "vpc"});
}

TEST_CASE("only a number after --wait belongs to it") {
    CHECK(prepared({"--wait", "5"}) == Words{"--wait=5"});
    CHECK(prepared({"--wait", "web1"}) == Words{"web1", "--wait"});
}

TEST_CASE("a flag with an empty value does not take the next flag for it") {
    CHECK(prepared({"--name=", "--cidr", "x"}) == Words{"x", "--cidr", "", "--name"});
}

TEST_CASE("a bracketed name that is to be deleted stays one word, and itself") {
    const auto words = prepared({"vpc", "delete", "[a,b]", "c"});
    REQUIRE(words.size() == 4);
    CHECK(words[1].front() != '[');
    CHECK(unmarked(words[1]) == "[a,b]");
    CHECK(unmarked(words[0]) == "c");
    CHECK(prepared({"vpc", "delete", "--token", "[t]"}).front() == "[t]");
}

}  // namespace
}  // namespace sluice::cli
