// SPDX-License-Identifier: Apache-2.0
// Table 9 `nat_gateway`: the addresses that a NAT gateway's endpoints share, and how it maps and
// filters. A route names it (NextHop::nat_gateway); table 10 has each of its addresses.
#pragma once

#include <vector>

#include "dataplane/openflow/tables.hpp"

namespace sluice::nfv {

// Which public port an endpoint's address and port are seen with (RFC 4787 section 4.1).
enum class NatMapping : std::uint8_t {
    endpoint_independent = 0,        // the same one for every destination
    address_and_port_dependent = 1,  // one each; a port then serves many destinations
};

// Whose packets to a mapped port are let in (RFC 4787 section 5).
enum class NatFiltering : std::uint8_t {
    endpoint_independent = 0,        // anybody's
    address_dependent = 1,           // of an address that the port has a connection with
    address_and_port_dependent = 2,  // replies only
};

// Ports are given to an endpoint in blocks of so many, of one protocol and address.
inline constexpr std::uint32_t kNatBlockPorts = 64;
inline constexpr std::size_t kNatMaximumAddresses = 16;

struct NatGatewayRow {
    NatGatewayId nat_gateway;
    std::vector<IpAddress> addresses;  // IPv4, 1 to 16
    // Of each protocol (TCP, UDP, ICMP); a multiple of the block.
    std::uint32_t ports_per_endpoint = 1024;
    NatMapping mapping = NatMapping::endpoint_independent;
    // Other than address_and_port_dependent only with an endpoint-independent mapping: no other
    // says to whom a new connection from outside would go.
    NatFiltering filtering = NatFiltering::address_and_port_dependent;
    MeterId meter;  // outwards, all addresses together; 0: unlimited
    Cookie cookie;
    [[nodiscard]] openflow::Entry encode() const;
    static Result<NatGatewayRow> decode(const openflow::Entry& entry);
};

extern const openflow::TableSchema kNatGatewaySchema;

}  // namespace sluice::nfv
