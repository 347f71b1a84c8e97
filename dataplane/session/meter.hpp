// SPDX-License-Identifier: Apache-2.0
// Bandwidth limits shared by all workers: GCRA (ITU-T I.371 Annex A) on one 64-bit word.
//
// The word is the theoretical arrival time of the next bit. A worker draws a quantum of
// min(burst / 16, 20 us of the rate), at least the packet, with one compare-and-exchange, and
// spends it on its own; so a limit holds for the object, whatever number of workers carries
// it, and costs a shared line once per quantum. What workers hold unspent is at most a quantum
// each. A packet either passes whole or not at all.
//
// What exceeds the burst need not be lost: departure() admits what would conform a little
// later and says when (it is shaped), and refuses beyond that. Without it TCP does not reach
// the limit where the round trip is short: the tail of a burst is lost, the sender waits for
// its retransmission timer of 200 ms, and a burst of 100 ms has filled long before.
//
// Threads: `set` and `remove` by the control thread; `find` and `admit` by workers, each with
// its own number, lock-free. Time is injected: nanoseconds of one monotonic clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/session/connection.hpp"
#include "dataplane/wire/result.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::session {

struct MeterRate {
    std::uint64_t bits_per_second = 0;
    std::uint64_t burst_bits = 0;
};

class MeterTable {
  public:
    // At most `capacity` meters at a time.
    MeterTable(std::uint32_t capacity, unsigned workers);

    // Creates a meter or changes the rate of one that exists; connections that hold its index
    // follow at once.
    Result<void> set(MeterId id, MeterRate rate);
    // Whoever still holds its index is not limited any more, until it is judged again.
    void remove(MeterId id);
    [[nodiscard]] std::uint32_t used() const { return used_; }
    [[nodiscard]] std::uint32_t capacity() const { return capacity_; }

    // 0 (unlimited) if there is none, or for id 0.
    [[nodiscard]] MeterIndex find(MeterId id) const;

    // Whether `octets` may pass now. Index 0 always may.
    bool admit(unsigned worker, MeterIndex index, std::uint32_t octets, std::uint64_t now) {
        return departure(worker, index, octets, now, 0) != kRefused;
    }
    // When they may: `now` or later, at most `patience` nanoseconds, 50 ms or 3 Mbit later,
    // whichever is sooner. The answers of one worker never go back in time, so that packets
    // keep their order.
    static constexpr std::uint64_t kRefused = ~0ULL;
    static constexpr std::uint64_t kPatience = 50'000'000;
    std::uint64_t departure(unsigned worker, MeterIndex index, std::uint32_t octets,
                            std::uint64_t now, std::uint64_t patience);

    // Packets it refused, summed over the workers.
    [[nodiscard]] std::uint64_t refused(MeterIndex index) const;

  private:
    struct alignas(64) Meter {
        // Times are in 1/256 ns, so that a bit at 400 Gb/s is not rounded away.
        std::atomic<std::uint64_t> arrival{0};
        std::atomic<std::uint64_t> time_per_bit{0};  // 1/256 ns << kBitShift; 0: unlimited
        std::atomic<std::uint64_t> burst_time{0};    // 1/256 ns
        std::atomic<std::uint64_t> patience{0};      // 1/256 ns
        std::atomic<std::uint32_t> quantum{0};       // bits
    };
    struct Share {  // a worker's
        std::int64_t bits = 0;
        std::uint64_t valid = 0;  // from when, ns; an old quantum is worth nothing
        std::atomic<std::uint64_t> refused{0};
    };
    static constexpr unsigned kBitShift = 16;
    static constexpr std::uint32_t kNoSlot = ~0U;

    static std::uint64_t draw(Meter& meter, std::uint64_t bits, std::uint64_t now,
                              std::uint64_t patience);
    // Where the id is, or where it would go; kNoSlot if the map is full.
    [[nodiscard]] std::uint32_t slot_for(MeterId id) const;

    std::uint32_t capacity_;
    std::uint32_t used_ = 0;
    std::uint32_t map_mask_;
    // Open addressing: id << 32 | index; ~0 marks what was removed.
    std::unique_ptr<std::atomic<std::uint64_t>[]> map_;
    std::unique_ptr<Meter[]> meters_;  // 1..capacity
    std::vector<std::unique_ptr<Share[]>> shares_;
    std::vector<std::uint32_t> free_;
};

}  // namespace sluice::session
