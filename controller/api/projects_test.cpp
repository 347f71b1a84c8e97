// SPDX-License-Identifier: Apache-2.0
// Who sees and does what: tokens, roles, projects; and what gateways are asked.
#include <fstream>

#include "controller/api/fixture.hpp"

using namespace sluice;
using namespace sluice::api;

namespace {

constexpr const char* kTokens = R"(
[[token]]
token = "admin-token"
role = "admin"
[[token]]
token = "blue-token"
project = "blue"
role = "member"
[[token]]
token = "blue-reader"
project = "blue"
role = "reader"
[[token]]
token = "red-token"
project = "red"
role = "member"
)";

}  // namespace

TEST_CASE("a tokens file that others may read is refused") {
    const TemporaryFolder folder;
    const auto path = folder.file("tokens.toml");
    std::ofstream(path) << "[[token]]\ntoken = \"admin-token\"\nrole = \"admin\"\n";
    const auto allow = [&](unsigned mode) {
        std::filesystem::permissions(path, std::filesystem::perms(mode));
        return Tokens::read(path);
    };
    CHECK(allow(0600));
    CHECK(allow(0640));
    for (const unsigned mode : {0644U, 0602U, 0666U}) {
        const auto read = allow(mode);
        REQUIRE_FALSE(read);
        CHECK(read.error().message.find("chmod o= ") != std::string::npos);
    }
}

TEST_CASE("without a valid token nothing is answered but 401") {
    Fixture f(kTokens);
    for (const auto* token : {"", "wrong", "blue-toke", "blue-token "}) {
        const auto reply = f.get("/v1/vpcs", token);
        CHECK(reply.status == 401);
        CHECK(reply.raw.header("www-authenticate") == "Bearer");
        const std::string said = *token ? "this token is unknown" : "send Authorization: Bearer";
        CHECK(reply.text("/detail").starts_with(said));
    }
    CHECK(f.get("/v1/vpcs", "blue-token").status == 200);
}

TEST_CASE("a project neither sees nor changes what belongs to another") {
    Fixture f(kTokens);
    Network blue(f, "blue-token");
    const Network red(f, "red-token");
    CHECK(f.get("/v1/vpcs", "red-token").body.at("items").as_array().size() == 1);
    for (const auto* method : {"GET", "PATCH", "DELETE"})
        CHECK(f.call(method, "/v1/vpcs/" + blue.vpc, "{}", "red-token").status == 404);
    const auto reference = f.post(
        "/v1/subnets", R"({"cidr":"10.0.9.0/24","vpc_id":")" + blue.vpc + "\"}", "red-token");
    CHECK(reference.status == 404);
    CHECK(reference.pointers() == std::vector<std::string>{"/vpc_id"});
    const auto list = f.make("prefix-lists", R"({"cidrs":["10.0.0.0/8"]})", "blue-token");
    const auto group = f.get("/v1/security-groups", "red-token").text("/items/0/id");
    CHECK(f.post("/v1/security-groups/" + group + "/rules",
                 R"({"direction":"ingress","remote_prefix_list_id":")" + list + "\"}", "red-token")
              .status == 404);
    CHECK(f.get("/v1/vpcs", "admin-token").body.at("items").as_array().size() == 2);
    // Nor may an admin tie them together.
    CHECK(f.post("/v1/subnets",
                 R"({"project_id":"red","cidr":"10.0.9.0/24","vpc_id":")" + blue.vpc + "\"}",
                 "admin-token")
              .status == 404);
    const auto audit = f.get("/v1/audit", "red-token");
    for (const auto& record : audit.body.at("items").as_array())
        CHECK(record.at("project_id") == "red");
}

TEST_CASE("what is taken names its holder to those only who may see it") {
    Fixture f(kTokens);
    const Network blue(f, "blue-token");
    f.make("external-pools", R"({"cidr":"203.0.113.0/29"})", "admin-token");
    f.make("elastic-ips", R"({"name":"secret","address":"203.0.113.2"})", "blue-token");
    const auto reply = f.post("/v1/elastic-ips", R"({"address":"203.0.113.2"})", "red-token");
    CHECK(reply.status == 409);
    CHECK(reply.raw.body.find("secret") == std::string::npos);
}

TEST_CASE("roles: a reader reads, only an admin writes what belongs to no project") {
    Fixture f(kTokens);
    CHECK(f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"]})", "blue-reader").status == 403);
    CHECK(f.post("/v1/hosts", R"({"vteps":["192.0.2.1"]})", "blue-token").status == 403);
    CHECK(f.post("/v1/external-pools", R"({"cidr":"203.0.113.0/24"})", "blue-token").status == 403);
    CHECK(f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"],"vni":7})", "blue-token").status == 403);
    CHECK(f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"],"project_id":"red"})", "blue-token")
              .status == 403);
    const auto host = f.make("hosts", R"({"vteps":["192.0.2.1"]})", "admin-token");
    CHECK(f.get("/v1/hosts/" + host, "blue-reader").status == 200);
    CHECK(f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"],"project_id":"red"})", "admin-token")
              .text("/project_id") == "red");
    CHECK(f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"]})", "admin-token").text("/project_id") ==
          "default");
}

TEST_CASE("a tenant raises its VPC's limits to the gateway's default or what an admin has set") {
    Fixture f(kTokens);
    const auto try_to_set = [&](const std::string& path, const std::string& limits,
                                const std::string& token) {
        return f.patch(path, R"({"limits":{)" + limits + "}}", token);
    };
    // Nobody has said a default yet.
    CHECK(
        f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"],"limits":{"connections":5}})", "blue-token")
            .status == 403);
    f.gateways->facts.limits = {{"connections", 4'294'967'295},
                                {"half_open", 500},
                                {"new_per_second", 10'000},
                                {"endpoint_new_per_second", 2'500}};
    f.gateways->connect("gw1");
    CHECK(
        f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"],"limits":{"half_open":501}})", "blue-token")
            .status == 403);
    const auto path =
        "/v1/vpcs/" +
        f.make("vpcs", R"({"cidrs":["10.0.0.0/16"],"limits":{"half_open":500}})", "blue-token");
    const auto refused = try_to_set(path, R"("new_per_second":10001)", "blue-token");
    CHECK(refused.status == 403);
    CHECK(refused.pointers() == std::vector<std::string>{"/limits/new_per_second"});
    CHECK(refused.text("/errors/0/detail") ==
          "may be at most 10000; only an admin may raise it above that");
    CHECK(try_to_set(path, R"("endpoint_new_per_second":2501)", "blue-token").status == 403);
    CHECK(try_to_set(path, R"("endpoint_half_open":1)", "blue-token").status == 403);  // not said
    // What only shares bound may be as much as can be said.
    CHECK(try_to_set(path, R"("connections":16777215,"fragments":16777215)", "blue-token").status ==
          200);

    // What an admin has set stays while the tenant changes something else, and is the ceiling.
    CHECK(try_to_set(path, R"("new_per_second":20000)", "admin-token").status == 200);
    CHECK(f.patch(path, R"({"name":"blue","limits":{"half_open":9}})", "blue-token").status == 200);
    CHECK(f.get(path, "blue-token").text("/limits/new_per_second") == "20000");
    CHECK(try_to_set(path, R"("new_per_second":7)", "blue-token").status == 200);
    CHECK(try_to_set(path, R"("new_per_second":20001)", "blue-token").status == 403);
    CHECK(try_to_set(path, R"("new_per_second":20000)", "blue-token").status == 200);
    CHECK(f.get(path, "blue-token").text("/limit_ceilings/new_per_second") == "20000");
    CHECK(f.patch(path, R"({"limit_ceilings":{"new_per_second":1}})", "admin-token").status == 422);
    f.gateways->answer =
        R"({"items":[{"vpc":)" +
        std::to_string(
            f.service->state().all(model::Kind::vpc).begin()->second->register_number()) +
        R"(,"new_per_second":{"used":1,"limit":20000},"half_open":{"used":0,"limit":9}}]})";
    const auto limits = f.get("/v1/limits", "blue-token");
    CHECK(limits.text("/items/0/new_per_second/ceiling") == "20000");
    CHECK(limits.text("/items/0/half_open/ceiling") == "500");

    // One that an admin has lowered does not come back with the default.
    CHECK(try_to_set(path, R"("new_per_second":100)", "admin-token").status == 200);
    CHECK(f.patch(path, R"({"limits":null})", "blue-token").status == 200);
    CHECK(f.get(path, "blue-token").text("/limits/new_per_second") == "100");
    CHECK(f.get(path, "blue-token").text("/limits/half_open") == "null");
    // It is kept by the store; the admin's null gives it up.
    f.restart();
    CHECK(f.get(path).text("/limit_ceilings/new_per_second") == "100");
    CHECK(f.patch(path, R"({"limits":null})").status == 200);
    CHECK(f.get(path).text("/limit_ceilings/new_per_second") == "null");
}

TEST_CASE("explain asks the VPC's gateway and names what decided") {
    Fixture f;
    f.gateways->connect("gw1");
    Network n(f);
    n.group(f, R"([{"direction":"ingress","protocol":"tcp","port_min":443}])");
    const auto rule = f.service->state()
                          .all(model::Kind::security_group)
                          .rbegin()
                          ->second->as<model::SecurityGroup>()
                          .rules[0]
                          .number;
    f.gateways->answer =
        R"({"verdict":"forward","reason":"none","steps":[{"table":"ingress_rule","outcome":"allow","cookie":)" +
        std::to_string(rule) +
        R"(},{"table":"route","outcome":"match","cookie":999999},{"table":"egress_rule","groups":[)" +
        std::to_string(f.service->state().all(model::Kind::security_group).rbegin()->first) +
        R"(]}]})";
    const auto reply = f.post(
        "/v1/explain",
        R"({"vpc_id":")" + n.vpc +
            R"(","source":"10.0.1.2","destination":"10.0.1.3","protocol":"tcp","destination_port":443})");
    CHECK(reply.status == 200);
    CHECK(reply.text("/gateways/0/steps/0/resource/name") ==
          "web: ingress allow tcp 443 from 0.0.0.0/0");
    CHECK(reply.text("/gateways/0/steps/0/resource/security_group/name") == "web");
    CHECK(reply.text("/gateways/0/steps/1/resource") == "null");
    CHECK(reply.text("/gateways/0/steps/2/groups/0/name") == "web");
    REQUIRE(f.gateways->asked.size() == 1);
    CHECK(f.gateways->asked[0].find("\"destination_port\":443") != std::string::npos);
    CHECK(f.post("/v1/explain",
                 R"({"source":"10.0.1.2","destination":"::1","protocol":"x","port":1})")
              .pointers() == std::vector<std::string>{"/port", "/protocol"});
    f.gateways->answer = Error{Error::Code::unavailable, "it is not connected", {}};
    CHECK(f.post("/v1/explain",
                 R"({"vpc_id":")" + n.vpc +
                     R"(","source":"10.0.1.2","destination":"10.0.1.3","protocol":"tcp"})")
              .status == 502);
}

TEST_CASE("flows and drops are named, and a project sees its own side only") {
    Fixture f(kTokens);
    f.gateways->connect("gw1");
    const Network blue(f, "blue-token"), red(f, "red-token");
    const auto number = [&](const std::string& id) {
        return std::to_string(
            f.service->state().find(model::Kind::vpc, *model::parse_uuid(id))->number);
    };
    f.gateways->answer = R"({"items":[{"source_vpc":)" + number(blue.vpc) +
                         R"(,"source":"10.0.1.2","destination_vpc":)" + number(red.vpc) +
                         R"(,"destination":"10.0.1.9"},{"vpc":)" + number(red.vpc) +
                         R"(,"reason":"spoofed_ip","packets":3}]})";
    const auto flows = f.get("/v1/flows?vpc_id=" + blue.vpc, "blue-token");
    CHECK(flows.text("/items/0/source_vpc/name") == "blue");
    CHECK(flows.text("/items/0/source") == "10.0.1.2");
    CHECK(flows.text("/items/0/destination") == "(none)");
    CHECK(flows.text("/items/0/gateway") == "gw1");
    CHECK(flows.body.at("items").as_array().size() == 1);
    CHECK(f.get("/v1/drops?vpc_id=" + blue.vpc, "red-token").status == 404);
    CHECK(f.get("/v1/drops", "admin-token").body.at("items").as_array().size() == 2);
    CHECK(f.get("/v1/drops?colour=1", "admin-token").status == 400);
    f.gateways->answer = R"({"items":[{"vpc":)" + number(blue.vpc) +
                         R"(,"connections":{"used":3,"limit":10,"refused":0}}]})";
    CHECK(f.get("/v1/limits?vpc_id=" + blue.vpc, "red-token").status == 404);
    const auto limits = f.get("/v1/limits?vpc_id=" + blue.vpc, "blue-token");
    CHECK(limits.text("/items/0/vpc/name") == "blue");
    CHECK(limits.text("/items/0/connections/limit") == "10");
}

TEST_CASE("a bad tokens file is told by line and key") {
    const auto message = [](const char* text) {
        const auto tokens = Tokens::parse(text, "t.toml");
        return tokens ? std::string("fine") : tokens.error().message;
    };
    CHECK(message("") == "t.toml: expected at least one [[token]]");
    CHECK(message("[[token]]\ntoken = \"12345678\"\nrole = \"boss\"\n")
              .starts_with("t.toml:3: role:"));
    CHECK(message("[[token]]\ntoken = \"short\"\nrole = \"admin\"\n").find("8 characters") !=
          std::string::npos);
    CHECK(message("[[token]]\ntoken = \"12345678\"\nrole = \"member\"\n").find("project") !=
          std::string::npos);
    CHECK(message("token = 1\n").starts_with("t.toml:1: token:"));
    CHECK(message("[[token]\n").starts_with("t.toml:1:"));
    // All of it, not only the first.
    CHECK(message("[[token]]\ntoken = \"short\"\nrole = \"boss\"\ncolour = 1\n[[token]]\n"
                  "token = \"12345678\"\nrole = \"reader\"\n[[token]]\ntoken = \"12345678\"\n"
                  "role = \"admin\"\n") ==
          "t.toml:4: colour: expected one of token, name, project, role\n"
          "t.toml:3: role: expected admin, member, reader or agent\n"
          "t.toml:1: token: expected at least 8 characters\n"
          "t.toml:5: project: expected the project that the token is for\n"
          "t.toml:8: token: expected each token once");
}
