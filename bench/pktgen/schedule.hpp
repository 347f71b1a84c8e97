// SPDX-License-Identifier: Apache-2.0
// What is sent next, and when: lanes by the profile's distribution and direction mix, sizes by its
// mix, packets by the time-stamp counter.
//
// Ownership: a Schedule holds 8 octets a flow for a Zipf distribution. `next` and `due` neither
// allocate nor fail. One thread. Everything but time follows from the profile's seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/pktgen/profile.hpp"
#include "bench/pktgen/templates.hpp"

namespace sluice::pktgen {

// splitmix64: short, and good enough for drawing flows.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
        return x ^ (x >> 31);
    }
    std::uint32_t below(std::uint32_t limit) {
        return static_cast<std::uint32_t>((next() >> 32) * limit >> 32);
    }

  private:
    std::uint64_t state_;
};

class Schedule {
  public:
    explicit Schedule(const Profile& profile);

    struct Next {
        std::uint32_t lane;
        std::size_t share;  // of the profile's frames
    };
    Next next() {
        // The error of the direction mix is carried over: exact over a hundred packets.
        reverse_ += reverse_percent_;
        const bool reverse = reverse_ >= 100;
        if (reverse) reverse_ -= 100;
        const std::uint32_t flow = draw(turn_[reverse ? 1 : 0]);
        if (++share_ == shares_.size()) share_ = 0;
        return {lanes_.of(flow, reverse ? Way::reverse : Way::forward), shares_[share_]};
    }

  private:
    std::uint32_t draw(std::uint32_t& turn) {
        if (distribution_ == Distribution::round_robin) {
            const std::uint32_t flow = turn;
            if (++turn == lanes_.flows) turn = 0;
            return flow;
        }
        const std::uint32_t flow = random_.below(lanes_.flows);
        if (distribution_ == Distribution::uniform) return flow;
        const Alias& alias = aliases_[flow];
        return static_cast<std::uint32_t>(random_.next() >> 32) < alias.keep ? flow : alias.other;
    }
    // Walker's method: a column of equal weight for each flow, its rest filled by another one.
    struct Alias {
        std::uint32_t keep = UINT32_MAX;  // of 2^32
        std::uint32_t other = 0;
    };
    void make_aliases(double exponent);

    Lanes lanes_;
    Distribution distribution_;
    unsigned reverse_percent_, reverse_ = 0;
    std::uint32_t turn_[2] = {0, 0};
    Random random_;
    std::vector<std::size_t> shares_;  // shuffled, as many of each as its weight
    std::size_t share_ = 0;
    std::vector<Alias> aliases_;
};

// How many packets are due. A sender that comes late sends up to `kCatchUp` packets more at once;
// what is late beyond that is skipped and counted, for a figure must not stand on it.
class Pacer {
  public:
    static constexpr std::uint64_t kCatchUp = 256;

    // `rate` in packets a second, 0: as many as asked for.
    Pacer(double rate, double hertz, std::uint64_t start)
        : per_cycle_(rate / hertz), start_(start) {}
    std::uint64_t due(std::uint64_t now, std::uint64_t most) {
        if (per_cycle_ == 0) return most;
        const auto by_now =
            static_cast<std::uint64_t>(static_cast<double>(now - start_) * per_cycle_);
        std::uint64_t late = by_now - done_;
        if (late > kCatchUp) {
            skipped_ += late - kCatchUp;
            done_ += late - kCatchUp;
            late = kCatchUp;
        }
        return std::min(late, most);
    }
    void sent(std::uint64_t count) { done_ += per_cycle_ == 0 ? 0 : count; }
    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

  private:
    double per_cycle_;
    std::uint64_t start_, done_ = 0, skipped_ = 0;
};

}  // namespace sluice::pktgen
