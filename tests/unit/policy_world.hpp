// SPDX-License-Identifier: Apache-2.0
// A small cloud in tables, for tests of policy: what is added is committed at once, and
// packets are walked through all network functions.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>

#include "dataplane/policy/store.hpp"
#include "dataplane/policy/walk.hpp"
#include "nfv/anti_spoof/function.hpp"
#include "nfv/anti_spoof/table.hpp"
#include "nfv/elastic_ip/function.hpp"
#include "nfv/elastic_ip/table.hpp"
#include "nfv/gateway_address/function.hpp"
#include "nfv/gateway_address/table.hpp"
#include "nfv/nat_gateway/function.hpp"
#include "nfv/nat_gateway/table.hpp"
#include "nfv/policer/function.hpp"
#include "nfv/security_group/function.hpp"
#include "nfv/security_group/table.hpp"

namespace sluice::tests {

inline IpAddress ip(const char* text) {
    return parse_ip(text).value();
}
inline Prefix block(const char* text) {
    return parse_prefix(text).value();
}
inline MacAddress mac(const char* text) {
    return parse_mac(text).value();
}

// An endpoint as the controller would know it.
struct Machine {
    VpcId vpc;
    EndpointId id;
    SubnetId subnet;
    HostId host;
    IpAddress address;
    MacAddress mac;
    std::vector<GroupId> groups;

    [[nodiscard]] openflow::EndpointRow row() const {
        return {vpc, address, id, subnet, host, mac, groups, Cookie{1000 + id.value}};
    }
    [[nodiscard]] nfv::SourceRow source() const {
        return {vpc, mac, Prefix::host(address), id, host, Cookie{2000 + id.value}};
    }
};

class World {
  public:
    // `own`: what the configuration gives to the gateway and its neighbours.
    explicit World(policy::OwnAddresses own = {}, const policy::NatPorts* nat_ports = nullptr)
        : pipeline_({&nfv::anti_spoof(), &nfv::gateway_address(), &nfv::security_group(),
                     &nfv::elastic_ip(), &nfv::nat_gateway(), &nfv::policer()}),
          outside_{adjacencies.allocate(), adjacencies.allocate(), sources.allocate()},
          store({.adjacencies = adjacencies,
                 .sources = sources,
                 .qsbr = qsbr,
                 .pipeline = pipeline_,
                 .outside = outside_,
                 .ports = ports_,
                 .own = std::move(own),
                 .nat_ports = nat_ports}) {}

    // --- changes ---

    template <class... Rows>
    void put(const Rows&... rows) {
        openflow::Changes changes;
        (changes.put.push_back(rows.encode()), ...);
        commit(changes);
    }
    template <class... Rows>
    void remove(const Rows&... rows) {
        openflow::Changes changes;
        (changes.remove.push_back(rows.encode().key), ...);
        commit(changes);
    }
    void put_meter(MeterId meter, std::uint32_t kbps) {
        openflow::Changes changes;
        changes.put_meters.push_back({meter, kbps, kbps / 10});
        commit(changes);
    }
    void commit(const openflow::Changes& changes) {
        auto prepared = store.prepare(changes);
        if (!prepared) FAIL(prepared.error().path + ": " + prepared.error().message);
        store.publish(*std::move(prepared), [this](const policy::Delta& delta) {
            last = delta;
            if (install) install(delta);
        });
        store.reclaim();
    }
    [[nodiscard]] Error refused(const openflow::Changes& changes) {
        const auto prepared = store.prepare(changes);
        REQUIRE_FALSE(prepared.ok());
        return prepared.error();
    }

    // VPC 1 on VNI 5001: subnets 10.0.1.0/24 and 10.0.2.0/24 (and fd00:1::/64, fd00:2::/64) of
    // route table 1, a local route for all of them, hosts 1 (192.0.2.11) and 2 (192.0.2.12).
    void build_vpc(std::uint32_t number = 1) {
        const VpcId vpc{number};
        put(openflow::VniRow{Vni{5000 + number}, vpc, Cookie{number}});
        const RouteTableId table{number};
        for (std::uint32_t i = 1; i <= 2; ++i) {
            const SubnetId subnet{number * 10 + i};
            const std::string third = std::to_string(i);
            put(nfv::LocalRow{vpc, ip(("10.0." + third + ".1").c_str()), kGatewayMac, subnet, 120,
                              table, 1450, Cookie{300 + i}},
                nfv::LocalRow{vpc, ip(("fd00:" + third + "::1").c_str()), kGatewayMac, subnet, 64,
                              table, 1450, Cookie{310 + i}});
        }
        put(
            openflow::RouteRow{
                table, block("10.0.0.0/16"), openflow::NextHop::local, {}, Cookie{400}},
            openflow::RouteRow{
                table, block("fd00::/16"), openflow::NextHop::local, {}, Cookie{401}});
        put(openflow::HostRow{HostId{1}, {ip("192.0.2.11")}, Cookie{501}},
            openflow::HostRow{HostId{2}, {ip("192.0.2.12")}, Cookie{502}});
    }
    // Endpoint `number` of VPC 1: 10.0.SUBNET.NUMBER on host 1 or 2, members of `groups`.
    Machine add_machine(std::uint32_t number, std::uint32_t subnet = 1,
                        std::vector<GroupId> groups = {kOpen}, std::uint32_t vpc = 1) {
        const std::string address = "10.0." + std::to_string(subnet) + "." + std::to_string(number);
        const Machine machine{VpcId{vpc},
                              EndpointId{vpc * 100 + number},
                              SubnetId{vpc * 10 + subnet},
                              HostId{1 + number % 2},
                              ip(address.c_str()),
                              MacAddress::from_value(0x020000000000ULL + vpc * 0x1000 + number),
                              std::move(groups)};
        put(machine.row(), machine.source());
        return machine;
    }
    // Group 1 lets everything pass, both ways, of both families.
    void open_group() {
        for (const auto direction : {nfv::Direction::egress, nfv::Direction::ingress})
            for (const auto family : {Family::ipv4, Family::ipv6}) {
                nfv::RuleRow rule;
                rule.direction = direction;
                rule.group = kOpen;
                rule.family = family;
                rule.cookie = Cookie{direction == nfv::Direction::egress ? 601U : 602U};
                put(rule);
            }
    }

    // --- packets ---

    // From the machine, through the gateway, on its own host's VTEP.
    [[nodiscard]] Packet from(const Machine& machine, const IpAddress& destination,
                              Protocol protocol = Protocol::tcp, std::uint16_t port = 80) const {
        Packet packet;
        packet.vni = store.current().core.vpcs.find(machine.vpc)->vni;
        packet.vtep = vtep_of(machine.host);
        packet.source_mac = machine.mac;
        packet.destination_mac = kGatewayMac;
        fill(packet, machine.address, destination, protocol, port);
        return packet;
    }
    [[nodiscard]] Packet from_uplink(const IpAddress& source, const IpAddress& destination,
                                     Protocol protocol = Protocol::tcp,
                                     std::uint16_t port = 80) const {
        Packet packet;
        packet.side = Side::uplink;
        fill(packet, source, destination, protocol, port);
        return packet;
    }
    [[nodiscard]] policy::Plan walk(const Packet& packet) const {
        return policy::walk(store.current(), packet, policy::WalkMode::packet);
    }
    [[nodiscard]] policy::Plan rewalk(Packet packet) const {
        packet.vtep = {};
        packet.destination_mac = {};
        return policy::walk(store.current(), packet, policy::WalkMode::rewalk);
    }
    // "forward", "answer", or why it is dropped.
    [[nodiscard]] std::string fate(const Packet& packet) const { return fate(walk(packet)); }
    static std::string fate(const policy::Plan& plan) {
        if (plan.verdict == policy::Verdict::forward) return "forward";
        if (plan.verdict == policy::Verdict::answer) return "answer";
        return std::string(label(plan.reason));
    }

    static IpAddress vtep_of(HostId host) { return IpAddress::v4(be32{0xc000020aU + host.value}); }

    static constexpr MacAddress kGatewayMac = MacAddress::from_value(0x0200000000fe);
    static constexpr GroupId kOpen{1};

    policy::AdjacencyTable adjacencies{1U << 15};
    policy::SourceTable sources{1U << 14};
    reclaim::Qsbr qsbr{1};

  private:
    static void fill(Packet& packet, const IpAddress& source, const IpAddress& destination,
                     Protocol protocol, std::uint16_t port) {
        packet.kind = destination.is_v4() ? EtherKind::ipv4 : EtherKind::ipv6;
        packet.ttl = 64;
        packet.tuple = {source, destination, static_cast<std::uint8_t>(protocol), 40000, port};
        if (protocol == Protocol::icmp || protocol == Protocol::icmpv6) {
            packet.icmp_type = protocol == Protocol::icmp ? 8 : 128;
            packet.tuple.source_port = 77;
            packet.tuple.destination_port = static_cast<std::uint16_t>(packet.icmp_type << 8);
        }
    }

    policy::Pipeline pipeline_;
    policy::Outside outside_;
    const openflow::PortRow ports_[2] = {{PortId{1}, Side::underlay}, {PortId{2}, Side::uplink}};

  public:
    policy::Store store;
    policy::Delta last;                                 // of the latest commit
    std::function<void(const policy::Delta&)> install;  // called in each, if there
};

}  // namespace sluice::tests
