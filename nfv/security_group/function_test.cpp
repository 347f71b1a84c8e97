// SPDX-License-Identifier: Apache-2.0
#include "nfv/security_group/function.hpp"

#include "tests/unit/policy_world.hpp"

namespace sluice::nfv {
namespace {

using namespace tests;

struct Groups : World {
    Groups() {
        build_vpc();
        open_group();
        client = add_machine(5);
        server = add_machine(6, 1, {kWeb});
    }
    // Ingress, allow, of group web unless changed.
    static RuleRow rule(std::uint64_t cookie = 1) {
        RuleRow row;
        row.group = kWeb;
        row.cookie = Cookie{cookie};
        return row;
    }
    static RuleRow tcp(std::uint16_t first, std::uint16_t last) {
        RuleRow row = rule();
        row.protocol = 6;
        row.port_min = first;
        row.port_max = last;
        return row;
    }
    [[nodiscard]] std::string knock(Protocol protocol = Protocol::tcp,
                                    std::uint16_t port = 80) const {
        return fate(from(client, server.address, protocol, port));
    }

    static constexpr GroupId kWeb{20}, kClients{21};
    Machine client, server;
};

TEST_CASE_METHOD(Groups, "no rule, no traffic: inside the subnet too, in either direction") {
    CHECK(knock() == "ingress_no_rule");
    CHECK(fate(from(server, client.address)) == "egress_no_rule");
    const Machine nobody = add_machine(7, 1, {});
    CHECK(fate(from(client, nobody.address)) == "ingress_no_rule");
    CHECK(fate(from(nobody, client.address)) == "egress_no_rule");
}

TEST_CASE_METHOD(Groups, "a rule opens its ports only") {
    put(tcp(80, 81));
    CHECK(knock(Protocol::tcp, 80) == "forward");
    CHECK(knock(Protocol::tcp, 81) == "forward");
    CHECK(knock(Protocol::tcp, 79) == "ingress_no_rule");
    CHECK(knock(Protocol::tcp, 82) == "ingress_no_rule");
    CHECK(knock(Protocol::udp, 80) == "ingress_no_rule");
    CHECK(knock(Protocol::icmp) == "ingress_no_rule");
}

TEST_CASE_METHOD(Groups, "the plan names the rules that decided") {
    put(tcp(80, 80));
    auto plan = walk(from(client, server.address));
    CHECK(plan.path.egress_rule == Cookie{601});
    CHECK(plan.path.ingress_rule == Cookie{1});
    RuleRow deny = rule(99);
    deny.allow = false;
    deny.priority = 1;
    put(deny);
    plan = walk(from(client, server.address));
    CHECK(fate(plan) == "ingress_denied");
    CHECK(plan.decided_by == Cookie{99});
}

TEST_CASE_METHOD(Groups, "the lowest priority wins; at equal priority deny wins") {
    RuleRow deny = rule(2);
    deny.allow = false;
    put(rule(1), deny);
    CHECK(knock() == "ingress_denied");
    remove(deny);
    deny.priority = 1001;
    put(deny);
    CHECK(knock() == "forward");
    RuleRow sooner = tcp(80, 80);
    sooner.allow = false;
    sooner.priority = 999;
    put(sooner);
    CHECK(knock() == "ingress_denied");
    CHECK(knock(Protocol::tcp, 81) == "forward");
}

TEST_CASE_METHOD(Groups, "rules of all the endpoint's groups are merged") {
    RuleRow deny = rule(3);
    deny.group = GroupId{30};
    deny.allow = false;
    deny.priority = 500;
    put(rule(), deny);
    CHECK(knock() == "forward");
    server.groups = {kWeb, GroupId{30}};
    put(server.row());
    CHECK(knock() == "ingress_denied");
    deny.priority = 2000;
    put(deny);  // beside the first
    CHECK(knock() == "ingress_denied");
    deny.priority = 500;
    remove(deny);
    CHECK(knock() == "forward");
}

TEST_CASE_METHOD(Groups, "a rule of a remote block, of any length") {
    RuleRow row = rule();
    for (const char* text : {"10.0.1.5/32", "10.0.1.4/31", "10.0.0.0/8", "0.0.0.0/1"}) {
        row.remote_prefix = block(text);
        put(row);
        CHECK(knock() == "forward");
        remove(row);
        CHECK(knock() == "ingress_no_rule");
    }
    row.remote_prefix = block("10.0.1.6/31");
    put(row);
    CHECK(knock() == "ingress_no_rule");
}

TEST_CASE_METHOD(Groups, "a rule that names a group lets in its members of the moment") {
    RuleRow row = rule();
    row.remote_group = kClients;
    const GroupAddressRow member{
        Direction::ingress, client.vpc, Prefix::host(client.address), kClients, {}};
    put(row);
    CHECK(knock() == "ingress_no_rule");
    put(member);
    CHECK(knock() == "forward");
    remove(member);
    CHECK(knock() == "ingress_no_rule");
}

TEST_CASE_METHOD(Groups, "all blocks that contain an address count, whatever their length") {
    RuleRow row = rule();
    row.remote_group = kClients;
    put(row);
    const auto in = [&](const char* text, GroupId group) {
        return GroupAddressRow{Direction::ingress, client.vpc, block(text), group, {}};
    };
    put(in("10.0.1.5/32", GroupId{77}), in("10.0.0.0/16", kClients), in("0.0.0.0/0", GroupId{78}));
    CHECK(knock() == "forward");  // not the longest one alone
    remove(in("10.0.0.0/16", kClients));
    CHECK(knock() == "ingress_no_rule");
    put(in("0.0.0.0/0", kClients));
    CHECK(knock() == "forward");
    // Memberships of the other direction, or of another VPC, say nothing here.
    remove(in("0.0.0.0/0", kClients));
    put(GroupAddressRow{Direction::egress, client.vpc, block("0.0.0.0/0"), kClients, {}},
        GroupAddressRow{Direction::ingress, VpcId{2}, block("0.0.0.0/0"), kClients, {}});
    CHECK(knock() == "ingress_no_rule");
}

TEST_CASE_METHOD(Groups, "an egress rule judges the packet as its endpoint sends it") {
    const GroupId out{40};
    const Machine sender = add_machine(9, 1, {out});
    RuleRow row = tcp(80, 80);
    row.direction = Direction::egress;
    row.group = out;
    row.remote_prefix = block("10.0.1.5/32");
    put(row);
    CHECK(fate(from(sender, client.address)) == "forward");
    CHECK(fate(from(sender, ip("10.0.1.6"))) == "egress_no_rule");
}

TEST_CASE_METHOD(Groups, "ICMP rules match types and codes of their family") {
    RuleRow row = rule();
    row.protocol = 1;
    row.icmp_type = 8;
    put(row);
    CHECK(knock(Protocol::icmp) == "forward");
    Packet timestamp = from(client, server.address, Protocol::icmp);
    timestamp.tuple.destination_port = 13 << 8;
    CHECK(fate(timestamp) == "ingress_no_rule");
    remove(row);
    row.icmp_code = 1;
    put(row);
    CHECK(knock(Protocol::icmp) == "ingress_no_rule");
    remove(row);
    row.icmp_code = 0;
    put(row);
    CHECK(knock(Protocol::icmp) == "forward");
}

TEST_CASE_METHOD(Groups, "protocols without ports of their own list: by number, SCTP with ports") {
    RuleRow row = rule();
    row.protocol = 47;
    put(row);
    CHECK(knock(Protocol::gre) == "forward");
    CHECK(knock(Protocol::esp) == "ingress_no_rule");
    RuleRow sctp = tcp(2000, 3000);
    sctp.protocol = 132;
    put(sctp);
    CHECK(knock(Protocol::sctp, 2500) == "forward");
    CHECK(knock(Protocol::sctp, 80) == "ingress_no_rule");
}

TEST_CASE_METHOD(Groups, "a rule change concerns the VPCs whose endpoints use the group") {
    build_vpc(2);
    add_machine(5, 1, {kOpen}, 2);
    const auto slot = [&](std::uint32_t vpc) {
        return store.current().core.vpcs.find(VpcId{vpc})->slot.value;
    };
    const auto changed = [&](std::uint32_t vpc) {
        return store.changed()[slot(vpc)].load() == store.current().generation.value;
    };
    put(rule());  // group web: VPC 1 only
    CHECK(changed(1));
    CHECK_FALSE(changed(2));
    RuleRow row = rule();
    row.group = kOpen;  // both
    put(row);
    CHECK(changed(1));
    CHECK(changed(2));
    row.group = GroupId{99};  // nobody's
    put(row);
    CHECK_FALSE(changed(1));
    put(GroupAddressRow{Direction::ingress, VpcId{2}, block("10.0.0.0/8"), kClients, {}});
    CHECK_FALSE(changed(1));
    CHECK(changed(2));
}

}  // namespace
}  // namespace sluice::nfv
