// SPDX-License-Identifier: Apache-2.0
#include "controller/compiler/compiler.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "controller/compiler/fixture.hpp"
#include "dataplane/openflow/tables.hpp"
#include "nfv/elastic_ip/table.hpp"
#include "nfv/nat_gateway/table.hpp"
#include "nfv/security_group/table.hpp"

using namespace sluice;
using namespace sluice::compiler;

namespace {

// A step of a random history: what, on which objects, with which detail.
struct Step {
    unsigned what, first, second, detail;
};
constexpr unsigned kSteps = 25;

void take(Cloud& cloud, const Step& step) {
    const auto vpc = cloud.any(Kind::vpc, step.first);
    const auto subnet = cloud.any(Kind::subnet, step.first);
    const auto endpoint = cloud.any(Kind::endpoint, step.first);
    const auto group = cloud.any(Kind::security_group, step.first);
    const auto second = cloud.any(Kind::security_group, step.second);
    const auto list = cloud.any(Kind::prefix_list, step.second);
    const auto elastic = cloud.any(Kind::elastic_ip, step.second);
    const auto table = cloud.any(Kind::route_table, step.first);
    const auto bandwidth = cloud.any(Kind::bandwidth, step.first);
    const auto nat = cloud.any(Kind::nat_gateway, step.first);
    const auto other = cloud.any(Kind::elastic_ip, step.detail);
    const auto detail = std::to_string(step.detail % 8);
    const std::string direction = step.detail % 2 == 0 ? "ingress" : "egress";
    switch (step.what % kSteps) {
        case 0:
            cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8","fd00::/16"]})");
            break;
        case 1:
            if (vpc)
                cloud.make(Kind::subnet, R"({"vpc_id":)" + id(vpc) + R"(,"cidr":"10.)" + detail +
                                             R"(.0.0/24","ipv6_cidr":"fd00:)" + detail +
                                             R"(::/64"})");
            break;
        case 2:
            cloud.make(Kind::host, R"({"vteps":["192.0.2.)" + detail + "1\"]}");
            break;
        case 3:
        case 4:
            if (subnet)
                cloud.make(Kind::endpoint,
                           R"({"vtep":"192.0.2.9","subnet_id":)" + id(subnet) + "}");
            break;
        case 5:
            if (vpc) cloud.make(Kind::security_group, R"({"vpc_id":)" + id(vpc) + "}");
            break;
        case 6:
        case 7:
            if (group && second)
                cloud.apply(cloud.planner().add_rule(
                    group, json::parse(R"({"direction":")" + direction + R"(","priority":)" +
                                       std::to_string(step.detail % 8 + 1) +
                                       R"(,"remote_group_id":)" + id(second) + "}")));
            break;
        case 8:
            if (group && list)
                cloud.apply(cloud.planner().add_rule(
                    group, json::parse(R"({"direction":")" + direction +
                                       R"(","remote_prefix_list_id":)" + id(list) + "}")));
            break;
        case 9:
            if (group && !group->as<SecurityGroup>().rules.empty()) {
                const auto& rules = group->as<SecurityGroup>().rules;
                cloud.apply(
                    cloud.planner().remove_rule(group, rules[step.detail % rules.size()].id));
            }
            break;
        case 10:
        case 11:
            if (endpoint && group && second)
                cloud.patch(endpoint, R"({"security_group_ids":[)" + id(group) +
                                          (group == second ? "" : "," + id(second)) + "]}");
            break;
        case 12:
            cloud.make(Kind::prefix_list, R"({"cidrs":["172.16.)" + detail + ".0/24\"]}");
            break;
        case 13:
            if (list)
                cloud.patch(list, R"({"cidrs":["172.17.0.0/24","172.16.)" + detail + ".0/24\"]}");
            break;
        case 14:
            cloud.make(Kind::external_pool, R"({"cidr":"203.0.113.0/28"})");
            break;
        case 15:
            cloud.make(
                Kind::elastic_ip,
                endpoint ? R"({"endpoint_id":)" + id(endpoint) + R"(,"bandwidth_mbps":5})" : "{}");
            break;
        case 16:
            if (elastic)
                cloud.patch(elastic,
                            step.detail % 3 == 0 || !endpoint
                                ? R"({"endpoint_id":null})"
                                : R"({"bandwidth_id":null,"bandwidth_mbps":7,"endpoint_id":)" +
                                      id(endpoint) + "}");
            break;
        case 17:
            if (table)
                cloud.patch(table, R"({"routes":[{"destination":"0.0.0.0/)" + detail +
                                       R"(","next_hop":"internet"}]})");
            break;
        case 18: {
            const auto kind = static_cast<Kind>(step.detail % kKinds);
            const auto victim = cloud.any(kind, step.first);
            if (victim && kind != Kind::gateway && cloud.remove(victim) && step.second % 2 == 0 &&
                kind != Kind::vpc) {
                bool used = false;
                for (std::size_t user = 0; user < kKinds; ++user)
                    used |= cloud.state.count_referrers(victim->id, static_cast<Kind>(user)) != 0;
                if (!used) cloud.finish(victim);
            }
            break;
        }
        case 19:
            cloud.apply(cloud.planner().add_gateway("gw" + std::to_string(cloud.number)));
            cloud.apply(cloud.planner().place_vpcs());
            break;
        case 20:
            if (bandwidth && step.detail % 2 == 0)
                cloud.patch(bandwidth, R"({"mbps":)" + std::to_string(step.detail + 1) + "}");
            else
                cloud.make(Kind::bandwidth, R"({"mbps":50})");
            break;
        case 21:
            if (elastic)
                cloud.patch(elastic, R"({"bandwidth_mbps":null,"bandwidth_id":)" +
                                         (bandwidth ? id(bandwidth) : "null") + "}");
            break;
        case 22:
            if (vpc && elastic)
                cloud.make(Kind::nat_gateway, R"({"vpc_id":)" + id(vpc) + R"(,"elastic_ip_ids":[)" +
                                                  id(elastic) + "]}");
            break;
        case 23:
            if (nat && elastic)
                cloud.patch(nat, R"({"ports_per_endpoint":)" +
                                     std::to_string(64 * (step.detail % 8 + 1)) +
                                     R"(,"elastic_ip_ids":[)" + id(elastic) +
                                     (other == elastic ? "" : "," + id(other)) + "]}");
            break;
        case 24:
            if (table && nat)
                cloud.patch(table, R"({"routes":[{"destination":"0.0.0.0/)" + detail +
                                       R"(","next_hop":{"nat_gateway_id":)" + id(nat) + "}}]}");
            break;
    }
}

}  // namespace

TEST_CASE("compiled step by step or at once, the tables are the same") {
    const bool held = rc::check("any history", [] {
        Cloud cloud;
        // What the gateways were sent, applied as they would.
        std::map<std::string, std::map<openflow::EntryKey, openflow::Entry>> sent;
        cloud.on_update = [&](const auto& update) {
            for (const auto& [name, changes] : update) {
                for (const auto& key : changes.remove) RC_ASSERT(sent[name].erase(key) == 1U);
                for (const auto& entry : changes.put) sent[name].insert_or_assign(entry.key, entry);
            }
        };
        const auto steps = *rc::gen::inRange(1, 400);
        for (int i = 0; i < steps; ++i) {
            const Step step{*rc::gen::inRange(0U, kSteps), *rc::gen::inRange(0U, 8U),
                            *rc::gen::inRange(0U, 8U), *rc::gen::inRange(0U, 80U)};
            take(cloud, step);
        }
        const Compiler fresh(cloud.state, 1);
        RC_ASSERT(fresh.gateways().size() == cloud.incremental.gateways().size());
        for (const auto& [name, tables] : fresh.gateways()) {
            const auto* other = cloud.incremental.gateway(name);
            RC_ASSERT(entries(*tables) == entries(*other));
            std::vector<openflow::Entry> received;
            for (const auto& [key, entry] : sent[name]) received.push_back(entry);
            RC_ASSERT(received == entries(*other));
            RC_ASSERT(meters(*tables) == meters(*other));
            RC_ASSERT(tables->digests() == other->digests());
        }
    });
    CHECK(held);
}

TEST_CASE("a VPC is compiled for its gateway, a host for all of them") {
    Cloud cloud;
    cloud.apply(cloud.planner().add_gateway("gw2"));
    cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8"]})");
    cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8"]})");
    cloud.make(Kind::host, R"({"vteps":["192.0.2.1"]})");
    for (const auto* name : {"gw1", "gw2"}) {
        CHECK(count(*cloud.incremental.gateway(name), openflow::kVni) == 1);
        CHECK(count(*cloud.incremental.gateway(name), openflow::kHost) == 1);
    }
}

TEST_CASE("a VPC's settings are its row's; those that are the default are not said") {
    Cloud cloud;
    const auto vpc =
        cloud.make(Kind::vpc,
                   R"({"cidrs":["10.0.0.0/8"],"limits":{"connections":100,"endpoint_half_open":5},
            "timeouts":{"udp":300,"icmp":90},"mid_stream":0,"tcp_window_check":true,
            "mss_clamping":false})");
    const auto row = [&] { return *openflow::VniRow::decode(cloud.last.at("gw1").put.front()); };
    using enum openflow::Setting;
    openflow::Settings wanted;
    wanted.put(connections, 100).put(endpoint_half_open, 5).put(icmp, 90);
    wanted.put(mid_stream, 0).put(tcp_window_check, 1).put(mss_clamping, 0);
    CHECK(row().settings == wanted);
    REQUIRE(cloud.patch(vpc, R"({"limits":null,"timeouts":null,"mid_stream":null,
                                 "tcp_window_check":null,"mss_clamping":null})"));
    CHECK(cloud.last.at("gw1").put.size() == 1);
    CHECK(cloud.last.at("gw1").remove.empty());
    CHECK(row().settings.empty());
}

TEST_CASE("a group with persist_established has an entry of its own in both directions") {
    Cloud cloud;
    const auto vpc = cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8"]})");
    const auto group = cloud.make(
        Kind::security_group,
        R"({"rules":[{"direction":"ingress"},{"direction":"ingress","action":"deny"}],"vpc_id":)" +
            id(vpc) + "}");
    const auto entries = [&] {
        return count(*cloud.incremental.gateway("gw1"), openflow::kIngressRule);
    };
    const auto without = entries();
    REQUIRE(cloud.patch(group, R"({"persist_established":true})"));
    const auto last = [&] { return cloud.last.at("gw1"); };
    const auto put = last().put;
    REQUIRE(put.size() == 2);
    CHECK(last().remove.empty());
    CHECK(nfv::PersistingRow::decode(put[0])->direction == nfv::Direction::egress);
    CHECK(nfv::PersistingRow::decode(put[1])->direction == nfv::Direction::ingress);
    // With and without rules.
    REQUIRE(cloud.patch(group, R"({"rules":[]})"));
    CHECK(last().remove.size() == 2);
    CHECK(entries() == without - 1);
    REQUIRE(cloud.patch(group, R"({"persist_established":false})"));
    CHECK(last().put.empty());
    CHECK(last().remove.size() == 2);
    CHECK(entries() == without - 2);
}

TEST_CASE("members are rows only while a rule of that direction names their group") {
    Cloud cloud;
    const auto vpc = cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8"]})");
    const auto subnet =
        cloud.make(Kind::subnet, R"({"cidr":"10.0.0.0/24","vpc_id":)" + id(vpc) + "}");
    const auto web = cloud.make(Kind::security_group, R"({"vpc_id":)" + id(vpc) + "}");
    const auto app = cloud.make(Kind::security_group, R"({"rules":[],"vpc_id":)" + id(vpc) + "}");
    for (int i = 0; i < 3; ++i)
        cloud.make(Kind::endpoint, R"({"vtep":"192.0.2.9","subnet_id":)" + id(subnet) +
                                       R"(,"security_group_ids":[)" + id(web) + "]}");
    const auto& tables = *cloud.incremental.gateway("gw1");
    CHECK(count(tables, openflow::kIngressGroup) == 0);

    REQUIRE(cloud.patch(
        app, R"({"rules":[{"direction":"ingress","remote_group_id":)" + id(web) + "}]}"));
    CHECK(count(tables, openflow::kIngressGroup) == 3);
    CHECK(count(tables, openflow::kEgressGroup) == 0);
    CHECK(cloud.last.at("gw1").put.size() == 4);  // the rule and its three members

    REQUIRE(cloud.patch(app, R"({"rules":[]})"));
    CHECK(count(tables, openflow::kIngressGroup) == 0);
}

TEST_CASE("an elastic IP has one meter a direction, 100 ms of burst, and moves whole") {
    Cloud cloud;
    const auto vpc = cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8"]})");
    const auto subnet =
        cloud.make(Kind::subnet, R"({"cidr":"10.0.0.0/24","vpc_id":)" + id(vpc) + "}");
    const std::string body = R"({"vtep":"192.0.2.9","subnet_id":)" + id(subnet) + "}";
    const auto first = cloud.make(Kind::endpoint, body);
    const auto second = cloud.make(Kind::endpoint, body);
    cloud.make(Kind::external_pool, R"({"cidr":"203.0.113.0/28"})");
    const auto elastic =
        cloud.make(Kind::elastic_ip, R"({"bandwidth_mbps":20,"endpoint_id":)" + id(first) + "}");
    const auto& tables = *cloud.incremental.gateway("gw1");
    REQUIRE(meters(tables).size() == 2);
    for (const auto& meter : meters(tables)) {
        CHECK(meter.rate_kbps == 20'000);
        CHECK(meter.burst_kbit == 2'000);
    }
    REQUIRE(cloud.patch(elastic, R"({"endpoint_id":)" + id(second) + "}"));
    const auto& changes = cloud.last.at("gw1");
    CHECK(changes.put.size() == 2);     // the new private address, the public one's new target
    CHECK(changes.remove.size() == 1);  // the old private address
    CHECK(changes.put_meters.empty());
}

TEST_CASE("a bandwidth has one meter a direction on each gateway that has one of its addresses") {
    Cloud cloud;
    cloud.apply(cloud.planner().add_gateway("gw2"));
    cloud.make(Kind::external_pool, R"({"cidr":"203.0.113.0/28"})");
    const auto bandwidth = cloud.make(Kind::bandwidth, R"({"mbps":30,"burst_kbit":900})");
    std::vector<ResourcePtr> elastic;
    for (const auto* name : {"gw1", "gw1", "gw2"}) {
        const auto vpc = cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8"]})");
        auto moved = std::make_shared<Resource>(*vpc);
        moved->as<Vpc>().gateway = name;
        cloud.apply({{{vpc, moved}}, {}});
        const auto subnet =
            cloud.make(Kind::subnet, R"({"cidr":"10.0.0.0/24","vpc_id":)" + id(vpc) + "}");
        const auto endpoint =
            cloud.make(Kind::endpoint, R"({"vtep":"192.0.2.9","subnet_id":)" + id(subnet) + "}");
        CHECK(meters(*cloud.incremental.gateway("gw2")).empty());
        elastic.push_back(cloud.make(
            Kind::elastic_ip,
            R"({"bandwidth_id":)" + id(bandwidth) + R"(,"endpoint_id":)" + id(endpoint) + "}"));
    }
    const auto drawn = [&](const char* gateway, std::uint8_t table) {
        std::vector<MeterId> ids;
        cloud.incremental.gateway(gateway)->visit(
            table, [&](const openflow::Entry& entry) { ids.push_back(entry.meter); });
        return ids;
    };
    for (const auto* gateway : {"gw1", "gw2"}) {
        const auto both = meters(*cloud.incremental.gateway(gateway));
        REQUIRE(both.size() == 2);
        for (const auto& meter : both) {
            CHECK(meter.rate_kbps == 30'000);
            CHECK(meter.burst_kbit == 900);
        }
        const auto out = drawn(gateway, openflow::kElasticIp);
        const auto in = drawn(gateway, openflow::kPublicAddress);
        for (const auto id : out) CHECK(id == both[0].id);
        for (const auto id : in) CHECK(id == both[1].id);
    }
    CHECK(drawn("gw1", openflow::kElasticIp).size() == 2);
    // A change of the rate is two meters and nothing else, wherever its addresses are.
    REQUIRE(cloud.patch(bandwidth, R"({"mbps":40,"burst_kbit":null})"));
    for (const auto* gateway : {"gw1", "gw2"}) {
        CHECK(cloud.last.at(gateway).put.empty());
        REQUIRE(cloud.last.at(gateway).put_meters.size() == 2);
        CHECK(cloud.last.at(gateway).put_meters[0].burst_kbit == 4'000);
    }
    // The last address takes the meters with it.
    REQUIRE(cloud.patch(elastic[0], R"({"endpoint_id":null})"));
    CHECK(cloud.last.at("gw1").remove_meters.empty());
    REQUIRE(cloud.patch(elastic[1], R"({"bandwidth_id":null})"));
    CHECK(cloud.last.at("gw1").remove_meters.size() == 2);
    CHECK(meters(*cloud.incremental.gateway("gw2")).size() == 2);
    CHECK_FALSE(cloud.remove(bandwidth));
    for (const auto& one : {elastic[0], elastic[2]})
        REQUIRE(cloud.patch(one, R"({"bandwidth_id":null})"));
    CHECK(cloud.remove(bandwidth));
}

TEST_CASE("a NAT gateway is one row, its routes and its addresses name it") {
    Cloud cloud;
    const auto vpc = cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8"]})");
    cloud.make(Kind::external_pool, R"({"cidr":"203.0.113.0/28"})");
    const auto bandwidth = cloud.make(Kind::bandwidth, R"({"mbps":30})");
    std::vector<ResourcePtr> addresses;
    for (int i = 0; i < 3; ++i)
        addresses.push_back(
            cloud.make(Kind::elastic_ip, R"({"bandwidth_id":)" + id(bandwidth) + "}"));
    const auto nat = cloud.make(
        Kind::nat_gateway,
        R"({"ports_per_endpoint":128,"filtering":"address_dependent","vpc_id":)" + id(vpc) +
            R"(,"elastic_ip_ids":[)" + id(addresses[0]) + "," + id(addresses[1]) + "]}");
    REQUIRE(nat);
    const auto number = NatGatewayId{nat->register_number()};
    const auto& tables = *cloud.incremental.gateway("gw1");
    const auto rows = [&](std::uint8_t table) {
        std::vector<openflow::Entry> found;
        tables.visit(table, [&](const openflow::Entry& entry) { found.push_back(entry); });
        return found;
    };
    REQUIRE(rows(openflow::kNatGateway).size() == 1);
    const auto row = nfv::NatGatewayRow::decode(rows(openflow::kNatGateway)[0]);
    REQUIRE(row);
    CHECK(row->nat_gateway == number);
    CHECK(row->addresses == std::vector{*parse_ip("203.0.113.1"), *parse_ip("203.0.113.2")});
    CHECK(row->ports_per_endpoint == 128);
    CHECK(row->mapping == nfv::NatMapping::endpoint_independent);
    CHECK(row->filtering == nfv::NatFiltering::address_dependent);
    CHECK(row->meter == meters(tables)[0].id);
    CHECK(row->cookie == nat->cookie());
    REQUIRE(rows(openflow::kPublicAddress).size() == 2);
    for (const auto& entry : rows(openflow::kPublicAddress)) {
        const auto address = nfv::PublicAddressRow::decode(entry);
        REQUIRE(address);
        CHECK(address->nat_gateway == number);
        CHECK(address->meter == meters(tables)[1].id);
    }
    // Its addresses change what they share in one step, each its meters and nobody for itself.
    const auto other = cloud.make(Kind::bandwidth, R"({"mbps":50})");
    for (const auto& limit : {std::string("null"), id(other), id(bandwidth)}) {
        REQUIRE(cloud.patch(addresses[1], R"({"bandwidth_id":)" + limit + "}"));
        CHECK(cloud.last.at("gw1").put.size() == 3);
        std::set<MeterId> inwards;
        for (const auto& entry : rows(openflow::kPublicAddress))
            inwards.insert(nfv::PublicAddressRow::decode(entry)->meter);
        CHECK(inwards.size() == 1);
        CHECK((*inwards.begin() == MeterId{}) == (limit == "null"));
        const auto outwards = nfv::NatGatewayRow::decode(rows(openflow::kNatGateway)[0])->meter;
        CHECK((outwards == MeterId{}) == (limit == "null"));
    }
    const auto main = cloud.any(Kind::route_table, 0);
    REQUIRE(
        cloud.patch(main, R"({"routes":[{"destination":"0.0.0.0/0","next_hop":{"nat_gateway_id":)" +
                              id(nat) + "}}]}"));
    std::size_t named = 0;
    for (const auto& entry : rows(openflow::kRoute)) {
        const auto route = openflow::RouteRow::decode(entry);
        REQUIRE(route);
        if (route->next_hop != openflow::NextHop::nat_gateway) continue;
        CHECK(route->nat_gateway == number);
        CHECK(route->destination == Prefix::any(Family::ipv4));
        ++named;
    }
    CHECK(named == 1);
    CHECK_FALSE(cloud.remove(nat));
    // Another address in place of one: its row comes, the other's goes, the one row changes.
    REQUIRE(cloud.patch(
        nat, R"({"elastic_ip_ids":[)" + id(addresses[0]) + "," + id(addresses[2]) + "]}"));
    CHECK(cloud.last.at("gw1").put.size() == 2);
    CHECK(cloud.last.at("gw1").remove.size() == 1);
    // An address that has left may be an endpoint's at once.
    const auto subnet =
        cloud.make(Kind::subnet, R"({"cidr":"10.0.0.0/24","vpc_id":)" + id(vpc) + "}");
    const auto endpoint =
        cloud.make(Kind::endpoint, R"({"vtep":"192.0.2.9","subnet_id":)" + id(subnet) + "}");
    CHECK_FALSE(cloud.patch(addresses[2], R"({"endpoint_id":)" + id(endpoint) + "}"));
    REQUIRE(cloud.patch(addresses[1], R"({"endpoint_id":)" + id(endpoint) + "}"));
    CHECK(count(tables, openflow::kElasticIp) == 1);
    // All of it moves with its VPC, and goes with the NAT gateway.
    REQUIRE(cloud.patch(main, R"({"routes":[]})"));
    REQUIRE(cloud.remove(nat));
    CHECK(count(tables, openflow::kNatGateway) == 0);
    CHECK(count(tables, openflow::kPublicAddress) == 1);
}

TEST_CASE("one more endpoint costs its own rows, however many there are") {
    Cloud cloud;
    const auto vpc = cloud.make(Kind::vpc, R"({"cidrs":["10.0.0.0/8"]})");
    const auto subnet =
        cloud.make(Kind::subnet, R"({"cidr":"10.0.0.0/16","vpc_id":)" + id(vpc) + "}");
    const std::string body = R"({"vtep":"192.0.2.9","subnet_id":)" + id(subnet) + "}";
    for (int i = 0; i < 500; ++i) REQUIRE(cloud.make(Kind::endpoint, body));
    // Host, endpoint and source, and the default group's one row of members.
    CHECK(cloud.last.at("gw1").put.size() == 4);
    CHECK(cloud.last.at("gw1").remove.empty());
}
