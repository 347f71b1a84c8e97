// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/tracker.hpp"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <utility>
#include <vector>

#include "dataplane/session/flow.hpp"

using namespace sluice::session;
using enum TcpState;

namespace {

constexpr auto kStates = static_cast<std::uint8_t>(TcpState::count);
constexpr auto kEvents = static_cast<std::uint8_t>(TcpEvent::count);
constexpr bool kInitiator = false, kResponder = true;
constexpr std::uint32_t kWindow = 1000;

// Both ends have sent up to 5000 (initiator) and 9000 (responder), and acknowledged that.
struct Ends {
    Ends() {
        set(progress[0], 5000, 9000);
        set(progress[1], 9000, 5000);
    }
    static void set(TcpSeen& of, std::uint32_t end, std::uint32_t acknowledged) {
        of.end = end;
        of.acknowledged = acknowledged;
    }
    [[nodiscard]] TcpJudgement judged(TcpState state, bool from_responder,
                                      const TcpSegment& segment) const {
        return judge(state, from_responder, segment, progress[from_responder],
                     progress[!from_responder], kWindow);
    }
    // The segment that its sender would send next.
    [[nodiscard]] static TcpSegment expected(bool from_responder, TcpEvent event) {
        const std::uint32_t next = from_responder ? 9000 : 5000;
        const bool counted = event != TcpEvent::ack && event != TcpEvent::rst;
        return {event, next, next + (counted ? 1U : 0U), from_responder ? 5000U : 9000U,
                event != TcpEvent::syn};
    }
    TcpSeen progress[2];
};

TcpState walk(TcpState state, std::initializer_list<std::pair<bool, TcpEvent>> segments) {
    const Ends ends;
    for (const auto& [from_responder, event] : segments) {
        const TcpJudgement judgement =
            ends.judged(state, from_responder, Ends::expected(from_responder, event));
        REQUIRE((judgement.verdict == TcpVerdict::pass || judgement.verdict == TcpVerdict::anew ||
                 judgement.verdict == TcpVerdict::ignore));
        state = judgement.next;
    }
    return state;
}

TcpSegment reset_at(std::uint32_t sequence) {
    return {TcpEvent::rst, sequence, sequence, 0, false};
}
TcpSegment fin_at(std::uint32_t sequence, std::uint32_t octets = 0) {
    return {TcpEvent::fin, sequence, sequence + octets + 1, 9000, true};
}

}  // namespace

TEST_CASE("every combination of flags is one event, and the senseless ones are invalid") {
    int valid = 0;
    for (unsigned flags = 0; flags < 256; ++flags) {
        const TcpEvent event = classify_tcp(static_cast<std::uint8_t>(flags));
        // PSH, URG, ECE and CWR change nothing.
        CHECK(event == classify_tcp(static_cast<std::uint8_t>(flags & 0x17)));
        CHECK(is_ordinary(static_cast<std::uint8_t>(flags)) == (event == TcpEvent::ack));
        if (event != TcpEvent::invalid) ++valid;
    }
    CHECK(valid == 6 * 16);
    for (const int flags : {0, int{kPsh}, int{kUrg}, kSyn | kFin, kSyn | kRst, int{kFin},
                            kFin | kRst, kFin | kSyn | kRst | kPsh | kAck | kUrg})
        CHECK(classify_tcp(static_cast<std::uint8_t>(flags)) == TcpEvent::invalid);
}

TEST_CASE("every cell: what it may say, and where it may lead") {
    for (std::uint8_t number = 0; number < kStates; ++number)
        for (const bool from_responder : {kInitiator, kResponder})
            for (std::uint8_t event_number = 0; event_number < kEvents; ++event_number) {
                const auto state = static_cast<TcpState>(number);
                const auto event = static_cast<TcpEvent>(event_number);
                const TcpCell& cell = tcp_cell(state, from_responder, event);
                INFO(int{number} << " " << from_responder << " " << int{event_number});
                const bool over = state == time_wait || state == closed;
                const bool opening =
                    state == syn_sent || state == simultaneous_open || state == syn_received;

                // What is no TCP is never asked; what is invalid never passes.
                if (state == none || event == TcpEvent::invalid) {
                    CHECK(cell.action == TcpAction::refuse);
                    continue;
                }
                switch (cell.action) {
                    case TcpAction::refuse:
                        // Only before the ends are synchronised: later all flags make sense.
                        CHECK(opening);
                        CHECK(cell.next == none);
                        break;
                    case TcpAction::reopen:
                        CHECK(over);
                        CHECK(event == TcpEvent::syn);
                        CHECK(cell.next == none);
                        break;
                    case TcpAction::anew:
                        CHECK(state == syn_sent);
                        CHECK(event == TcpEvent::syn);
                        CHECK(cell.next == state);
                        break;
                    case TcpAction::ignore:
                        CHECK(cell.next == state);
                        break;
                    case TcpAction::finish:
                        CHECK(event == TcpEvent::fin);
                        CHECK((cell.next == (from_responder ? fin_responder : fin_initiator) ||
                               cell.next == time_wait));
                        break;
                    case TcpAction::reset:
                        CHECK(cell.next == closed);
                        break;
                    case TcpAction::pass:
                        CHECK(cell.next != none);
                        CHECK(cell.next != closed);
                        break;
                }
                // A RST is always judged; a SYN on synchronised ends changes nothing.
                if (event == TcpEvent::rst) CHECK(cell.action == TcpAction::reset);
                if ((event == TcpEvent::syn || event == TcpEvent::syn_ack) && !opening)
                    CHECK((cell.action == TcpAction::ignore || cell.action == TcpAction::reopen));
                // Only a FIN or RST ends anything, and nothing leads back, save that whoever goes
                // on after a doubtful reset is alive.
                if (cell.next == fin_initiator || cell.next == fin_responder ||
                    cell.next == time_wait)
                    CHECK((event == TcpEvent::fin || cell.next == state));
                if (cell.next != none && state != reset_doubted)
                    CHECK(static_cast<std::uint8_t>(cell.next) >= number);
                // Both directions say the same of synchronised ends.
                if (state == established || over || state == simultaneous_open)
                    CHECK(cell.action == tcp_cell(state, !from_responder, event).action);
                if (state == fin_initiator)
                    CHECK(cell.action == tcp_cell(fin_responder, !from_responder, event).action);
            }
}

TEST_CASE("every cell: the segment that is expected next gets what the cell says") {
    const Ends ends;
    for (std::uint8_t number = 1; number < kStates; ++number)
        for (const bool from_responder : {kInitiator, kResponder})
            for (std::uint8_t event_number = 0; event_number < kEvents; ++event_number) {
                const auto state = static_cast<TcpState>(number);
                const auto event = static_cast<TcpEvent>(event_number);
                const TcpCell& cell = tcp_cell(state, from_responder, event);
                const TcpJudgement judgement =
                    ends.judged(state, from_responder, Ends::expected(from_responder, event));
                INFO(int{number} << " " << from_responder << " " << int{event_number});
                CHECK(judgement.next == cell.next);
                switch (cell.action) {
                    case TcpAction::pass:
                    case TcpAction::finish:
                        CHECK(judgement.verdict == TcpVerdict::pass);
                        break;
                    case TcpAction::ignore:
                    case TcpAction::reset:
                        CHECK(judgement.verdict == TcpVerdict::ignore);
                        break;
                    case TcpAction::anew:
                        CHECK(judgement.verdict == TcpVerdict::anew);
                        break;
                    case TcpAction::reopen:
                        CHECK(judgement.verdict == TcpVerdict::reopen);
                        break;
                    case TcpAction::refuse:
                        CHECK(judgement.verdict == TcpVerdict::invalid);
                        break;
                }
            }
}

TEST_CASE("a handshake, data, and a close from either side or both at once") {
    CHECK(walk(syn_sent, {{kResponder, TcpEvent::syn_ack}, {kInitiator, TcpEvent::ack}}) ==
          established);
    CHECK(walk(established, {{kInitiator, TcpEvent::fin},
                             {kResponder, TcpEvent::ack},
                             {kResponder, TcpEvent::fin},
                             {kInitiator, TcpEvent::ack}}) == time_wait);
    CHECK(walk(established, {{kResponder, TcpEvent::fin}, {kInitiator, TcpEvent::fin}}) ==
          time_wait);
    // A retransmitted FIN is not the other end's.
    CHECK(walk(established, {{kInitiator, TcpEvent::fin}, {kInitiator, TcpEvent::fin}}) ==
          fin_initiator);
    // The last acknowledgement of the handshake may carry a FIN.
    CHECK(walk(syn_received, {{kInitiator, TcpEvent::fin}}) == fin_initiator);
}

TEST_CASE("both ends may open at once") {
    CHECK(walk(syn_sent, {{kResponder, TcpEvent::syn},
                          {kInitiator, TcpEvent::syn_ack},
                          {kResponder, TcpEvent::syn_ack},
                          {kInitiator, TcpEvent::ack}}) == established);
}

TEST_CASE("in every state its last segments may come again") {
    CHECK(walk(syn_sent, {{kInitiator, TcpEvent::syn}}) == syn_sent);
    CHECK(walk(syn_received, {{kInitiator, TcpEvent::syn}, {kResponder, TcpEvent::syn_ack}}) ==
          syn_received);
    CHECK(walk(established, {{kResponder, TcpEvent::syn_ack}, {kInitiator, TcpEvent::ack}}) ==
          established);
    CHECK(walk(time_wait, {{kResponder, TcpEvent::fin},
                           {kInitiator, TcpEvent::ack},
                           {kInitiator, TcpEvent::fin}}) == time_wait);
}

TEST_CASE("a reset is believed at the next expected sequence number alone") {
    Ends ends;
    for (const TcpState state : {established, fin_initiator, fin_responder, time_wait, closed,
                                 syn_received, simultaneous_open, reset_doubted}) {
        INFO(static_cast<int>(state));
        const auto from_responder = [&](std::uint32_t sequence) {
            return ends.judged(state, kResponder, reset_at(sequence));
        };
        CHECK(from_responder(9000) == TcpJudgement{TcpVerdict::ignore, closed});
        for (const std::uint32_t sequence : {9001U, 9500U, 9999U})
            CHECK(from_responder(sequence) == TcpJudgement{TcpVerdict::ignore, state});
        for (const std::uint32_t sequence : {8999U, 10000U, 0U, 9000U + 0x80000000U})
            CHECK(from_responder(sequence).verdict == TcpVerdict::out_of_window);
    }
    SECTION("around the end of the sequence space") {
        Ends::set(ends.progress[1], 0xfffffff0U, 5000);
        Ends::set(ends.progress[0], 5000, 0xfffffff0U);
        CHECK(ends.judged(established, kResponder, reset_at(0xfffffff0U)).next == closed);
        CHECK(ends.judged(established, kResponder, reset_at(16)).next == established);
        CHECK(ends.judged(established, kResponder, reset_at(0xffffffefU)).verdict ==
              TcpVerdict::out_of_window);
    }
    SECTION("behind data on their way it may be taken or not: doubted, until somebody goes on") {
        Ends::set(ends.progress[1], 9300, 5000);
        CHECK(ends.judged(established, kResponder, reset_at(9300)) ==
              TcpJudgement{TcpVerdict::ignore, reset_doubted});
        CHECK(ends.judged(established, kResponder, reset_at(9000)).next == closed);
        CHECK(ends.judged(fin_responder, kResponder, reset_at(9300)).next == fin_responder);
        CHECK(walk(reset_doubted, {{kInitiator, TcpEvent::ack}}) == established);
    }
    SECTION("an acknowledgement of what was never sent moves nothing") {
        Ends::set(ends.progress[0], 5000, 20000);
        CHECK(ends.judged(established, kResponder, reset_at(9000)).next == closed);
        CHECK(ends.judged(established, kResponder, reset_at(20000)).verdict ==
              TcpVerdict::out_of_window);
    }
}

TEST_CASE("before the handshake a reset answers the SYN by acknowledging it") {
    Ends ends;
    ends.progress[0] = {5000, {}};
    ends.progress[1] = {};
    TcpSegment reset = reset_at(0);
    CHECK(ends.judged(syn_sent, kResponder, reset).verdict == TcpVerdict::out_of_window);
    reset.has_acknowledgement = true;
    reset.acknowledged = 4999;
    CHECK(ends.judged(syn_sent, kResponder, reset).verdict == TcpVerdict::out_of_window);
    reset.acknowledged = 5000;
    CHECK(ends.judged(syn_sent, kResponder, reset).next == closed);
    CHECK(ends.judged(syn_sent, kInitiator, reset_at(5000)).next == closed);
    CHECK(ends.judged(syn_sent, kInitiator, reset_at(5001)).verdict == TcpVerdict::out_of_window);
    // The responder has acknowledged nothing, not zero.
    CHECK(ends.judged(syn_sent, kInitiator, reset_at(0)).verdict == TcpVerdict::out_of_window);
}

TEST_CASE("a FIN is believed in the window, ignored behind it, and dropped elsewhere") {
    const Ends ends;
    const auto judged = [&](const TcpSegment& segment) {
        return ends.judged(established, kInitiator, segment);
    };
    CHECK(judged(fin_at(5000)) == TcpJudgement{TcpVerdict::pass, fin_initiator});
    CHECK(judged(fin_at(5500)) == TcpJudgement{TcpVerdict::pass, fin_initiator});
    CHECK(judged(fin_at(4900, 100)) == TcpJudgement{TcpVerdict::pass, fin_initiator});
    CHECK(judged(fin_at(4900)) == TcpJudgement{TcpVerdict::ignore, established});
    CHECK(judged(fin_at(3900)).verdict == TcpVerdict::out_of_window);
    CHECK(judged(fin_at(6100)).verdict == TcpVerdict::out_of_window);
    CHECK(judged(fin_at(5900, 500)).verdict == TcpVerdict::out_of_window);
    // Picked up in its middle, with nothing known of the receiver.
    const TcpSeen own, peer;
    CHECK(judge(established, kInitiator, fin_at(77), own, peer, kWindow).next == fin_initiator);
}

TEST_CASE("0 is a number like any other") {
    Ends ends;
    Ends::set(ends.progress[0], 0, 0);
    Ends::set(ends.progress[1], 0, 0);
    for (const bool side : {kInitiator, kResponder}) {
        CHECK(ends.judged(established, side, reset_at(0)).next == closed);
        CHECK(ends.judged(established, side, reset_at(5)) ==
              TcpJudgement{TcpVerdict::ignore, established});
        CHECK(ends.judged(established, side, reset_at(77'777)).verdict ==
              TcpVerdict::out_of_window);
        CHECK(ends.judged(established, side, fin_at(77'777)).verdict == TcpVerdict::out_of_window);
    }
    CHECK(ends.judged(syn_sent, kInitiator, reset_at(0)).verdict == TcpVerdict::ignore);
    const TcpSegment ahead{TcpEvent::ack, 77'777, 77'787, 0, true};
    CHECK_FALSE(is_acceptable(ahead, ends.progress[0], ends.progress[1], kWindow));
}

TEST_CASE("windows are scaled only if both SYNs say so") {
    std::vector<std::uint8_t> syn(20);
    syn[12] = 5 << 4;
    CHECK(window_scale(syn) == kNoWindowScale);
    for (const std::uint8_t octet : {2, 4, 5, 0xb4, 1, 3, 3, 7}) syn.push_back(octet);
    syn[12] = 7 << 4;
    CHECK(window_scale(syn) == 7);
    syn.back() = 99;
    CHECK(window_scale(syn) == kMaximumWindowScale);
    for (std::size_t size = 0; size < syn.size(); ++size)
        CHECK(window_scale(std::span{syn}.first(size)) == kNoWindowScale);
    syn[21] = 0;  // an option that is shorter than its own head
    CHECK(window_scale(syn) == kNoWindowScale);

    CHECK(largest_window({7, 3}, 0) == 0xffffU << 7);
    CHECK(largest_window({7, 3}, 1) == 0xffffU << 3);
    CHECK(largest_window({7, kNoWindowScale}, 0) == 0xffff);
    CHECK(largest_window({kNoWindowScale, 7}, 1) == 0xffff);
}

TEST_CASE("data are acceptable in the window, and where a retransmission may be; no further") {
    TcpSeen own, peer;
    const auto acceptable = [&](std::uint32_t sequence, std::uint32_t length,
                                std::uint32_t acknowledged = 5000) {
        TcpSegment segment;
        segment.event = TcpEvent::ack;
        segment.sequence = sequence;
        segment.end = sequence + length;
        segment.acknowledged = acknowledged;
        segment.has_acknowledgement = true;
        return is_acceptable(segment, own, peer, 1000);
    };
    // Nothing was seen of either: nothing is held against it.
    CHECK(acceptable(123456, 10));
    own.end = 10'000;
    peer.acknowledged = 10'000;
    peer.end = 5000;
    CHECK(acceptable(10'000, 100));
    CHECK(acceptable(10'999, 100));              // its first octet is in the window
    CHECK_FALSE(acceptable(11'000, 100));        // beyond it
    CHECK(acceptable(9'999, 1));                 // a keepalive (RFC 9293 section 3.8.4)
    CHECK(acceptable(9'000, 100));               // sent again
    CHECK_FALSE(acceptable(8'000, 100));         // too old
    CHECK(acceptable(50'000, 0));                // no data
    CHECK_FALSE(acceptable(10'000, 100, 5001));  // of what was never sent
    // Sequence numbers wrap.
    own.end = 100;
    peer.acknowledged = 100;
    CHECK(acceptable(0xffffff00U, 300));
    CHECK_FALSE(acceptable(0x80000000U, 100));
}

TEST_CASE("timeouts are not shorter than the RFCs allow") {
    const auto idle_timeout = [timeouts = Timeouts{}](std::uint8_t protocol, TcpState state,
                                                      bool answered) {
        return timeouts[timeout_of(protocol, state, answered)];
    };
    CHECK(idle_timeout(6, established, true) >= ticks(7440));  // RFC 5382 REQ-5
    for (const TcpState state : {syn_sent, syn_received, simultaneous_open, reset_doubted,
                                 fin_initiator, fin_responder, time_wait, closed})
        CHECK(idle_timeout(6, state, false) >= ticks(240));
    CHECK(idle_timeout(17, none, true) >= ticks(300));  // RFC 4787 REQ-5
    CHECK(idle_timeout(17, none, false) >= ticks(120));
    for (const std::uint8_t icmp : {1, 58})
        for (const bool answered : {false, true})
            CHECK(idle_timeout(icmp, none, answered) >= ticks(60));  // RFC 5508 REQ-1
    CHECK(idle_timeout(132, none, true) > ticks(2 * 30));            // RFC 9260 section 8.3
    CHECK(idle_timeout(132, none, false) >= ticks(60));
    for (const std::uint8_t other : {47, 50, 99})
        CHECK(idle_timeout(other, none, true) >= ticks(300));
}
