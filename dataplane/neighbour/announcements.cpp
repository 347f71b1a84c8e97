// SPDX-License-Identifier: Apache-2.0
#include "dataplane/neighbour/announcements.hpp"

namespace sluice::neighbour {

void Announcements::schedule(const IpAddress& address, Entry& entry, unsigned left, Time due) {
    if (entry.left > 0) due_[entry.left].erase({entry.due, address});
    entry.left = left;
    entry.due = due;
    if (left > 0) due_[left].emplace(due, address);
}

void Announcements::put(const Key& key, Time now) {
    auto& entry = all_[key.address];
    entry.port = key.port;
    schedule(key.address, entry, kRounds, now);
}

void Announcements::remove(const IpAddress& address) {
    const auto at = all_.find(address);
    if (at == all_.end()) return;
    schedule(address, at->second, 0, {});
    all_.erase(at);
}

void Announcements::link_up(PortId port, Time now) {
    for (auto& [address, entry] : all_)
        if (entry.port == port && entry.left < kRounds) schedule(address, entry, kRounds - 1, now);
}

std::vector<Key> Announcements::take(Time now, std::size_t most) {
    std::vector<Key> taken;
    for (unsigned left = kRounds; left > 0; --left) {
        auto& queue = due_[left];
        while (taken.size() < most && !queue.empty() && queue.begin()->first <= now) {
            const IpAddress address = queue.begin()->second;
            auto& entry = all_.at(address);
            taken.push_back({entry.port, address});
            schedule(address, entry, left - 1, now + kPause);
        }
    }
    return taken;
}

}  // namespace sluice::neighbour
