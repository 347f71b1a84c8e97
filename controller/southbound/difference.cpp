// SPDX-License-Identifier: Apache-2.0
#include "controller/southbound/difference.hpp"

#include <map>
#include <optional>

namespace sluice::southbound {

using namespace openflow;

std::set<std::uint8_t> differing(std::span<const TableDigest> desired,
                                 std::span<const TableDigest> actual) {
    std::map<std::uint8_t, TableDigest> have;
    for (const TableDigest& digest : actual) have[digest.table] = digest;
    std::set<std::uint8_t> result;
    for (const TableDigest& digest : desired) {
        const auto at = have.find(digest.table);
        // A table that the switch does not name is an empty one.
        const TableDigest empty{digest.table, 0, 0};
        if ((at == have.end() ? empty : at->second) != digest) result.insert(digest.table);
    }
    return result;
}

Changes difference(const compiler::DesiredState& desired, Actual actual) {
    Changes changes;
    for (const std::uint8_t table : actual.tables) {
        if (table == kMeterDigest) continue;
        desired.visit(table, [&](const Entry& entry) {
            const auto at = actual.entries.find(entry.key);
            if (at == actual.entries.end()) {
                changes.put.push_back(entry);
                return;
            }
            if (at->second != entry) changes.put.push_back(entry);
            actual.entries.erase(at);
        });
    }
    for (auto& [key, entry] : actual.entries) changes.remove.push_back(key);
    if (actual.tables.contains(kMeterDigest)) {
        desired.visit_meters([&](const Meter& meter) {
            const auto at = actual.meters.find(meter.id);
            if (at == actual.meters.end() || at->second != meter)
                changes.put_meters.push_back(meter);
            if (at != actual.meters.end()) actual.meters.erase(at);
        });
        for (const auto& [id, meter] : actual.meters) changes.remove_meters.push_back(id);
    }
    return changes;
}

void append_unread(Changes& changes, std::span<const Changes> later,
                   const std::set<std::uint8_t>& read) {
    std::unordered_map<EntryKey, std::optional<Entry>, KeyHash> entries;
    std::unordered_map<MeterId, std::optional<Meter>> meters;
    for (const Changes& change : later) {
        for (const EntryKey& key : change.remove)
            if (!read.contains(key.table)) entries[key].reset();
        for (const Entry& entry : change.put)
            if (!read.contains(entry.key.table)) entries[entry.key] = entry;
        if (read.contains(kMeterDigest)) continue;
        for (const MeterId id : change.remove_meters) meters[id].reset();
        for (const Meter& meter : change.put_meters) meters[meter.id] = meter;
    }
    for (auto& [key, entry] : entries) {
        if (entry)
            changes.put.push_back(*std::move(entry));
        else
            changes.remove.push_back(key);
    }
    for (const auto& [id, meter] : meters) {
        if (meter)
            changes.put_meters.push_back(*meter);
        else
            changes.remove_meters.push_back(id);
    }
}

}  // namespace sluice::southbound
