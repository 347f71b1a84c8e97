// SPDX-License-Identifier: Apache-2.0
#include "nfv/nat_gateway/table.hpp"

#include "dataplane/openflow/settings.hpp"

namespace sluice::nfv {
namespace {

using namespace openflow;

constexpr FieldSpec kMatch[] = {
    {Field::nat_gateway, MatchKind::exact, true, "the NAT gateway that the route names"}};
constexpr SetSpec kSet[] = {
    {Field::address, true, true, "each of its public IPv4 addresses; at most 16"},
    {Field::setting, false, true, "ports_per_endpoint, mapping, filtering"}};
constexpr std::uint8_t kNext[] = {kPublicAddress};

}  // namespace

constexpr TableSchema kNatGatewaySchema = {
    .id = kNatGateway,
    .name = "nat_gateway",
    .owner = "nfv/nat_gateway",
    .purpose = "the public addresses that many endpoints share, and how they share them",
    .match = kMatch,
    .set = kSet,
    .next = kNext,
    .next_required = true,
    .has_priority = false,
    .has_meter = true,
    .built_in = false,
    .capacity = 1U << 14};

Entry NatGatewayRow::encode() const {
    EntryBuilder builder(kNatGateway, cookie);
    builder.match(Field::nat_gateway, nat_gateway);
    for (const IpAddress& address : addresses) builder.set(Field::address, address);
    Settings()
        .put(Setting::nat_ports_per_endpoint, ports_per_endpoint)
        .put(Setting::nat_mapping, static_cast<std::uint32_t>(mapping))
        .put(Setting::nat_filtering, static_cast<std::uint32_t>(filtering))
        .encode(builder);
    return builder.meter(meter).next(kPublicAddress).build();
}

Result<NatGatewayRow> NatGatewayRow::decode(const Entry& entry) {
    EntryReader reader(kNatGatewaySchema, entry);
    NatGatewayRow row;
    row.nat_gateway = reader.match_id<NatGatewayId>(Field::nat_gateway);
    for (const SetField& set : entry.set) {
        if (set.field != Field::address) continue;
        row.addresses.push_back(set.value.to_ip());
        if (!row.addresses.back().is_v4())
            reader.fail(Field::address, "a NAT gateway has IPv4 addresses only");
    }
    if (row.addresses.size() > kNatMaximumAddresses)
        reader.fail(Field::address, "a NAT gateway has at most 16 addresses");
    const Settings settings = Settings::decode(entry);
    const auto get = [&](Setting id, std::uint32_t otherwise) {
        return settings.get(id).value_or(otherwise);
    };
    row.ports_per_endpoint = get(Setting::nat_ports_per_endpoint, row.ports_per_endpoint);
    if (row.ports_per_endpoint % kNatBlockPorts != 0)
        reader.fail(Field::setting, "ports_per_endpoint is a multiple of 64, the ports of a block");
    row.mapping =
        static_cast<NatMapping>(get(Setting::nat_mapping, static_cast<std::uint32_t>(row.mapping)));
    row.filtering = static_cast<NatFiltering>(
        get(Setting::nat_filtering, static_cast<std::uint32_t>(row.filtering)));
    if (row.mapping != NatMapping::endpoint_independent &&
        row.filtering != NatFiltering::address_and_port_dependent)
        reader.fail(
            Field::setting,
            "filtering that admits more than replies needs an endpoint_independent mapping");
    row.meter = entry.meter;
    row.cookie = entry.cookie;
    return reader.result(std::move(row));
}

}  // namespace sluice::nfv
