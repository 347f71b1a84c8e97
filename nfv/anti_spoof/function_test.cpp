// SPDX-License-Identifier: Apache-2.0
#include "nfv/anti_spoof/function.hpp"

#include "tests/unit/policy_world.hpp"

namespace sluice::nfv {
namespace {

using namespace tests;

struct Two : World {
    Two() {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
    }
    Machine a, b;
};

TEST_CASE_METHOD(Two, "an endpoint sends with its own MAC and address from its own host") {
    const auto plan = walk(from(a, b.address));
    CHECK(fate(plan) == "forward");
    CHECK(plan.source == a.id);
    CHECK(plan.forward.source == store.current().core.senders.find({a.id, a.mac})->source);
    CHECK(plan.reverse.source == store.current().core.senders.find({b.id, b.mac})->source);
    CHECK(plan.path.source_endpoint == a.row().cookie);
}

TEST_CASE_METHOD(Two, "an unknown VNI, an unknown VTEP and a wrong host have each their reason") {
    Packet packet = from(a, b.address);
    packet.vni = Vni{9999};
    CHECK(fate(packet) == "unknown_vni");
    packet = from(a, b.address);
    packet.vtep = ip("192.0.2.99");
    CHECK(fate(packet) == "unknown_vtep");
    packet.vtep = vtep_of(b.host);
    CHECK(fate(packet) == "spoofed_vtep");
}

TEST_CASE_METHOD(Two, "an endpoint's address from a MAC nobody has is a spoofed MAC") {
    Packet packet = from(a, b.address);
    packet.source_mac = mac("02:00:00:00:99:99");
    CHECK(fate(packet) == "spoofed_mac");
}

TEST_CASE_METHOD(Two, "an address nobody has from a MAC nobody has is an unknown source") {
    Packet packet = from(a, b.address);
    packet.source_mac = mac("02:00:00:00:99:99");
    packet.tuple.source = ip("10.0.1.99");
    CHECK(fate(packet) == "unknown_source");
}

TEST_CASE_METHOD(Two,
                 "an endpoint without a row for its own MAC and address is unknown, not spoofed") {
    const Packet packet = from(a, b.address);
    const std::string before = fate(packet);
    CHECK(before == "forward");
    remove(a.source());
    CHECK(fate(packet) == "unknown_source");
    Packet asked = packet;  // as explain asks: by the address
    asked.source_mac = {};
    CHECK(fate(rewalk(asked)) == "unknown_source");
    // Nor where the MAC still has a row for another address.
    SourceRow other = a.source();
    other.address = block("10.0.1.77/32");
    put(other);
    CHECK(fate(packet) == "unknown_source");
    CHECK(fate(rewalk(asked)) == "unknown_source");
}

TEST_CASE_METHOD(Two, "another's address, or none's, from a known MAC is a spoofed address") {
    Packet packet = from(a, b.address);
    packet.tuple.source = ip("10.0.1.99");
    CHECK(fate(packet) == "spoofed_ip");
    packet.tuple.source = b.address;
    CHECK(fate(packet) == "spoofed_ip");
}

TEST_CASE_METHOD(Two, "copies of an endpoint's packets in another VPC's VNI are spoofed there") {
    build_vpc(2);
    const Machine twin = add_machine(5, 1, {kOpen}, 2);  // the same address
    Packet packet = from(a, b.address);
    packet.vni = Vni{5002};
    CHECK(fate(packet) == "spoofed_mac");
    CHECK(fate(from(twin, ip("10.0.1.1"), Protocol::icmp)) == "answer");
}

TEST_CASE_METHOD(Two, "allowed addresses are admitted with their MAC, and no longer once removed") {
    const SourceRow allowed{a.vpc, a.mac, block("10.9.0.0/24"), a.id, a.host, Cookie{9}};
    Packet packet = from(a, b.address);
    packet.tuple.source = ip("10.9.0.7");
    CHECK(fate(packet) == "spoofed_ip");
    put(allowed);
    CHECK(fate(packet) == "forward");
    CHECK(fate(rewalk(packet)) == "forward");
    remove(allowed);
    CHECK(fate(packet) == "spoofed_ip");
    CHECK(fate(rewalk(packet)) == "spoofed_ip");
}

TEST_CASE_METHOD(Two, "with the source check off any address is admitted, of both families") {
    put(SourceRow{a.vpc, a.mac, Prefix::any(Family::ipv4), a.id, a.host, {}});
    Packet packet = from(a, b.address);
    packet.tuple.source = ip("198.51.100.7");
    CHECK(fate(packet) == "forward");
}

TEST_CASE_METHOD(Two, "a MAC keeps its source record while its addresses and its host change") {
    const auto source = [&] { return walk(from(a, b.address)).forward.source; };
    const SourceIndex before = source();
    remove(a.source());
    put(a.source());
    const SourceIndex again = source();
    openflow::Changes renumbered;  // one bundle: the old address goes, the new one comes
    renumbered.remove = {a.source().encode().key, a.row().encode().key};
    a.address = ip("10.0.1.50");
    renumbered.put = {a.source().encode(), a.row().encode()};
    commit(renumbered);
    CHECK(source() == again);
    CHECK(last.senders.empty());

    a.host = HostId{1};
    put(a.source(), a.row());
    CHECK(source() == again);
    REQUIRE(last.senders.size() == 1);
    CHECK(last.senders[0].before->host != last.senders[0].after->host);
    CHECK(before);
}

TEST_CASE_METHOD(Two, "what a station sends before it has an address is admitted") {
    Packet probe;  // ARP, RFC 5227
    probe = from(a, b.address);
    probe.kind = EtherKind::arp;
    probe.destination_mac = mac("ff:ff:ff:ff:ff:ff");
    probe.tuple = {.source = ip("0.0.0.0"), .destination = b.address};
    CHECK(fate(probe) == "answer");

    Packet discover = from(a, ip("255.255.255.255"), Protocol::udp, 67);
    discover.tuple.source = ip("0.0.0.0");
    discover.tuple.source_port = 68;
    CHECK(fate(discover) == "inner_broadcast");
    discover.tuple.destination_port = 80;
    CHECK(fate(discover) == "spoofed_ip");
}

TEST_CASE_METHOD(Two, "link-local IPv6 is admitted for the link, and never beyond") {
    Packet packet = from(a, ip("ff02::16"), Protocol::icmpv6);
    packet.icmp_type = 143;  // MLDv2
    packet.tuple.source = ip("fe80::1");
    CHECK(fate(packet) == "inner_multicast");
    packet = from(a, ip("fd00:1::6"));
    packet.tuple.source = ip("fe80::1");
    CHECK(fate(packet) == "spoofed_ip");
}

TEST_CASE_METHOD(Two, "a re-walk finds the sender by address when it has no MAC") {
    Packet packet = from(a, b.address);
    packet.source_mac = {};
    const auto plan = rewalk(packet);
    CHECK(fate(plan) == "forward");
    CHECK(plan.source == a.id);
    packet.tuple.source = ip("10.0.1.77");
    CHECK(fate(rewalk(packet)) == "unknown_source");
}

TEST_CASE_METHOD(Two, "a next hop with its source check on forwards for nobody") {
    put(openflow::RouteRow{RouteTableId{1}, block("172.16.0.0/12"), openflow::NextHop::endpoint,
                           b.id, Cookie{44}});
    CHECK(fate(from(a, ip("172.16.0.1"))) == "source_check");
    put(SourceRow{b.vpc, b.mac, Prefix::any(Family::ipv4), b.id, b.host, {}});
    const auto plan = walk(from(a, ip("172.16.0.1")));
    CHECK(fate(plan) == "forward");
    CHECK(plan.destination == b.id);
    CHECK(plan.leaves.destination == ip("172.16.0.1"));
    CHECK(plan.forward.adjacency ==
          store.current().core.endpoints.find({b.vpc, b.address})->routed);
}

}  // namespace
}  // namespace sluice::nfv
