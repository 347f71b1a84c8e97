// SPDX-License-Identifier: Apache-2.0
#include "nfv/elastic_ip/function.hpp"

#include "tests/unit/policy_world.hpp"

namespace sluice::nfv {
namespace {

using namespace tests;

policy::OwnAddresses own() {
    using Whose = policy::OwnAddresses::Whose;
    policy::OwnAddresses own;
    own.add(ip("203.0.113.1"), Whose::gateway, "the gateway's own address on port 2 (uplink)");
    own.add(ip("203.0.113.254"), Whose::neighbour, "a next hop of port 2 (uplink)");
    own.add(ip("2001:db8::fe"), Whose::neighbour, "a next hop of port 2 (uplink)");
    return own;
}

struct Internet : World {
    Internet() : World(own()) {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        put(openflow::RouteRow{RouteTableId{1},
                               Prefix::any(Family::ipv4),
                               openflow::NextHop::internet,
                               {},
                               Cookie{450}},
            openflow::RouteRow{RouteTableId{1},
                               Prefix::any(Family::ipv6),
                               openflow::NextHop::internet,
                               {},
                               Cookie{451}});
        for (std::uint32_t meter = 1; meter <= 4; ++meter) put_meter(MeterId{meter}, 20000);
        attach(a, first, 1);
        attach(b, second, 3);
    }
    void attach(const Machine& machine, const IpAddress& address, std::uint32_t meter) {
        put(ElasticIpRow{machine.vpc, machine.address, address, MeterId{meter}, Cookie{700}},
            PublicAddressRow{address, machine.vpc, machine.address, MeterId{meter + 1},
                             Cookie{701}});
    }
    [[nodiscard]] std::string refusal(const openflow::Entry& entry) const {
        const auto wrong = store.check(entry);
        return wrong ? wrong->error.message : "taken";
    }
    [[nodiscard]] AdjacencyIndex uplink() const { return store.current().outside.ipv4; }

    const IpAddress first = ip("203.0.113.5"), second = ip("203.0.113.6");
    const IpAddress server = ip("198.51.100.1");
    Machine a, b;
};

TEST_CASE_METHOD(Internet, "outwards an endpoint is seen with its elastic address") {
    const auto plan = walk(from(a, server));
    CHECK(fate(plan) == "forward");
    CHECK(plan.arrives.source == a.address);
    CHECK(plan.leaves.source == first);
    CHECK(plan.leaves.destination == server);
    CHECK(plan.destination_vni == Vni{});
    CHECK(plan.destination_vpc == kOutside);
    CHECK(plan.forward.adjacency == uplink());
    CHECK(plan.reverse.source == store.current().outside.source);
    CHECK(plan.forward.meters[0] == MeterId{1});
    CHECK(plan.reverse.meters[0] == MeterId{2});
    CHECK(plan.path.source_translation == Cookie{700});
}

TEST_CASE_METHOD(Internet,
                 "inwards the elastic address leads to its endpoint, after ingress rules") {
    const auto plan = walk(from_uplink(server, first));
    CHECK(fate(plan) == "forward");
    CHECK(plan.source_vni == Vni{});
    CHECK(plan.destination_vni == Vni{5001});
    CHECK(plan.leaves.destination == a.address);
    CHECK(plan.destination == a.id);
    CHECK(plan.forward.meters[0] == MeterId{2});
    CHECK(plan.reverse.meters[0] == MeterId{1});
    CHECK(plan.reverse.adjacency == uplink());
    CHECK(plan.zone == store.current().core.vpcs.find(VpcId{1})->slot);

    const Machine closed = add_machine(8, 1, {});
    attach(closed, ip("203.0.113.8"), 1);
    CHECK(fate(from_uplink(server, ip("203.0.113.8"))) == "ingress_no_rule");
}

TEST_CASE_METHOD(Internet, "protocols without ports are translated too") {
    for (const auto protocol : {Protocol::icmp, Protocol::gre, Protocol::esp, Protocol::sctp}) {
        CHECK(walk(from(a, server, protocol)).leaves.source == first);
        CHECK(walk(from_uplink(server, first, protocol)).leaves.destination == a.address);
    }
}

TEST_CASE_METHOD(Internet, "without an elastic address nothing leaves") {
    const Machine poor = add_machine(9);
    CHECK(fate(from(poor, server)) == "no_elastic_ip");
    CHECK(fate(from(poor, first)) == "no_elastic_ip");  // not even to one of ours
}

TEST_CASE_METHOD(Internet, "an outward translation that does not lead back is none") {
    const Machine thief = add_machine(9);
    put(ElasticIpRow{thief.vpc, thief.address, first, {}, Cookie{}});
    CHECK(fate(from(thief, server)) == "no_elastic_ip");
}

TEST_CASE_METHOD(Internet,
                 "a public address that nobody has, or that is not attached, goes nowhere") {
    CHECK(fate(from_uplink(server, ip("203.0.113.77"))) == "unknown_public_address");
    put(PublicAddressRow{ip("203.0.113.77"), {}, {}, {}, Cookie{77}});
    const auto plan = walk(from_uplink(server, ip("203.0.113.77")));
    CHECK(fate(plan) == "unknown_public_address");
    CHECK(plan.decided_by == Cookie{77});
    CHECK(plan.answer == policy::Answer::none);
}

TEST_CASE_METHOD(Internet, "nothing leaves for an address that the internet does not have") {
    for (const char* text :
         {"10.1.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
          "100.127.255.255", "169.254.169.254", "198.18.0.1", "192.0.0.8", "240.0.0.1"}) {
        const auto plan = walk(from(a, ip(text)));
        CHECK(fate(plan) == "private_destination");
        CHECK(plan.answer == policy::Answer::net_unreachable);
        CHECK(plan.decided_by == Cookie{450});
        CHECK(fate(rewalk(from(a, ip(text)))) == "private_destination");
    }
    for (const char* text : {"11.0.0.1", "172.15.255.255", "172.32.0.1", "192.167.1.1",
                             "100.63.0.1", "100.128.0.1", "198.20.0.1", "192.0.0.9"})
        CHECK(fate(from(a, ip(text))) == "forward");
    for (const char* text : {"192.0.2.1", "198.51.100.1", "203.0.113.200"})  // documentation
        CHECK(fate(from(a, ip(text))) == "forward");
    // A private network that hands out elastic IPs is one of ours.
    attach(b, ip("172.16.0.9"), 3);
    CHECK(fate(from(a, ip("172.16.0.9"))) == "forward");
}

TEST_CASE_METHOD(Internet,
                 "what the router returns for an address of a pool that is nobody's ends") {
    const IpAddress nobody = ip("203.0.113.77");
    CHECK(fate(from(a, nobody)) == "forward");
    CHECK(fate(from_uplink(first, nobody)) == "spoofed_ip");
    CHECK(fate(from_uplink(server, nobody)) == "unknown_public_address");
}

TEST_CASE_METHOD(Internet, "an address of the gateway or of its next hops is no elastic IP") {
    const auto both = [this](const char* text) {
        const IpAddress address = ip(text);
        const auto said = refusal(PublicAddressRow{address, a.vpc, a.address, {}, {}}.encode());
        CHECK(refusal(PublicAddressRow{address, {}, {}, {}, {}}.encode()) == said);
        if (address.is_v4())
            CHECK(refusal(ElasticIpRow{a.vpc, a.address, address, {}, {}}.encode()) == said);
        return said;
    };
    CHECK(both("203.0.113.1") ==
          "203.0.113.1 cannot be an elastic IP: it is the gateway's own address on port 2 "
          "(uplink)");
    CHECK(both("203.0.113.254") ==
          "203.0.113.254 cannot be an elastic IP: it is a next hop of port 2 (uplink)");
    CHECK(refusal(PublicAddressRow{ip("2001:db8::fe"), {}, {}, {}, {}}.encode()) ==
          "2001:db8::fe cannot be an elastic IP: it is a next hop of port 2 (uplink)");
    for (const char* text : {"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"})
        CHECK(both(text) == std::string(text) +
                                " cannot be an elastic IP: it is not an address that a single "
                                "station can have");
    CHECK(both("203.0.113.2") == "taken");
    // What is on disk is asked the same.
    openflow::Changes changes;
    changes.put = {PublicAddressRow{ip("203.0.113.1"), {}, {}, {}, {}}.encode()};
    CHECK(refused(changes).message.starts_with("203.0.113.1 cannot be an elastic IP"));
}

TEST_CASE_METHOD(Internet, "one of our addresses as a source on the uplink is spoofed") {
    CHECK(fate(from_uplink(second, first)) == "spoofed_ip");
}

TEST_CASE_METHOD(Internet, "nobody outside passes for a member of a VPC") {
    for (const char* text : {"10.0.1.6", "172.16.0.1", "172.31.255.255", "192.168.1.1",
                             "100.64.0.1", "100.127.255.255", "169.254.1.1"})
        CHECK(fate(from_uplink(ip(text), first)) == "private_on_uplink");
    for (const char* text :
         {"11.0.0.1", "172.15.0.1", "172.32.0.1", "192.167.1.1", "100.63.0.1", "100.128.0.1"})
        CHECK(fate(from_uplink(ip(text), first)) == "forward");

    Machine odd = a;  // a VPC numbered out of a public block
    odd.id = EndpointId{180};
    odd.address = ip("20.0.0.5");
    odd.mac = mac("02:00:00:00:20:05");
    put(odd.row(), odd.source());
    CHECK(fate(from_uplink(odd.address, first)) == "spoofed_ip");
}

TEST_CASE_METHOD(Internet, "a private address on the uplink leads to nobody") {
    CHECK(fate(from_uplink(server, a.address)) == "unknown_public_address");
}

TEST_CASE_METHOD(Internet, "hairpin: an endpoint reaches its neighbour's elastic address") {
    const auto plan = walk(from(a, second));
    CHECK(fate(plan) == "forward");
    CHECK(plan.leaves.source == first);
    CHECK(plan.leaves.destination == b.address);
    CHECK(plan.destination_vni == Vni{5001});
    // Draws from both addresses' limits, outwards of the one and inwards of the other.
    CHECK(plan.forward.meters == std::array{MeterId{1}, MeterId{4}});
    CHECK(plan.reverse.meters == std::array{MeterId{2}, MeterId{3}});
    const auto& endpoints = store.current().core.endpoints;
    CHECK(plan.forward.adjacency == endpoints.find({b.vpc, b.address})->routed);
    CHECK(plan.reverse.adjacency == endpoints.find({a.vpc, a.address})->routed);
}

TEST_CASE_METHOD(Internet, "hairpin: an endpoint reaches its own elastic address") {
    const auto plan = walk(from(a, first));
    CHECK(fate(plan) == "forward");
    CHECK(plan.leaves.source == first);
    CHECK(plan.leaves.destination == a.address);
    CHECK(plan.destination == a.id);
}

TEST_CASE_METHOD(Internet, "hairpin: another VPC's elastic address, judged once at each end") {
    build_vpc(2);
    const Machine other = add_machine(5, 1, {kOpen}, 2);  // the same private address as a's
    attach(other, ip("203.0.113.9"), 3);
    const auto plan = walk(from(a, ip("203.0.113.9")));
    CHECK(fate(plan) == "forward");
    CHECK(plan.source_vpc == VpcId{1});
    CHECK(plan.destination_vpc == VpcId{2});
    CHECK(plan.destination_vni == Vni{5002});
    CHECK(plan.path.egress_rule == Cookie{601});
    CHECK(plan.path.ingress_rule == Cookie{602});
}

TEST_CASE_METHOD(Internet,
                 "hairpin: a rule that names a group does not match the elastic address") {
    const GroupId web{20}, clients{21};
    const Machine server_machine = add_machine(10, 1, {kOpen, web});
    openflow::Changes changes;
    RuleRow rule;
    rule.group = web;
    rule.remote_group = clients;
    put(rule, GroupAddressRow{Direction::ingress, a.vpc, Prefix::host(a.address), clients, {}});
    const Machine only_web = add_machine(11, 1, {web});
    attach(only_web, ip("203.0.113.11"), 3);
    CHECK(fate(from(a, only_web.address)) == "forward");
    CHECK(fate(from(a, ip("203.0.113.11"))) == "ingress_no_rule");
    CHECK(fate(from(a, server_machine.address)) == "forward");
}

TEST_CASE_METHOD(Internet, "RoCEv2 is never translated: its checksum covers the addresses") {
    CHECK(fate(from(a, server, Protocol::udp, 4791)) == "roce_not_translated");
    CHECK(fate(from_uplink(server, first, Protocol::udp, 4791)) == "roce_not_translated");
    CHECK(fate(from(a, second, Protocol::udp, 4791)) == "roce_not_translated");
    CHECK(fate(from(a, b.address, Protocol::udp, 4791)) == "forward");
}

TEST_CASE_METHOD(Internet,
                 "IPv6 of a pool is routed as it is; a unique local address never leaves") {
    Machine six = a;
    six.id = EndpointId{160};
    six.address = ip("fd00:1::5");
    six.mac = mac("02:00:00:00:06:05");
    put(six.row(), six.source());
    CHECK(fate(from(six, ip("2001:db8:ffff::1"))) == "private_on_uplink");

    Machine global = six;
    global.id = EndpointId{161};
    global.address = ip("2001:db8:1::5");
    global.mac = mac("02:00:00:00:06:06");
    put(global.row(), global.source());
    CHECK(fate(from(global, ip("2001:db8:ffff::1"))) == "no_elastic_ip");
    put(ElasticIpRow{global.vpc, global.address, global.address, {}, {}},
        PublicAddressRow{global.address, global.vpc, global.address, {}, {}});
    const auto plan = walk(from(global, ip("2001:db8:ffff::1")));
    CHECK(fate(plan) == "forward");
    CHECK(plan.leaves == plan.arrives);
    CHECK(plan.forward.adjacency == store.current().outside.ipv6);
    CHECK(fate(from_uplink(ip("2001:db8:ffff::1"), global.address)) == "forward");
    CHECK(fate(from(global, ip("2001:db8:ffff::1"), Protocol::udp, 4791)) == "forward");
}

TEST_CASE_METHOD(Internet, "on the uplink's link ARP for an elastic address is answered") {
    Packet packet = from_uplink(server, first);
    packet.kind = EtherKind::arp;
    packet.tuple = {.source = server, .destination = first};
    const auto plan = walk(packet);
    CHECK(fate(plan) == "answer");
    CHECK(plan.answer_from == first);
    packet.tuple.destination = ip("203.0.113.99");
    CHECK(fate(packet) == "inner_arp");
}

TEST_CASE_METHOD(Internet,
                 "an address that moves takes its old connections away, not its owner's") {
    const auto outward = walk(from(a, server));
    const auto inward = walk(from_uplink(server, first));
    const policy::Installed installed{inward.source_vni,  inward.destination_vni, inward.source,
                                      inward.destination, inward.arrives,         inward.leaves};
    CHECK(policy::standing(installed, rewalk(from_uplink(server, first))) ==
          policy::Standing::permitted);
    openflow::Changes move;
    move.remove = {ElasticIpRow{a.vpc, a.address, first, {}, {}}.encode().key,
                   ElasticIpRow{b.vpc, b.address, second, {}, {}}.encode().key};
    move.put = {ElasticIpRow{b.vpc, b.address, first, {}, {}}.encode(),
                PublicAddressRow{first, b.vpc, b.address, {}, {}}.encode()};
    commit(move);
    CHECK(policy::standing(installed, rewalk(from_uplink(server, first))) ==
          policy::Standing::replaced);
    CHECK(fate(rewalk(from(a, server))) == "no_elastic_ip");
    CHECK(fate(outward) == "forward");
    CHECK(walk(from(b, server)).leaves.source == first);
}

TEST_CASE_METHOD(Internet, "a denied reply still tells where it would have gone") {
    // After a restart the reply of a connection that came from outside arrives first.
    const Machine mute = add_machine(12, 1, {GroupId{50}});
    RuleRow ingress;
    ingress.group = GroupId{50};
    put(ingress);
    attach(mute, ip("203.0.113.12"), 1);
    const auto plan = walk(from(mute, server));
    CHECK(fate(plan) == "egress_no_rule");
    CHECK(plan.leaves.source == ip("203.0.113.12"));
    CHECK(plan.forward.adjacency == uplink());
    CHECK(fate(from_uplink(server, ip("203.0.113.12"))) == "forward");
}

}  // namespace
}  // namespace sluice::nfv
