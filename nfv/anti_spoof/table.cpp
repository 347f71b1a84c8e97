// SPDX-License-Identifier: Apache-2.0
#include "nfv/anti_spoof/table.hpp"

#include "dataplane/openflow/row.hpp"

namespace sluice::nfv {
namespace {

using namespace openflow;

constexpr FieldSpec kMatch[] = {
    {Field::ether_type, MatchKind::exact, true, "the family of the address"},
    {Field::source_mac, MatchKind::exact, true, "the sender's MAC"},
    {Field::source_ip, MatchKind::prefix, false, "the sender's address; absent: any"},
    {Field::source_vpc, MatchKind::exact, true, "the VPC"}};
constexpr SetSpec kSet[] = {{Field::source_endpoint, true, false, "the endpoint that sends"},
                            {Field::host, true, false, "the host it must send from"}};
constexpr std::uint8_t kNext[] = {kLocal};

}  // namespace

constexpr TableSchema kSourceSchema = {
    .id = kSource,
    .name = "source",
    .owner = "nfv/anti_spoof",
    .purpose = "who may send with which MAC and address, and from which host",
    .match = kMatch,
    .set = kSet,
    .next = kNext,
    .next_required = true,
    .has_priority = false,
    .has_meter = false,
    .built_in = false,
    .capacity = 1U << 20};

Entry SourceRow::encode() const {
    return EntryBuilder(kSource, cookie)
        .match(Field::source_ip, address)
        .match(Field::source_mac, mac.value())
        .match(Field::source_vpc, vpc)
        .set(Field::source_endpoint, endpoint)
        .set(Field::host, host)
        .next(kLocal)
        .build();
}

Result<SourceRow> SourceRow::decode(const Entry& entry) {
    EntryReader reader(kSourceSchema, entry);
    SourceRow row;
    row.vpc = reader.match_id<VpcId>(Field::source_vpc);
    row.mac = reader.match_mac(Field::source_mac);
    row.address = reader.prefix(Field::source_ip);
    row.endpoint = reader.set_id<EndpointId>(Field::source_endpoint);
    row.host = reader.set_id<HostId>(Field::host);
    row.cookie = entry.cookie;
    return reader.result(row);
}

}  // namespace sluice::nfv
