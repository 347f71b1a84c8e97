// SPDX-License-Identifier: Apache-2.0
#include "dataplane/reachability/header.hpp"

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::reachability {
namespace {

constexpr std::uint8_t kTtl = 64;

void write_ethernet(std::uint8_t* at, const MacAddress& destination, const MacAddress& source,
                    Family family) {
    wire::store(at + wire::ethernet::kDestination, destination);
    wire::store(at + wire::ethernet::kSource, source);
    wire::store(at + wire::ethernet::kType,
                family == Family::ipv4 ? wire::ethernet::kIpv4 : wire::ethernet::kIpv6);
}

// Returns where the next header begins.
std::uint8_t* write_ipv4(std::uint8_t* at, const Tunnel& tunnel) {
    at[0] = 0x45;
    wire::store(at + wire::ipv4::kFragment, be16{wire::ipv4::kDontFragment});
    at[wire::ipv4::kTtl] = kTtl;
    at[wire::ipv4::kProtocol] = static_cast<std::uint8_t>(Protocol::udp);
    wire::store_v4(at + wire::ipv4::kSource, tunnel.own_vtep);
    wire::store_v4(at + wire::ipv4::kDestination, tunnel.remote_vtep);
    return at + wire::ipv4::kSize;
}

std::uint8_t* write_ipv6(std::uint8_t* at, const Tunnel& tunnel) {
    at[0] = 0x60;
    at[wire::ipv6::kNextHeader] = static_cast<std::uint8_t>(Protocol::udp);
    at[wire::ipv6::kHopLimit] = kTtl;
    wire::store_v6(at + wire::ipv6::kSource, tunnel.own_vtep);
    wire::store_v6(at + wire::ipv6::kDestination, tunnel.remote_vtep);
    return at + wire::ipv6::kSize;
}

}  // namespace

policy::Adjacency vxlan(const Tunnel& tunnel) {
    policy::Adjacency result;
    const bool ipv4 = tunnel.remote_vtep.is_v4();
    std::uint8_t* const start = result.header.data();
    write_ethernet(start, tunnel.next_hop_mac, tunnel.own_mac, tunnel.remote_vtep.family());
    std::uint8_t* const ip = start + wire::ethernet::kSize;
    std::uint8_t* at = ipv4 ? write_ipv4(ip, tunnel) : write_ipv6(ip, tunnel);
    if (ipv4) result.checksum_base = wire::Sum{}.add({ip, wire::ipv4::kSize}).folded();
    wire::store(at + wire::udp::kDestination, wire::udp::kVxlan);
    at += wire::udp::kSize;
    at[wire::vxlan::kFlags] = wire::vxlan::kVniPresent;
    wire::store(at + wire::vxlan::kVni, be32{tunnel.vni.value << 8});
    at += wire::vxlan::kSize;
    write_ethernet(at, tunnel.inner_destination, tunnel.inner_source, tunnel.inner);
    result.mtu = tunnel.mtu;
    result.port = tunnel.port;
    result.zone = tunnel.zone;
    result.kind = ipv4 ? policy::Adjacency::Kind::vxlan_ipv4 : policy::Adjacency::Kind::vxlan_ipv6;
    result.bridged = tunnel.bridged;
    return result;
}

policy::Adjacency ethernet(const Uplink& uplink) {
    policy::Adjacency result;
    write_ethernet(result.header.data(), uplink.next_hop_mac, uplink.own_mac, uplink.family);
    result.mtu = uplink.mtu;
    result.port = uplink.port;
    result.kind = policy::Adjacency::Kind::ethernet;
    return result;
}

policy::Adjacency unreachable(policy::ZoneSlot zone) {
    policy::Adjacency result;
    result.zone = zone;
    return result;
}

}  // namespace sluice::reachability
