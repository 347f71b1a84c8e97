// SPDX-License-Identifier: Apache-2.0
#include "nfv/nat_gateway/function.hpp"

#include <algorithm>
#include <map>

#include "tests/unit/policy_world.hpp"

namespace sluice::nfv {
namespace {

using namespace tests;

// Ports as the test says they are.
struct Ports : policy::NatPorts {
    Choice choose(const policy::NatRequest& request) const override {
        asked = request;
        if (refusal != DropReason::none) return {refusal, {}, 0};
        return {DropReason::none, IpAddress::v4(request.addresses.front()), 5000};
    }
    std::optional<Mapping> find(std::uint8_t /*protocol*/, const IpAddress& address,
                                std::uint16_t port) const override {
        const auto found = mappings.find({address, port});
        if (found == mappings.end()) return std::nullopt;
        return found->second;
    }
    bool admits(std::uint8_t /*protocol*/, const IpAddress& /*address*/, std::uint16_t /*port*/,
                const IpAddress& remote) const override {
        return remote == known;
    }
    DropReason refusal = DropReason::none;
    std::map<std::pair<IpAddress, std::uint16_t>, Mapping> mappings;
    IpAddress known;
    mutable policy::NatRequest asked;
};

struct Shared : Ports, World {
    Shared() : World({}, static_cast<Ports*>(this)) {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        put(route(openflow::NextHop::nat_gateway));
        put(gateway, public_row(address));
    }
    static openflow::RouteRow route(openflow::NextHop hop) {
        openflow::RouteRow row{RouteTableId{1}, Prefix::any(Family::ipv4), hop, {}, Cookie{450}};
        if (hop == openflow::NextHop::nat_gateway) row.nat_gateway = NatGatewayId{7};
        return row;
    }
    static NatGatewayRow row() {
        NatGatewayRow result;
        result.nat_gateway = NatGatewayId{7};
        result.addresses = {ip("203.0.113.9")};
        result.cookie = Cookie{900};
        return result;
    }
    static PublicAddressRow public_row(const IpAddress& public_address) {
        PublicAddressRow result{public_address, {}, {}, {}, Cookie{901}};
        result.nat_gateway = NatGatewayId{7};
        return result;
    }
    void attach(const Machine& machine, const IpAddress& elastic) {
        put(ElasticIpRow{machine.vpc, machine.address, elastic, {}, Cookie{700}},
            PublicAddressRow{elastic, machine.vpc, machine.address, {}, Cookie{701}});
    }
    void map(const Machine& machine, std::uint16_t port) {
        mappings[{address, port}] = {NatGatewayId{7}, machine.id, machine.address, 4000};
    }
    void filter(NatFiltering filtering) {
        gateway.filtering = filtering;
        put(gateway);
    }
    // A connection that has a port, judged again.
    policy::Plan judged_again(const Packet& packet, std::uint16_t port) const {
        policy::Established held;
        held.nat_source = true;
        held.source = address;
        held.source_port = port;
        return policy::walk(store.current(), packet, policy::WalkMode::rewalk, &held);
    }

    const IpAddress address = ip("203.0.113.9"), server = ip("198.51.100.1");
    NatGatewayRow gateway = row();
    Machine a, b;
};

TEST_CASE_METHOD(Shared, "a route to a NAT gateway leads out with a port of its address") {
    const auto plan = walk(from(a, server));
    CHECK(fate(plan) == "forward");
    CHECK(plan.leaves.source == address);
    CHECK(plan.leaves.source_port == 5000);
    CHECK(plan.leaves.destination == server);
    CHECK(plan.nat.source == NatGatewayId{7});
    CHECK(plan.nat.endpoint_independent);
    CHECK(plan.nat.remembers_remote);
    CHECK(plan.nat.ports_per_endpoint == 1024);
    CHECK(plan.path.source_translation == Cookie{900});
    CHECK(plan.path.route == Cookie{450});
    CHECK(asked.gateway == NatGatewayId{7});
    CHECK(asked.endpoint == a.id);
    CHECK(asked.inside == a.address);
    CHECK(asked.port == 40000);
}

TEST_CASE_METHOD(Shared, "an endpoint's own elastic IP wins for new connections") {
    attach(a, ip("203.0.113.5"));
    const auto plan = walk(from(a, server));
    CHECK(plan.leaves.source == ip("203.0.113.5"));
    CHECK(plan.leaves.source_port == 40000);
    CHECK_FALSE(plan.nat);
    CHECK(walk(from(b, server)).leaves.source == address);
}

TEST_CASE_METHOD(Shared, "a connection that has a port keeps it when an elastic IP is attached") {
    mappings[{address, 6000}] = {NatGatewayId{7}, a.id, a.address, 40000};
    attach(a, ip("203.0.113.5"));
    auto plan = judged_again(from(a, server), 6000);
    CHECK(fate(plan) == "forward");
    CHECK(plan.leaves.source == address);
    CHECK(plan.leaves.source_port == 6000);
    CHECK(plan.nat.source == NatGatewayId{7});
    // Not when the port is another's, or the route leads elsewhere.
    mappings[{address, 6000}].endpoint = b.id;
    CHECK(judged_again(from(a, server), 6000).leaves.source_port != 6000);
    mappings[{address, 6000}].endpoint = a.id;
    put(route(openflow::NextHop::internet));
    plan = judged_again(from(a, server), 6000);
    CHECK(plan.leaves.source == ip("203.0.113.5"));
    CHECK_FALSE(plan.nat);
    remove(ElasticIpRow{a.vpc, a.address, ip("203.0.113.5"), {}, {}});
    CHECK(fate(judged_again(from(a, server), 6000)) == "no_elastic_ip");
}

TEST_CASE_METHOD(Shared, "a connection ends when the NAT gateway loses the address it has") {
    mappings[{address, 6000}] = {NatGatewayId{7}, a.id, a.address, 40000};
    gateway.addresses = {ip("203.0.113.10")};
    put(gateway, public_row(ip("203.0.113.10")));
    const auto plan = judged_again(from(a, server), 6000);
    CHECK(plan.leaves.source == ip("203.0.113.10"));
    // ... and nothing leaves with an address that table 10 does not lead back.
    put(PublicAddressRow{ip("203.0.113.10"), {}, {}, {}, Cookie{901}});
    CHECK(fate(from(a, server)) == "nat_gateway_unknown");
    remove(gateway);
    CHECK(fate(from(a, server)) == "nat_gateway_unknown");
}

TEST_CASE_METHOD(Shared, "TCP, UDP and ICMP queries are translated, nothing else") {
    for (const auto protocol : {Protocol::tcp, Protocol::udp, Protocol::icmp})
        CHECK(fate(from(a, server, protocol)) == "forward");
    for (const auto protocol : {Protocol::sctp, Protocol::gre, Protocol::esp}) {
        const auto plan = walk(from(a, server, protocol));
        CHECK(fate(plan) == "nat_protocol");
        CHECK(plan.decided_by == Cookie{900});
    }
    CHECK(fate(from(a, server, Protocol::udp, 4791)) == "roce_not_translated");
    CHECK(fate(from(a, address, Protocol::udp, 4791)) == "roce_not_translated");
}

TEST_CASE_METHOD(Shared, "exhaustion names the NAT gateway and the destination") {
    refusal = DropReason::nat_ports_exhausted;
    const auto plan = walk(from(a, server));
    CHECK(fate(plan) == "nat_ports_exhausted");
    CHECK(plan.decided_by == Cookie{900});
    CHECK(plan.arrives.destination == server);
    CHECK(plan.path.route == Cookie{450});
}

TEST_CASE_METHOD(Shared, "who asks why is told of the translation, its entry and its port") {
    policy::Trace trace;
    policy::walk(store.current(), from(a, server), policy::WalkMode::packet, trace);
    const auto& steps = trace.steps();
    const auto step = std::find_if(steps.begin(), steps.end(), [](const policy::TraceStep& one) {
        return one.table == openflow::kNatGateway;
    });
    REQUIRE(step != steps.end());
    CHECK(step->outcome == policy::Outcome::translate);
    CHECK(step->cookie == Cookie{900});
    CHECK(step->address == address);
    CHECK(step->number == 5000);
}

TEST_CASE_METHOD(Shared, "limits: outwards the NAT gateway's meter, inwards its address's") {
    put_meter(MeterId{1}, 20000);
    put_meter(MeterId{2}, 20000);
    gateway.meter = MeterId{1};
    auto back = public_row(address);
    back.meter = MeterId{2};
    put(gateway, back);
    const auto plan = walk(from(a, server));
    CHECK(plan.forward.meters[0] == MeterId{1});
    CHECK(plan.reverse.meters[0] == MeterId{2});
}

TEST_CASE_METHOD(Shared, "what comes to a NAT gateway's address opens nothing by default") {
    CHECK(fate(from_uplink(server, address)) == "nat_unmapped");
    map(a, 80);
    const auto plan = walk(from_uplink(server, address));
    CHECK(fate(plan) == "nat_filtered");
    CHECK(plan.decided_by == Cookie{901});
    CHECK(fate(from_uplink(server, address, Protocol::icmp)) == "nat_unmapped");
    CHECK(fate(from_uplink(ip("10.9.9.9"), address)) == "private_on_uplink");
    CHECK(fate(from_uplink(address, address)) == "spoofed_ip");
}

TEST_CASE_METHOD(Shared, "endpoint-independent filtering leads to the endpoint that has the port") {
    map(a, 80);
    filter(NatFiltering::endpoint_independent);
    const auto plan = walk(from_uplink(server, address));
    CHECK(fate(plan) == "forward");
    CHECK(plan.leaves.destination == a.address);
    CHECK(plan.leaves.destination_port == 4000);
    CHECK(plan.leaves.source == server);
    CHECK(plan.destination == a.id);
    CHECK(plan.nat.destination == NatGatewayId{7});
    CHECK_FALSE(plan.nat.source);
    CHECK(fate(from_uplink(server, address, Protocol::tcp, 81)) == "nat_unmapped");
}

TEST_CASE_METHOD(Shared, "what filtering lets in is judged by the endpoint's ingress rules") {
    const Machine closed = add_machine(7, 1, {});
    map(closed, 80);
    filter(NatFiltering::endpoint_independent);
    CHECK(fate(from_uplink(server, address)) == "ingress_no_rule");
}

TEST_CASE_METHOD(Shared, "address-dependent filtering admits whom the port has talked to") {
    map(a, 80);
    filter(NatFiltering::address_dependent);
    CHECK(fate(from_uplink(server, address)) == "nat_filtered");
    known = server;
    CHECK(fate(from_uplink(server, address)) == "forward");
    CHECK(fate(from_uplink(ip("198.51.100.2"), address)) == "nat_filtered");
    // What was let in stays, whatever ended since.
    known = {};
    const policy::Established held;
    CHECK(fate(policy::walk(store.current(), from_uplink(server, address), policy::WalkMode::rewalk,
                            &held)) == "forward");
}

TEST_CASE_METHOD(Shared, "a port of an endpoint that is gone leads to nobody") {
    map(a, 80);
    filter(NatFiltering::endpoint_independent);
    remove(a.row(), a.source());
    Machine next = a;
    next.id = EndpointId{999};
    put(next.row(), next.source());
    CHECK(fate(from_uplink(server, address)) == "nat_unmapped");
}

TEST_CASE_METHOD(Shared, "hairpin: to an elastic IP, seen with the NAT gateway's address") {
    attach(b, ip("203.0.113.5"));
    const auto plan = walk(from(a, ip("203.0.113.5")));
    CHECK(fate(plan) == "forward");
    CHECK(plan.leaves.source == address);
    CHECK(plan.leaves.source_port == 5000);
    CHECK(plan.leaves.destination == b.address);
    CHECK(plan.destination_vni == Vni{5001});
    CHECK(plan.nat.source == NatGatewayId{7});
}

TEST_CASE_METHOD(Shared, "hairpin to the NAT gateway's own address goes by its filtering") {
    map(b, 80);
    CHECK(fate(from(a, address)) == "nat_filtered");
    filter(NatFiltering::endpoint_independent);
    const auto plan = walk(from(a, address));
    CHECK(fate(plan) == "forward");
    CHECK(plan.leaves.source == address);
    CHECK(plan.leaves.destination == b.address);
    CHECK(plan.nat.source == NatGatewayId{7});
    CHECK(plan.nat.destination == NatGatewayId{7});
}

TEST_CASE_METHOD(Shared, "a change of a NAT gateway concerns the VPCs that its routes serve") {
    const auto concerned = [&](const openflow::Entry& entry) {
        openflow::Changes changes;
        changes.put = {entry};
        auto prepared = store.prepare(changes);
        REQUIRE(prepared.ok());
        const auto slot = store.current().core.vpcs.find(VpcId{1})->slot;
        return std::count(prepared->zones().begin(), prepared->zones().end(), slot) == 1;
    };
    gateway.ports_per_endpoint = 64;
    CHECK(concerned(gateway.encode()));
    auto address_row = public_row(address);
    address_row.meter = {};
    address_row.cookie = Cookie{902};
    CHECK(concerned(address_row.encode()));
    put(route(openflow::NextHop::blackhole));
    CHECK_FALSE(concerned(gateway.encode()));
}

TEST_CASE_METHOD(Shared, "IPv6 is not translated: a route to a NAT gateway is none for it") {
    openflow::RouteRow row = route(openflow::NextHop::nat_gateway);
    row.destination = Prefix::any(Family::ipv6);
    put(row);
    Machine six = a;
    six.address = ip("fd00:1::5");
    put(six.row(), six.source());
    CHECK(fate(from(six, ip("2001:db8:1::1"))) == "private_on_uplink");
}

TEST_CASE_METHOD(Shared, "settings in contradiction are refused by the entry's own error") {
    gateway.mapping = NatMapping::address_and_port_dependent;
    gateway.filtering = NatFiltering::endpoint_independent;
    const auto wrong = store.check(gateway.encode());
    REQUIRE(wrong);
    CHECK(wrong->error.path == "nat_gateway.setting");
}

}  // namespace
}  // namespace sluice::nfv
