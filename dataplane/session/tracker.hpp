// SPDX-License-Identifier: Apache-2.0
// The TCP tracker: how far a connection has come, which decides how long it may idle and
// when its key may be used anew; and which segments that would end it are believed.
//
// tcp_table.hpp is the state machine (RFC 9293); here are the segments' sequence numbers, held
// against what both directions have sent and acknowledged (RFC 5961). Data outside of the window
// pass unless a VPC wants it otherwise: the ends drop them, and to judge them costs every segment
// two lines of memory.
// Threads: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/session/tcp_table.hpp"
#include "dataplane/session/tick.hpp"

namespace sluice::session {

struct TcpSeen;

enum TcpFlag : std::uint8_t { kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16, kUrg = 32 };

constexpr TcpEvent classify_tcp(std::uint8_t flags) {
    switch (flags & (kFin | kSyn | kRst | kAck)) {
        case kSyn:
            return TcpEvent::syn;
        case kSyn | kAck:
            return TcpEvent::syn_ack;
        case kFin | kAck:
            return TcpEvent::fin;
        case kRst:
        case kRst | kAck:
            return TcpEvent::rst;
        case kAck:
            return TcpEvent::ack;
        default:
            return TcpEvent::invalid;
    }
}
// ACK and no other of these four: what needs no look at the table while established.
constexpr bool is_ordinary(std::uint8_t flags) {
    return (flags & (kFin | kSyn | kRst | kAck)) == kAck;
}

// The cell for a segment.
constexpr const TcpCell& tcp_cell(TcpState state, bool from_responder, TcpEvent event) {
    const tcp_table::Rows& rows = tcp_table::kCells[static_cast<std::size_t>(state)];
    return (from_responder ? rows.responder : rows.initiator)[static_cast<std::size_t>(event)];
}

struct TcpSegment {
    TcpEvent event = TcpEvent::invalid;
    std::uint32_t sequence = 0;      // SEG.SEQ
    std::uint32_t end = 0;           // SEG.SEQ + SEG.LEN, SYN and FIN counted
    std::uint32_t acknowledged = 0;  // SEG.ACK
    bool has_acknowledgement = false;
};

enum class TcpVerdict : std::uint8_t {
    pass,           // the state becomes `next`, the segment's progress is noted
    anew,           // likewise, and its sender's progress begins with it
    ignore,         // carried; nothing is noted but `next`
    reopen,         // the connection is over and this SYN opens another
    invalid,        // dropped: no end sends this in this state
    out_of_window,  // dropped: a FIN or RST that its receiver would not take
};
struct TcpJudgement {
    TcpVerdict verdict = TcpVerdict::invalid;
    TcpState next = TcpState::none;
    constexpr bool operator==(const TcpJudgement&) const = default;
};

// `own`: what the segment's sender has sent and acknowledged so far; `peer`: its receiver;
// `window`: the largest that the receiver can offer.
TcpJudgement judge(TcpState state, bool from_responder, const TcpSegment& segment,
                   const TcpSeen& own, const TcpSeen& peer, std::uint32_t window);

// Whether its receiver can take a segment's data: they lie in the window, or not so long before it
// that they are no retransmission (RFC 9293 section 3.10.7.4); and what the segment acknowledges
// was sent (RFC 5961 section 5.2). What was not seen yet is not held against it.
bool is_acceptable(const TcpSegment& segment, const TcpSeen& own, const TcpSeen& peer,
                   std::uint32_t window);

// Window scales of both directions as four bits each (RFC 7323 section 2): shifts in both
// directions or none.
inline constexpr std::uint8_t kNoWindowScale = 15, kMaximumWindowScale = 14;
// From the options of a SYN, kNoWindowScale if there is none. `tcp`: the header, as much as is
// there.
std::uint8_t window_scale(std::span<const std::uint8_t> tcp);
// The largest window the end behind `scales[end]` can offer.
constexpr std::uint32_t largest_window(const std::array<std::uint8_t, 2>& scales, std::size_t end) {
    const bool scaled = scales[0] != kNoWindowScale && scales[1] != kNoWindowScale;
    return 0xffffU << (scaled ? scales[end] : 0);
}

// Which of a VPC's time-outs holds for a connection.
enum class Timeout : std::uint8_t {
    tcp_established,
    tcp_transitory,  // opening and closing
    tcp_time_wait,   // after both ends' FIN, or a RST
    udp,             // packets were seen in both directions
    udp_unanswered,  // ... in one
    icmp,
    sctp,
    sctp_unanswered,
    other,
    other_unanswered,
    count
};
inline constexpr std::size_t kTimeouts = static_cast<std::size_t>(Timeout::count);

// How long a connection may idle, ticks, by Timeout.
struct Timeouts {
    std::array<std::uint32_t, kTimeouts> of = {
        // RFC 5382 REQ-5: established not less than 2 h 4 min, opening and closing 4 min; RFC 7857
        // section 2.1: 4 min after the last segment of a closed or reset one.
        ticks(7440), ticks(240), ticks(240),
        // RFC 4787 REQ-5: not less than 2 min, recommended 5.
        ticks(300), ticks(120),
        // RFC 5508 REQ-1: queries, not less than 60 s.
        ticks(60),
        // RFC 9260 section 8.3: an idle association sends a HEARTBEAT every 30 s; section 8.2: it
        // gives up within minutes. Section 16: RTO.Max, between two INITs at most.
        ticks(300), ticks(60),
        // GRE, ESP and whatever is known by its addresses alone: no RFC says; as UDP.
        ticks(300), ticks(120)};

    std::uint32_t& operator[](Timeout which) { return of[static_cast<std::size_t>(which)]; }
    std::uint32_t operator[](Timeout which) const { return of[static_cast<std::size_t>(which)]; }
    bool operator==(const Timeouts&) const = default;
};

// Of a connection of `protocol`; `answered`: packets were seen in both directions.
Timeout timeout_of(std::uint8_t protocol, TcpState state, bool answered);

}  // namespace sluice::session
