// SPDX-License-Identifier: Apache-2.0
#include "controller/southbound/withheld.hpp"

#include <algorithm>
#include <unordered_set>

#include "dataplane/openflow/entry_hash.hpp"

namespace sluice::southbound {

using namespace openflow;

namespace {

constexpr unsigned kMostDoublings = 7;  // of the first time between two tries

}  // namespace

Withheld::Sentences Withheld::sentences() const {
    Sentences result;
    for (const auto& [cookie, object] : objects_) result[cookie] = object.sentence;
    return result;
}

void Withheld::add(const compiler::DesiredState& desired, const Changes& changes,
                   const std::map<std::size_t, std::string>& refused, Time now) {
    const auto is_present = [&](const Entry& entry) {
        const Entry* present = desired.find(entry.key);
        return present != nullptr && *present == entry;
    };
    std::set<Cookie> cookies;
    for (const auto& [index, sentence] : refused) {
        const Entry& entry = changes.put[index];
        if (!is_present(entry) || !cookies.insert(entry.cookie).second) continue;
        Object& object = objects_[entry.cookie];
        object.tries = object.on_trial ? object.tries + 1 : 0;
        object.on_trial = false;
        object.sentence = sentence;
        object.since = now;
    }
    for (const Entry& entry : changes.put) {
        if (!cookies.contains(entry.cookie)) continue;
        objects_[entry.cookie].keys.insert(entry.key);
        keys_[entry.key] = entry.cookie;
    }
}

std::vector<EntryKey> Withheld::lift(const Changes& changes) {
    std::set<Cookie> lifted;
    const auto by_key = [&](const EntryKey& key) {
        if (const auto at = keys_.find(key); at != keys_.end()) lifted.insert(at->second);
    };
    if (!objects_.empty()) {
        for (const EntryKey& key : changes.remove) by_key(key);
        for (const Entry& entry : changes.put) {
            by_key(entry.key);
            if (objects_.contains(entry.cookie)) lifted.insert(entry.cookie);
        }
    }
    std::vector<EntryKey> result;
    for (const Cookie cookie : lifted) {
        const auto& keys = objects_.at(cookie).keys;
        for (const EntryKey& key : keys) keys_.erase(key);
        result.insert(result.end(), keys.begin(), keys.end());
        objects_.erase(cookie);
    }
    return result;
}

std::vector<EntryKey> Withheld::due(Time now, std::chrono::milliseconds first) {
    std::vector<EntryKey> result;
    for (auto& [cookie, object] : objects_) {
        if (object.on_trial ||
            now - object.since < first * (1 << std::min(object.tries, kMostDoublings)))
            continue;
        object.on_trial = true;
        for (const EntryKey& key : object.keys) keys_.erase(key);
        result.insert(result.end(), object.keys.begin(), object.keys.end());
    }
    return result;
}

bool Withheld::accept() {
    return std::erase_if(objects_, [](const auto& item) { return item.second.on_trial; }) > 0;
}

void Offered::visit(std::uint8_t table, const EntryVisitor& visitor) const {
    desired_.visit(table, [&](const Entry& entry) {
        if (!withheld_.holds(entry.key)) visitor(entry);
    });
}

void Offered::visit_meters(const MeterVisitor& visitor) const {
    desired_.visit_meters(visitor);
}

std::vector<TableDigest> Offered::digests() const {
    auto result = desired_.digests();
    for (const auto& [key, cookie] : withheld_.keys()) {
        const Entry* entry = desired_.find(key);
        if (entry == nullptr) continue;
        for (TableDigest& digest : result)
            if (digest.table == key.table) {
                --digest.count;
                digest.sum -= entry_hash(*entry);
            }
    }
    return result;
}

const Entry* Offered::find(const EntryKey& key) const {
    return withheld_.holds(key) ? nullptr : desired_.find(key);
}
const Meter* Offered::find(MeterId id) const {
    return desired_.find(id);
}

Changes present(const compiler::DesiredState& desired, const std::vector<Changes>& parts) {
    std::unordered_set<EntryKey, KeyHash> keys;
    std::unordered_set<MeterId> meters;
    Changes result;
    const auto add = [&](const EntryKey& key) {
        if (!keys.insert(key).second) return;
        if (const Entry* entry = desired.find(key))
            result.put.push_back(*entry);
        else
            result.remove.push_back(key);
    };
    const auto add_meter = [&](MeterId id) {
        if (!meters.insert(id).second) return;
        if (const Meter* meter = desired.find(id))
            result.put_meters.push_back(*meter);
        else
            result.remove_meters.push_back(id);
    };
    for (const Changes& part : parts) {
        for (const EntryKey& key : part.remove) add(key);
        for (const Entry& entry : part.put) add(entry.key);
        for (const MeterId id : part.remove_meters) add_meter(id);
        for (const Meter& meter : part.put_meters) add_meter(meter.id);
    }
    return result;
}

}  // namespace sluice::southbound
