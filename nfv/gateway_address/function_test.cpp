// SPDX-License-Identifier: Apache-2.0
#include "nfv/gateway_address/function.hpp"

#include "tests/unit/policy_world.hpp"

namespace sluice::nfv {
namespace {

using namespace tests;
using policy::Answer;

struct Subnets : World {
    Subnets() {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        c = add_machine(7, 2);
    }
    [[nodiscard]] Packet arp(const Machine& sender, const IpAddress& target) const {
        Packet packet = from(sender, target);
        packet.kind = EtherKind::arp;
        packet.destination_mac = mac("ff:ff:ff:ff:ff:ff");
        packet.tuple = {.source = sender.address, .destination = target};
        return packet;
    }
    [[nodiscard]] Packet solicitation(const Machine& sender, const IpAddress& source,
                                      const IpAddress& target) const {
        Packet packet = from(sender, ip("ff02::1:ff00:5"), Protocol::icmpv6);
        packet.icmp_type = 135;
        packet.nd_target = target;
        packet.destination_mac = mac("33:33:ff:00:00:05");
        packet.tuple.source = source;
        return packet;
    }
    Machine a, b, c;
};

TEST_CASE_METHOD(Subnets, "ARP for a neighbour is answered with the neighbour's own MAC") {
    const auto plan = walk(arp(a, b.address));
    CHECK(fate(plan) == "answer");
    CHECK(plan.answer == Answer::arp_reply);
    CHECK(plan.answer_from == ip("10.0.1.1"));
    CHECK(plan.answer_mac == b.mac);
}

TEST_CASE_METHOD(Subnets, "ARP for the gateway is answered with the gateway's MAC") {
    const auto plan = walk(arp(a, ip("10.0.1.1")));
    CHECK(fate(plan) == "answer");
    CHECK(plan.answer_mac == kGatewayMac);
}

TEST_CASE_METHOD(Subnets, "ARP needs no rule: it is outside of groups") {
    const Machine closed = add_machine(8, 1, {});
    CHECK(fate(arp(closed, b.address)) == "answer");
}

TEST_CASE_METHOD(Subnets, "nobody answers for another subnet, for what nobody has, for oneself") {
    CHECK(fate(arp(a, c.address)) == "inner_arp");
    CHECK(fate(arp(a, ip("10.0.2.1"))) == "inner_arp");
    CHECK(fate(arp(a, ip("10.0.1.99"))) == "inner_arp");
    CHECK(fate(arp(a, a.address)) == "nothing_to_answer");  // gratuitous
    Packet probe = arp(a, a.address);
    probe.tuple.source = ip("0.0.0.0");
    CHECK(fate(probe) == "nothing_to_answer");
}

TEST_CASE_METHOD(Subnets, "a spoofed ARP sender gets no answer") {
    Packet packet = arp(a, b.address);
    packet.tuple.source = b.address;
    CHECK(fate(packet) == "spoofed_ip");
}

TEST_CASE_METHOD(Subnets, "neighbour solicitations are answered like ARP") {
    Machine six = a;
    six.id = EndpointId{160};
    six.address = ip("fd00:1::5");
    six.mac = mac("02:00:00:00:06:05");
    Machine other = six;
    other.id = EndpointId{161};
    other.address = ip("fd00:1::6");
    other.mac = mac("02:00:00:00:06:06");
    put(six.row(), six.source(), other.row(), other.source());

    auto plan = walk(solicitation(six, six.address, other.address));
    CHECK(fate(plan) == "answer");
    CHECK(plan.answer == Answer::neighbour_advert);
    CHECK(plan.answer_mac == other.mac);
    CHECK(walk(solicitation(six, ip("fe80::5"), ip("fd00:1::1"))).answer_mac == kGatewayMac);
    CHECK(fate(solicitation(six, six.address, ip("fd00:1::9"))) == "inner_nd");
    // Duplicate address detection: silence for one's own address, an answer for another's.
    CHECK(fate(solicitation(six, {}, six.address)) == "nothing_to_answer");
    CHECK(fate(solicitation(six, {}, other.address)) == "answer");

    Packet rogue = solicitation(six, ip("fe80::5"), {});
    rogue.icmp_type = 134;
    CHECK(fate(rogue) == "inner_nd");
    rogue.icmp_type = 133;
    CHECK(fate(rogue) == "nothing_to_answer");
}

TEST_CASE_METHOD(Subnets, "the gateway answers ping to its addresses, after egress rules") {
    auto plan = walk(from(a, ip("10.0.1.1"), Protocol::icmp));
    CHECK(fate(plan) == "answer");
    CHECK(plan.answer == Answer::echo_reply);
    CHECK(plan.answer_from == ip("10.0.1.1"));
    CHECK(fate(from(a, ip("10.0.2.1"), Protocol::icmp)) == "answer");  // the other subnet's too

    const Machine closed = add_machine(8, 1, {});
    CHECK(fate(from(closed, ip("10.0.1.1"), Protocol::icmp)) == "egress_no_rule");
}

TEST_CASE_METHOD(Subnets, "anything else to a gateway address is dropped") {
    CHECK(fate(from(a, ip("10.0.1.1"), Protocol::tcp, 22)) == "gateway_protocol");
    CHECK(fate(from(a, ip("10.0.1.1"), Protocol::udp, 33434)) == "gateway_protocol");
    // A code that no ping has (RFC 792): nobody answers, and explain does not say so either.
    Packet ping = from(a, ip("10.0.1.1"), Protocol::icmp);
    ping.icmp_code = 1;
    CHECK(fate(ping) == "gateway_protocol");
}

TEST_CASE_METHOD(Subnets, "broadcast and multicast are dropped, each by its reason") {
    CHECK(fate(from(a, ip("255.255.255.255"), Protocol::udp)) == "inner_broadcast");
    CHECK(fate(from(a, ip("10.0.1.255"), Protocol::udp)) == "inner_broadcast");
    CHECK(fate(from(a, ip("224.0.0.251"), Protocol::udp)) == "inner_multicast");
    Packet packet = from(a, b.address);
    packet.destination_mac = mac("ff:ff:ff:ff:ff:ff");
    CHECK(fate(packet) == "inner_broadcast");
}

TEST_CASE_METHOD(Subnets, "whatever its fate, a plan names the gateway of its sender's subnet") {
    CHECK(walk(from(a, b.address)).answer_from == ip("10.0.1.1"));
    CHECK(walk(from(c, a.address)).answer_from == ip("10.0.2.1"));
    CHECK(walk(from(a, ip("203.0.113.1"))).answer_from == ip("10.0.1.1"));
}

TEST_CASE_METHOD(Subnets, "no route and no endpoint are told to the sender") {
    auto plan = walk(from(a, ip("203.0.113.1")));
    CHECK(fate(plan) == "no_route");
    CHECK(plan.answer == Answer::net_unreachable);
    plan = walk(from(a, ip("10.0.1.99")));
    CHECK(fate(plan) == "unknown_destination");
    CHECK(plan.answer == Answer::host_unreachable);
}

TEST_CASE_METHOD(Subnets, "a gateway that moves within its subnet is one change of the subnet") {
    const LocalRow before{a.vpc, ip("10.0.1.1"),  kGatewayMac, a.subnet,
                          120,   RouteTableId{1}, 1450,        Cookie{301}};
    LocalRow after = before;
    after.address = ip("10.0.1.254");
    openflow::Changes changes;
    changes.remove = {before.encode().key};
    changes.put = {after.encode()};
    commit(changes);
    REQUIRE(last.subnets.size() == 1);
    CHECK(last.subnets[0].before->gateway == before.address);
    CHECK(last.subnets[0].after->gateway == after.address);
    CHECK(fate(arp(a, before.address)) == "inner_arp");
    CHECK(fate(arp(a, after.address)) == "answer");
}

TEST_CASE_METHOD(Subnets, "a second gateway address of one family is refused") {
    openflow::Changes changes;
    changes.put = {
        LocalRow{a.vpc, ip("10.0.1.2"), kGatewayMac, a.subnet, 120, RouteTableId{1}, 1450, {}}
            .encode()};
    CHECK(refused(changes).code == Error::Code::conflict);
}

}  // namespace
}  // namespace sluice::nfv
