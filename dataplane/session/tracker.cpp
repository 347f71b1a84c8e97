// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/tracker.hpp"

#include <algorithm>

#include "dataplane/session/flow.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::session {

namespace {

using enum TcpState;

// Serial number arithmetic (RFC 1982).
constexpr bool before(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) < 0;
}

// What the receiver of a segment expects, as far as both directions have told.
struct Expected {
    std::optional<std::uint32_t> next;  // RCV.NXT
    std::optional<std::uint32_t> sent;  // the end of what the sender has sent

    Expected(const TcpSeen& own, const TcpSeen& peer) : next(peer.acknowledged), sent(own.end) {
        // Nobody has received what was not sent, whatever an acknowledgement claims.
        if (next && sent && before(*sent, *next)) next = sent;
    }
};

enum class Place : std::uint8_t { expected, doubtful, in_window, duplicate, outside };

Place place_of_rst(const TcpSegment& segment, const Expected& expected, std::uint32_t window) {
    const std::uint32_t sequence = segment.sequence;
    if (!expected.next) {
        // Its receiver has acknowledged nothing. In answer to its SYN a RST acknowledges that
        // (RFC 9293 section 3.10.7.3, `next` stands for it); else it follows what was sent.
        return sequence == expected.sent ? Place::expected : Place::outside;
    }
    if (sequence == expected.next) return Place::expected;
    if (before(sequence, *expected.next)) return Place::outside;
    // All that was sent may have arrived and not be acknowledged yet: the receiver knows.
    if (sequence == expected.sent) return Place::doubtful;
    return before(sequence, *expected.next + window) ? Place::in_window : Place::outside;
}

Place place_of_fin(const TcpSegment& segment, const Expected& expected, std::uint32_t window) {
    if (!expected.next) return Place::expected;
    if (before(*expected.next + window, segment.sequence)) return Place::outside;
    if (!before(segment.end, *expected.next)) {
        // All that it claims to follow has been received, or can be.
        return before(segment.end, *expected.next + window + 2) ? Place::expected : Place::outside;
    }
    return before(segment.end, *expected.next - window) ? Place::outside : Place::duplicate;
}

TcpJudgement judge_rst(TcpState state, const TcpCell& cell, const TcpSegment& segment,
                       bool from_responder, const TcpSeen& own, const TcpSeen& peer,
                       std::uint32_t window) {
    // RFC 9293 section 3.10.7.3: what answers a SYN is believed by its acknowledgement alone.
    if (state == syn_sent && from_responder) {
        return segment.has_acknowledgement && segment.acknowledged == peer.end
                   ? TcpJudgement{TcpVerdict::ignore, cell.next}
                   : TcpJudgement{TcpVerdict::out_of_window, none};
    }
    // The initiator refuses what an older connection's end acknowledges (section 3.5.1, figure 9)
    // or gives up.
    if (state == syn_sent) {
        const bool wanted = segment.sequence == own.end || segment.sequence == peer.acknowledged;
        return wanted ? TcpJudgement{TcpVerdict::ignore, cell.next}
                      : TcpJudgement{TcpVerdict::out_of_window, none};
    }
    switch (place_of_rst(segment, Expected(own, peer), window)) {
        case Place::expected:
            return {TcpVerdict::ignore, cell.next};
        case Place::doubtful:
            return {TcpVerdict::ignore, state == established ? reset_doubted : state};
        case Place::in_window:
            return {TcpVerdict::ignore, state};
        default:
            return {TcpVerdict::out_of_window, none};
    }
}

}  // namespace

TcpJudgement judge(TcpState state, bool from_responder, const TcpSegment& segment,
                   const TcpSeen& own, const TcpSeen& peer, std::uint32_t window) {
    const TcpCell& cell = tcp_cell(state, from_responder, segment.event);
    switch (cell.action) {
        case TcpAction::pass:
            return {TcpVerdict::pass, cell.next};
        case TcpAction::ignore:
            return {TcpVerdict::ignore, cell.next};
        case TcpAction::anew:
            return {TcpVerdict::anew, cell.next};
        case TcpAction::finish:
            switch (place_of_fin(segment, Expected(own, peer), window)) {
                case Place::expected:
                    return {TcpVerdict::pass, cell.next};
                case Place::duplicate:
                    return {TcpVerdict::ignore, state};
                default:
                    return {TcpVerdict::out_of_window, none};
            }
        case TcpAction::reset:
            return judge_rst(state, cell, segment, from_responder, own, peer, window);
        case TcpAction::reopen:
            return {TcpVerdict::reopen, none};
        case TcpAction::refuse:
            break;
    }
    return {TcpVerdict::invalid, none};
}

bool is_acceptable(const TcpSegment& segment, const TcpSeen& own, const TcpSeen& peer,
                   std::uint32_t window) {
    if (segment.has_acknowledgement && peer.end && before(*peer.end, segment.acknowledged))
        return false;
    const Expected expected(own, peer);
    if (segment.end == segment.sequence || !expected.next) return true;
    return before(segment.sequence, *expected.next + window) &&
           !before(segment.end, *expected.next - window);
}

std::uint8_t window_scale(std::span<const std::uint8_t> tcp) {
    constexpr std::size_t kFixed = 20;
    constexpr std::uint8_t kEnd = 0, kNothing = 1, kScale = 3;
    if (tcp.size() < kFixed) return kNoWindowScale;
    const std::size_t size = std::min<std::size_t>(tcp[12] >> 4 << 2, tcp.size());
    for (std::size_t at = kFixed; at < size;) {
        if (tcp[at] == kEnd) break;
        if (tcp[at] == kNothing) {
            ++at;
            continue;
        }
        if (at + 1 >= size || tcp[at + 1] < 2) break;
        if (tcp[at] == kScale && tcp[at + 1] == 3 && at + 2 < size)
            return std::min(tcp[at + 2], kMaximumWindowScale);  // RFC 7323 section 2.3
        at += tcp[at + 1];
    }
    return kNoWindowScale;
}

Timeout timeout_of(std::uint8_t protocol, TcpState state, bool answered) {
    switch (static_cast<Protocol>(protocol)) {
        case Protocol::tcp:
            if (state == established) return Timeout::tcp_established;
            return state == closed || state == time_wait ? Timeout::tcp_time_wait
                                                         : Timeout::tcp_transitory;
        case Protocol::udp:
            return answered ? Timeout::udp : Timeout::udp_unanswered;
        case Protocol::icmp:
        case Protocol::icmpv6:
            return Timeout::icmp;
        case Protocol::sctp:
            return answered ? Timeout::sctp : Timeout::sctp_unanswered;
        default:
            return answered ? Timeout::other : Timeout::other_unanswered;
    }
}

}  // namespace sluice::session
