// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/tracker.hpp"

#include <catch2/catch.hpp>

#include "dataplane/session/flow.hpp"

using namespace sluice::session;
using enum TcpState;

namespace {
constexpr auto kStates = static_cast<std::uint8_t>(TcpState::count);
constexpr auto kEvents = static_cast<std::uint8_t>(TcpEvent::count);

TcpState walk(TcpState state, std::initializer_list<std::pair<bool, TcpEvent>> segments) {
    for (const auto& [from_responder, event] : segments) {
        const TcpStep step = tcp_step(state, from_responder, event);
        REQUIRE(step.verdict == TcpVerdict::pass);
        state = step.next;
    }
    return state;
}
constexpr bool kInitiator = false, kResponder = true;
}  // namespace

TEST_CASE("every combination of flags is one event, and the senseless ones are invalid") {
    int valid = 0;
    for (unsigned flags = 0; flags < 256; ++flags) {
        const TcpEvent event = classify_tcp(static_cast<std::uint8_t>(flags));
        // PSH, URG, ECE and CWR change nothing.
        CHECK(event == classify_tcp(static_cast<std::uint8_t>(flags & 0x17)));
        if (event != TcpEvent::invalid) ++valid;
    }
    CHECK(valid == 6 * 16);
    CHECK(classify_tcp(0) == TcpEvent::invalid);
    CHECK(classify_tcp(kSyn | kFin) == TcpEvent::invalid);
    CHECK(classify_tcp(kSyn | kRst) == TcpEvent::invalid);
    CHECK(classify_tcp(kFin) == TcpEvent::invalid);
    CHECK(classify_tcp(kFin | kRst) == TcpEvent::invalid);
    CHECK(classify_tcp(kFin | kSyn | kRst | kPsh | kAck | kUrg) == TcpEvent::invalid);
}

TEST_CASE("every cell of the table is written, and leads to a state that is one") {
    for (std::uint8_t state = 0; state < kStates; ++state)
        for (const bool from_responder : {false, true})
            for (std::uint8_t event = 0; event < kEvents; ++event) {
                const TcpStep step = tcp_step(static_cast<TcpState>(state), from_responder,
                                              static_cast<TcpEvent>(event));
                INFO(int{state} << " " << from_responder << " " << int{event});
                if (step.verdict == TcpVerdict::pass) {
                    CHECK(step.next != none);
                    CHECK(step.next < TcpState::count);
                } else {
                    CHECK(step.next == none);
                }
                // What is no TCP is never asked; what is invalid never passes.
                if (static_cast<TcpState>(state) == none ||
                    static_cast<TcpEvent>(event) == TcpEvent::invalid)
                    CHECK(step.verdict == TcpVerdict::refuse);
                // Only a SYN opens anew, and only what is over.
                if (step.verdict == TcpVerdict::reopen) {
                    CHECK(static_cast<TcpState>(state) == closed);
                    CHECK(static_cast<TcpEvent>(event) == TcpEvent::syn);
                }
                // No step leads backwards, except that nothing leaves closed at all.
                if (step.verdict == TcpVerdict::pass)
                    CHECK(static_cast<std::uint8_t>(step.next) >= state);
            }
}

TEST_CASE("a handshake, data, and a close from either side") {
    CHECK(walk(syn_sent, {{kResponder, TcpEvent::syn_ack}, {kInitiator, TcpEvent::data}}) ==
          established);
    CHECK(walk(established, {{kInitiator, TcpEvent::fin},
                             {kResponder, TcpEvent::data},
                             {kResponder, TcpEvent::fin},
                             {kInitiator, TcpEvent::data}}) == closed);
    CHECK(walk(established, {{kResponder, TcpEvent::fin}, {kInitiator, TcpEvent::fin}}) == closed);
    // A retransmitted FIN is not the other end's.
    CHECK(walk(established, {{kInitiator, TcpEvent::fin}, {kInitiator, TcpEvent::fin}}) ==
          fin_initiator);
}

TEST_CASE("both ends may open at once") {
    CHECK(walk(syn_sent, {{kResponder, TcpEvent::syn},
                          {kInitiator, TcpEvent::syn_ack},
                          {kResponder, TcpEvent::syn_ack},
                          {kInitiator, TcpEvent::data}}) == established);
}

TEST_CASE("data before the handshake is refused") {
    CHECK(tcp_step(syn_sent, kInitiator, TcpEvent::data).verdict == TcpVerdict::refuse);
    CHECK(tcp_step(syn_sent, kInitiator, TcpEvent::fin).verdict == TcpVerdict::refuse);
}

TEST_CASE("a reset or FIN outside what both ends have acknowledged is not believed") {
    TcpProgress own, peer;
    own.end = 5000;            // sent so far
    peer.acknowledged = 4000;  // ... and acknowledged
    CHECK(in_window(4000, own, peer, 0));
    CHECK(in_window(5000, own, peer, 0));
    CHECK_FALSE(in_window(3999, own, peer, 0));
    CHECK_FALSE(in_window(5001, own, peer, 0));
    CHECK(in_window(5001, own, peer, kFinSlack));
    CHECK_FALSE(in_window(4000U + 0x80000000U, own, peer, kFinSlack));
    // Around the end of the sequence space.
    own.end = 100;
    peer.acknowledged = 0xffffff00U;
    CHECK(in_window(0xffffffffU, own, peer, 0));
    CHECK(in_window(50, own, peer, 0));
    CHECK_FALSE(in_window(101, own, peer, 0));
    // Nothing was acknowledged yet: nothing to hold it against.
    CHECK(in_window(12345, TcpProgress{}, TcpProgress{}, 0));
}

TEST_CASE("timeouts are not shorter than the RFCs allow") {
    const Timeouts timeouts;
    CHECK(idle_timeout(timeouts, 6, established, true) >= ticks(7440));  // RFC 5382 REQ-5
    CHECK(idle_timeout(timeouts, 6, syn_sent, false) >= ticks(240));
    CHECK(idle_timeout(timeouts, 6, fin_initiator, true) >= ticks(240));
    CHECK(idle_timeout(timeouts, 17, none, true) >= ticks(120));  // RFC 4787 REQ-5
    CHECK(idle_timeout(timeouts, 1, none, true) >= ticks(60));    // RFC 5508 REQ-1
}
