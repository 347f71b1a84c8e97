// SPDX-License-Identifier: Apache-2.0
// Which connection records are free. Each worker has a cache of its own; caches exchange
// chunks with a shared list. An ended record rests until every reader has passed a quiescent
// state, then goes back to the cache of the worker that ended it.
//
// Threads: a worker uses its own index only; the shared list has a lock that is held for a few
// instructions, once per kChunk records.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "dataplane/reclaim/qsbr.hpp"
#include "dataplane/session/connection.hpp"
#include "dataplane/session/memory.hpp"
#include "dataplane/session/spin_lock.hpp"

namespace sluice::session {

class ConnectionPool {
  public:
    ConnectionPool(const Allocate& allocate, std::uint32_t capacity, reclaim::Qsbr& qsbr,
                   unsigned workers);
    ConnectionPool(const ConnectionPool&) = delete;
    ConnectionPool& operator=(const ConnectionPool&) = delete;

    [[nodiscard]] bool ok() const { return next_.ok(); }
    [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
    // Records at and above it were never used.
    [[nodiscard]] std::uint32_t high_water() const {
        return common_.untouched.load(std::memory_order_acquire);
    }

    // About how many can be taken: what other workers' caches hold (some hundred at most) is
    // not seen. No atomics but two loads of a line that changes once per kChunk records.
    [[nodiscard]] std::uint32_t available(unsigned worker) const {
        return capacity_ - common_.untouched.load(std::memory_order_relaxed) +
               common_.free_count.load(std::memory_order_relaxed) + caches_[worker].free.count;
    }
    // The same as any thread may ask.
    [[nodiscard]] std::uint32_t available() const {
        return capacity_ - common_.untouched.load(std::memory_order_relaxed) +
               common_.free_count.load(std::memory_order_relaxed);
    }

    // A record that no reader holds, or kNoConnection.
    ConnectionIndex take(unsigned worker);
    // One that was taken and never published.
    void give_back(unsigned worker, ConnectionIndex index);
    // One that was published and is out of the table now. Frees it after a grace period.
    void retire(unsigned worker, ConnectionIndex index);
    // Frees what has rested, at most `budget` records. Once per turn.
    void reclaim(unsigned worker, unsigned budget);

  private:
    static constexpr std::uint32_t kChunk = 64;
    static constexpr std::uint32_t kEnd = ~0U;

    struct List {  // singly linked through next_
        std::uint32_t head = kEnd;
        std::uint32_t tail = kEnd;
        std::uint32_t count = 0;
    };
    struct alignas(64) Cache {
        List free;
        // Retired since the last token was taken; then waiting for that token.
        List fresh;
        List waiting;
        reclaim::Qsbr::Token token = 0;
    };

    void push(List& list, std::uint32_t index);
    std::uint32_t pop(List& list);
    void append(List& to, List& from);
    bool refill(Cache& cache);
    void spill(Cache& cache);

    // What all workers share, on a line of its own.
    struct alignas(64) Common {
        std::atomic<std::uint32_t> untouched{0};
        std::atomic<std::uint32_t> free_count{0};  // free.count, for those without the lock
        SpinLock lock;
        List free;
    };

    Common common_;
    Array<std::uint32_t> next_;
    reclaim::Qsbr& qsbr_;
    std::vector<Cache> caches_;
    std::uint32_t capacity_;
};

}  // namespace sluice::session
