// SPDX-License-Identifier: Apache-2.0
// What a walk may know of the ports that NAT gateways have given out: it looks, commit takes.
//
// Threads: any; an implementation holds no lock for long. What it says may be a moment old: commit
// asks again.
#pragma once

#include <optional>
#include <span>

#include "dataplane/policy/adjacency.hpp"
#include "dataplane/wire/drop_reason.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::policy {

struct NatRequest {
    NatGatewayId gateway;
    EndpointId endpoint;
    std::uint8_t protocol = 0;
    IpAddress inside;  // the private address and port (or ICMP identifier)
    std::uint16_t port = 0;
    bool endpoint_independent = true;
    std::uint32_t ports_per_endpoint = 0;
    std::span<const be32> addresses;  // of the NAT gateway, one at least
    ZoneSlot zone;                    // of the endpoint's VPC
};

class NatPorts {
  public:
    NatPorts() = default;
    NatPorts(const NatPorts&) = delete;
    NatPorts& operator=(const NatPorts&) = delete;
    virtual ~NatPorts() = default;

    struct Choice {
        DropReason reason = DropReason::none;  // why there is no port
        IpAddress address;
        std::uint16_t port = 0;  // 0: commit gives one
    };
    [[nodiscard]] virtual Choice choose(const NatRequest& request) const = 0;

    struct Mapping {
        NatGatewayId gateway;
        EndpointId endpoint;
        IpAddress inside;
        std::uint16_t port = 0;  // 0: of many connections (address- and port-dependent)
    };
    // Behind a port of a public address; nothing while no connection uses it.
    [[nodiscard]] virtual std::optional<Mapping> find(std::uint8_t protocol,
                                                      const IpAddress& address,
                                                      std::uint16_t port) const = 0;
    // Whether the port has a connection with this address (address-dependent filtering).
    [[nodiscard]] virtual bool admits(std::uint8_t protocol, const IpAddress& address,
                                      std::uint16_t port, const IpAddress& remote) const = 0;
};

}  // namespace sluice::policy
