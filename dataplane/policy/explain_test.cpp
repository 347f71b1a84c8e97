// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/explain.hpp"

#include <boost/json.hpp>

#include "tests/unit/policy_world.hpp"

namespace sluice::policy {
namespace {

using namespace tests;
namespace json = boost::json;

struct Asked : World {
    Asked() {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6, 2);
        put(openflow::RouteRow{RouteTableId{1},
                               Prefix::any(Family::ipv4),
                               openflow::NextHop::internet,
                               {},
                               Cookie{450}},
            nfv::ElasticIpRow{a.vpc, a.address, ip("203.0.113.5"), {}, Cookie{700}},
            nfv::PublicAddressRow{ip("203.0.113.5"), a.vpc, a.address, {}, Cookie{701}});
    }
    [[nodiscard]] json::object ask(const std::string& request) const {
        const auto reply = explain(store.current(), request);
        if (!reply) FAIL(reply.error().path + ": " + reply.error().message);
        return json::parse(*reply).as_object();
    }
    // "table outcome cookie" of each step.
    static std::vector<std::string> steps(const json::object& reply) {
        std::vector<std::string> result;
        for (const json::value& step : reply.at("steps").as_array()) {
            const json::object& one = step.as_object();
            CHECK_FALSE(one.at("detail").as_string().empty());
            result.push_back(std::string(one.at("table").as_string().c_str()) + " " +
                             one.at("outcome").as_string().c_str() +
                             (one.contains("cookie")
                                  ? " " + std::to_string(one.at("cookie").to_number<unsigned>())
                                  : ""));
        }
        return result;
    }
    Machine a, b;
};

TEST_CASE_METHOD(Asked, "an allowed packet's way names rule, route and endpoint by cookie") {
    const auto reply = ask(
        R"({"source_vpc":1,"source":"10.0.1.5","destination":"10.0.2.6","protocol":6,
            "destination_port":80})");
    CHECK(reply.at("verdict") == "forward");
    CHECK(reply.at("destination_endpoint").to_number<std::uint32_t>() == b.id.value);
    CHECK(steps(reply) == std::vector<std::string>{
                              "vni match 1", "source match 2105", "egress_rule allow 601",
                              "route match 400", "endpoint match 1106", "ingress_rule allow 602"});
}

TEST_CASE_METHOD(Asked, "a denied packet's way says what denied it, and goes on to its end") {
    const Machine closed = add_machine(9, 1, {GroupId{77}});
    const auto reply =
        ask(R"({"source_vpc":1,"source":"10.0.1.9","destination":"10.0.2.6","protocol":6})");
    CHECK(reply.at("verdict") == "drop");
    CHECK(reply.at("reason") == "egress_no_rule");
    CHECK(reply.at("source_endpoint").to_number<std::uint32_t>() == closed.id.value);
    CHECK(steps(reply)[2] == "egress_rule deny");
    CHECK(reply.at("steps").at(2).at("groups").as_array() == json::array{77});
    CHECK(steps(reply).back() == "ingress_rule allow 602");
}

TEST_CASE_METHOD(Asked, "a sender without a row is said to be unknown") {
    remove(a.source());
    const auto reply =
        ask(R"({"source_vpc":1,"source":"10.0.1.5","destination":"10.0.2.6","protocol":6})");
    CHECK(reply.at("reason") == "unknown_source");
    CHECK(reply.at("sentence") ==
          "no endpoint of the VPC is known with this MAC and source address");
}

TEST_CASE_METHOD(Asked, "where nothing may leave to is said, with the route that led there") {
    const auto reply =
        ask(R"({"source_vpc":1,"source":"10.0.1.5","destination":"172.16.0.1","protocol":6})");
    CHECK(reply.at("reason") == "private_destination");
    CHECK(reply.at("cookie") == 450);
    CHECK(steps(reply).back() == "route drop 450");
}

TEST_CASE_METHOD(Asked, "from the internet and to it, translations are steps") {
    auto reply = ask(R"({"source_vpc":0,"source":"198.51.100.1","destination":"203.0.113.5",
                         "protocol":1,"icmp_type":8})");
    CHECK(reply.at("verdict") == "forward");
    CHECK(steps(reply).front() == "public_address translate 701");
    CHECK(reply.at("leaves").as_object().at("destination") == "10.0.1.5");
    reply =
        ask(R"({"source_vpc":1,"source":"10.0.1.5","destination":"198.51.100.1","protocol":17})");
    CHECK(steps(reply).back() == "elastic_ip translate 700");
    CHECK(reply.at("leaves").as_object().at("source") == "203.0.113.5");
}

TEST_CASE_METHOD(Asked, "a request that makes no sense is refused with the member's path") {
    const auto path = [&](const char* request) {
        const auto reply = explain(store.current(), request);
        REQUIRE_FALSE(reply.ok());
        return reply.error().path;
    };
    CHECK(path("[]").empty());
    CHECK(path("{").empty());
    CHECK(path(R"({"source":"10.0.0.1","destination":"10.0.0.2","protocol":6})") == "/source_vpc");
    CHECK(path(R"({"source_vpc":1,"source":"x","destination":"10.0.0.2","protocol":6})") ==
          "/source");
    CHECK(path(R"({"source_vpc":1,"source":"10.0.0.1","destination":"::1","protocol":6})") ==
          "/destination");
    CHECK(path(R"({"source_vpc":1,"source":"10.0.0.1","destination":"10.0.0.2","protocol":256})") ==
          "/protocol");
    CHECK(path(R"({"source_vpc":-1,"source":"10.0.0.1","destination":"10.0.0.2","protocol":6})") ==
          "/source_vpc");
}

}  // namespace
}  // namespace sluice::policy
