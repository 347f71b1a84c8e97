// SPDX-License-Identifier: Apache-2.0
#include "controller/compiler/gateway_tables.hpp"

#include "dataplane/openflow/entry_hash.hpp"

namespace sluice::compiler {
namespace {

constexpr std::uint8_t kMeters = 0xff;

void add(openflow::TableDigest& digest, std::uint64_t hash) {
    ++digest.count;
    digest.sum += hash;
}
void subtract(openflow::TableDigest& digest, std::uint64_t hash) {
    --digest.count;
    digest.sum -= hash;
}

}  // namespace

void GatewayTables::visit(std::uint8_t table, const EntryVisitor& visitor) const {
    for (auto entry = entries_.lower_bound({table, 0, {}});
         entry != entries_.end() && entry->first.table == table; ++entry)
        visitor(entry->second);
}

void GatewayTables::visit_meters(const MeterVisitor& visitor) const {
    for (const auto& [id, meter] : meters_) visitor(meter);
}

std::vector<openflow::TableDigest> GatewayTables::digests() const {
    std::vector<openflow::TableDigest> result;
    const auto append = [&](std::uint8_t table) {
        result.push_back(digests_[table]);
        result.back().table = table;
    };
    for (const auto table : kProgrammedTables) append(table);
    append(kMeters);
    return result;
}

const openflow::Entry* GatewayTables::find(const openflow::EntryKey& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
}

const openflow::Meter* GatewayTables::find(MeterId id) const {
    const auto found = meters_.find(id);
    return found == meters_.end() ? nullptr : &found->second;
}

std::size_t GatewayTables::size() const {
    return entries_.size();
}

void GatewayTables::put(openflow::Entry entry) {
    remove(entry.key);
    add(digests_[entry.key.table], openflow::entry_hash(entry));
    auto key = entry.key;
    entries_.emplace(std::move(key), std::move(entry));
}

void GatewayTables::remove(const openflow::EntryKey& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    subtract(digests_[key.table], openflow::entry_hash(found->second));
    entries_.erase(found);
}

void GatewayTables::put(const openflow::Meter& meter) {
    remove(meter.id);
    add(digests_[kMeters], openflow::meter_hash(meter));
    meters_.emplace(meter.id, meter);
}

void GatewayTables::remove(MeterId id) {
    const auto found = meters_.find(id);
    if (found == meters_.end()) return;
    subtract(digests_[kMeters], openflow::meter_hash(found->second));
    meters_.erase(found);
}

}  // namespace sluice::compiler
