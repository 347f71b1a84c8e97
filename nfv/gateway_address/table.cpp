// SPDX-License-Identifier: Apache-2.0
#include "nfv/gateway_address/table.hpp"

#include "dataplane/openflow/row.hpp"

namespace sluice::nfv {
namespace {

using namespace openflow;

constexpr FieldSpec kMatch[] = {
    {Field::ether_type, MatchKind::exact, true, "the family of the address"},
    {Field::destination_ip, MatchKind::exact, true, "the gateway's address in the subnet"},
    {Field::source_vpc, MatchKind::exact, true, "the VPC"}};
constexpr SetSpec kSet[] = {
    {Field::source_mac, true, false, "the gateway's MAC towards the subnet"},
    {Field::subnet, true, false, "the subnet"},
    {Field::route_table, true, false, "the subnet's route table"},
    {Field::mtu, true, false,
     "bits 0-15: octets of the largest IP packet; 16-23: the subnet's prefix length of 128"}};
constexpr std::uint8_t kNext[] = {kEgressGroup};

}  // namespace

constexpr TableSchema kLocalSchema = {
    .id = kLocal,
    .name = "local",
    .owner = "nfv/gateway_address",
    .purpose = "the gateway's addresses, one per subnet and family, and the subnets themselves",
    .match = kMatch,
    .set = kSet,
    .next = kNext,
    .next_required = true,
    .has_priority = false,
    .has_meter = false,
    .built_in = false,
    .capacity = 1U << 17};

Entry LocalRow::encode() const {
    return EntryBuilder(kLocal, cookie)
        .match(Field::destination_ip, address)
        .match(Field::source_vpc, vpc)
        .set(Field::source_mac, mac.value())
        .set(Field::subnet, subnet)
        .set(Field::route_table, route_table)
        .set(Field::mtu, std::uint64_t{prefix_length} << 16 | mtu)
        .next(kEgressGroup)
        .build();
}

Result<LocalRow> LocalRow::decode(const Entry& entry) {
    EntryReader reader(kLocalSchema, entry);
    LocalRow row;
    row.vpc = reader.match_id<VpcId>(Field::source_vpc);
    row.address = reader.match_ip(Field::destination_ip);
    row.mac = reader.set_mac(Field::source_mac);
    row.subnet = reader.set_id<SubnetId>(Field::subnet);
    row.route_table = reader.set_id<RouteTableId>(Field::route_table);
    const std::uint64_t mtu = reader.set(Field::mtu);
    row.mtu = static_cast<std::uint16_t>(mtu);
    row.prefix_length = static_cast<std::uint8_t>(mtu >> 16);
    if (row.address.is_v4() && row.prefix_length < 96)
        reader.fail(Field::mtu, "the prefix length is out of 128 bits: at least 96 for IPv4");
    row.cookie = entry.cookie;
    return reader.result(row);
}

}  // namespace sluice::nfv
