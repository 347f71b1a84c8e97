// SPDX-License-Identifier: Apache-2.0
// TCP as seen from the middle: state × direction × segment, every cell written, in the order of
// RFC 9293. Data alone; `judge` in tracker.hpp reads it, tracker_test.cpp walks every cell.
//
// What a cell says is done with the segment, and which state follows:
//   pass     it is carried; what it sends and acknowledges is noted
//   ignore   it is carried and changes nothing: the end will answer with a challenge
//            acknowledgement (RFC 5961 section 4.2), or it is a duplicate
//   anew     as pass, and what its sender had sent so far is forgotten: another attempt
//   finish   a FIN: if it lies in the receiver's window the state follows, a duplicate is ignored,
//            any other is dropped
//   reset    a RST: at the next expected sequence number the state follows; elsewhere in the
//            window it is ignored (RFC 5961 section 3.2), outside it is dropped
//   refuse   dropped: no end sends this in this state
//   reopen   the connection is over, and this SYN opens another one
#pragma once

#include <array>
#include <cstdint>

namespace sluice::session {

// States, from both ends' together (RFC 9293 section 3.3.2). The initiator is whose SYN came
// first.
enum class TcpState : std::uint8_t {
    none,               // not TCP
    syn_sent,           // the initiator SYN-SENT
    simultaneous_open,  // both SYN-SENT: their SYNs crossed (section 3.5, figure 7)
    syn_received,       // the responder SYN-RECEIVED: its SYN-ACK passed
    established,        // the initiator acknowledged it
    reset_doubted,      // a RST passed that its receiver takes only if it has all that was sent:
                        // over, unless the receiver goes on
    fin_initiator,      // the initiator FIN-WAIT: it may not send any more, the responder may
    fin_responder,      // the responder likewise
    time_wait,          // both sent FIN
    closed,             // reset
    count
};

// What a segment is. Flags that TCP does not allow together are one kind: refused everywhere.
enum class TcpEvent : std::uint8_t {
    syn,      // SYN
    syn_ack,  // SYN, ACK
    ack,      // ACK alone, with data or without: also keepalives and retransmissions
    fin,      // FIN, ACK
    rst,      // RST, RST ACK
    invalid,  // without ACK, SYN or RST; or SYN, FIN and RST in any pair
    count
};

enum class TcpAction : std::uint8_t { pass, ignore, anew, finish, reset, refuse, reopen };

struct TcpCell {
    TcpAction action = TcpAction::refuse;
    TcpState next = TcpState::none;
    constexpr bool operator==(const TcpCell&) const = default;
};

namespace tcp_table {

constexpr TcpCell pass(TcpState next) {
    return {TcpAction::pass, next};
}
constexpr TcpCell anew(TcpState next) {
    return {TcpAction::anew, next};
}
constexpr TcpCell finish(TcpState next) {
    return {TcpAction::finish, next};
}
constexpr TcpCell reset(TcpState next) {
    return {TcpAction::reset, next};
}
constexpr TcpCell ignore(TcpState same) {
    return {TcpAction::ignore, same};
}
inline constexpr TcpCell kRefuse{TcpAction::refuse, TcpState::none};
inline constexpr TcpCell kReopen{TcpAction::reopen, TcpState::none};

using Row = std::array<TcpCell, static_cast<std::size_t>(TcpEvent::count)>;
struct Rows {
    Row initiator, responder;
};

using enum TcpState;

// clang-format off
inline constexpr std::array<Rows, static_cast<std::size_t>(TcpState::count)> kCells = {{
//             SYN               SYN ACK           ACK                     FIN                    RST             invalid
// none: never asked
{  /* init */ {kRefuse,          kRefuse,          kRefuse,                kRefuse,               kRefuse,        kRefuse},
   /* resp */ {kRefuse,          kRefuse,          kRefuse,                kRefuse,               kRefuse,        kRefuse}},
// syn_sent (section 3.10.7.3). The initiator's SYN again is a retransmission or another attempt;
// it has nothing to acknowledge yet. A responder that knows an older connection acknowledges that
// one, and the initiator resets it (section 3.5.1, figure 9).
{  /* init */ {anew(syn_sent),   kRefuse,          kRefuse,                kRefuse,               reset(closed),  kRefuse},
   /* resp */ {pass(simultaneous_open), pass(syn_received), pass(syn_sent), kRefuse,              reset(closed),  kRefuse}},
// simultaneous_open (section 3.5, figure 7): each end answers the other's SYN with a SYN-ACK, and
// is synchronised by the other's, or by any acknowledgement.
{  /* init */ {ignore(simultaneous_open), pass(simultaneous_open), pass(established), finish(fin_initiator), reset(closed), kRefuse},
   /* resp */ {ignore(simultaneous_open), pass(simultaneous_open), pass(established), finish(fin_responder), reset(closed), kRefuse}},
// syn_received (section 3.10.7.4): the initiator's acknowledgement synchronises, alone or with a
// FIN; what the responder sends before it has that changes nothing but may close (section 3.10.4).
{  /* init */ {ignore(syn_received), kRefuse,      pass(established),      finish(fin_initiator), reset(closed),  kRefuse},
   /* resp */ {ignore(syn_received), pass(syn_received), pass(syn_received), finish(fin_responder), reset(closed), kRefuse}},
// established (sections 3.10.7.4, 3.6). Any SYN is answered with an acknowledgement by its receiver,
// which is how an end that rebooted finds out (RFC 5961 section 4.2).
{  /* init */ {ignore(established), ignore(established), pass(established), finish(fin_initiator), reset(closed), kRefuse},
   /* resp */ {ignore(established), ignore(established), pass(established), finish(fin_responder), reset(closed), kRefuse}},
// reset_doubted: whichever end still sends is alive, and with it the connection.
{  /* init */ {ignore(reset_doubted), ignore(reset_doubted), pass(established), finish(fin_initiator), reset(closed), kRefuse},
   /* resp */ {ignore(reset_doubted), ignore(reset_doubted), pass(established), finish(fin_responder), reset(closed), kRefuse}},
// fin_initiator: half closed (section 3.6, cases 1 and 2). The initiator's FIN again is a
// retransmission, as are its data; the responder's closes, crossing (CLOSING) or not (LAST-ACK).
{  /* init */ {ignore(fin_initiator), ignore(fin_initiator), pass(fin_initiator), finish(fin_initiator), reset(closed), kRefuse},
   /* resp */ {ignore(fin_initiator), ignore(fin_initiator), pass(fin_initiator), finish(time_wait),     reset(closed), kRefuse}},
// fin_responder: the same, mirrored.
{  /* init */ {ignore(fin_responder), ignore(fin_responder), pass(fin_responder), finish(time_wait),     reset(closed), kRefuse},
   /* resp */ {ignore(fin_responder), ignore(fin_responder), pass(fin_responder), finish(fin_responder), reset(closed), kRefuse}},
// time_wait (section 3.6.1): last acknowledgements and retransmissions; either end may open anew.
{  /* init */ {kReopen,          ignore(time_wait), pass(time_wait),       finish(time_wait),     reset(closed),  kRefuse},
   /* resp */ {kReopen,          ignore(time_wait), pass(time_wait),       finish(time_wait),     reset(closed),  kRefuse}},
// closed: what was under way when one end gave up is the other's to answer.
{  /* init */ {kReopen,          ignore(closed),   ignore(closed),         ignore(closed),        reset(closed),  kRefuse},
   /* resp */ {kReopen,          ignore(closed),   ignore(closed),         ignore(closed),        reset(closed),  kRefuse}},
}};
// clang-format on

}  // namespace tcp_table

}  // namespace sluice::session
