// SPDX-License-Identifier: Apache-2.0
// Fields whose effect other tests do not show.
#include "controller/api/fixture.hpp"

using namespace sluice;
using namespace sluice::api;

TEST_CASE("a subnet uses the route table that it names, and its VPC's main one if it names none") {
    Fixture f;
    f.gateways->connect("gw1");
    const Network n(f);
    const auto main = f.get("/v1/route-tables?vpc_id=" + n.vpc).text("/items/0/id");
    CHECK(f.get("/v1/subnets/" + n.subnet).text("/route_table_id") == main);
    const auto other =
        f.post("/v1/route-tables", R"({"vpc_id":")" + n.vpc + R"(","routes":[]})").id();
    const auto sent = f.gateways->sent["gw1"].size();
    const auto moved = f.patch("/v1/subnets/" + n.subnet, R"({"route_table_id":")" + other + "\"}");
    CHECK(moved.status == 200);
    CHECK(moved.text("/route_table_id") == other);
    // The gateway is told, and the table is in use.
    CHECK(f.gateways->sent["gw1"].size() > sent);
    CHECK(f.remove("/v1/route-tables/" + other).status == 409);
    CHECK(
        f.patch("/v1/subnets/" + n.subnet, R"({"route_table_id":null})").text("/route_table_id") ==
        main);
    CHECK(f.remove("/v1/route-tables/" + other).status == 202);
}

TEST_CASE("the default group and the main table are marked, and nobody may say so of another") {
    Fixture f;
    const Network n(f);
    CHECK(f.get("/v1/security-groups?vpc_id=" + n.vpc).text("/items/0/is_default") == "true");
    CHECK(f.get("/v1/route-tables?vpc_id=" + n.vpc).text("/items/0/is_main") == "true");
    const std::string vpc = R"({"vpc_id":")" + n.vpc + "\"";
    CHECK(f.post("/v1/security-groups", vpc + "}").text("/is_default") == "false");
    CHECK(f.post("/v1/route-tables", vpc + "}").text("/is_main") == "false");
    CHECK(f.post("/v1/security-groups", vpc + R"(,"is_default":true})").status == 422);
    CHECK(f.post("/v1/route-tables", vpc + R"(,"is_main":true})").status == 422);
}
