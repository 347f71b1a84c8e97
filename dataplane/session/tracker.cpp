// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/tracker.hpp"

#include "dataplane/session/flow.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::session {

namespace {

constexpr TcpStep pass(TcpState next) {
    return {TcpVerdict::pass, next};
}
constexpr TcpStep kRefuse{TcpVerdict::refuse, TcpState::none};
constexpr TcpStep kReopen{TcpVerdict::reopen, TcpState::none};

using enum TcpState;
using Row = std::array<TcpStep, static_cast<std::size_t>(TcpEvent::count)>;
struct StateRows {
    Row initiator;
    Row responder;
};

// Columns: syn, syn_ack, fin, rst, data, invalid.
constexpr std::array<StateRows, static_cast<std::size_t>(TcpState::count)> kSteps = {{
    // none: not TCP, never asked
    {{kRefuse, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse},
     {kRefuse, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse}},
    // syn_sent: the initiator retransmits or gives up; data before the handshake is nobody's.
    // A SYN from the responder is a simultaneous open (RFC 9293 section 3.5).
    {{pass(syn_sent), kRefuse, kRefuse, pass(closed), kRefuse, kRefuse},
     {pass(syn_received), pass(syn_received), kRefuse, pass(closed), pass(syn_sent), kRefuse}},
    // syn_received: what the responder may send before the last acknowledgement passes it
    // (data, FIN) is legal and changes nothing until the initiator's is seen.
    {{pass(syn_received), pass(syn_received), pass(fin_initiator), pass(closed), pass(established),
      kRefuse},
     {pass(syn_received), pass(syn_received), pass(fin_responder), pass(closed), pass(syn_received),
      kRefuse}},
    // established: a late duplicate of the handshake is for the ends to judge (RFC 5961
    // section 4 answers a SYN with an acknowledgement).
    {{pass(established), pass(established), pass(fin_initiator), pass(closed), pass(established),
      kRefuse},
     {pass(established), pass(established), pass(fin_responder), pass(closed), pass(established),
      kRefuse}},
    // fin_initiator: half closed, the responder may send on (RFC 9293 section 3.6); its FIN
    // closes, the initiator's again is a retransmission.
    {{pass(fin_initiator), pass(fin_initiator), pass(fin_initiator), pass(closed),
      pass(fin_initiator), kRefuse},
     {pass(fin_initiator), pass(fin_initiator), pass(closed), pass(closed), pass(fin_initiator),
      kRefuse}},
    // fin_responder: the same, mirrored.
    {{pass(fin_responder), pass(fin_responder), pass(closed), pass(closed), pass(fin_responder),
      kRefuse},
     {pass(fin_responder), pass(fin_responder), pass(fin_responder), pass(closed),
      pass(fin_responder), kRefuse}},
    // closed: retransmissions and last acknowledgements pass; a SYN opens another connection
    // (RFC 9293 section 3.6.1, from TIME-WAIT), whichever end sends it.
    {{kReopen, pass(closed), pass(closed), pass(closed), pass(closed), kRefuse},
     {kReopen, pass(closed), pass(closed), pass(closed), pass(closed), kRefuse}},
}};

// Serial number arithmetic (RFC 1982).
constexpr bool before(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace

TcpStep tcp_step(TcpState state, bool from_responder, TcpEvent event) {
    const StateRows& rows = kSteps[static_cast<std::size_t>(state)];
    const Row& row = from_responder ? rows.responder : rows.initiator;
    return row[static_cast<std::size_t>(event)];
}

bool in_window(std::uint32_t sequence, const TcpProgress& own, const TcpProgress& peer,
               std::uint32_t slack) {
    const std::uint32_t acknowledged = peer.acknowledged.load(std::memory_order_relaxed);
    const std::uint32_t end = own.end.load(std::memory_order_relaxed);
    // A SYN was never answered, or the connection was picked up in its middle.
    if (acknowledged == 0 || end == 0) return true;
    const std::uint32_t last = (before(end, acknowledged) ? acknowledged : end) + slack;
    return !before(sequence, acknowledged) && !before(last, sequence);
}

std::uint32_t idle_timeout(const Timeouts& timeouts, std::uint8_t protocol, TcpState state,
                           bool answered) {
    switch (static_cast<Protocol>(protocol)) {
        case Protocol::tcp:
            if (state == established) return timeouts.tcp_established;
            return state == closed ? timeouts.tcp_closed : timeouts.tcp_transitory;
        case Protocol::udp:
            return answered ? timeouts.udp_two_way : timeouts.udp_one_way;
        case Protocol::icmp:
        case Protocol::icmpv6:
            return timeouts.icmp;
        default:
            return answered ? timeouts.other : timeouts.udp_one_way;
    }
}

}  // namespace sluice::session
