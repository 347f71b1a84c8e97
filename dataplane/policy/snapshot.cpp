// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/snapshot.hpp"

#include <algorithm>

#include "dataplane/policy/function.hpp"

namespace sluice::policy {

const EndpointRecord* Core::endpoint(EndpointId endpoint, Family family) const {
    const EndpointAddress* address = endpoint_addresses.find({endpoint, family});
    if (address == nullptr)
        address = endpoint_addresses.find(
            {endpoint, family == Family::ipv4 ? Family::ipv6 : Family::ipv4});
    return address == nullptr ? nullptr : endpoints.find(address->where);
}

const EntryRecord* Snapshot::record(const openflow::EntryKey& key) const {
    return key.table < kTables ? tables[key.table].entries.find(key) : nullptr;
}

const openflow::Entry* Snapshot::find(const openflow::EntryKey& key) const {
    const EntryRecord* found = record(key);
    return found == nullptr ? nullptr : &found->entry;
}

std::vector<openflow::Meter> Snapshot::meters() const {
    std::vector<openflow::Meter> result;
    result.reserve(core.meters.size());
    core.meters.visit([&](const MeterRecord& record) {
        result.push_back(record.meter);
        return true;
    });
    std::sort(result.begin(), result.end());
    return result;
}

std::vector<openflow::TableDigest> Snapshot::digests() const {
    std::vector<openflow::TableDigest> result;
    for (const openflow::TableSchema* schema : pipeline->tables())
        result.push_back({schema->id, static_cast<std::uint32_t>(tables[schema->id].entries.size()),
                          tables[schema->id].digest});
    openflow::TableDigest meter_digest{0xff, static_cast<std::uint32_t>(core.meters.size()), 0};
    core.meters.visit([&](const MeterRecord& record) {
        meter_digest.sum += openflow::meter_hash(record.meter);
        return true;
    });
    result.push_back(meter_digest);
    return result;
}

Sender sender_of(const Snapshot& snapshot, const Packet& packet) {
    const VniRecord* vni = snapshot.core.vnis.find(packet.vni);
    if (vni == nullptr) return {};
    Sender sender{vni->vpc.slot, {}};
    const EndpointRecord* source =
        snapshot.core.endpoints.find({vni->vpc.key.number, packet.tuple.source});
    if (source == nullptr || source->mac != packet.source_mac) return sender;
    const HostRecord* host = snapshot.core.hosts.find(source->host);
    if (host == nullptr || !host->has(packet.vtep)) return sender;
    sender.endpoint = source->endpoint;
    return sender;
}

ZoneSlot zone_of(const Snapshot& snapshot, Vni vni) {
    const VniRecord* record = snapshot.core.vnis.find(vni);
    return record == nullptr ? ZoneSlot{} : record->vpc.slot;
}

}  // namespace sluice::policy
