// SPDX-License-Identifier: Apache-2.0
// Tells from sequence numbers what was lost, came twice or came late, in 16 octets a lane.
//
// Exact while nothing is more than 64 behind the newest: what is older is said to be `too_old`, for
// it could be a duplicate or the first of its number. A packet is reordered if a later one has
// arrived before it. Pure.
#pragma once

#include <cstdint>

namespace sluice::pktgen {

enum class Order : std::uint8_t { next, reordered, duplicate, too_old };

class Sequence {
  public:
    Order arrive(std::uint32_t number) {
        if (number >= next_) {
            const std::uint32_t steps = number - next_ + 1;
            seen_ = steps < kWindow ? seen_ << steps | 1 : 1;
            next_ = number + 1;
            return Order::next;
        }
        const std::uint32_t behind = next_ - 1 - number;
        if (behind >= kWindow) return Order::too_old;
        const std::uint64_t bit = std::uint64_t{1} << behind;
        if ((seen_ & bit) != 0) return Order::duplicate;
        seen_ |= bit;
        return Order::reordered;
    }

  private:
    static constexpr std::uint32_t kWindow = 64;
    std::uint64_t seen_ = 0;  // bit i: next_ - 1 - i has arrived
    std::uint32_t next_ = 0;  // behind the newest
};

}  // namespace sluice::pktgen
