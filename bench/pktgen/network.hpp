// SPDX-License-Identifier: Apache-2.0
// The network and the flows that a profile describes: one deterministic answer to "who is endpoint
// i" and "what does flow i send", for the generator and for whoever programs the gateway.
//
// Each VPC has two subnets with the same addresses in every VPC: clients in 10.1.0.0/16
// (fd00:0:0:1::/64), servers in 10.2.0.0/16 (fd00:0:0:2::/64), gateways at the first address.
// Flow i belongs to VPC i mod VPCs and is opened by a client. No two flows have the same tuple in a
// VPC, nor after translation by elastic IPs.
// Threads: const after construction. Cost: computed, nothing is stored for endpoints or flows.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>

#include "bench/pktgen/profile.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::pktgen {

// Which way a packet of a flow goes: from the client to the server, or back.
enum class Way : std::uint8_t { forward, reverse };

struct Endpoint {
    std::uint32_t number = 0;  // from 0, over all VPCs
    std::uint32_t vpc = 0;     // from 0
    bool client = true;
    Vni vni;
    MacAddress mac;
    IpAddress address;
    IpAddress elastic;
    std::uint32_t host = 0;  // from 0
    IpAddress vtep;
};

// What the generator puts on the wire for a flow.
struct Frame {
    Side side = Side::underlay;
    // Underlay only.
    IpAddress vtep;  // from here
    Vni vni;
    std::uint16_t outer_port = 0;  // UDP source: the flow's entropy
    // The inner frame; on the uplink the frame itself, whose MAC addresses are the link's.
    MacAddress source_mac;
    MacAddress destination_mac;
    IpAddress source;
    IpAddress destination;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;

    bool operator==(const Frame&) const = default;
};

// Where such a packet must come back to the generator.
struct Arrival {
    Side side = Side::underlay;
    IpAddress vtep;  // underlay only, as the VNI
    Vni vni;
    IpAddress source;
    IpAddress destination;

    bool operator==(const Arrival&) const = default;
};

// The address `index` behind the first.
IpAddress nth(IpAddress first, std::uint32_t index);
// A VPC's subnet of clients, or of servers.
Prefix subnet(Family family, bool client);
// The gateways' MAC address towards every subnet.
inline constexpr MacAddress kSubnetGateway{{0x02, 0xbb, 0x00, 0x00, 0x00, 0x01}};

class Network {
  public:
    explicit Network(const Profile& profile) : profile_(profile) {}

    [[nodiscard]] std::uint32_t flows() const { return profile_.flows.count; }
    [[nodiscard]] std::uint32_t endpoints() const {
        return profile_.tenants.vpcs * profile_.tenants.endpoints;
    }
    // `number` below endpoints(), `flow` below flows().
    [[nodiscard]] Endpoint endpoint(std::uint32_t number) const;
    [[nodiscard]] Frame sent(std::uint32_t flow, Way way) const;
    [[nodiscard]] Arrival expected(std::uint32_t flow, Way way) const;

    // As bench/program_tables reads it. Throws std::bad_alloc.
    [[nodiscard]] boost::json::value json() const;

  private:
    struct Ends {
        Endpoint client;
        Endpoint server;         // unless it is the internet's
        IpAddress internet;      // the host that is the flow's other end
        std::uint16_t port = 0;  // the client's
    };
    [[nodiscard]] Ends ends(std::uint32_t flow) const;

    Profile profile_;
};

}  // namespace sluice::pktgen
