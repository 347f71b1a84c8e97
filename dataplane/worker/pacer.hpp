// SPDX-License-Identifier: Apache-2.0
// Packets that a bandwidth limit lets go a little later: finished, waiting for their time.
//
// A heap by time of departure, then by arrival, so that packets of one limit keep their order.
// One worker's; fixed capacity, no allocation after construction. hold and next: O(log held).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/wire/types.hpp"

struct rte_mbuf;

namespace sluice::worker {

class Pacer {
  public:
    struct Held {
        std::uint64_t due = 0;  // nanoseconds
        std::uint64_t order = 0;
        rte_mbuf* mbuf = nullptr;
        PortId port;
    };

    explicit Pacer(std::size_t capacity) : capacity_(capacity) { heap_.reserve(capacity); }

    [[nodiscard]] bool full() const { return heap_.size() == capacity_; }

    // How long a packet may wait at most, out of `patience`: the less room there is, the
    // shorter, so that whoever has many packets waiting leaves room for whoever has few.
    [[nodiscard]] std::uint64_t patience(std::uint64_t most) const {
        return most * (capacity_ - heap_.size()) / capacity_;
    }

    // Only when it is not full. The packet is the pacer's until next() gives it back.
    void hold(std::uint64_t due, PortId port, rte_mbuf* mbuf) {
        heap_.push_back({due, order_++, mbuf, port});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }

    // The first packet that is due at `now`, if any.
    std::optional<Held> next(std::uint64_t now) {
        if (heap_.empty() || heap_.front().due > now) return std::nullopt;
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const Held held = heap_.back();
        heap_.pop_back();
        return held;
    }

  private:
    static bool later(const Held& a, const Held& b) {
        return a.due != b.due ? a.due > b.due : a.order > b.order;
    }

    std::size_t capacity_;
    std::uint64_t order_ = 0;
    std::vector<Held> heap_;
};

}  // namespace sluice::worker
