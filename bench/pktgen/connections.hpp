// SPDX-License-Identifier: Apache-2.0
// Both ends of TCP connections of six packets: SYN, SYN-ACK, ACK, FIN, FIN, ACK.
//
// Each packet but the first is sent when the one before it has arrived, so a connection is complete
// only if its whole exchange arrived. Initial sequence numbers, of both ends, are eight times the
// attempt's number: whatever addresses a gateway translates, a segment tells whose it is.
// A flow has one connection at a time; one that is still open in its next turn has failed.
// Ownership: 16 octets a flow. Pure; one thread; `open` and `arrive` cost some nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/pktgen/network.hpp"

namespace sluice::pktgen {

struct Segment {
    std::uint32_t flow = 0;
    Way way = Way::forward;
    std::uint32_t sequence = 0;
    std::uint32_t acknowledgement = 0;
    std::uint8_t flags = 0;  // as in the header

    bool operator==(const Segment&) const = default;
};

struct ConnectionCounts {
    std::uint64_t opened = 0;
    std::uint64_t answered = 0;    // a SYN-ACK came back
    std::uint64_t completed = 0;   // all six packets arrived
    std::uint64_t abandoned = 0;   // open when their flow's next turn came
    std::uint64_t unexpected = 0;  // segments of no open connection, or not its next
};

class Connections {
  public:
    explicit Connections(std::uint32_t flows) : open_(flows) {}

    // Forgets what is open, and counts from zero; numbers go on.
    void begin();
    // The next flow's SYN.
    Segment open(std::uint64_t now);
    // What answers a segment that has arrived; nothing for the last of a connection, and for what
    // is not expected.
    struct Answer {
        std::optional<Segment> next;
        std::optional<std::uint64_t> opened;  // when, of a connection that is complete with this
        std::optional<Segment> arrived;       // if it was expected
    };
    Answer arrive(std::uint32_t sequence, std::uint32_t acknowledgement, std::uint8_t flags);

    [[nodiscard]] const ConnectionCounts& counts() const { return counts_; }
    [[nodiscard]] std::uint64_t unfinished() const {
        return counts_.opened - counts_.completed - counts_.abandoned;
    }

  private:
    struct Open {
        std::uint64_t since = 0;
        std::uint32_t attempt = 0;
        std::uint8_t awaited = kNone;  // the step whose segment is on its way
    };
    static constexpr std::uint8_t kNone = 0xff;

    [[nodiscard]] Segment segment(std::uint32_t flow, std::uint32_t attempt,
                                  std::size_t step) const;

    std::vector<Open> open_;
    std::uint32_t attempt_ = 0;
    ConnectionCounts counts_;
};

}  // namespace sluice::pktgen
