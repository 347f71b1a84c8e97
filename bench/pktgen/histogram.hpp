// SPDX-License-Identifier: Apache-2.0
// A histogram of 64-bit values in 15 KiB: each power of two has 32 buckets, so that what is read
// from it is at most 3.2 % above what was put in. Values below 64 are exact.
// One writer; `add` costs a few instructions and never allocates.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::pktgen {

class Histogram {
  public:
    void add(std::uint64_t value) {
        ++counts_[bucket(value)];
        ++count_;
        least_ = std::min(least_, value);
        most_ = std::max(most_, value);
    }
    [[nodiscard]] std::uint64_t count() const { return count_; }
    // 0 while empty.
    [[nodiscard]] std::uint64_t least() const { return count_ == 0 ? 0 : least_; }
    [[nodiscard]] std::uint64_t most() const { return most_; }

    // The smallest value that `fraction` of all are not above, of the bucket's upper end.
    [[nodiscard]] std::uint64_t quantile(double fraction) const {
        const double wanted = fraction * static_cast<double>(count_);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            sum += counts_[i];
            if (sum != 0 && static_cast<double>(sum) >= wanted) return std::min(last(i), most_);
        }
        return most_;
    }

  private:
    static constexpr unsigned kBits = 5;
    static constexpr std::uint64_t kEach = 1U << kBits;

    static std::size_t bucket(std::uint64_t value) {
        const unsigned width = static_cast<unsigned>(std::bit_width(value));
        if (width <= kBits + 1) return static_cast<std::size_t>(value);
        const unsigned shift = width - kBits - 1;
        return static_cast<std::size_t>(shift * kEach + (value >> shift));
    }
    static std::uint64_t last(std::size_t bucket) {
        if (bucket < 2 * kEach) return bucket;
        const unsigned shift = static_cast<unsigned>(bucket / kEach - 1);
        return ((bucket % kEach + kEach + 1) << shift) - 1;
    }

    std::array<std::uint64_t, (64 - kBits + 1) * kEach> counts_{};
    std::uint64_t count_ = 0, least_ = UINT64_MAX, most_ = 0;
};

}  // namespace sluice::pktgen
