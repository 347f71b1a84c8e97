// SPDX-License-Identifier: Apache-2.0
// Builds what stands before an inner IP header when a packet leaves: RFC 7348 section 5 with
// RFC 6040 and per-packet fields left zero (adjacency.hpp).
//
// Pure functions. Cost: about 200 octets written.
#pragma once

#include "dataplane/policy/adjacency.hpp"

namespace sluice::reachability {

// Octets of the outer IP packet besides the inner IP packet: IP, UDP, VXLAN, inner Ethernet.
inline constexpr std::uint16_t kOverheadIpv4 = 20 + 8 + 8 + 14;
inline constexpr std::uint16_t kOverheadIpv6 = 40 + 8 + 8 + 14;

struct Tunnel {
    PortId port;
    MacAddress own_mac;       // outer source
    MacAddress next_hop_mac;  // outer destination
    IpAddress own_vtep;
    IpAddress remote_vtep;  // of the same family
    Vni vni;
    policy::ZoneSlot zone;
    MacAddress inner_source;       // the gateway's, towards the destination's subnet
    MacAddress inner_destination;  // the endpoint's
    Family inner = Family::ipv4;
    std::uint16_t mtu = 0;  // octets of the largest inner IP packet
    bool bridged = false;
};
policy::Adjacency vxlan(const Tunnel& tunnel);

struct Uplink {
    PortId port;
    MacAddress own_mac;
    MacAddress next_hop_mac;
    Family family = Family::ipv4;
    std::uint16_t mtu = 0;
};
policy::Adjacency ethernet(const Uplink& uplink);

// Drops as host_unreachable, and is counted in the destination's zone.
policy::Adjacency unreachable(policy::ZoneSlot zone);

}  // namespace sluice::reachability
