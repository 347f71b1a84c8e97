// SPDX-License-Identifier: Apache-2.0
// What the API promises of objects; docs/semantics.md names these tests.
#include "controller/api/fixture.hpp"
#include "controller/model/fields.hpp"

using namespace sluice;
using namespace sluice::api;

TEST_CASE("a new VPC has a main route table and a default group: ingress from itself, egress any") {
    Fixture f;
    const Network n(f);
    CHECK(f.get("/v1/route-tables?vpc_id=" + n.vpc).text("/items/0/name") == "main");
    CHECK(f.get("/v1/route-tables?vpc_id=" + n.vpc).text("/items/0/routes") == "[]");
    const auto groups = f.get("/v1/security-groups?vpc_id=" + n.vpc);
    CHECK(groups.text("/items/0/name") == "default");
    const auto& rules = groups.body.at_pointer("/items/0/rules").as_array();
    REQUIRE(rules.size() == 4);
    for (const auto& rule : rules)
        CHECK((rule.at("direction") == "egress" ||
               rule.at("remote_group_id") == json::value(groups.text("/items/0/id"))));
    CHECK(f.get("/v1/vpcs/" + n.vpc).text("/vni") != "0");
}

TEST_CASE("a new group starts with two egress-allow rules; rules that are given are all there is") {
    Fixture f;
    Network n(f);
    const auto plain = f.post("/v1/security-groups", R"({"vpc_id":")" + n.vpc + "\"}");
    CHECK(plain.text("/rules/0/direction") == "egress");
    CHECK(plain.text("/rules/0/family") == "ipv4");
    CHECK(plain.text("/rules/1/family") == "ipv6");
    CHECK(plain.body.at("rules").as_array().size() == 2);
    CHECK(f.remove("/v1/security-groups/" + plain.id() + "/rules/" + plain.text("/rules/0/id"))
              .status == 202);
    CHECK(f.get("/v1/security-groups/" + n.group(f)).text("/rules") == "[]");
}

TEST_CASE("what a large VPC leaves behind goes in a few steps, once its gateway has confirmed") {
    Fixture f;
    f.gateways->connect("gw1");
    Network n(f);
    std::vector<std::string> endpoints;
    for (int i = 0; i < 150; ++i) endpoints.push_back(n.endpoint(f));
    f.gateways->silent = {"gw1"};
    for (const auto& endpoint : endpoints)
        CHECK(f.remove("/v1/endpoints/" + endpoint).status == 202);
    CHECK(f.remove("/v1/subnets/" + n.subnet).status == 202);
    CHECK(f.remove("/v1/vpcs/" + n.vpc).status == 202);
    CHECK(f.get("/v1/vpcs/" + n.vpc).text("/status/state") == "deleting");
    CHECK(f.get("/v1/subnets/" + n.subnet).text("/available_ips") == "103");
    const auto before = f.service->revision();
    // All but the VPC's own last words.
    f.service->on_confirmed("gw1", before - 1);
    f.get("/v1/vpcs");
    CHECK(f.get("/v1/endpoints/" + endpoints.back()).status == 404);
    CHECK(f.get("/v1/subnets/" + n.subnet).status == 404);
    CHECK(f.get("/v1/vpcs/" + n.vpc).status == 200);
    f.service->on_confirmed("gw1", before);
    f.get("/v1/vpcs");
    CHECK(f.get("/v1/vpcs/" + n.vpc).status == 404);
    CHECK(f.service->revision() - before <= 5);
}

TEST_CASE("an endpoint gets the first free addresses, a MAC and the default group") {
    Fixture f;
    Network n(f);
    const auto first = f.get("/v1/endpoints/" + n.endpoint(f));
    CHECK(first.text("/ip") == "10.0.1.2");  // .1 is the gateway's
    CHECK(first.text("/ipv6") == "fd00:1:0:1::2");
    CHECK(first.text("/mac").starts_with("06:5c:"));
    CHECK(first.body.at("security_group_ids").as_array().size() == 1);
    CHECK(first.text("/source_check") == "true");
    n.endpoint(f, R"(,"ip":"10.0.1.3")");
    const auto third = n.endpoint(f);
    CHECK(f.get("/v1/endpoints/" + third).text("/ip") == "10.0.1.4");
    CHECK(f.get("/v1/endpoints/" + n.endpoint(f, R"(,"security_group_ids":[])"))
              .text("/security_group_ids") == "[]");
}

TEST_CASE("a freed address is given out again, once its endpoint is gone") {
    Fixture f;
    Network n(f);
    f.gateways->connect("gw1");
    const auto first = n.endpoint(f);
    n.endpoint(f);
    f.gateways->silent = {"gw1"};
    CHECK(f.remove("/v1/endpoints/" + first).status == 202);
    CHECK(f.get("/v1/endpoints/" + first).text("/status/state") == "deleting");
    CHECK(f.get("/v1/endpoints/" + n.endpoint(f)).text("/ip") == "10.0.1.4");
    f.service->on_confirmed("gw1", f.service->revision());
    f.context.restart();
    f.context.poll();
    CHECK(f.get("/v1/endpoints/" + first).status == 404);
    CHECK(f.get("/v1/endpoints/" + n.endpoint(f)).text("/ip") == "10.0.1.2");
}

TEST_CASE("a full subnet is 409") {
    Fixture f;
    Network n(f);
    n.subnet = f.make("subnets", R"({"cidr":"10.0.2.0/30","vpc_id":")" + n.vpc + "\"}");
    n.endpoint(f);
    const auto reply =
        f.post("/v1/endpoints", R"({"vtep":"192.0.2.1","subnet_id":")" + n.subnet + "\"}");
    CHECK(reply.status == 409);
    CHECK(f.get("/v1/subnets/" + n.subnet).text("/available_ips") == "0");
}

TEST_CASE("a merge patch changes what it names, null clears, nothing changed is no new version") {
    Fixture f;
    Network n(f);
    const auto at = "/v1/vpcs/" + n.vpc;
    auto reply = f.patch(at, R"({"description":"d","tags":{"a":"1","b":"2"}})");
    CHECK(reply.status == 200);
    CHECK(reply.text("/version") == "2");
    CHECK(reply.raw.header("etag") == "\"2\"");
    CHECK(reply.text("/name") == "blue");
    reply = f.patch(at, R"({"description":null,"tags":{"a":null}})");
    CHECK(reply.text("/description").empty());
    CHECK(reply.text("/tags") == R"({"b":"2"})");
    CHECK(f.patch(at, R"({"name":"blue"})").text("/version") == "3");
}

TEST_CASE("a patched rule list keeps the ids of the rules that stay") {
    Fixture f;
    Network n(f);
    const auto group = n.group(f, R"([{"direction":"ingress","protocol":"tcp","port_min":80}])");
    const auto at = "/v1/security-groups/" + group;
    const auto rule = f.get(at).text("/rules/0/id");
    const auto reply = f.patch(at, R"({"rules":[{"direction":"egress"},
        {"direction":"ingress","protocol":"tcp","port_min":80}]})");
    CHECK(reply.text("/rules/1/id") == rule);
    const auto added = f.post(at + "/rules", R"({"direction":"ingress","protocol":"icmp"})");
    CHECK(added.status == 201);
    CHECK(added.text("/security_group_id") == group);
    CHECK(f.remove(at + "/rules/" + added.id()).status == 202);
    CHECK(f.get(at).body.at("rules").as_array().size() == 2);
}

TEST_CASE("lists come in pages and by filters, repeated ones meaning either") {
    Fixture f;
    Network n(f);
    for (int i = 0; i < 5; ++i) n.endpoint(f, R"(,"name":"e)" + std::to_string(i) + "\"");
    std::string token, names;
    do {
        const auto page =
            f.get("/v1/endpoints?limit=2" + (token.empty() ? "" : "&page_token=" + token));
        for (const auto& item : page.body.at("items").as_array())
            names += std::string(item.at("name").as_string());
        token = page.text("/next_page_token") == "null" ? "" : page.text("/next_page_token");
    } while (!token.empty());
    CHECK(names == "e0e1e2e3e4");
    CHECK(f.get("/v1/endpoints?name=e1&name=e3").body.at("items").as_array().size() == 2);
    CHECK(f.get("/v1/endpoints?name=e1&ip=10.0.1.9").text("/items") == "[]");
    CHECK(f.get("/v1/endpoints?state=pending").body.at("items").as_array().size() == 5);
}

TEST_CASE("without gateway everything stays pending; once one has confirmed it is active") {
    Fixture f;
    Network n(f);
    CHECK(f.get("/v1/vpcs/" + n.vpc).text("/status/state") == "pending");
    f.gateways->connect("gw1");
    f.context.poll();
    const auto active = f.get("/v1/subnets/" + n.subnet);
    CHECK(active.text("/status/state") == "active");
    CHECK(active.text("/status/observed_version") == "1");
    CHECK(active.text("/status/gateways/0/name") == "gw1");
    CHECK(f.get("/v1/gateways").text("/items/0/name") == "gw1");
}

TEST_CASE(
    "a silent gateway leaves a change pending, a refusal makes it an error with its sentence") {
    Fixture f;
    f.gateways->connect("gw1");
    const Network n(f);
    f.gateways->silent = {"gw1"};
    auto reply = f.patch("/v1/subnets/" + n.subnet + "?wait=0", R"({"mtu":1400})");
    CHECK(reply.text("/status/state") == "pending");
    CHECK(reply.text("/status/observed_version") == "1");
    f.gateways->refusal = "table endpoint is full";
    reply = f.patch("/v1/subnets/" + n.subnet + "?wait=5", R"({"mtu":1401})");
    CHECK(reply.status == 200);
    CHECK(reply.text("/status/state") == "error");
    CHECK(reply.text("/status/reason") == "gateway gw1: table endpoint is full");
}

TEST_CASE("wait answers when the change is in force; out of time is no error") {
    Fixture f;
    f.gateways->connect("gw1");
    CHECK(f.post("/v1/vpcs?wait=5", R"({"cidrs":["10.0.0.0/16"]})").text("/status/state") ==
          "active");
    f.gateways->silent = {"gw1"};
    const auto reply = f.post("/v1/vpcs?wait=1", R"({"cidrs":["10.0.0.0/16"]})");
    CHECK(reply.status == 201);
    CHECK(reply.text("/status/state") == "pending");
}

TEST_CASE("delete is 202 while gateways confirm, then 404; with wait 204") {
    Fixture f;
    f.gateways->connect("gw1");
    Network n(f);
    const auto endpoint = n.endpoint(f);
    CHECK(f.remove("/v1/endpoints/" + endpoint).status == 202);
    CHECK(f.get("/v1/endpoints/" + endpoint).status == 404);
    CHECK(f.remove("/v1/subnets/" + n.subnet + "?wait=5").status == 204);
    CHECK(f.remove("/v1/vpcs/" + n.vpc + "?wait=5").status == 204);
    CHECK(f.get("/v1/route-tables").text("/items") == "[]");
    CHECK(f.get("/v1/security-groups").text("/items") == "[]");
}

TEST_CASE("an elastic IP takes the pool's first free address and moves at once") {
    Fixture f;
    Network n(f);
    f.make("external-pools",
           R"({"cidr":"203.0.113.0/29","mode":"on_link","reserved":["203.0.113.2/32"]})");
    const auto first = n.endpoint(f), second = n.endpoint(f);
    const auto elastic =
        f.post("/v1/elastic-ips", R"({"endpoint_id":")" + first + R"(","bandwidth_mbps":20})");
    CHECK(elastic.text("/address") == "203.0.113.3");  // the first is the router's
    const auto at = "/v1/elastic-ips/" + elastic.id();
    CHECK(f.patch(at, R"({"endpoint_id":")" + second + "\"}").text("/endpoint_id") == second);
    CHECK(f.patch(at, R"({"endpoint_id":null})").text("/endpoint_id") == "null");
}

TEST_CASE("elastic IPs share a bandwidth, which names them and stays while they do") {
    Fixture f;
    f.gateways->connect("gw1");
    Network n(f);
    f.make("external-pools", R"({"cidr":"203.0.113.0/29"})");
    const auto limit = f.make("bandwidths", R"({"name":"office","mbps":100})");
    const auto at = "/v1/bandwidths/" + limit;
    CHECK(f.get(at).text("/status/state") == "active");
    CHECK(f.get(at).text("/elastic_ip_ids") == "[]");
    std::vector<std::string> sharing;
    for (int i = 0; i < 2; ++i)
        sharing.push_back(f.make(
            "elastic-ips",
            R"({"bandwidth_id":")" + limit + R"(","endpoint_id":")" + n.endpoint(f) + "\"}"));
    const auto shown = f.get(at);
    for (const auto& id : sharing)
        CHECK(shown.text("/elastic_ip_ids").find(id) != std::string::npos);
    CHECK(shown.text("/status/gateways/0/name") == "gw1");
    CHECK(f.get("/v1/elastic-ips?bandwidth_id=" + limit).text("/items/1/id") == sharing[1]);
    CHECK(f.remove(at).status == 409);
    CHECK(f.remove(at).text("/errors/0/detail").find("elastic_ip") != std::string::npos);
    // From its own limit to a shared one in one request, and back.
    const auto first = "/v1/elastic-ips/" + sharing[0];
    CHECK(f.patch(first, R"({"bandwidth_mbps":5})").status == 422);
    CHECK(f.patch(first, R"({"bandwidth_mbps":5,"bandwidth_id":null})").status == 200);
    CHECK(f.get(at).text("/elastic_ip_ids") == "[\"" + sharing[1] + "\"]");
    CHECK(f.patch("/v1/elastic-ips/" + sharing[1], R"({"bandwidth_id":null})").status == 200);
    CHECK(f.remove(at + "?wait=5").status == 204);
}

TEST_CASE("an on_link pool never gives out its network, router or broadcast address") {
    Fixture f;
    f.make("external-pools", R"({"cidr":"203.0.113.0/29","mode":"on_link"})");
    std::vector<std::string> given;
    for (int i = 0; i < 5; ++i) given.push_back(f.post("/v1/elastic-ips", "{}").text("/address"));
    CHECK(given == std::vector<std::string>{"203.0.113.2", "203.0.113.3", "203.0.113.4",
                                            "203.0.113.5", "203.0.113.6"});
    CHECK(f.post("/v1/elastic-ips", "{}").status == 409);
    for (const auto* nobody : {"203.0.113.0", "203.0.113.7"}) {
        const auto reply =
            f.post("/v1/elastic-ips", R"({"address":")" + std::string(nobody) + "\"}");
        CHECK(reply.status == 422);
        CHECK(reply.pointers() == std::vector<std::string>{"/address"});
    }
    CHECK(f.post("/v1/elastic-ips", R"({"address":"203.0.113.1"})").status == 201);
    // Where there is nothing but one address, or two (RFC 3021).
    f.make("external-pools", R"({"cidr":"192.0.2.1/32","mode":"on_link"})");
    CHECK(f.post("/v1/elastic-ips", "{}").text("/address") == "192.0.2.1");
    f.make("external-pools", R"({"cidr":"192.0.2.8/31","mode":"on_link"})");
    CHECK(f.post("/v1/elastic-ips", "{}").text("/address") == "192.0.2.9");
}

TEST_CASE("what a gateway reports as its own is not given out, and cannot be asked for") {
    Fixture f;
    f.gateways->facts.addresses = {*parse_ip("203.0.113.3")};
    f.gateways->facts.vteps = {*parse_ip("203.0.113.4")};
    f.gateways->facts.next_hops = {*parse_ip("203.0.113.2")};
    f.gateways->connect("gw1");
    f.make("external-pools", R"({"cidr":"203.0.113.0/28","mode":"on_link"})");
    CHECK(f.post("/v1/elastic-ips", "{}").text("/address") == "203.0.113.5");
    const auto reply = f.post("/v1/elastic-ips", R"({"address":"203.0.113.2"})");
    CHECK(reply.status == 422);
    CHECK(reply.text("/errors/0/detail") == "is a next hop of gateway gw1");
    CHECK(f.post("/v1/elastic-ips", R"({"address":"203.0.113.3"})").status == 422);
}

TEST_CASE("what a gateway refuses is the error of that object alone, until it is mended") {
    Fixture f;
    f.gateways->connect("gw1");
    Network n(f);
    f.make("external-pools", R"({"cidr":"203.0.113.0/29"})");
    const auto endpoint = n.endpoint(f);
    const auto bad = f.make("elastic-ips", R"({"endpoint_id":")" + endpoint + "\"}");
    const auto group = n.group(f, R"([{"direction":"ingress"}])");
    const auto cookie = f.service->state().all(model::Kind::elastic_ip).begin()->second->cookie();
    const auto& rules = f.service->state()
                            .all(model::Kind::security_group)
                            .rbegin()
                            ->second->as<model::SecurityGroup>()
                            .rules;
    f.service->on_withheld("gw1", {{cookie, "it is a next hop of port 2"},
                                   {Cookie{rules.front().number}, "no such rule"}});
    auto reply = f.get("/v1/elastic-ips/" + bad);
    CHECK(reply.text("/status/state") == "error");
    CHECK(reply.text("/status/reason") == "gateway gw1: it is a next hop of port 2");
    CHECK(f.get("/v1/security-groups/" + group).text("/status/reason") ==
          "gateway gw1: no such rule");
    CHECK(f.get("/v1/endpoints/" + endpoint).text("/status/state") == "active");
    CHECK(f.get("/v1/vpcs/" + n.vpc).text("/status/state") == "active");
    // Whoever waits is told at once, and another address takes its place.
    reply = f.patch("/v1/elastic-ips/" + bad + "?wait=5", R"({"bandwidth_mbps":5})");
    CHECK(reply.text("/status/state") == "error");
    CHECK(f.remove("/v1/elastic-ips/" + bad + "?wait=5").status == 204);
    f.service->on_withheld("gw1", {});
    reply = f.post("/v1/elastic-ips?wait=5", R"({"endpoint_id":")" + endpoint + "\"}");
    CHECK(reply.text("/status/state") == "active");
}

TEST_CASE("a detached elastic IP is pending until the gateway that had it has confirmed") {
    Fixture f;
    f.gateways->connect("gw1");
    Network n(f);
    f.make("external-pools", R"({"cidr":"203.0.113.0/29"})");
    const auto elastic = f.make("elastic-ips", R"({"endpoint_id":")" + n.endpoint(f) + "\"}");
    const auto at = "/v1/elastic-ips/" + elastic;
    CHECK(f.get(at).text("/status/state") == "active");
    f.gateways->silent = {"gw1"};
    CHECK(f.patch(at, R"({"endpoint_id":null})").text("/status/state") == "pending");
    f.service->on_confirmed("gw1", f.service->revision());
    CHECK(f.get(at).text("/status/state") == "active");
}

TEST_CASE("after a restart everything is there, and no number is used again") {
    Fixture f;
    Network n(f);
    const auto endpoint = n.endpoint(f);
    const auto group = n.group(f, R"([{"direction":"ingress"}])");
    const auto last = f.service->state().all(model::Kind::security_group).rbegin()->first;
    const auto before = f.get("/v1/endpoints/" + endpoint).raw.body;
    f.remove("/v1/security-groups/" + group);
    f.restart();
    CHECK(f.get("/v1/endpoints/" + endpoint).raw.body == before);
    n.group(f);
    CHECK(f.service->state().all(model::Kind::security_group).rbegin()->first > last);
}

TEST_CASE("the record of one rule more shows that rule, not all the others") {
    Fixture f;
    Network n(f);
    const auto group = n.group(f, R"([{"direction":"ingress"}])");
    REQUIRE(f.post("/v1/security-groups/" + group + "/rules",
                   R"({"direction":"egress","protocol":"tcp"})")
                .status == 201);
    const auto audit = f.get("/v1/audit?object_id=" + group);
    CHECK(audit.body.at_pointer("/items/0/after/rules").as_array().size() == 1);
    CHECK(audit.text("/items/1/before/rules") == "[]");
    CHECK(audit.body.at_pointer("/items/1/after/rules").as_array().size() == 1);
    CHECK(audit.text("/items/1/after/rules/0/protocol") == "tcp");
    // The group itself has both, after a restart, too.
    f.restart();
    CHECK(f.get("/v1/security-groups/" + group).body.at("rules").as_array().size() == 2);
}

TEST_CASE("a freed address is given out again, lowest first, whatever was changed meanwhile") {
    Fixture f;
    Network n(f);
    std::vector<std::string> endpoints;
    for (int i = 0; i < 6; ++i) endpoints.push_back(n.endpoint(f));  // .2 to .7
    n.endpoint(f, R"(,"ip":"10.0.1.9")");
    f.patch("/v1/endpoints/" + endpoints[0], R"({"name":"x"})");
    f.remove("/v1/endpoints/" + endpoints[3] + "?wait=1");
    f.remove("/v1/endpoints/" + endpoints[1] + "?wait=1");
    std::vector<std::string> given;
    for (int i = 0; i < 4; ++i)
        given.push_back(f.get("/v1/endpoints/" + n.endpoint(f)).text("/ip"));
    CHECK(given == std::vector<std::string>{"10.0.1.3", "10.0.1.5", "10.0.1.8", "10.0.1.10"});
}

TEST_CASE("each change leaves an audit record with who, what, before and after") {
    Fixture f;
    const Network n(f);
    f.patch("/v1/vpcs/" + n.vpc, R"({"name":"green"})");
    const auto audit = f.get("/v1/audit?object_id=" + n.vpc);
    CHECK(audit.text("/items/0/action") == "create");
    CHECK(audit.text("/items/1/action") == "update");
    CHECK(audit.text("/items/1/before/name") == "blue");
    CHECK(audit.text("/items/1/after/name") == "green");
    CHECK(audit.text("/items/1/actor") == "local (admin)");
    CHECK(f.get("/v1/audit?limit=1").text("/next_page_token") == "1");
}

TEST_CASE("a VPC goes to one gateway, the one that carries the fewest") {
    Fixture f;
    f.gateways->connect("gw1");
    f.gateways->connect("gw2");
    std::set<std::string> used;
    for (int i = 0; i < 2; ++i)
        used.insert(f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"]})").text("/gateway"));
    CHECK(used == std::set<std::string>{"gw1", "gw2"});
    const auto gw1 = f.get("/v1/gateways?name=gw1").text("/items/0/id");
    CHECK(f.patch("/v1/gateways/" + gw1, R"({"admin_state":"drain"})").status == 200);
    for (int i = 0; i < 2; ++i)
        CHECK(f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"]})").text("/gateway") == "gw2");
}

TEST_CASE("a VPC made while every gateway drains is placed once one is up again") {
    Fixture f;
    f.gateways->connect("gw1");
    const auto gw1 = "/v1/gateways/" + f.get("/v1/gateways?name=gw1").text("/items/0/id");
    f.patch(gw1, R"({"admin_state":"drain"})");
    const auto vpc = f.post("/v1/vpcs", R"({"cidrs":["10.0.0.0/16"]})").text("/id");
    CHECK(f.get("/v1/vpcs/" + vpc).text("/gateway") != "gw1");
    f.patch(gw1, R"({"admin_state":"up"})");
    CHECK(f.get("/v1/vpcs/" + vpc).text("/gateway") == "gw1");
}

TEST_CASE("the OpenAPI document names every kind and no field that is not enforced") {
    Fixture f;
    const auto document = f.get("/v1/openapi.json");
    CHECK(document.text("/openapi") == "3.1.0");
    for (const auto& kind : model::all_kinds())
        CHECK(document.text("/paths/~1v1~1" + std::string(kind.path)) != "(none)");
    const std::string rules = "/paths/~1v1~1security-groups~1{id}~1rules";
    CHECK(document.text(rules + "/post/operationId") == "create_rule");
    CHECK(document.text(rules + "~1{rule}/delete/operationId") == "delete_rule");
    CHECK(document.text("/components/schemas/rule/properties/direction") != "(none)");
    CHECK(document.raw.body.find("\"rdma\"") == std::string::npos);
    const std::string timeouts = "/components/schemas/vpc/properties/timeouts/properties";
    CHECK(document.text(timeouts + "/tcp_established/minimum") == "7440");
    CHECK(document.text(timeouts + "/tcp_established/default") == "7440");
    CHECK(document.text(timeouts + "/udp/description").find("RFC 4787 REQ-5") != std::string::npos);
}

TEST_CASE("a VPC's limits and time-outs merge member by member; null brings a default back") {
    Fixture f;
    const auto vpc =
        f.post("/v1/vpcs", R"({"cidrs":["10.9.0.0/16"],"limits":{"connections":1000}})");
    CHECK(vpc.text("/limits/connections") == "1000");
    CHECK(vpc.text("/limits/half_open") == "null");
    CHECK(vpc.text("/timeouts/tcp_established") == "7440");
    CHECK(vpc.text("/timeouts/udp") == "300");
    CHECK(vpc.text("/mid_stream") == "60");
    CHECK(vpc.text("/tcp_window_check") == "false");
    CHECK(vpc.text("/mss_clamping") == "true");
    const auto path = "/v1/vpcs/" + vpc.id();
    auto changed = f.patch(
        path, R"({"limits":{"endpoint_half_open":20},"timeouts":{"udp":180},"mid_stream":0})");
    CHECK(changed.text("/limits/connections") == "1000");
    CHECK(changed.text("/limits/endpoint_half_open") == "20");
    CHECK(changed.text("/timeouts/udp") == "180");
    CHECK(changed.text("/mid_stream") == "0");
    changed = f.patch(path, R"({"limits":{"connections":null},"timeouts":null,"mid_stream":null})");
    CHECK(changed.text("/limits/connections") == "null");
    CHECK(changed.text("/limits/endpoint_half_open") == "20");
    CHECK(changed.text("/timeouts/udp") == "300");
    CHECK(changed.text("/mid_stream") == "60");
    CHECK(f.get(path).text("/limits/endpoint_half_open") == "20");
}
