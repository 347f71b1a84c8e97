// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/datagram.hpp"

#include <algorithm>

namespace sluice::session {

Fit Datagram::add(std::uint32_t start, std::uint32_t end, bool last) {
    const bool ends_elsewhere = length_ != 0 && (last ? end != length_ : end >= length_);
    const bool beyond = last && count_ != 0 && ranges_[count_ - 1U].end > end;
    if (ends_elsewhere || beyond) return Fit::overlap;

    // The first range that does not lie wholly before it.
    const auto finish = ranges_.begin() + count_;
    const auto next = std::find_if(ranges_.begin(), finish,
                                   [&](const Range& range) { return range.end > start; });
    if (next != finish && next->start < end)
        return next->start <= start && end <= next->end ? Fit::duplicate : Fit::overlap;

    const bool joins_next = next != finish && next->start == end;
    const bool joins_previous = next != ranges_.begin() && (next - 1)->end == start;
    if (joins_next && joins_previous) {
        (next - 1)->end = next->end;
        std::copy(next + 1, finish, next);
        --count_;
    } else if (joins_next) {
        next->start = static_cast<std::uint16_t>(start);
    } else if (joins_previous) {
        (next - 1)->end = static_cast<std::uint16_t>(end);
    } else {
        if (count_ == kRanges) return Fit::scattered;
        std::copy_backward(next, finish, finish + 1);
        *next = {static_cast<std::uint16_t>(start), static_cast<std::uint16_t>(end)};
        ++count_;
    }
    if (last) length_ = static_cast<std::uint16_t>(end);
    return Fit::fresh;
}

}  // namespace sluice::session
