// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/text.hpp"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "controller/cli/api.hpp"

namespace sluice::cli {
namespace {

TEST_CASE("a table's columns are aligned, also with names that are not ASCII") {
    CHECK(render_table({"NAME", "VNI"}, {{"zürich", "5"}, {"a", "100"}}) ==
          "NAME    VNI\nzürich  5\na       100\n");
}

TEST_CASE("a name cannot steer the terminal of whoever lists it") {
    CHECK(render_table({"NAME"}, {{"\x1b[2J"}}) == "NAME\n\\x1b[2J\n");
}

TEST_CASE("a value of several lines stays beside its name") {
    CHECK(render_pairs({{"rules", "one\ntwo\n"}, {"id", "7"}}) ==
          "rules  one\n       two\nid     7\n");
}

TEST_CASE("cells hold lists, references and absent values") {
    CHECK(cell(nullptr) == "-");
    CHECK(cell(json::parse(R"(["a","b"])")) == "a, b");
    CHECK(cell(json::parse(R"({"id":"x","name":"web"})")) == "web");
    CHECK(cell(json::parse(R"({"a":1,"b":true})")) == "a=1 b=true");
}

TEST_CASE("JSON is indented and stays JSON") {
    const auto value = json::parse(R"({"a":[1,{"b":null}],"c":{},"d":[]})");
    CHECK(json::parse(pretty(value)) == value);
    CHECK(pretty(value) ==
          "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {},\n  \"d\": "
          "[]\n}\n");
}

TEST_CASE("rules and routes are said in words") {
    const auto rule = json::parse(
        R"({"direction":"ingress","action":"allow","family":"ipv4","protocol":"tcp",
            "port_min":443,"port_max":443,"priority":1000,"remote_cidr":null})");
    CHECK(describe_rule(rule.as_object()) == "ingress allow ipv4 tcp 443 from anywhere");
    const auto route = json::parse(R"({"destination":"0.0.0.0/0","next_hop":{"internet":true}})");
    CHECK(describe_route(route.as_object()) == "0.0.0.0/0 -> internet");
}

TEST_CASE("a problem document reads as a sentence with the fields below it") {
    CHECK(describe_problem(422, R"({"title":"Invalid","detail":"the body is invalid",
        "errors":[{"pointer":"/cidr","detail":"has host bits set"}]})") ==
          "the body is invalid\n  /cidr: has host bits set");
    CHECK(describe_problem(502, "<html>") == "status 502: <html>");
}

}  // namespace
}  // namespace sluice::cli
