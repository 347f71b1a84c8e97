// SPDX-License-Identifier: Apache-2.0
#include "controller/config/config.hpp"

#include <catch2/catch.hpp>

using namespace sluice::config;

TEST_CASE("an empty file is the documented defaults") {
    const auto parsed = parse_controller("");
    CHECK(parsed.problems.empty());
    CHECK(parsed.config.api.port == 8080);
    CHECK(parsed.config.telemetry.port == 9300);
    CHECK(parsed.config.openflow == std::vector<std::string>{"unix:/run/sluice/controller.of"});
    CHECK(parsed.config.compare.count() == 30);
}

TEST_CASE("every key is read") {
    const auto parsed = parse_controller(R"(
[api]
listen = "[::1]:80"
tokens = "/t"
[openflow]
listen = ["unix:/a", "tcp:127.0.0.1:6653"]
compare_seconds = 5
[telemetry]
listen = "127.0.0.1:1"
[store]
url = "sqlite:/s"
)");
    CHECK(parsed.problems.empty());
    CHECK(parsed.config.api.address == "::1");
    CHECK(parsed.config.tokens == "/t");
    CHECK(parsed.config.openflow.size() == 2);
    CHECK(parsed.config.compare.count() == 5);
    CHECK(parsed.config.store == "sqlite:/s");
}

TEST_CASE("a bad file is told by line, key and what was expected") {
    const auto parsed = parse_controller("[api]\nlisten = \"0.0.0.0:80\"\nport = 1\n[x]\n");
    REQUIRE(parsed.problems.size() == 3);
    CHECK(to_string(parsed.problems[0], "f.toml").starts_with("f.toml:2: api.listen: expected"));
    CHECK(to_string(parsed.problems[1], "f.toml") ==
          "f.toml:3: api.port: unknown key; controller.example.toml has those that there are");
    CHECK(parsed.problems[2].key == "x");
}

TEST_CASE("two listeners on one address are told, and where each key stands is known") {
    const auto parsed = parse_controller(
        "[api]\nlisten = \"127.0.0.1:9300\"\n[telemetry]\nlisten = \"127.0.0.1:9300\"\n"
        "[store]\nurl = \"sqlite:/nowhere/s\"\n");
    REQUIRE(parsed.problems.size() == 1);
    CHECK(to_string(parsed.problems[0], "f") ==
          "f:4: telemetry.listen: expected another address or port than api.listen's");
    CHECK(parsed.line_of("store.url") == 6);
    CHECK(parsed.line_of("openflow.listen") == 0);
}

TEST_CASE("what is no TOML at all is told by line") {
    const auto parsed = parse_controller("[api]\nlisten = \n");
    REQUIRE(parsed.problems.size() == 1);
    CHECK(parsed.problems[0].line == 2);
}

TEST_CASE("wrong types are problems, not surprises") {
    CHECK(parse_controller("api = 1").problems.size() == 1);
    CHECK(parse_controller("[api]\nlisten = 8080").problems.size() == 1);
    for (const auto* wrong : {"-1", "86401", "0.5", "\"5\""})
        CHECK(parse_controller(std::string("[openflow]\ncompare_seconds = ") + wrong)
                  .problems.size() == 1);
    CHECK(
        parse_controller("[openflow]\nlisten = [1, \"tls:0.0.0.0:6653\", \"x\"]").problems.size() ==
        3);
    CHECK(parse_controller("[openflow]\nlisten = []").problems.size() == 1);
    CHECK(parse_controller("[openflow]\nlisten = [\"unix:/a\", \"unix:/a\"]").problems.size() == 1);
    CHECK(parse_controller("[openflow]\nlisten = \"tcp:127.0.0.1:0\"").problems.size() == 1);
    CHECK(parse_controller("[api]\nlisten = \"127.0.0.1:0\"").problems.size() == 1);
    CHECK(read_controller("/nonexistent/file").problems.size() == 1);
    CHECK(read_controller("/etc/passwd/file").problems.front().message ==
          "cannot be read: Not a directory; name a TOML file that exists and is readable");
}
