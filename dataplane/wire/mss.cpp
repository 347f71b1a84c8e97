// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/mss.hpp"

#include <algorithm>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"

namespace sluice::wire {

namespace {

constexpr std::uint8_t kEnd = 0, kNothing = 1, kMss = 2, kMssLength = 4;

// One octet of the segment at `offset`: the high or the low one of its word under the checksum.
void replace(ChecksumDelta& delta, std::size_t offset, std::uint8_t from, std::uint8_t to) {
    const unsigned shift = offset % 2 == 0 ? 8 : 0;
    delta.replace(be16{static_cast<std::uint16_t>(from << shift)},
                  be16{static_cast<std::uint16_t>(to << shift)});
}

}  // namespace

std::uint16_t largest_segment(std::uint16_t mtu, bool v6) {
    const std::size_t headers = (v6 ? ipv6::kSize : ipv4::kSize) + tcp::kSize;
    return mtu > headers ? static_cast<std::uint16_t>(mtu - headers) : std::uint16_t{0};
}

bool clamp_mss(std::span<std::uint8_t> segment, std::uint16_t most) {
    const std::size_t header = std::size_t{segment[tcp::kDataOffset]} >> 4 << 2;
    const std::size_t end = std::min(header, segment.size());
    const std::uint8_t high = most >> 8, low = most & 0xff;
    ChecksumDelta delta;
    bool changed = false;
    for (std::size_t at = tcp::kSize; at < end && segment[at] != kEnd;) {
        if (segment[at] == kNothing) {
            ++at;
            continue;
        }
        if (at + 1 >= end) break;
        const std::size_t length = segment[at + 1];
        if (length < 2 || at + length > end) break;
        std::uint8_t* const value = segment.data() + at + 2;
        // Of several one cannot know which counts.
        if (segment[at] == kMss && length == kMssLength && load16(value).host() > most) {
            // It may stand at an odd octet, so the sum goes by octets, not by the option's word.
            replace(delta, at + 2, value[0], high);
            replace(delta, at + 3, value[1], low);
            value[0] = high;
            value[1] = low;
            changed = true;
        }
        at += length;
    }
    if (changed)
        store(segment.data() + tcp::kChecksum,
              delta.apply(load16(segment.data() + tcp::kChecksum)));
    return changed;
}

}  // namespace sluice::wire
