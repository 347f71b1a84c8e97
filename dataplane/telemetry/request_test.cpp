// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/request.hpp"

#include <catch2/catch.hpp>

namespace sluice::telemetry {

TEST_CASE("a request is a JSON object, and says what is wrong with it", "[telemetry]") {
    CHECK(parse_request("{}").ok());
    CHECK(parse_request("[]").error().message == "expected a JSON object");
    CHECK(parse_request("").error().message.starts_with("no JSON: "));
    CHECK(parse_request(std::string(100000, '[')).error().message.starts_with("no JSON: "));
}

TEST_CASE("numbers are whole and in their range; absent and null are none", "[telemetry]") {
    const auto request =
        parse_request(R"({"a": 7, "b": -1, "c": 1.5, "d": "7", "e": null, "f": 99})");
    REQUIRE(request.ok());
    CHECK(*number(*request, "a", 1, 10) == std::optional<std::uint64_t>{7});
    for (const auto* key : {"b", "c", "d", "f"}) {
        const auto refused = number(*request, key, 1, 10);
        REQUIRE_FALSE(refused.ok());
        CHECK(refused.error().message == "expected a whole number from 1 to 10");
        CHECK(refused.error().path == std::string("/") + key);
    }
    CHECK_FALSE(number(*request, "e", 1, 10)->has_value());
    CHECK_FALSE(number(*request, "g", 1, 10)->has_value());
}

}  // namespace sluice::telemetry
