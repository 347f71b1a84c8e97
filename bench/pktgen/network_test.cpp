// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/network.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <set>
#include <tuple>

using namespace sluice;
using namespace sluice::pktgen;

namespace {

Profile profile(const std::string& more, const std::string& tenants = "vpcs = 3\nendpoints = 7") {
    const auto reading = read("name = \"test\"\n" + more + "\n[tenants]\n" + tenants +
                              "\n[[port]]\nrole = \"underlay\"\ndevice = \"net_null0\"\n"
                              "gateway = \"192.0.2.1\"\nmtu = 9600\n");
    for (const auto& problem : reading.problems) UNSCOPED_INFO(to_string(problem, "profile"));
    REQUIRE(reading.problems.empty());
    return reading.profile;
}

}  // namespace

TEST_CASE("no two flows send the same tuple in one VPC") {
    const Network network(profile("[flows]\ncount = 20000\nto = \"peer\""));
    std::set<std::tuple<Vni, IpAddress, IpAddress, std::uint16_t>> tuples;
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        const Frame frame = network.sent(flow, Way::forward);
        CHECK(frame.destination_port == 443);
        REQUIRE(
            tuples.emplace(frame.vni, frame.source, frame.destination, frame.source_port).second);
    }
}

TEST_CASE("queue pairs of RoCEv2 share their ends in a row, with port 4791 at each receiver") {
    const Network network(profile("[flows]\ncount = 5000\nprotocol = \"rocev2\"\nqueue_pairs = 4"));
    std::set<std::tuple<Vni, IpAddress, IpAddress, std::uint16_t>> tuples;
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        const Frame there = network.sent(flow, Way::forward);
        const Frame back = network.sent(flow, Way::reverse);
        const Frame first = network.sent(flow / 4 * 4, Way::forward);
        CHECK(there.source == first.source);
        CHECK(there.destination == first.destination);
        CHECK(there.destination_port == 4791);
        CHECK(back.destination_port == 4791);
        CHECK(there.source_port >= 0xc000);
        CHECK(back.source_port == there.source_port);
        REQUIRE(
            tuples.emplace(there.vni, there.source, there.destination, there.source_port).second);
    }
}

TEST_CASE("packets in reverse swap the ends of what the server has seen") {
    const Network network(profile("[flows]\ncount = 500\nto = \"elastic\""));
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        const Frame there = network.sent(flow, Way::forward),
                    back = network.sent(flow, Way::reverse);
        const Arrival arrives = network.expected(flow, Way::forward);
        CHECK(back.source == arrives.destination);
        CHECK(back.destination == arrives.source);
        CHECK(back.vtep == arrives.vtep);
        CHECK(back.vni == there.vni);
        CHECK(back.source_port == there.destination_port);
        CHECK(back.destination_port == there.source_port);
        const Arrival returns = network.expected(flow, Way::reverse);
        CHECK(returns.destination == there.source);
        CHECK(returns.source == there.destination);
        CHECK(returns.vtep == there.vtep);
    }
}

TEST_CASE("every endpoint is a client or a server, on each host in turn") {
    const Network network(profile("", "vpcs = 2\nendpoints = 5"));
    REQUIRE(network.endpoints() == 10);
    std::set<IpAddress> elastic;
    for (std::uint32_t number = 0; number < 10; ++number) {
        const Endpoint one = network.endpoint(number);
        CHECK(one.vpc == number / 5);
        CHECK(one.client == (number % 5 < 3));
        CHECK(one.host == number % 2);
        CHECK(to_string(one.vtep) == (number % 2 == 0 ? "192.0.2.2" : "192.0.2.3"));
        CHECK(subnet(Family::ipv4, one.client).contains(one.address));
        elastic.insert(one.elastic);
    }
    CHECK(elastic.size() == 10);
}

TEST_CASE("addresses are counted over all of their octets") {
    CHECK(to_string(nth(*parse_ip("10.0.0.255"), 1)) == "10.0.1.0");
    CHECK(to_string(nth(*parse_ip("2001:db8::ffff"), 2)) == "2001:db8::1:1");
    CHECK(nth(*parse_ip("10.0.0.1"), 0) == *parse_ip("10.0.0.1"));
}

TEST_CASE("the description names every endpoint, and its elastic IP only where one is used") {
    const auto described = Network(profile("[flows]\nto = \"elastic\"")).json();
    CHECK(described.at("vpcs").as_array().size() == 3);
    CHECK(described.at("subnets").as_array().size() == 6);
    CHECK(described.at("endpoints").as_array().size() == 21);
    CHECK(described.at("endpoints").at(20).at("elastic").as_string() == "198.18.0.21");
    const auto plain = Network(profile("[frames]\nsize = 9018")).json();
    CHECK(!plain.at("endpoints").at(0).as_object().contains("elastic"));
    CHECK(plain.at("subnets").at(0).at("mtu").to_number<int>() == 9000);
}
