// SPDX-License-Identifier: Apache-2.0
// Which octets of a datagram have come, and how a further fragment fits in.
//
// Contract: pure, fixed size, no allocation. An offset counts octets of the datagram's payload.
// Fragments that come in order are one range however many they are; where so many gaps are open
// at once that the ranges do not fit, no further fragment fits either.
// RFC 815 keeps holes, RFC 5722 forbids overlaps: a datagram whose fragments overlap is refused
// whole, since firewall and receiver could read two different packets out of it.
#pragma once

#include <array>
#include <cstdint>

namespace sluice::session {

enum class Fit : std::uint8_t {
    fresh,      // nothing of it was there
    duplicate,  // all of it was there: a copy
    overlap,    // some of it was there, or it contradicts the datagram's end
    scattered,  // more gaps than are kept account of
};

class Datagram {
  public:
    static constexpr unsigned kRanges = 16;

    // A fragment of [start, end), start < end <= 65,535. Only a `fresh` one changes anything.
    Fit add(std::uint32_t start, std::uint32_t end, bool last);

    // From the first octet to the last.
    [[nodiscard]] bool complete() const {
        return length_ != 0 && count_ == 1 && ranges_[0].start == 0 && ranges_[0].end == length_;
    }

  private:
    struct Range {
        std::uint16_t start = 0, end = 0;
    };
    std::array<Range, kRanges> ranges_{};  // ascending, with gaps between them
    std::uint8_t count_ = 0;
    std::uint16_t length_ = 0;  // 0: the last fragment has not come
};

}  // namespace sluice::session
