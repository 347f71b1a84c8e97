// SPDX-License-Identifier: Apache-2.0
// A bounded queue from one thread to one other. Lock-free; when it is full the sender drops
// the item and counts it, so that a slow reader costs the packet path nothing.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace sluice::worker {

template <class Item>
class Ring {
  public:
    // The capacity is rounded up to a power of two.
    explicit Ring(std::size_t capacity)
        : mask_(std::bit_ceil(capacity) - 1), items_(std::make_unique<Item[]>(mask_ + 1)) {}
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    // The sender's thread.
    bool push(const Item& item) {
        const std::size_t tail = tail_.load(std::memory_order_relaxed);
        if (tail - head_seen_ > mask_) {
            head_seen_ = head_.load(std::memory_order_acquire);
            if (tail - head_seen_ > mask_) {
                lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
                return false;
            }
        }
        items_[tail & mask_] = item;
        tail_.store(tail + 1, std::memory_order_release);
        return true;
    }
    // The receiver's thread.
    bool pop(Item& item) {
        const std::size_t head = head_.load(std::memory_order_relaxed);
        if (head == tail_.load(std::memory_order_acquire)) return false;
        item = items_[head & mask_];
        head_.store(head + 1, std::memory_order_release);
        return true;
    }
    // Any thread: items that found it full.
    [[nodiscard]] std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  private:
    const std::size_t mask_;
    std::unique_ptr<Item[]> items_;
    alignas(64) std::atomic<std::size_t> tail_{0};
    std::size_t head_seen_ = 0;
    std::atomic<std::uint64_t> lost_{0};
    alignas(64) std::atomic<std::size_t> head_{0};
};

}  // namespace sluice::worker
