// SPDX-License-Identifier: Apache-2.0
// The tables that belong to no network function: their numbers, rows and schemas. The
// others are in nfv/<function>/table.hpp, and look the same.
//
// A row is a typed view of an entry: `encode` never fails, `decode` expects an entry that
// `validate` accepted and reports what a schema cannot express.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/openflow/schema.hpp"
#include "dataplane/openflow/settings.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::openflow {

// Every table's number, in the order in which a packet may meet them.
enum TableId : std::uint8_t {
    kPort = 0,
    kVni = 1,
    kSource = 2,       // nfv/anti_spoof
    kLocal = 3,        // nfv/gateway_address
    kEgressGroup = 4,  // nfv/security_group
    kEgressRule = 5,   // nfv/security_group
    kRoute = 6,
    kPeerRoute = 7,       // reserved
    kElasticIp = 8,       // nfv/elastic_ip
    kNatGateway = 9,      // nfv/nat_gateway
    kPublicAddress = 10,  // nfv/elastic_ip
    kService = 11,        // reserved
    kEndpoint = 12,
    kIngressGroup = 13,  // nfv/security_group
    kIngressRule = 14,   // nfv/security_group
    kRdma = 15,          // reserved
    kHost = 16,
};

// port: built in, from the gateway's configuration.
struct PortRow {
    PortId port;
    Side side = Side::underlay;
    [[nodiscard]] Entry encode() const;
    static Result<PortRow> decode(const Entry& entry);
};

// vni: a VPC is open while this row exists.
struct VniRow {
    Vni vni;
    VpcId vpc;
    Cookie cookie;
    Settings settings = {};
    [[nodiscard]] Entry encode() const;
    static Result<VniRow> decode(const Entry& entry);
};

enum class NextHop : std::uint8_t {
    local = 1,
    internet = 2,
    endpoint = 3,
    blackhole = 4,
    nat_gateway = 5,  // the internet, behind a shared address
};

// route: the longest prefix wins.
struct RouteRow {
    RouteTableId table;
    Prefix destination;
    NextHop next_hop = NextHop::blackhole;
    EndpointId endpoint;  // for NextHop::endpoint
    Cookie cookie;
    NatGatewayId nat_gateway{};  // for NextHop::nat_gateway
    [[nodiscard]] Entry encode() const;
    static Result<RouteRow> decode(const Entry& entry);
};

// endpoint: one row per address of an endpoint.
struct EndpointRow {
    VpcId vpc;
    IpAddress address;
    EndpointId endpoint;
    SubnetId subnet;
    HostId host;
    MacAddress mac;
    std::vector<GroupId> groups;  // at most 16
    Cookie cookie;
    [[nodiscard]] Entry encode() const;
    static Result<EndpointRow> decode(const Entry& entry);
};

// host: where endpoints live; the first VTEP of the family in use receives.
struct HostRow {
    HostId host;
    std::vector<IpAddress> vteps;
    Cookie cookie;
    [[nodiscard]] Entry encode() const;
    static Result<HostRow> decode(const Entry& entry);
};

extern const TableSchema kPortSchema;
extern const TableSchema kVniSchema;
extern const TableSchema kRouteSchema;
extern const TableSchema kEndpointSchema;
extern const TableSchema kHostSchema;

// The schemas above; main adds those of the network functions it links.
std::span<const TableSchema* const> core_tables();

}  // namespace sluice::openflow
