// SPDX-License-Identifier: Apache-2.0
#include "nfv/elastic_ip/table.hpp"

#include "dataplane/openflow/row.hpp"

namespace sluice::nfv {
namespace {

using namespace openflow;

constexpr FieldSpec kElasticMatch[] = {
    {Field::ether_type, MatchKind::exact, true, "the family of the address"},
    {Field::source_ip, MatchKind::exact, true, "the endpoint's private address"},
    {Field::source_vpc, MatchKind::exact, true, "the VPC"}};
constexpr SetSpec kElasticSet[] = {
    {Field::source_ip, true, false, "the elastic address it is seen with outside"}};
constexpr std::uint8_t kElasticNext[] = {kPublicAddress};

constexpr FieldSpec kPublicMatch[] = {
    {Field::ether_type, MatchKind::exact, true, "the family of the address"},
    {Field::destination_ip, MatchKind::exact, true, "the public address"}};
constexpr SetSpec kPublicSet[] = {
    {Field::destination_vpc, false, false, "the VPC behind it; absent: not attached"},
    {Field::destination_ip, false, false, "the private address behind it"},
    {Field::nat_gateway, false, false, "the NAT gateway whose address it is, instead of both"}};
constexpr std::uint8_t kPublicNext[] = {kEndpoint};

}  // namespace

constexpr TableSchema kElasticIpSchema = {
    .id = kElasticIp,
    .name = "elastic_ip",
    .owner = "nfv/elastic_ip",
    .purpose = "the public address that a private one is translated to on its way out",
    .match = kElasticMatch,
    .set = kElasticSet,
    .next = kElasticNext,
    .next_required = true,
    .has_priority = false,
    .has_meter = true,
    .built_in = false,
    .capacity = 1U << 17};

constexpr TableSchema kPublicAddressSchema = {
    .id = kPublicAddress,
    .name = "public_address",
    .owner = "nfv/elastic_ip",
    .purpose = "the endpoint behind a public address; where uplink and hairpin traffic enter",
    .match = kPublicMatch,
    .set = kPublicSet,
    .next = kPublicNext,
    .next_required = false,
    .has_priority = false,
    .has_meter = true,
    .built_in = false,
    .capacity = 1U << 17};

Entry ElasticIpRow::encode() const {
    return EntryBuilder(kElasticIp, cookie)
        .match(Field::source_ip, private_address)
        .match(Field::source_vpc, vpc)
        .set(Field::source_ip, public_address)
        .meter(meter)
        .next(kPublicAddress)
        .build();
}

Result<ElasticIpRow> ElasticIpRow::decode(const Entry& entry) {
    EntryReader reader(kElasticIpSchema, entry);
    ElasticIpRow row;
    row.vpc = reader.match_id<VpcId>(Field::source_vpc);
    row.private_address = reader.match_ip(Field::source_ip);
    row.public_address = reader.set_ip(Field::source_ip);
    row.meter = entry.meter;
    row.cookie = entry.cookie;
    return reader.result(row);
}

Entry PublicAddressRow::encode() const {
    EntryBuilder builder(kPublicAddress, cookie);
    builder.match(Field::destination_ip, public_address).meter(meter);
    if (nat_gateway)
        builder.set(Field::nat_gateway, nat_gateway).next(kEndpoint);
    else if (!private_address.is_none())
        builder.set(Field::destination_vpc, vpc)
            .set(Field::destination_ip, private_address)
            .next(kEndpoint);
    return builder.build();
}

Result<PublicAddressRow> PublicAddressRow::decode(const Entry& entry) {
    EntryReader reader(kPublicAddressSchema, entry);
    PublicAddressRow row;
    row.public_address = reader.match_ip(Field::destination_ip);
    row.meter = entry.meter;
    row.cookie = entry.cookie;
    if (reader.find_set(Field::nat_gateway)) {
        row.nat_gateway = reader.set_id<NatGatewayId>(Field::nat_gateway);
        if (!row.public_address.is_v4())
            reader.fail(Field::destination_ip, "a NAT gateway has IPv4 addresses only");
        if (!entry.next || entry.set.size() != 1)
            reader.fail(
                Field::nat_gateway,
                "the address of a NAT gateway leads to its endpoints and sets nothing else");
    } else if (entry.next) {
        row.vpc = reader.set_id<VpcId>(Field::destination_vpc);
        row.private_address = reader.set_ip(Field::destination_ip);
    } else if (!entry.set.empty()) {
        reader.fail(entry.set.front().field, "an address that leads nowhere sets nothing");
    }
    return reader.result(row);
}

}  // namespace sluice::nfv
