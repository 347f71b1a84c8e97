// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/table.hpp"

#include <catch2/catch.hpp>

namespace sluice::cli {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE("a table's columns are aligned, also with names that are not ASCII") {
    CHECK(render_table({{"NAME", "VNI"}, {{"zürich", "5"}, {"a", "100"}}}) ==
          "NAME    VNI\nzürich  5\na       100\n");
}

TEST_CASE("a name cannot steer the terminal of whoever lists it") {
    CHECK(render_table({{"NAME"}, {{"\x1b[2J"}}}) == "NAME\n\\x1b[2J\n");
}

TEST_CASE("columns are left out one after the other, no more than it takes") {
    const Table table{{"NAME", "MAC", "STATE", "ID"}, {{"web", "02:00", "up", "6d2b-07"}}, {3, 1}};
    CHECK(render_table(table, 27) == render_table(table));
    CHECK(render_table(table, 26) == "NAME  MAC    STATE\nweb   02:00  up\n");
    CHECK(render_table(table, 17) == "NAME  STATE\nweb   up\n");
}

TEST_CASE("what is still too wide is broken between words, the widest cells first") {
    const Table table{{"STEP", "DETAIL"}, {{"route", "the destination is inside the VPC"}}};
    CHECK(render_table(table, 28) ==
          "STEP   DETAIL\nroute  the destination is\n       inside the VPC\n");
}

TEST_CASE("words stay whole, and what is indented stays so") {
    CHECK(wrapped("  one two", 6) == Lines{"  one", "two"});
    CHECK(wrapped("incomprehensible", 5) == Lines{"incomprehensible"});
    CHECK(wrapped("", 5) == Lines{""});
}

}  // namespace
}  // namespace sluice::cli
