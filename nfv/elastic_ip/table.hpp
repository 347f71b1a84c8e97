// SPDX-License-Identifier: Apache-2.0
// Tables 8 `elastic_ip` (private → public, outwards) and 10 `public_address` (public →
// private, from the uplink and for hairpins). Both carry the elastic IP's meter. The address of a
// NAT gateway is in table 10 alone, and names the NAT gateway instead of an endpoint.
#pragma once

#include "dataplane/openflow/tables.hpp"

namespace sluice::nfv {

struct ElasticIpRow {
    VpcId vpc;
    IpAddress private_address;
    IpAddress public_address;
    MeterId meter;  // outwards; 0: unlimited
    Cookie cookie;
    [[nodiscard]] openflow::Entry encode() const;
    static Result<ElasticIpRow> decode(const openflow::Entry& entry);
};

struct PublicAddressRow {
    IpAddress public_address;
    VpcId vpc;
    IpAddress private_address;  // none: allocated but not attached; the gateway still answers ARP
    MeterId meter;              // inwards; 0: unlimited
    Cookie cookie;
    NatGatewayId nat_gateway{};  // 0, or whose address it is: then neither VPC nor private address
    [[nodiscard]] openflow::Entry encode() const;
    static Result<PublicAddressRow> decode(const openflow::Entry& entry);
};

extern const openflow::TableSchema kElasticIpSchema;
extern const openflow::TableSchema kPublicAddressSchema;

}  // namespace sluice::nfv
