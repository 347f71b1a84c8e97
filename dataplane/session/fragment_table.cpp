// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/fragment_table.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace sluice::session {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// One more, if that is within the bound.
bool take(std::atomic<std::uint32_t>& count, std::uint32_t bound) {
    if (count.fetch_add(1, kRelaxed) < bound) return true;
    count.fetch_sub(1, kRelaxed);
    return false;
}

}  // namespace

FragmentTable::FragmentTable(const FragmentLimits& limits, const HashSeed& seed,
                             std::uint32_t zones)
    : limits_(limits),
      seed_(seed),
      mask_(limits.datagrams / std::tuple_size_v<decltype(Bucket::entries)> - 1),
      buckets_(std::make_unique<Bucket[]>(mask_ + 1)),
      vpcs_(std::make_unique<Vpc[]>(zones)),
      senders_(std::make_unique<Count[]>(kSenders)) {}

void FragmentTable::set(std::uint32_t slot, std::uint32_t vpc, std::uint32_t sender) {
    vpcs_[slot].most_held.store(vpc, kRelaxed);
    vpcs_[slot].most_of_sender.store(sender, kRelaxed);
}

namespace {
// What a VPC sets for itself, 0: nothing, takes nothing from the others' share.
std::uint32_t lower(std::uint32_t set, std::uint32_t share) {
    return set != 0 ? std::min(set, share) : share;
}
}  // namespace

std::uint32_t FragmentTable::vpc_bound(std::uint32_t slot) const {
    // What comes from the outside is everybody's: only its destinations are bounded.
    if (slot == 0) return limits_.held;
    return lower(vpcs_[slot].most_held.load(kRelaxed), limits_.held / limits_.vpc_part);
}

std::uint32_t FragmentTable::sender_bound(std::uint32_t slot) const {
    return lower(vpcs_[slot].most_of_sender.load(kRelaxed), limits_.held / limits_.sender_part);
}

std::uint64_t FragmentTable::hash(const IpAddress& address, std::uint64_t salt) const {
    std::array<std::uint64_t, 2> words;
    static_assert(sizeof words == sizeof address.bytes);
    std::memcpy(words.data(), address.bytes.data(), sizeof words);
    return mix(words[0] ^ seed_.words[0] ^ salt, words[1] ^ seed_.words[1]);
}

std::uint64_t FragmentTable::hash(const FragmentKey& key) const {
    const std::uint64_t ends = hash(key.source, 0) ^ hash(key.destination, seed_.words[2]);
    const std::uint64_t sender = hash(key.vtep, key.mac.value());
    return mix(ends ^ (std::uint64_t{key.zone.value} << 32 | key.identification) ^ seed_.words[3],
               sender ^ key.protocol ^ seed_.words[2]);
}

FragmentTable::Bucket& FragmentTable::bucket_of(const FragmentKey& key) {
    return buckets_[hash(key) & mask_];
}

FragmentTable::Count& FragmentTable::sender_of(const FragmentKey& key) {
    // Anybody is outside: there the destination is who has to answer for it.
    const std::uint64_t number =
        key.zone.value == 0
            ? hash(key.destination, 0)
            : mix((std::uint64_t{key.sender.value} << 32 | key.slot) ^ seed_.words[0],
                  seed_.words[1]);
    return senders_[number % kSenders];
}

bool FragmentTable::is_over(const Entry& entry, Tick now) {
    return now.since(entry.begun) > (entry.state == State::waiting ? kWait : kLife);
}

void FragmentTable::release(Entry& entry, Released& released) {
    std::copy_n(entry.held.packets.begin(), entry.held.count, released.packets.begin());
    released.count = std::exchange(entry.held.count, 0U);
    for (Count* count : {&all_, static_cast<Count*>(&vpc_of(entry.key)), &sender_of(entry.key)})
        count->held.fetch_sub(released.count, kRelaxed);
}

void FragmentTable::finish(Entry& entry, Released& released) {
    release(entry, released);
    entry.state = State::free;
    for (Count* count : {&all_, static_cast<Count*>(&vpc_of(entry.key)), &sender_of(entry.key)})
        count->datagrams.fetch_sub(1, kRelaxed);
}

bool FragmentTable::hold(Entry& entry, void* packet) {
    if (entry.held.count == kHeld) return false;
    Count &vpc = vpc_of(entry.key), &sender = sender_of(entry.key);
    if (!take(all_.held, limits_.held)) return false;
    if (!take(vpc.held, vpc_bound(entry.key.slot))) {
        all_.held.fetch_sub(1, kRelaxed);
        return false;
    }
    if (!take(sender.held, sender_bound(entry.key.slot))) {
        all_.held.fetch_sub(1, kRelaxed);
        vpc.held.fetch_sub(1, kRelaxed);
        return false;
    }
    entry.held.packets[entry.held.count++] = packet;
    return true;
}

// The datagram's entry; one whose time is over is ended, as if it were not there.
FragmentTable::Entry* FragmentTable::find(Bucket& bucket, const FragmentKey& key, Tick now,
                                          Released& expired) {
    for (Entry& entry : bucket.entries) {
        if (entry.state == State::free || !(entry.key == key)) continue;
        if (!is_over(entry, now)) return &entry;
        finish(entry, expired);
        return nullptr;
    }
    return nullptr;
}

FragmentTable::Entry* FragmentTable::make(Bucket& bucket, const FragmentKey& key, Tick now,
                                          State state, Released& expired) {
    Entry* place = nullptr;
    for (Entry& entry : bucket.entries) {
        if (entry.state == State::free) place = &entry;
    }
    for (Entry& entry : bucket.entries) {
        if (place != nullptr) break;
        // One at a time: `expired` has room for one datagram's packets.
        if (expired.count != 0 || !is_over(entry, now)) continue;
        finish(entry, expired);
        place = &entry;
    }
    if (place == nullptr) return nullptr;
    Count &vpc = vpc_of(key), &sender = sender_of(key);
    const std::uint32_t most = limits_.datagrams;
    if (!take(vpc.datagrams, key.slot == 0 ? most : most / limits_.vpc_part)) return nullptr;
    if (!take(sender.datagrams, most / limits_.sender_part)) {
        vpc.datagrams.fetch_sub(1, kRelaxed);
        return nullptr;
    }
    all_.datagrams.fetch_add(1, kRelaxed);
    place->key = key;
    place->datagram = {};
    place->begun = now;
    place->state = state;
    place->overlapped = false;
    return place;
}

FragmentVerdict FragmentTable::first(const FragmentKey& key, const wire::Piece& piece, Tick now,
                                     Released& expired) {
    expired.count = 0;
    Bucket& bucket = bucket_of(key);
    const std::lock_guard locked(bucket.lock);
    Entry* entry = find(bucket, key, now, expired);
    if (entry == nullptr) entry = make(bucket, key, now, State::waiting, expired);
    if (entry == nullptr) return FragmentVerdict::full;
    if (entry->overlapped) return FragmentVerdict::overlap;
    switch (entry->datagram.add(piece.offset, piece.end(), piece.last)) {
        case Fit::fresh:
            break;
        case Fit::duplicate:
            return FragmentVerdict::duplicate;
        case Fit::scattered:
            return FragmentVerdict::full;
        case Fit::overlap:
            entry->overlapped = true;
            entry->state = State::refused;
            release(*entry, expired);
            return FragmentVerdict::overlap;
    }
    entry->state = State::judging;
    return FragmentVerdict::pass;
}

void FragmentTable::decide(const FragmentKey& key, const std::optional<Transport>& transport,
                           Released& held) {
    held.count = 0;
    Bucket& bucket = bucket_of(key);
    const std::lock_guard locked(bucket.lock);
    for (Entry& entry : bucket.entries) {
        // Overlapped meanwhile, or ended: the judgement came too late.
        if (entry.state != State::judging || !(entry.key == key)) continue;
        entry.state = transport ? State::carried : State::refused;
        entry.transport = transport.value_or(Transport{});
        if (entry.datagram.complete())
            finish(entry, held);
        else
            release(entry, held);
        return;
    }
}

FragmentAnswer FragmentTable::later(const FragmentKey& key, const wire::Piece& piece, void* packet,
                                    Tick now, Released& released) {
    released.count = 0;
    Bucket& bucket = bucket_of(key);
    const std::lock_guard locked(bucket.lock);
    Entry* entry = find(bucket, key, now, released);
    if (entry == nullptr) entry = make(bucket, key, now, State::waiting, released);
    if (entry == nullptr) return {};
    if (entry->overlapped) return {FragmentVerdict::overlap, {}};
    const bool waits = entry->state == State::waiting || entry->state == State::judging;
    // A copy of the datagram, so that what cannot be held has not come.
    const Datagram before = entry->datagram;
    switch (entry->datagram.add(piece.offset, piece.end(), piece.last)) {
        case Fit::fresh:
            break;
        case Fit::duplicate:
            return {FragmentVerdict::duplicate, {}};
        case Fit::scattered:
            return {};
        case Fit::overlap:
            entry->overlapped = true;
            entry->state = State::refused;
            release(*entry, released);
            return {FragmentVerdict::overlap, {}};
    }
    if (waits) {
        if (hold(*entry, packet)) return {FragmentVerdict::held, {}};
        entry->datagram = before;
        return {};
    }
    const FragmentAnswer answer{
        entry->state == State::carried ? FragmentVerdict::pass : FragmentVerdict::refused,
        entry->transport};
    if (entry->datagram.complete()) finish(*entry, released);
    return answer;
}

bool FragmentTable::expire(Tick now, unsigned buckets, Released& expired) {
    expired.count = 0;
    if (datagrams() == 0) return false;
    for (unsigned step = 0; step < buckets; ++step) {
        Bucket& bucket = buckets_[cursor_.fetch_add(1, kRelaxed) & mask_];
        const std::lock_guard locked(bucket.lock);
        for (Entry& entry : bucket.entries) {
            if (entry.state == State::free || !is_over(entry, now)) continue;
            finish(entry, expired);
            return true;
        }
    }
    return false;
}

}  // namespace sluice::session
