// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/text.hpp"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "controller/cli/api.hpp"

namespace sluice::cli {
namespace {

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

TEST_CASE("a problem with one field is said once") {
    CHECK(describe_problem(422, R"json({"title":"Invalid","detail":"/host_id is required (or vtep)",
        "errors":[{"pointer":"/host_id","detail":"is required (or vtep)"}]})json") ==
          "/host_id is required (or vtep)");
    CHECK(describe_problem(409, R"({"title":"Conflict","detail":"the address is taken",
        "errors":[{"pointer":"","detail":"the address is taken"}]})") == "the address is taken");
}

TEST_CASE("of several problems each is said once, under what they come to") {
    CHECK(describe_problem(422, R"({"title":"The request is not valid",
        "detail":"/cidr has host bits set",
        "errors":[{"pointer":"/cidr","detail":"has host bits set"},
                  {"pointer":"/mtu","detail":"is too small"}]})") ==
          "the request is not valid\n  /cidr has host bits set\n  /mtu is too small");
}

TEST_CASE("a problem document reads as a sentence with the fields below it") {
    CHECK(describe_problem(422, R"({"title":"Invalid","detail":"the body is invalid",
        "errors":[{"pointer":"/cidr","detail":"has host bits set"}]})") ==
          "the body is invalid\n  /cidr has host bits set");
    CHECK(describe_problem(502, "<html>") == "status 502: <html>");
}

}  // namespace
}  // namespace sluice::cli
