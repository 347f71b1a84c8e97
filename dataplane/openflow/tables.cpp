// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/tables.hpp"

#include "dataplane/openflow/bounds.hpp"
#include "dataplane/openflow/row.hpp"

namespace sluice::openflow {
namespace {

using enum MatchKind;

constexpr FieldSpec kPortMatch[] = {{Field::in_port, exact, true, "the receiving port"}};
constexpr SetSpec kPortSet[] = {
    {Field::side, true, false, "0: the underlay, where VXLAN arrives; 1: the uplink"}};
constexpr std::uint8_t kPortNext[] = {kVni, kPublicAddress};

constexpr FieldSpec kVniMatch[] = {{Field::tunnel_id, exact, true, "the VNI"}};
constexpr SetSpec kVniSet[] = {
    {Field::source_vpc, true, false, "the VPC it carries"},
    {Field::setting, false, true, "limits, time-outs and other settings of the VPC"}};
constexpr std::uint8_t kVniNext[] = {kSource};

constexpr FieldSpec kRouteMatch[] = {
    {Field::ether_type, exact, true, "the family of the destination"},
    {Field::destination_ip, prefix, false, "the destination; absent: any of the family"},
    {Field::route_table, exact, true, "the route table of the source's subnet"}};
constexpr SetSpec kRouteSet[] = {
    {Field::next_hop, true, false, "1 local, 2 internet, 3 endpoint, 4 blackhole, 5 NAT gateway"},
    {Field::destination_endpoint, false, false, "for next hop 3: the endpoint that forwards"},
    {Field::nat_gateway, false, false, "for next hop 5: the NAT gateway"}};
constexpr std::uint8_t kRouteNext[] = {kElasticIp, kEndpoint};

constexpr FieldSpec kEndpointMatch[] = {
    {Field::ether_type, exact, true, "the family of the address"},
    {Field::destination_ip, exact, true, "an address of the endpoint"},
    {Field::destination_vpc, exact, true, "the VPC"}};
constexpr SetSpec kEndpointSet[] = {
    {Field::destination_endpoint, true, false, "the endpoint"},
    {Field::subnet, true, false, "its subnet"},
    {Field::host, true, false, "the host it lives on"},
    {Field::destination_mac, true, false, "its MAC"},
    {Field::group, false, true, "each group it is a member of; at most 16"}};
constexpr std::uint8_t kEndpointNext[] = {kIngressGroup};

constexpr FieldSpec kHostMatch[] = {{Field::host, exact, true, "the host"}};
constexpr SetSpec kHostSet[] = {
    {Field::address, true, true, "each of its VTEPs; the first of the family in use receives"}};

}  // namespace

constexpr TableSchema kPortSchema = {.id = kPort,
                                     .name = "port",
                                     .owner = "dataplane",
                                     .purpose = "which side of the gateway a packet comes from",
                                     .match = kPortMatch,
                                     .set = kPortSet,
                                     .next = kPortNext,
                                     .next_required = true,
                                     .has_priority = false,
                                     .has_meter = false,
                                     .built_in = true,
                                     .capacity = 64};

constexpr TableSchema kVniSchema = {
    .id = kVni,
    .name = "vni",
    .owner = "dataplane",
    .purpose = "the VPC of an overlay packet; a VPC is open while its entry is there",
    .match = kVniMatch,
    .set = kVniSet,
    .next = kVniNext,
    .next_required = true,
    .has_priority = false,
    .has_meter = false,
    .built_in = false,
    .capacity = 16384};

constexpr TableSchema kRouteSchema = {
    .id = kRoute,
    .name = "route",
    .owner = "dataplane",
    .purpose = "where a packet goes by its destination; the longest prefix wins",
    .match = kRouteMatch,
    .set = kRouteSet,
    .next = kRouteNext,
    .next_required = false,
    .has_priority = false,
    .has_meter = false,
    .built_in = false,
    .capacity = 1U << 20};

constexpr TableSchema kEndpointSchema = {.id = kEndpoint,
                                         .name = "endpoint",
                                         .owner = "dataplane",
                                         .purpose = "who has an address: MAC, host and groups",
                                         .match = kEndpointMatch,
                                         .set = kEndpointSet,
                                         .next = kEndpointNext,
                                         .next_required = true,
                                         .has_priority = false,
                                         .has_meter = false,
                                         .built_in = false,
                                         .capacity = 1U << 19};

constexpr TableSchema kHostSchema = {.id = kHost,
                                     .name = "host",
                                     .owner = "dataplane",
                                     .purpose = "where a host's endpoints are reached",
                                     .match = kHostMatch,
                                     .set = kHostSet,
                                     .next = {},
                                     .next_required = false,
                                     .has_priority = false,
                                     .has_meter = false,
                                     .built_in = false,
                                     .capacity = 1U << 17};

Entry PortRow::encode() const {
    return EntryBuilder(kPort, Cookie{})
        .match(Field::in_port, port)
        .set(Field::side, static_cast<std::uint64_t>(side))
        .next(side == Side::underlay ? kVni : kPublicAddress)
        .build();
}

Result<PortRow> PortRow::decode(const Entry& entry) {
    EntryReader reader(kPortSchema, entry);
    PortRow row;
    row.port = reader.match_id<PortId>(Field::in_port);
    row.side = reader.set(Field::side) == 0 ? Side::underlay : Side::uplink;
    return reader.result(row);
}

Entry VniRow::encode() const {
    EntryBuilder builder(kVni, cookie);
    builder.match(Field::tunnel_id, vni).set(Field::source_vpc, vpc).next(kSource);
    settings.encode(builder);
    return builder.build();
}

Result<VniRow> VniRow::decode(const Entry& entry) {
    EntryReader reader(kVniSchema, entry);
    VniRow row;
    row.vni = reader.match_id<Vni>(Field::tunnel_id);
    row.vpc = reader.set_id<VpcId>(Field::source_vpc);
    row.settings = Settings::decode(entry);
    row.cookie = entry.cookie;
    return reader.result(std::move(row));
}

Entry RouteRow::encode() const {
    EntryBuilder builder(kRoute, cookie);
    builder.match(Field::destination_ip, destination)
        .match(Field::route_table, table)
        .set(Field::next_hop, static_cast<std::uint64_t>(next_hop));
    switch (next_hop) {
        case NextHop::local:
            builder.next(kEndpoint);
            break;
        case NextHop::internet:
            builder.next(kElasticIp);
            break;
        case NextHop::endpoint:
            builder.set(Field::destination_endpoint, endpoint).next(kEndpoint);
            break;
        case NextHop::nat_gateway:  // an elastic IP of the source's own wins
            builder.set(Field::nat_gateway, nat_gateway).next(kElasticIp);
            break;
        case NextHop::blackhole:
            break;
    }
    return builder.build();
}

Result<RouteRow> RouteRow::decode(const Entry& entry) {
    EntryReader reader(kRouteSchema, entry);
    RouteRow row;
    row.table = reader.match_id<RouteTableId>(Field::route_table);
    row.destination = reader.prefix(Field::destination_ip);
    row.next_hop = static_cast<NextHop>(reader.set(Field::next_hop));
    row.cookie = entry.cookie;
    const bool has_endpoint = reader.find_set(Field::destination_endpoint).has_value();
    if (has_endpoint != (row.next_hop == NextHop::endpoint))
        reader.fail(Field::destination_endpoint,
                    "an endpoint is named exactly where the next hop is one");
    if (has_endpoint) row.endpoint = reader.set_id<EndpointId>(Field::destination_endpoint);
    const bool has_nat_gateway = reader.find_set(Field::nat_gateway).has_value();
    if (has_nat_gateway != (row.next_hop == NextHop::nat_gateway))
        reader.fail(Field::nat_gateway, "a NAT gateway is named exactly where the next hop is one");
    if (has_nat_gateway) row.nat_gateway = reader.set_id<NatGatewayId>(Field::nat_gateway);
    if (entry.next != row.encode().next)
        reader.fail(Field::next_hop, "the entry does not go where its next hop says");
    return reader.result(row);
}

Entry EndpointRow::encode() const {
    EntryBuilder builder(kEndpoint, cookie);
    builder.match(Field::destination_ip, address)
        .match(Field::destination_vpc, vpc)
        .set(Field::destination_endpoint, endpoint)
        .set(Field::subnet, subnet)
        .set(Field::host, host)
        .set(Field::destination_mac, mac.value());
    for (const GroupId group : groups) builder.set(Field::group, group);
    return builder.next(kIngressGroup).build();
}

Result<EndpointRow> EndpointRow::decode(const Entry& entry) {
    EntryReader reader(kEndpointSchema, entry);
    EndpointRow row;
    row.vpc = reader.match_id<VpcId>(Field::destination_vpc);
    row.address = reader.match_ip(Field::destination_ip);
    row.endpoint = reader.set_id<EndpointId>(Field::destination_endpoint);
    row.subnet = reader.set_id<SubnetId>(Field::subnet);
    row.host = reader.set_id<HostId>(Field::host);
    row.mac = reader.set_mac(Field::destination_mac);
    for (const SetField& set : entry.set)
        if (set.field == Field::group)
            row.groups.emplace_back(static_cast<std::uint32_t>(set.value.low));
    if (row.groups.size() > kMaximumGroups)
        reader.fail(Field::group, "an endpoint is a member of at most 16 groups");
    row.cookie = entry.cookie;
    return reader.result(std::move(row));
}

Entry HostRow::encode() const {
    EntryBuilder builder(kHost, cookie);
    builder.match(Field::host, host);
    for (const IpAddress& vtep : vteps) builder.set(Field::address, vtep);
    return builder.build();
}

Result<HostRow> HostRow::decode(const Entry& entry) {
    EntryReader reader(kHostSchema, entry);
    HostRow row;
    row.host = reader.match_id<HostId>(Field::host);
    for (const SetField& set : entry.set) {
        if (set.field != Field::address) continue;
        row.vteps.push_back(set.value.to_ip());
        if (row.vteps.back().is_multicast())
            reader.fail(Field::address, "a VTEP is a unicast address");
    }
    if (row.vteps.size() > kMaximumVteps)
        reader.fail(Field::address, "a host has at most three VTEPs");
    row.cookie = entry.cookie;
    return reader.result(std::move(row));
}

std::span<const TableSchema* const> core_tables() {
    static constexpr const TableSchema* kTables[] = {&kPortSchema, &kVniSchema, &kRouteSchema,
                                                     &kEndpointSchema, &kHostSchema};
    return kTables;
}

}  // namespace sluice::openflow
