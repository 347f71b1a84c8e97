// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/commit.hpp"

#include <algorithm>

namespace sluice::policy {
namespace {

Error exhausted(std::string what, std::string path) {
    return {Error::Code::exhausted, std::move(what), std::move(path)};
}

}  // namespace

ZoneSlots::ZoneSlots(std::uint32_t capacity) {
    free_.reserve(capacity);
    for (std::uint32_t slot = capacity; slot-- > kNobody.value + 1;) free_.emplace_back(slot);
}

ZoneSlot ZoneSlots::allocate() {
    if (free_.empty()) return ZoneSlot{};
    const ZoneSlot slot = free_.back();
    free_.pop_back();
    return slot;
}

Commit::Commit(const Snapshot& before, Core& next, IndexSources indexes)
    : before_(before), next_(next), indexes_(indexes) {}

// --- senders, subnets, public addresses --------------------------------------------------------

Result<SourceIndex> Commit::add_sender(VpcId vpc, EndpointId endpoint, const MacAddress& mac,
                                       HostId host) {
    const SenderKey key{endpoint, mac};
    const SenderRecord* there = next_.senders.find(key);
    SenderRecord record;
    if (there != nullptr) {
        record = *there;
    } else {
        record = {key, vpc, host, indexes_.sources.allocate(), 0};
        if (!record.source)
            return exhausted("no source record is free for another sender", "source");
        taken_.sources.push_back(record.source);
    }
    const bool moved = there != nullptr && record.host != host;
    record.host = host;
    if (there == nullptr)
        delta_.senders.push_back({std::nullopt, record});
    else if (moved)
        delta_.senders.push_back({*there, record});
    ++record.rows;
    const SourceIndex source = record.source;
    next_.senders.put(record);
    return source;
}

void Commit::remove_sender(EndpointId endpoint, const MacAddress& mac) {
    const SenderRecord* there = next_.senders.find({endpoint, mac});
    if (there == nullptr) return;
    SenderRecord record = *there;
    if (--record.rows > 0) {
        next_.senders.put(record);
        return;
    }
    released_.sources.push_back(record.source);
    next_.senders.remove(record.key);
    delta_.senders.push_back({record, std::nullopt});
}

void Commit::change_subnet(const SubnetKey& key, const std::optional<SubnetRecord>& after) {
    Change<SubnetRecord> change;
    if (const SubnetRecord* there = next_.subnets.find(key)) {
        change.before = *there;
        use({UsedKey::Kind::route_table, there->route_table.value}, there->vpc, -1);
        concerns(there->vpc);
        next_.subnets.remove(key);
    }
    if (after) {
        use({UsedKey::Kind::route_table, after->route_table.value}, after->vpc, 1);
        concerns(after->vpc);
        next_.subnets.put(*after);
    }
    change.after = after;
    delta_.subnets.push_back(change);
}

void Commit::change_public_address(const IpAddress& address, bool there) {
    Change<IpAddress> change;
    (there ? change.after : change.before) = address;
    delta_.public_addresses.push_back(change);
}

// --- meters ------------------------------------------------------------------------------------

MeterRecord Commit::meter(MeterId id) const {
    if (const MeterRecord* record = next_.meters.find(id)) return *record;
    MeterRecord record;
    record.key = id;
    return record;
}

void Commit::draws(MeterId id, int entries) {
    if (!id) return;
    MeterRecord record = meter(id);
    record.entries += static_cast<std::uint32_t>(entries);
    next_.meters.put(record);
    meters_.insert(id);
}

Result<void> Commit::apply_meters(const openflow::Changes& changes) {
    for (const MeterId id : changes.remove_meters) {
        MeterRecord record = meter(id);
        record.present = false;
        next_.meters.put(record);
        meters_.insert(id);
    }
    for (const openflow::Meter& value : changes.put_meters) {
        if (!value.id || value.rate_kbps == 0)
            return Error{Error::Code::invalid, "a meter has a number and a rate", "meters"};
        MeterRecord record = meter(value.id);
        record.meter = value;
        record.present = true;
        next_.meters.put(record);
        meters_.insert(value.id);
    }
    return {};
}

Result<void> Commit::settle_meters() {
    for (const MeterId id : meters_) {
        const MeterRecord after = meter(id);
        if (!after.present && after.entries > 0)
            return Error{
                Error::Code::not_found,
                "an entry draws from meter " + std::to_string(id.value) + ", which is not there",
                "meters"};
        if (!after.present) next_.meters.remove(id);
        const MeterRecord* before = before_.core.meters.find(id);
        if (before == nullptr && !after.present) continue;
        if (before != nullptr && after.present && before->meter == after.meter) continue;
        Change<openflow::Meter> change;
        if (before != nullptr) change.before = before->meter;
        if (after.present) change.after = after.meter;
        delta_.meters.push_back(change);
    }
    return {};
}

// --- whom it concerns --------------------------------------------------------------------------

void Commit::use(UsedKey key, VpcId vpc, int times) {
    UsedRecord record;
    record.key = key;
    if (const UsedRecord* there = next_.used.find(key)) record = *there;
    const auto user = std::find_if(record.users.begin(), record.users.end(),
                                   [&](const auto& entry) { return entry.first == vpc; });
    if (user == record.users.end())
        record.users.emplace_back(vpc, static_cast<std::uint32_t>(times));
    else if ((user->second += static_cast<std::uint32_t>(times)) == 0)
        record.users.erase(user);
    if (record.users.empty())
        next_.used.remove(key);
    else
        next_.used.put(std::move(record));
}

// A route to a NAT gateway more or less.
void Commit::lead(const openflow::RouteRow& row, int times) {
    if (!row.nat_gateway) return;
    NatRoutesRecord record;
    record.key = row.nat_gateway;
    if (const NatRoutesRecord* there = next_.nat_routes.find(record.key)) record = *there;
    auto& tables = record.route_tables;
    const auto entry = std::find_if(tables.begin(), tables.end(),
                                    [&](const auto& one) { return one.first == row.table; });
    if (entry == tables.end())
        tables.emplace_back(row.table, static_cast<std::uint32_t>(times));
    else if ((entry->second += static_cast<std::uint32_t>(times)) == 0)
        tables.erase(entry);
    if (tables.empty())
        next_.nat_routes.remove(record.key);
    else
        next_.nat_routes.put(std::move(record));
}

std::vector<ZoneSlot> Commit::zones() const {
    std::unordered_set<VpcId> vpcs = vpcs_;
    std::unordered_set<RouteTableId> route_tables = route_tables_;
    for (const NatGatewayId nat_gateway : nat_gateways_)
        for (const Core* core : {&before_.core, const_cast<const Core*>(&next_)})
            if (const NatRoutesRecord* record = core->nat_routes.find(nat_gateway))
                for (const auto& [table, times] : record->route_tables) route_tables.insert(table);
    const auto add_users = [&](UsedKey key) {
        for (const Core* core : {&before_.core, const_cast<const Core*>(&next_)})
            if (const UsedRecord* record = core->used.find(key))
                for (const auto& [vpc, times] : record->users) vpcs.insert(vpc);
    };
    for (const GroupId group : groups_) add_users({UsedKey::Kind::group, group.value});
    for (const RouteTableId table : route_tables)
        add_users({UsedKey::Kind::route_table, table.value});
    std::vector<ZoneSlot> slots;
    if (vpcs.contains(kOutside)) slots.emplace_back();
    for (const VpcId vpc : vpcs)
        for (const Core* core : {&before_.core, const_cast<const Core*>(&next_)})
            if (const VpcRecord* record = core->vpcs.find(vpc)) slots.push_back(record->slot);
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    return slots;
}

}  // namespace sluice::policy
