// SPDX-License-Identifier: Apache-2.0
// Table 3 `local`: the addresses that the gateway answers for, one per subnet and family.
#pragma once

#include "dataplane/openflow/tables.hpp"

namespace sluice::nfv {

// A subnet's gateway address, and with it what the walk needs to know of the subnet.
struct LocalRow {
    VpcId vpc;
    IpAddress address;  // the gateway's, in the subnet
    MacAddress mac;     // the gateway's towards this subnet
    SubnetId subnet;
    std::uint8_t prefix_length = 0;  // of the subnet, of 128 bits
    RouteTableId route_table;
    std::uint16_t mtu = 1500;  // octets of an inner IP packet
    Cookie cookie;
    [[nodiscard]] openflow::Entry encode() const;
    static Result<LocalRow> decode(const openflow::Entry& entry);
};

extern const openflow::TableSchema kLocalSchema;

}  // namespace sluice::nfv
