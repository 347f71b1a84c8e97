// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/meter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sluice::session {

namespace {
constexpr std::uint64_t kEmpty = 0;
constexpr std::uint64_t kRemoved = ~0ULL;
constexpr std::uint64_t kQuantumNanoseconds = 20'000;
constexpr unsigned kTimeShift = 8;  // arrival times are in 1/256 ns
// A worker's unspent bits are worth nothing after this: an idle limit must not save up.
constexpr std::uint64_t kStaleNanoseconds = 1'000'000;
// How much may wait for its turn, beside MeterTable::kPatience: enough for a TCP sender to hear
// of a loss by what follows it, little against what a worker can hold.
constexpr double kPatienceBits = 3e6;

constexpr std::uint32_t hash_of(MeterId id) {
    return static_cast<std::uint32_t>((id.value * 0x9e3779b97f4a7c15ULL) >> 32);
}
}  // namespace

MeterTable::MeterTable(std::uint32_t capacity, unsigned workers)
    : capacity_(capacity),
      map_mask_(std::bit_ceil(capacity * 2 + 2) - 1),
      map_(std::make_unique<std::atomic<std::uint64_t>[]>(map_mask_ + 1)),
      meters_(std::make_unique<Meter[]>(capacity + 1)) {
    for (unsigned worker = 0; worker < workers; ++worker)
        shares_.push_back(std::make_unique<Share[]>(capacity + 1));
    free_.reserve(capacity);
    for (std::uint32_t index = capacity; index > 0; --index) free_.push_back(index);
}

MeterIndex MeterTable::find(MeterId id) const {
    if (id.value == 0) return MeterIndex{};
    for (std::uint32_t probe = 0, slot = hash_of(id); probe <= map_mask_; ++probe, ++slot) {
        const std::uint64_t entry = map_[slot & map_mask_].load(std::memory_order_acquire);
        if (entry == kEmpty) break;
        if (entry != kRemoved && entry >> 32 == id.value)
            return MeterIndex{static_cast<std::uint32_t>(entry)};
    }
    return MeterIndex{};
}

std::uint32_t MeterTable::slot_for(MeterId id) const {
    std::uint32_t reusable = kNoSlot;
    for (std::uint32_t probe = 0, slot = hash_of(id); probe <= map_mask_; ++probe, ++slot) {
        const std::uint64_t entry = map_[slot & map_mask_].load(std::memory_order_relaxed);
        if (entry != kEmpty && entry != kRemoved && entry >> 32 == id.value)
            return slot & map_mask_;
        if (reusable == kNoSlot && (entry == kEmpty || entry == kRemoved))
            reusable = slot & map_mask_;
        if (entry == kEmpty) break;
    }
    return reusable;
}

Result<void> MeterTable::set(MeterId id, MeterRate rate) {
    if (id.value == 0 || rate.bits_per_second == 0 || rate.burst_bits == 0)
        return Error{Error::Code::invalid, "a meter needs a number, a rate and a burst", "meter"};
    std::uint32_t index = find(id).value;
    const bool created = index == 0;
    const std::uint32_t slot = slot_for(id);
    if (created) {
        if (free_.empty() || slot == kNoSlot)
            return Error{Error::Code::exhausted, "the meter table is full", "meter"};
        index = free_.back();
        free_.pop_back();
        ++used_;
    }
    Meter& meter = meters_[index];
    const double per_bit = 1e9 * (1U << kTimeShift) / static_cast<double>(rate.bits_per_second);
    meter.time_per_bit.store(
        std::max<std::uint64_t>(
            1, static_cast<std::uint64_t>(std::llround(per_bit * (1ULL << kBitShift)))),
        std::memory_order_relaxed);
    meter.burst_time.store(
        static_cast<std::uint64_t>(per_bit * static_cast<double>(rate.burst_bits)),
        std::memory_order_relaxed);
    meter.patience.store(
        static_cast<std::uint64_t>(
            std::min(static_cast<double>(kPatience << kTimeShift), kPatienceBits * per_bit)),
        std::memory_order_relaxed);
    const std::uint64_t quantum =
        std::min(rate.burst_bits / 16,
                 static_cast<std::uint64_t>(static_cast<double>(rate.bits_per_second) *
                                            static_cast<double>(kQuantumNanoseconds) / 1e9));
    meter.quantum.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(quantum, ~0U)),
                        std::memory_order_relaxed);
    if (created) {
        meter.arrival.store(0, std::memory_order_relaxed);
        map_[slot].store(std::uint64_t{id.value} << 32 | index, std::memory_order_release);
    }
    return {};
}

void MeterTable::remove(MeterId id) {
    const std::uint32_t index = find(id).value;
    if (index == 0) return;
    map_[slot_for(id)].store(kRemoved, std::memory_order_release);
    meters_[index].time_per_bit.store(0, std::memory_order_relaxed);
    free_.push_back(index);
    --used_;
}

std::uint64_t MeterTable::draw(Meter& meter, std::uint64_t bits, std::uint64_t now,
                               std::uint64_t patience) {
    const std::uint64_t cost =
        bits * meter.time_per_bit.load(std::memory_order_relaxed) >> kBitShift;
    const auto burst = static_cast<std::int64_t>(meter.burst_time.load(std::memory_order_relaxed));
    const auto longest = static_cast<std::int64_t>(
        std::min(patience << kTimeShift, meter.patience.load(std::memory_order_relaxed)));
    const std::uint64_t time = now << kTimeShift;
    std::uint64_t arrival = meter.arrival.load(std::memory_order_relaxed);
    for (;;) {
        // Signed: the clock wraps after two years.
        const std::uint64_t from = static_cast<std::int64_t>(arrival - time) > 0 ? arrival : time;
        const std::uint64_t next = from + cost;
        const std::int64_t early = static_cast<std::int64_t>(next - time) - burst;
        if (early > longest) return kRefused;
        if (meter.arrival.compare_exchange_weak(arrival, next, std::memory_order_relaxed))
            return early <= 0 ? now : now + (static_cast<std::uint64_t>(early) >> kTimeShift) + 1;
    }
}

std::uint64_t MeterTable::departure(unsigned worker, MeterIndex index, std::uint32_t octets,
                                    std::uint64_t now, std::uint64_t patience) {
    if (index.value == 0) return now;
    Meter& meter = meters_[index.value];
    if (meter.time_per_bit.load(std::memory_order_relaxed) == 0) return now;
    Share& share = shares_[worker][index.value];
    const auto bits = std::int64_t{octets} * 8;
    if (share.bits != 0 && now > share.valid && now - share.valid > kStaleNanoseconds)
        share.bits = 0;
    if (share.bits >= bits) {
        share.bits -= bits;
        return std::max(now, share.valid);
    }
    const std::int64_t missing = bits - share.bits;
    const std::int64_t quantum = meter.quantum.load(std::memory_order_relaxed);
    if (quantum > missing) {
        const std::uint64_t when = draw(meter, static_cast<std::uint64_t>(quantum), now, patience);
        if (when != kRefused) {
            share.bits += quantum - bits;
            share.valid = when;
            return when;
        }
    }
    const std::uint64_t when = draw(meter, static_cast<std::uint64_t>(missing), now, patience);
    if (when != kRefused) {
        share.bits = 0;
        return when;
    }
    share.refused.store(share.refused.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
    return kRefused;
}

std::uint64_t MeterTable::refused(MeterIndex index) const {
    std::uint64_t sum = 0;
    for (const auto& share : shares_)
        sum += share[index.value].refused.load(std::memory_order_relaxed);
    return sum;
}

}  // namespace sluice::session
