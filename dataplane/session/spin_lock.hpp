// SPDX-License-Identifier: Apache-2.0
// The lock of what workers change together for some tens of nanoseconds: a table's bucket, its
// list of free records.
//
// Purpose: mutual exclusion where a mutex might put the packet path to sleep. For std::lock_guard.
// Threads: any; not recursive. Whoever needs two takes a bucket's first, then the table's common
// one; several buckets in the order of their index. What is read without it is an atomic.
// Why spinning is bounded: what is done under it is a few lines of memory, a chain, a chunk of
// records or an endpoint's blocks, each bounded in itself; no call of the kernel, no allocation, no
// callback. So a waiter waits for one such piece of each other worker that wants the same bucket.
// It is no queue, and might be overtaken, but a worker has a packet's work to do before it comes
// back. A worker has a core of its own; the control thread, which may be suspended under a lock,
// takes one only to explain what the lock-free look-up did not find.
// Cost: 4 octets, of which zeroed memory is an open one; one locked instruction and a store.
// Waiters only read, so that the line moves once when it is given back, not at each attempt.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::session {

class SpinLock {
  public:
    SpinLock() = default;
    SpinLock(const SpinLock&) = delete;
    SpinLock& operator=(const SpinLock&) = delete;

    // Acquires: sees what the last holder wrote.
    void lock() {
        while (held_.exchange(1, std::memory_order_acquire) != 0)
            while (held_.load(std::memory_order_relaxed) != 0) __builtin_ia32_pause();
    }
    void unlock() { held_.store(0, std::memory_order_release); }

  private:
    std::atomic<std::uint32_t> held_{0};
};
static_assert(sizeof(SpinLock) == 4);

}  // namespace sluice::session
