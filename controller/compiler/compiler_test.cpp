// SPDX-License-Identifier: Apache-2.0
#include "controller/compiler/compiler.hpp"

#include <rapidcheck.h>

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "controller/model/planner.hpp"
#include "dataplane/openflow/tables.hpp"
#include "nfv/elastic_ip/table.hpp"
#include "nfv/security_group/table.hpp"

using namespace sluice;
using namespace sluice::model;
using compiler::Compiler;

namespace {

// A cloud that is changed by API requests, and its compiler, kept up step by step.
class Cloud {
  public:
    Cloud() { apply(planner().add_gateway("gw1")); }

    Planner planner() {
        return {state,
                {.number = [this] { return number += kNumbersPerObject; },
                 .uuid =
                     [this] {
                         Uuid id;
                         const auto value = ++ids;
                         for (std::size_t i = 0; i < 8; ++i)
                             id.bytes[15 - i] = static_cast<std::uint8_t>(value >> (8 * i));
                         return id;
                     },
                 .now = 0}};
    }
    bool apply(const Plan& plan) {
        if (!plan.ok()) return false;
        state.apply(plan.diff);
        last = incremental.update(plan.diff, ++revision);
        if (on_update) on_update(last);
        return true;
    }
    ResourcePtr make(Kind kind, const std::string& body) {
        const auto plan = planner().create(kind, json::parse(body).get_object(), {{}, true});
        return apply(plan) ? plan.diff.front().after : nullptr;
    }
    bool patch(const ResourcePtr& resource, const std::string& body) {
        return apply(planner().patch(state.find(resource->kind(), resource->id),
                                     json::parse(body).get_object(), {{}, true}));
    }
    bool remove(const ResourcePtr& resource) {
        return apply(planner().remove(state.find(resource->kind(), resource->id)));
    }
    // As the gateways confirm: what was being deleted is gone.
    void finish(const ResourcePtr& resource) {
        Plan plan;
        plan.diff.push_back({state.find(resource->kind(), resource->id), nullptr});
        apply(plan);
    }
    ResourcePtr any(Kind kind, std::size_t choice) const {
        std::vector<ResourcePtr> alive;
        for (const auto& [n, resource] : state.all(kind))
            if (!resource->deleting) alive.push_back(resource);
        return alive.empty() ? nullptr : alive[choice % alive.size()];
    }

    State state;
    std::uint64_t number = 0, ids = 0, revision = 1;
    Compiler incremental{state, 1};
    std::map<std::string, openflow::Changes> last;
    std::function<void(const std::map<std::string, openflow::Changes>&)> on_update;
};

std::string id(const ResourcePtr& resource) {
    return "\"" + to_string(resource->id) + "\"";
}

std::vector<openflow::Entry> entries(const compiler::GatewayTables& tables) {
    std::vector<openflow::Entry> all;
    for (const auto table : compiler::kProgrammedTables)
        tables.visit(table, [&](const openflow::Entry& entry) { all.push_back(entry); });
    return all;
}
std::vector<openflow::Meter> meters(const compiler::GatewayTables& tables) {
    std::vector<openflow::Meter> all;
    tables.visit_meters([&](const openflow::Meter& meter) { all.push_back(meter); });
    return all;
}
std::size_t count(const compiler::GatewayTables& tables, std::uint8_t table) {
    std::size_t found = 0;
    tables.visit(table, [&](const openflow::Entry&) { ++found; });
    return found;
}

// A step of a random history: what, on which objects, with which detail.
struct Step {
    unsigned what, first, second, detail;
};

void take(Cloud& cloud, const Step& step) {
    const auto vpc = cloud.any(Kind::vpc, step.first);
    const auto subnet = cloud.any(Kind::subnet, step.first);
    const auto endpoint = cloud.any(Kind::endpoint, step.first);
    const auto group = cloud.any(Kind::security_group, step.first);
    const auto second = cloud.any(Kind::security_group, step.second);
    const auto list = cloud.any(Kind::prefix_list, step.second);
    const auto elastic = cloud.any(Kind::elastic_ip, step.second);
    const auto table = cloud.any(Kind::route_table, step.first);
    const auto detail = std::to_string(step.detail % 8);
    const std::string direction = step.detail % 2 == 0 ? "ingress" : "egress";
    switch (step.what % 20) {
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
                                : R"({"bandwidth_mbps":7,"endpoint_id":)" + id(endpoint) + "}");
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
            const Step step{*rc::gen::inRange(0U, 20U), *rc::gen::inRange(0U, 8U),
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
