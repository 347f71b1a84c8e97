// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/pool.hpp"

#include <algorithm>
#include <mutex>

namespace sluice::session {

ConnectionPool::ConnectionPool(const Allocate& allocate, std::uint32_t capacity,
                               reclaim::Qsbr& qsbr, unsigned workers)
    : next_(allocate, capacity), qsbr_(qsbr), caches_(workers), capacity_(capacity) {}

void ConnectionPool::push(List& list, std::uint32_t index) {
    next_[index] = list.head;
    list.head = index;
    if (list.count++ == 0) list.tail = index;
}

std::uint32_t ConnectionPool::pop(List& list) {
    const std::uint32_t index = list.head;
    list.head = next_[index];
    --list.count;
    return index;
}

void ConnectionPool::append(List& to, List& from) {
    if (from.count == 0) return;
    next_[from.tail] = to.head;
    if (to.count == 0) to.tail = from.tail;
    to.head = from.head;
    to.count += from.count;
    from = List{};
}

bool ConnectionPool::refill(Cache& cache) {
    const std::lock_guard locked(common_.lock);
    const std::uint32_t chunk = std::min(kChunk, common_.free.count);
    for (std::uint32_t i = 0; i < chunk; ++i) push(cache.free, pop(common_.free));
    common_.free_count.store(common_.free.count, std::memory_order_relaxed);
    if (chunk == 0) {
        const std::uint32_t first = common_.untouched.load(std::memory_order_relaxed);
        const std::uint32_t last = std::min(capacity_, first + kChunk);
        common_.untouched.store(last, std::memory_order_release);
        // The lowest is used first: memory is touched in order.
        for (std::uint32_t i = last; i > first; --i) push(cache.free, i - 1);
    }
    return cache.free.count != 0;
}

void ConnectionPool::spill(Cache& cache) {
    const std::lock_guard locked(common_.lock);
    while (cache.free.count > 2 * kChunk) push(common_.free, pop(cache.free));
    common_.free_count.store(common_.free.count, std::memory_order_relaxed);
}

ConnectionIndex ConnectionPool::take(unsigned worker) {
    Cache& cache = caches_[worker];
    if (cache.free.count == 0 && !refill(cache)) return kNoConnection;
    return ConnectionIndex{pop(cache.free)};
}

void ConnectionPool::give_back(unsigned worker, ConnectionIndex index) {
    push(caches_[worker].free, index.value);
}

void ConnectionPool::retire(unsigned worker, ConnectionIndex index) {
    push(caches_[worker].fresh, index.value);
}

void ConnectionPool::reclaim(unsigned worker, unsigned budget) {
    Cache& cache = caches_[worker];
    if (cache.waiting.count != 0) {
        if (!qsbr_.elapsed(cache.token)) return;
        for (; budget > 0 && cache.waiting.count != 0; --budget)
            push(cache.free, pop(cache.waiting));
        if (cache.free.count > 4 * kChunk) spill(cache);
        if (cache.waiting.count != 0) return;
    }
    if (cache.fresh.count != 0) {
        append(cache.waiting, cache.fresh);
        cache.token = qsbr_.advance();
    }
}

}  // namespace sluice::session
