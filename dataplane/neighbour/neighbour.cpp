// SPDX-License-Identifier: Apache-2.0
#include "dataplane/neighbour/neighbour.hpp"

#include <utility>

namespace sluice::neighbour {

void Neighbours::want(const Key& key, Time now) {
    auto [at, added] = entries_.try_emplace(key);
    ++at->second.wanted;
    if (added) ask(key, at->second, now);
}

void Neighbours::release(const Key& key) {
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.wanted == 0) return;
    if (--at->second.wanted == 0 && at->second.state != State::pinned) entries_.erase(at);
}

void Neighbours::pin(const Key& key, const MacAddress& mac) {
    auto& entry = entries_[key];
    entry.state = State::pinned;
    entry.mac = mac;
    changes_.push_back({key, mac});
}

void Neighbours::heard(const Key& key, const MacAddress& mac, Time now) {
    const auto at = entries_.find(key);
    if (at == entries_.end() || mac.is_multicast() || mac.is_zero()) return;
    auto& entry = at->second;
    const auto trust = [&] {
        const bool news = entry.mac != mac;
        entry.mac = mac;
        entry.state = State::reachable;
        entry.asked = 0;
        entry.due = now + settings_.reachable;
        if (news) changes_.push_back({key, mac});
    };
    switch (entry.state) {
        case State::incomplete:
        case State::reachable:
        case State::probing:
        case State::unreachable:
            return trust();
        case State::pinned:
            return;
    }
}

void Neighbours::link_changed(PortId port, Time now) {
    for (auto& [key, entry] : entries_) {
        if (key.port != port) continue;
        switch (entry.state) {
            case State::incomplete:
            case State::unreachable:
                entry.asked = 0;
                [[fallthrough]];
            case State::reachable:
                entry.due = now;
                break;
            case State::probing:
            case State::pinned:
                break;
        }
    }
}

void Neighbours::tick(Time now) {
    for (auto& [key, entry] : entries_)
        if (entry.state != State::pinned && now >= entry.due) expire(key, entry, now);
}

void Neighbours::expire(const Key& key, Entry& entry, Time now) {
    switch (entry.state) {
        case State::incomplete:
            if (entry.asked >= settings_.probes) entry.state = State::unreachable;
            return ask(key, entry, now);
        case State::reachable:
            entry.state = State::probing;
            entry.asked = 0;
            return probe(key, entry, now);
        case State::probing:
            if (entry.asked < settings_.probes) return probe(key, entry, now);
            entry.state = State::unreachable;
            entry.mac = {};
            changes_.push_back({key, std::nullopt});
            return ask(key, entry, now);
        case State::unreachable:
            return ask(key, entry, now);
        case State::pinned:
            return;
    }
}

void Neighbours::ask(const Key& key, Entry& entry, Time now) {
    ++entry.asked;
    entry.due =
        now + (entry.state == State::unreachable ? settings_.slow_retry : settings_.retransmit);
    requests_.push_back({key, std::nullopt});
}

void Neighbours::probe(const Key& key, Entry& entry, Time now) {
    ++entry.asked;
    entry.due = now + settings_.retransmit;
    // The last one goes to everybody: the address may have moved to another machine whose
    // announcement was lost.
    if (entry.asked >= settings_.probes)
        requests_.push_back({key, std::nullopt});
    else
        requests_.push_back({key, entry.mac});
}

std::optional<MacAddress> Neighbours::mac(const Key& key) const {
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.mac.is_zero()) return std::nullopt;
    return at->second.mac;
}

std::optional<State> Neighbours::state(const Key& key) const {
    const auto at = entries_.find(key);
    if (at == entries_.end()) return std::nullopt;
    return at->second.state;
}

std::vector<Request> Neighbours::take_requests() {
    return std::exchange(requests_, {});
}
std::vector<Change> Neighbours::take_changes() {
    return std::exchange(changes_, {});
}

}  // namespace sluice::neighbour
