// SPDX-License-Identifier: Apache-2.0
// First packets that wait for their walk: a queue for each VPC, for each public address from
// outside, served in turns.
//
// A walk costs as much as dozens of hits, so that a turn has time for a few; a burst of new
// connections waits here for the next turns instead of being lost, and a flood of one tenant's
// waits behind its own packets only. Whoever has many waiting may have as many as there is room
// left for, so that some stays free for whoever has few (dynamic thresholds, as in
// session/limits.hpp). Packets of one queue keep their order.
// One worker's; no allocation after construction. All calls O(1). Memory: 48 octets a place.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::worker {

template <class Waiting>
class Backlog {
  public:
    static constexpr unsigned kQueues = 256;

    explicit Backlog(std::uint16_t capacity) : places_(capacity) {
        for (std::uint16_t i = 0; i < capacity; ++i) places_[i].next = i + 1U;
    }

    [[nodiscard]] bool empty() const { return waiting_ == 0; }

    // `whose`: any number, the same for all that share a turn; two may meet in one queue. False:
    // it may have no more waiting.
    bool push(std::uint64_t whose, const Waiting& item) {
        const auto number = static_cast<std::uint8_t>(whose * 0x9e3779b97f4a7c15ULL >> 56);
        Queue& queue = queues_[number];
        if (queue.count >= places_.size() - waiting_) return false;
        const std::uint32_t place = free_;
        free_ = places_[place].next;
        places_[place].item = item;
        if (queue.count != 0) {
            places_[queue.last].next = place;
        } else {
            queue.first = place;
            turns_[(first_ + active_++) % kQueues] = number;
        }
        queue.last = place;
        ++queue.count;
        ++waiting_;
        return true;
    }

    // The next of the queue whose turn it is.
    std::optional<Waiting> pop() {
        if (waiting_ == 0) return std::nullopt;
        const std::uint8_t number = turns_[first_];
        first_ = (first_ + 1) % kQueues;
        --active_;
        Queue& queue = queues_[number];
        const std::uint32_t place = queue.first;
        queue.first = places_[place].next;
        places_[place].next = free_;
        free_ = place;
        --waiting_;
        if (--queue.count != 0) turns_[(first_ + active_++) % kQueues] = number;
        return places_[place].item;
    }

  private:
    struct Place {
        Waiting item{};
        std::uint32_t next = 0;  // of its queue, or of those that are free
    };
    struct Queue {
        std::uint32_t first = 0, last = 0, count = 0;
    };

    std::vector<Place> places_;
    std::vector<Queue> queues_ = std::vector<Queue>(kQueues);
    std::vector<std::uint8_t> turns_ = std::vector<std::uint8_t>(kQueues);  // a ring: who has some
    unsigned first_ = 0, active_ = 0;
    std::uint32_t free_ = 0, waiting_ = 0;
};

}  // namespace sluice::worker
