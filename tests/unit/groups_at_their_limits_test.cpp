// SPDX-License-Identifier: Apache-2.0
// Security groups at exactly the sizes that the API promises, through the API, the compiler and
// the gateway's policy: one more is refused, and at the far ends both verdicts are right.
#include <chrono>

#include "controller/api/fixture.hpp"
#include "controller/model/mac.hpp"
#include "tests/unit/policy_world.hpp"

using namespace sluice;
using namespace sluice::api;
using tests::World;

namespace {

constexpr std::size_t kGroups = 16, kRules = 1000, kMembers = 10'000, kBlocks = 10'000;

class Cloud {
  public:
    Cloud() {
        f.gateways->connect("gw1");
        vpc = f.make("vpcs", R"({"cidrs":["10.0.0.0/8"]})");
        subnet = f.make("subnets", R"({"cidr":"10.0.0.0/16","vpc_id":")" + vpc + "\"}");
        host = f.make("hosts", R"({"vteps":["192.0.2.11"]})");
    }
    std::string group(const std::string& name, const std::string& rules) {
        return f.make("security-groups", R"({"name":")" + name + R"(","vpc_id":")" + vpc +
                                             R"(","rules":)" + rules + "}");
    }
    Reply endpoint(const std::string& groups) {
        return f.post("/v1/endpoints", R"({"subnet_id":")" + subnet + R"(","host_id":")" + host +
                                           R"(","security_group_ids":[)" + groups + "]}");
    }
    // What the gateway was sent since the last time, in its tables.
    void deliver() {
        for (const auto& changes : f.gateways->sent["gw1"])
            if (!changes.empty()) gateway.commit(changes);
        f.gateways->sent["gw1"].clear();
    }
    std::string fate(const Reply& from, const Reply& to, std::uint16_t port) {
        Packet packet = gateway.from_uplink(tests::ip(from.text("/ip").c_str()),
                                            tests::ip(to.text("/ip").c_str()), Protocol::tcp, port);
        packet.side = Side::underlay;
        packet.vni =
            Vni{static_cast<std::uint32_t>(std::stoul(f.get("/v1/vpcs/" + vpc).text("/vni")))};
        packet.vtep = tests::ip("192.0.2.11");
        packet.source_mac = tests::mac(from.text("/mac").c_str());
        packet.destination_mac = tests::mac(to.text("/mac").c_str());
        if (from.text("/subnet_id") != to.text("/subnet_id")) {
            const auto its = f.service->state().find(model::Kind::subnet,
                                                     *model::parse_uuid(from.text("/subnet_id")));
            packet.destination_mac = model::gateway_mac(its->register_number());
        }
        return gateway.fate(packet);
    }

    Fixture f;
    World gateway;
    std::string vpc, subnet, host;
};

std::string quoted(const std::string& id) {
    return "\"" + id + "\"";
}

}  // namespace

TEST_CASE("16 groups of 1,000 rules, 10,000 members and lists of 10,000 blocks, exactly") {
    // 10,000 commits, and no disk to be measured here.
    if (std::filesystem::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 0);
    const auto begin = std::chrono::steady_clock::now();
    Cloud cloud;
    auto& f = cloud.f;
    const std::string egress = R"({"direction":"egress"})";
    const auto many = cloud.group("many", "[" + egress + "]");
    const auto quiet = cloud.group("quiet", "[" + egress + "]");
    // A list of every second address, so that no two blocks are neighbours.
    std::string blocks;
    for (std::size_t i = 0; i < kBlocks; ++i)
        blocks += (i == 0 ? "\"10.1." : ",\"10.1.") + std::to_string(i / 128) + "." +
                  std::to_string(i % 128 * 2) + "/32\"";
    const auto list = f.make("prefix-lists", R"({"cidrs":[)" + blocks + "]}");
    CHECK(f.patch("/v1/prefix-lists/" + list, R"({"cidrs":[)" + blocks + R"(,"10.2.0.0/16"]})")
              .status == 422);

    // Each group: rules for ports of its own that nobody uses, and the last rule of the last
    // group lets the members in, that of the one before it the list.
    std::vector<std::string> groups;
    std::string last_rules;
    for (std::size_t g = 0; g < kGroups; ++g) {
        std::string rules;
        for (std::size_t r = 0; r + 1 < kRules; ++r)
            rules += R"({"direction":"ingress","protocol":"udp","port_min":)" +
                     std::to_string(1 + g * kRules + r) + "},";
        const std::string tail = R"({"direction":"ingress","protocol":"tcp","priority":32000,)";
        if (g + 1 == kGroups)
            rules += tail + R"("port_min":443,"remote_group_id":)" + quoted(many) + "}";
        else if (g + 2 == kGroups)
            rules += tail + R"("port_min":444,"remote_prefix_list_id":)" + quoted(list) + "}";
        else
            rules += tail + R"("port_min":)" + std::to_string(g + 1) + "}";
        groups.push_back(cloud.group("g" + std::to_string(g), "[" + rules + "]"));
        last_rules = rules;
    }
    auto reply = f.post("/v1/security-groups/" + groups.back() + "/rules",
                        R"({"direction":"ingress","protocol":"tcp","port_min":9})");
    CHECK(reply.status == 422);
    CHECK(reply.text("/errors/0/detail") == "has more than 1000 rules");
    reply = f.patch("/v1/security-groups/" + groups.back(),
                    R"({"rules":[)" + last_rules + "," + egress + "]}");
    CHECK(reply.pointers() == std::vector<std::string>{"/rules"});

    std::string all;
    for (const auto& group : groups) all += (all.empty() ? "" : ",") + quoted(group);
    reply = cloud.endpoint(all + "," + quoted(many));
    CHECK(reply.status == 422);
    CHECK(reply.text("/errors/0/detail") == "has more than 16 groups");
    const auto server = cloud.endpoint(all);
    REQUIRE(server.status == 201);

    Reply first, last;
    for (std::size_t i = 0; i < kMembers; ++i) {
        auto made = cloud.endpoint(quoted(many));
        if (made.status != 201) REQUIRE(made.raw.body.empty());
        if (i == 0) first = made;
        if (i + 1 == kMembers) last = std::move(made);
    }
    reply = cloud.endpoint(quoted(many));
    CHECK(reply.status == 409);
    CHECK(reply.pointers() == std::vector<std::string>{"/security_group_ids/0"});
    CHECK(reply.text("/errors/0/detail").find("has 10000 members") != std::string::npos);
    // Who is a member already may change what else it is.
    CHECK(f.patch("/v1/endpoints/" + last.id(),
                  R"({"security_group_ids":[)" + quoted(quiet) + "," + quoted(many) + "]}")
              .status == 200);
    const auto stranger = cloud.endpoint(quoted(quiet));
    cloud.deliver();

    CHECK(cloud.fate(first, server, 443) == "forward");
    CHECK(cloud.fate(last, server, 443) == "forward");
    CHECK(cloud.fate(stranger, server, 443) == "ingress_no_rule");
    CHECK(cloud.fate(last, server, 444) == "ingress_no_rule");
    CHECK(cloud.fate(last, server, 442) == "ingress_no_rule");
    CHECK(cloud.fate(last, server, 1) == "forward");  // the last rule of the first group

    // The list's last block, and the address right behind it.
    const auto outer =
        f.post("/v1/subnets", R"({"cidr":"10.1.0.0/16","vpc_id":")" + cloud.vpc + "\"}").id();
    const auto at = [&](const std::string& ip) {
        return f.post("/v1/endpoints", R"({"subnet_id":")" + outer + R"(","host_id":")" +
                                           cloud.host + R"(","ip":")" + ip +
                                           R"(","security_group_ids":[)" + quoted(quiet) + "]}");
    };
    constexpr std::size_t kLast = kBlocks - 1;
    const std::string prefix = "10.1." + std::to_string(kLast / 128) + ".";
    const auto listed = at(prefix + std::to_string(kLast % 128 * 2));
    const auto beside = at(prefix + std::to_string(kLast % 128 * 2 + 1));
    REQUIRE(beside.status == 201);
    cloud.deliver();
    CHECK(cloud.fate(listed, server, 444) == "forward");
    CHECK(cloud.fate(beside, server, 444) == "ingress_no_rule");

    // A member leaves, a block is taken out, a rule goes: right at once, whatever the sizes.
    CHECK(f.patch("/v1/endpoints/" + last.id(), R"({"security_group_ids":[)" + quoted(quiet) + "]}")
              .status == 200);
    cloud.deliver();
    CHECK(cloud.fate(last, server, 443) == "ingress_no_rule");
    CHECK(cloud.fate(first, server, 443) == "forward");
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(100));
}
