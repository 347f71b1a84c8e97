// SPDX-License-Identifier: Apache-2.0
#include "dataplane/reachability/reachability.hpp"

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"
#include "dataplane/wire/headers.hpp"

namespace sluice::reachability {
namespace {

using namespace wire::build;
using Kind = policy::Adjacency::Kind;

const MacAddress kHopMac = "02:00:00:00:00:aa"_mac, kOtherMac = "02:00:00:00:00:bb"_mac;
const IpAddress kNear = "192.0.2.9"_ip, kFar = "198.51.100.9"_ip;
const IpAddress kFirstHop = "192.0.2.254"_ip, kSecondHop = "192.0.2.253"_ip;
const IpAddress kInternet = "203.0.113.254"_ip;
constexpr VpcId kVpc{100};
constexpr HostId kHost{200};
constexpr SubnetId kSubnet{300};

std::vector<port::Port> ports() {
    port::Port underlay;
    underlay.id = PortId{1};
    underlay.role = Side::underlay;
    underlay.mac = "02:00:00:00:00:01"_mac;
    underlay.mtu = 1600;
    underlay.addresses = {{"192.0.2.1"_ip, 96 + 24}};
    underlay.next_hops = {kFirstHop, kSecondHop};
    port::Port uplink = underlay;
    uplink.id = PortId{2};
    uplink.role = Side::uplink;
    uplink.mtu = 1500;
    uplink.addresses = {{"203.0.113.1"_ip, 96 + 24}};
    uplink.next_hops = {kInternet};
    return {underlay, uplink};
}

struct Fixture {
    explicit Fixture(std::vector<IpAddress> own = {"192.0.2.1"_ip}) : vteps(std::move(own)) {}

    std::vector<port::Port> all = ports();
    std::vector<IpAddress> vteps;
    neighbour::Time now{};
    neighbour::Neighbours neighbours;
    policy::AdjacencyTable adjacencies{16};
    policy::SourceTable sources{16};
    reclaim::Qsbr qsbr{1};
    Routes routes{all, vteps, neighbours, now};
    Reachability reachability{adjacencies, sources, qsbr, routes};
    Place place{kVpc,
                "10.0.0.5"_ip,
                kSubnet,
                kHost,
                "02:aa:00:00:00:05"_mac,
                adjacencies.allocate(),
                adjacencies.allocate()};
    SourceIndex sender = sources.allocate();

    void heard(PortId port, const IpAddress& address, const MacAddress& mac) {
        neighbours.heard({port, address}, mac, now);
        reachability.neighbours_changed();
    }
    void populate(std::vector<IpAddress> host_vteps) {
        reachability.put_vpc(kVpc, Vni{7}, policy::ZoneSlot{1});
        reachability.put_subnet({kSubnet, Family::ipv4, "02:ff:00:00:00:01"_mac, 1450});
        reachability.put_host({kHost, std::move(host_vteps), Cookie{1}}, now);
        reachability.put_place(place);
        reachability.put_sender({sender, kVpc, kHost, place.mac});
        reachability.build();
    }
    const policy::Adjacency& routed() { return adjacencies[place.routed]; }
    const policy::Adjacency& bridged() { return adjacencies[place.bridged]; }
    MacAddress hop_of(const policy::Adjacency& adjacency) {
        return wire::load_mac(adjacency.header.data());
    }
};

}  // namespace

TEST_CASE("an on-link VTEP is reached once its neighbour answers", "[reachability]") {
    Fixture f;
    f.populate({kNear});
    CHECK(f.routed().kind == Kind::unreachable);
    CHECK(f.routed().zone == policy::ZoneSlot{1});
    f.heard(PortId{1}, kNear, kHopMac);
    CHECK(f.routed().kind == Kind::vxlan_ipv4);
    CHECK_FALSE(f.routed().bridged);
    CHECK(f.bridged().bridged);
    CHECK(f.hop_of(f.routed()) == kHopMac);
    CHECK(f.routed().mtu == 1450);
}

TEST_CASE("a VTEP beyond the link goes through the first next hop that answers", "[reachability]") {
    Fixture f;
    f.populate({kFar});
    f.heard(PortId{1}, kSecondHop, kOtherMac);
    CHECK(f.hop_of(f.routed()) == kOtherMac);
    f.heard(PortId{1}, kFirstHop, kHopMac);
    CHECK(f.hop_of(f.routed()) == kHopMac);
}

TEST_CASE("a failover moves the records, and old ones live until the grace period is over",
          "[reachability]") {
    Fixture f;
    f.qsbr.online(0);
    f.populate({kFar});
    f.heard(PortId{1}, kFirstHop, kHopMac);
    const auto& before = f.routed();
    f.heard(PortId{1}, kFirstHop, kOtherMac);
    f.reachability.reclaim();
    CHECK(f.hop_of(before) == kHopMac);
    CHECK(f.hop_of(f.routed()) == kOtherMac);
    f.qsbr.quiescent(0);
    f.reachability.reclaim();
}

TEST_CASE("a port whose link is down leads nowhere", "[reachability]") {
    Fixture f;
    f.populate({kNear});
    f.heard(PortId{1}, kNear, kHopMac);
    f.routes.link(PortId{1}, false);
    f.reachability.neighbours_changed();
    CHECK(f.routed().kind == Kind::unreachable);
    f.routes.link(PortId{1}, true);
    f.reachability.neighbours_changed();
    CHECK(f.routed().kind == Kind::vxlan_ipv4);
}

TEST_CASE("a host's VTEP of a family the gateway lacks is passed over", "[reachability]") {
    Fixture f;
    f.populate({"2001:db8::9"_ip, kNear});
    f.heard(PortId{1}, kNear, kHopMac);
    CHECK(f.routed().kind == Kind::vxlan_ipv4);
    CHECK(f.reachability.counts().unreachable_hosts == 0);
}

TEST_CASE("the MTU is the subnet's, or less where the port carries less", "[reachability]") {
    Fixture f({"192.0.2.1"_ip, "2001:db8::1"_ip});
    f.all[0].addresses.push_back({"2001:db8::1"_ip, 64});
    f.populate({kNear});
    f.heard(PortId{1}, kNear, kHopMac);
    CHECK(f.routed().mtu == 1450);
    f.reachability.put_subnet({kSubnet, Family::ipv4, "02:ff:00:00:00:01"_mac, 9000});
    f.reachability.build();
    // Of 1,600: outer IPv4, UDP, VXLAN and the inner Ethernet header; IPv6 takes 20 more.
    CHECK(f.routed().mtu == 1550);
    CHECK(f.bridged().mtu == 1550);
    f.reachability.put_host({kHost, {"2001:db8::9"_ip}, Cookie{1}}, f.now);
    f.reachability.build();
    f.heard(PortId{1}, "2001:db8::9"_ip, kHopMac);
    CHECK(f.routed().kind == Kind::vxlan_ipv6);
    CHECK(f.routed().mtu == 1530);
}

TEST_CASE("a host that moves takes its endpoints and senders along", "[reachability]") {
    Fixture f;
    f.populate({kNear});
    f.heard(PortId{1}, kNear, kHopMac);
    CHECK(f.sources[f.sender].vteps[0] == kNear);
    f.reachability.put_host({kHost, {kFar}, Cookie{1}}, f.now);
    f.reachability.build();
    CHECK(f.sources[f.sender].vteps[0] == kFar);
    CHECK(f.routed().kind == Kind::unreachable);
    CHECK_FALSE(f.neighbours.state({PortId{1}, kNear}));
}

TEST_CASE("an order of arrival does not matter", "[reachability]") {
    Fixture f;
    f.reachability.put_place(f.place);
    f.reachability.put_sender({f.sender, kVpc, kHost, f.place.mac});
    f.reachability.build();
    CHECK(f.routed().kind == Kind::unreachable);
    f.populate({kNear});
    f.heard(PortId{1}, kNear, kHopMac);
    CHECK(f.routed().kind == Kind::vxlan_ipv4);
    CHECK(f.sources[f.sender].mac == f.place.mac);
}

TEST_CASE("what is removed leaves a record that reaches nobody, and nothing behind",
          "[reachability]") {
    Fixture f;
    f.populate({kNear});
    f.heard(PortId{1}, kNear, kHopMac);
    f.reachability.remove_place(kVpc, f.place.address);
    f.reachability.remove_sender(f.sender);
    f.reachability.remove_host(kHost);
    f.reachability.remove_subnet(kSubnet, Family::ipv4);
    f.reachability.remove_vpc(kVpc);
    f.reachability.build();
    CHECK(f.routed().kind == Kind::unreachable);
    CHECK(f.sources[f.sender].mac.is_zero());
    const auto counts = f.reachability.counts();
    CHECK(counts.places + counts.hosts + counts.senders == 0);
    CHECK_FALSE(f.neighbours.state({PortId{1}, kNear}));
}

TEST_CASE("the internet is the uplink's next hop", "[reachability]") {
    Fixture f;
    const auto index = f.reachability.outside().ipv4;
    CHECK(f.adjacencies[index].kind == Kind::unreachable);
    f.heard(PortId{2}, kInternet, kHopMac);
    CHECK(f.adjacencies[index].kind == Kind::ethernet);
    CHECK(f.adjacencies[index].port == PortId{2});
    CHECK(f.adjacencies[f.reachability.outside().ipv6].kind == Kind::unreachable);
    CHECK(f.routes.on_link_uplink("203.0.113.77"_ip) == &f.all[1]);
    CHECK(f.routes.on_link_uplink("192.0.2.77"_ip) == nullptr);
}

}  // namespace sluice::reachability
