// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/remote_table.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

namespace sluice::session {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

std::uint64_t key_of(std::uint32_t port, be32 remote) {
    return std::uint64_t{port} << 32 | remote.raw;
}

}  // namespace

RemoteTable::RemoteTable(const Allocate& allocate, std::uint32_t capacity, const HashSeed& seed)
    : seed_(seed),
      mask_(std::bit_ceil(std::max(capacity, 64U)) - 1),
      pairs_(allocate, std::size_t{capacity} + 1),
      buckets_(allocate, mask_ + 1),
      capacity_(capacity) {}

bool RemoteTable::has(std::uint32_t port, be32 remote) const {
    const std::uint64_t key = key_of(port, remote);
    Bucket& bucket = bucket_of(key);
    // A pair that is removed meanwhile may lead into another chain, or through all free ones.
    constexpr std::uint32_t kFew = 64;
    if (find(bucket, key, kFew) != 0) return true;
    const std::lock_guard locked(bucket.lock);
    return find(bucket, key, capacity_) != 0;
}

std::uint32_t RemoteTable::find(const Bucket& bucket, std::uint64_t key, std::uint32_t most) const {
    std::uint32_t at = bucket.first.load(std::memory_order_acquire);
    for (std::uint32_t step = 0; at != 0 && step < most; ++step) {
        const Pair& pair = pairs_[at];
        if (pair.key.load(kRelaxed) == key) return at;
        at = pair.next.load(std::memory_order_acquire);
    }
    return 0;
}

std::uint32_t RemoteTable::take_free() {
    const std::lock_guard locked(common_.lock);
    if (common_.free == 0) return common_.untouched <= capacity_ ? common_.untouched++ : 0;
    const std::uint32_t at = common_.free;
    common_.free = pairs_[at].next.load(kRelaxed);
    return at;
}

bool RemoteTable::add(std::uint32_t port, be32 remote) {
    const std::uint64_t key = key_of(port, remote);
    Bucket& bucket = bucket_of(key);
    const std::lock_guard locked(bucket.lock);
    if (const std::uint32_t known = find(bucket, key, capacity_); known != 0) {
        ++pairs_[known].count;
        return true;
    }
    const std::uint32_t at = take_free();
    if (at == 0) return false;
    pairs_[at].count = 1;
    pairs_[at].key.store(key, kRelaxed);
    pairs_[at].next.store(bucket.first.load(kRelaxed), kRelaxed);
    bucket.first.store(at, std::memory_order_release);
    return true;
}

void RemoteTable::remove(std::uint32_t port, be32 remote) {
    const std::uint64_t key = key_of(port, remote);
    Bucket& bucket = bucket_of(key);
    const std::lock_guard locked(bucket.lock);
    std::atomic<std::uint32_t>* link = &bucket.first;
    for (std::uint32_t at = link->load(kRelaxed); at != 0; at = link->load(kRelaxed)) {
        Pair& pair = pairs_[at];
        if (pair.key.load(kRelaxed) == key) {
            if (--pair.count != 0) return;
            link->store(pair.next.load(kRelaxed), std::memory_order_release);
            pair.key.store(0, kRelaxed);
            const std::lock_guard freeing(common_.lock);
            pair.next.store(common_.free, kRelaxed);
            common_.free = at;
            return;
        }
        link = &pair.next;
    }
}

}  // namespace sluice::session
