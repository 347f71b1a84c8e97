// SPDX-License-Identifier: Apache-2.0
// What one trial is asked, and what it has measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "bench/pktgen/find_stamp.hpp"
#include "bench/pktgen/histogram.hpp"
#include "bench/pktgen/sequence.hpp"

namespace sluice::pktgen {

struct Trial {
    double rate = 0;            // packets a second; 0: as many as the generator can
    double seconds = 1;         // how long it sends
    std::uint64_t packets = 0;  // ends after so many; 0: after the time alone
    double drain = 2;           // seconds to wait at most for the last packets, if some are missing
    double quiet = 0.3;         // ... and at most for the next one
    bool arrivals = true;       // each packet must arrive where and as the network says
    // Sends one packet of each of these lanes instead, once, and nothing else.
    const std::vector<std::uint32_t>* once = nullptr;
};

// Of one lane, in one line of cache.
struct alignas(64) Lane {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;  // without duplicates
    std::uint32_t duplicates = 0;
    std::uint32_t reordered = 0;
    std::uint32_t too_old = 0;  // arrived too late to say which of the three
    Place place;
    Sequence sequence;

    [[nodiscard]] std::uint32_t lost() const {
        const std::uint32_t arrived = received + too_old;
        return sent > arrived ? sent - arrived : 0;
    }
};
static_assert(sizeof(Lane) == 64);

struct Counts {
    std::uint64_t sent = 0;      // offered: given to the device or refused by it
    std::uint64_t refused = 0;   // ... of which the device's queue had no room
    std::uint64_t received = 0;  // without duplicates
    std::uint64_t duplicates = 0;
    std::uint64_t reordered = 0;
    std::uint64_t too_old = 0;
    std::uint64_t misdelivered = 0;  // of those received: elsewhere, or from or to other addresses
    std::uint64_t corrupt = 0;       // wrong checksum; counted as nothing else
    std::uint64_t earlier = 0;       // of a trial before this one
    std::uint64_t foreign = 0;       // nothing of the generator's
    std::uint64_t answered = 0;      // ARP and neighbour discovery
    std::uint64_t skipped = 0;       // due, but the generator came too late to send them
    std::uint64_t octets = 0;        // sent, frames without FCS

    [[nodiscard]] std::uint64_t lost() const {
        const std::uint64_t arrived = received + too_old;
        return sent > arrived ? sent - arrived : 0;
    }
    [[nodiscard]] double loss() const {
        return sent == 0 ? 0 : static_cast<double>(lost()) / static_cast<double>(sent);
    }
};

struct Measured {
    Trial asked;
    Counts counts;
    double seconds = 0;  // that it has sent for
    std::uint32_t lanes = 0, lanes_used = 0, lanes_lossy = 0, lanes_silent = 0;
    Histogram latency;  // cycles
    double hertz = 0;   // cycles a second

    [[nodiscard]] double offered() const {
        return seconds > 0 ? static_cast<double>(counts.sent) / seconds : 0;
    }
    // The generator sent what was asked: all but one in two hundred.
    [[nodiscard]] bool kept_up() const {
        return counts.skipped * 200 <= counts.sent + counts.skipped;
    }
};

// What a running trial lets others see; written by the engine alone.
struct Progress {
    std::atomic<std::uint64_t> sent{0}, received{0};
    std::atomic<bool> stop{false};  // set by others: the trial ends as if its time were over
};

}  // namespace sluice::pktgen
