// SPDX-License-Identifier: Apache-2.0
// What gateways say of themselves that matters to what may be asked for: plain values.
//
// What none has said yet forbids nothing; a gateway refuses by itself what cannot be.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/wire/types.hpp"

namespace sluice::model {

struct GatewayFacts {
    std::vector<IpAddress> vteps;
    std::vector<IpAddress> addresses;  // of its ports
    std::vector<IpAddress> next_hops;
    // The largest tenant packet that its underlay carries, in octets.
    std::optional<std::uint16_t> tenant_mtu;
    // Its defaults of a VPC's limits, by the name of the limit; more than one can set: none.
    std::map<std::string, std::uint64_t, std::less<>> limits;
    bool operator==(const GatewayFacts&) const = default;
};

// By the gateway's name. Cost: a look at every gateway.
struct Surroundings {
    std::map<std::string, GatewayFacts> gateways;

    // Of a gateway; nothing if it has not said.
    [[nodiscard]] std::optional<std::uint16_t> largest_mtu(const std::string& gateway) const;
    // "gateway gw1's own address", or nothing.
    [[nodiscard]] std::string own(const IpAddress& address) const;
    // The same, or "a next hop of gateway gw1".
    [[nodiscard]] std::string taken(const IpAddress& address) const;
};

// From the answer to the experimenter query "gateway". What is missing or malformed in it is
// as if it had not been said.
GatewayFacts read_facts(const std::string& json);

}  // namespace sluice::model
