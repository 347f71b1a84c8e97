// SPDX-License-Identifier: Apache-2.0
// What identifies a packet of the generator: 18 octets at the start of its UDP payload (of RoCEv2:
// behind its header), which fit the smallest inner frame (64 octets with its FCS over IPv4).
//
//     0  magic, 16 bits      2  lane, 32 bits      6  sequence, 32 bits     10  time, 64 bits
//
// A lane is one direction of a flow. Sequence numbers count from 0 per lane and trial. The time is
// the time-stamp counter when the packet was made. All in the machine's byte order: whoever reads
// them has written them. Pure, no allocation. Bounds are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/raw.hpp"

namespace sluice::pktgen {

struct Stamp {
    std::uint32_t lane = 0;
    std::uint32_t sequence = 0;
    std::uint64_t time = 0;  // cycles of the time-stamp counter

    bool operator==(const Stamp&) const = default;
};

namespace stamp {
inline constexpr std::size_t kSize = 18, kLane = 2, kSequence = 6, kTime = 10;
inline constexpr std::uint16_t kMagic = 0xb1c5;
}  // namespace stamp

// What is the same in every packet of a lane; the rest zero, so that the checksum over it is the
// one that `finish_stamp` begins with.
inline void begin_stamp(std::uint8_t* payload, std::uint32_t lane) {
    for (std::size_t i = 0; i < stamp::kSize; ++i) payload[i] = 0;
    wire::put_raw(payload, stamp::kMagic);
    wire::put_raw(payload + stamp::kLane, lane);
}

inline void put_stamp(std::uint8_t* payload, std::uint32_t sequence, std::uint64_t time) {
    wire::put_raw(payload + stamp::kSequence, sequence);
    wire::put_raw(payload + stamp::kTime, static_cast<std::uint32_t>(time));
    wire::put_raw(payload + stamp::kTime + 4, static_cast<std::uint32_t>(time >> 32));
}

// Fills in sequence and time behind the UDP header at `udp`, and adds them to its checksum, to
// which `change` is added, too (of the lengths, ChecksumDelta::folded).
inline void finish_stamp(std::uint8_t* udp, std::uint32_t sequence, std::uint64_t time,
                         std::uint16_t change = 0) {
    put_stamp(udp + wire::udp::kSize, sequence, time);
    std::uint64_t sum = static_cast<std::uint16_t>(~wire::raw16(udp + wire::udp::kChecksum));
    sum += change;
    sum += sequence;
    sum += (time & 0xffffffff) + (time >> 32);
    const auto checksum = static_cast<std::uint16_t>(~wire::fold(sum));
    // Zero would say that there is none.
    wire::put_raw(udp + wire::udp::kChecksum,
                  checksum == 0 ? static_cast<std::uint16_t>(0xffff) : checksum);
}

inline std::optional<Stamp> read_stamp(std::span<const std::uint8_t> payload) {
    if (payload.size() < stamp::kSize || wire::raw16(payload.data()) != stamp::kMagic)
        return std::nullopt;
    return Stamp{wire::raw32(payload.data() + stamp::kLane),
                 wire::raw32(payload.data() + stamp::kSequence),
                 wire::raw64(payload.data() + stamp::kTime)};
}

}  // namespace sluice::pktgen
