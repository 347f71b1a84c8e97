// SPDX-License-Identifier: Apache-2.0
// The TCP tracker: how far a connection has come, which decides how long it may idle and
// when its key may be used anew. RFC 9293 section 3.3.2 as seen from the middle; a complete
// table, every cell written.
//
// It refuses what no end could have sent (an opening that is no SYN) and believes FIN and RST
// only inside the window that both ends have acknowledged (RFC 5961 section 3, after the
// middlebox reading of RFC 7857 section 2); what it does not believe is passed on for the
// ends to judge, and changes nothing.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/session/tick.hpp"

namespace sluice::session {

struct TcpProgress;

enum class TcpState : std::uint8_t {
    none,           // not TCP
    syn_sent,       // the initiator's SYN passed
    syn_received,   // the SYN-ACK passed
    established,    // the initiator acknowledged it
    fin_initiator,  // the initiator sent FIN
    fin_responder,  // the responder did
    closed,         // both did, or one sent RST: the key may be opened anew
    count
};

// What a segment is to the tracker. RST rules over SYN, SYN over FIN.
enum class TcpEvent : std::uint8_t {
    syn,      // SYN without ACK
    syn_ack,  // SYN with ACK
    fin,      // FIN with ACK
    rst,
    data,     // ACK alone, with or without data
    invalid,  // SYN or RST with FIN, SYN with RST, no flag at all, FIN without ACK
    count
};

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
            return TcpEvent::data;
        default:
            return TcpEvent::invalid;
    }
}

// What is done with a segment.
enum class TcpVerdict : std::uint8_t {
    pass,    // and the state becomes `next`
    reopen,  // the connection is over and this SYN opens another
    refuse,  // dropped as tcp_invalid
};
struct TcpStep {
    TcpVerdict verdict = TcpVerdict::refuse;
    TcpState next = TcpState::none;
};

// Does not look at sequence numbers: a step out of FIN or RST is taken only if `in_window`.
TcpStep tcp_step(TcpState state, bool from_responder, TcpEvent event);

// Whether a FIN or RST with this sequence number may be believed: not before what the peer
// has acknowledged, not beyond what its own side has sent by more than `slack` octets. Until
// the peer has acknowledged anything only a RST's exact acknowledgement could be checked, so
// it is believed.
bool in_window(std::uint32_t sequence, const TcpProgress& own, const TcpProgress& peer,
               std::uint32_t slack);
// A FIN may run ahead of what was seen by what the network lost or reordered; a RST must not.
inline constexpr std::uint32_t kFinSlack = 1U << 20;

// How long a connection may idle, ticks.
struct Timeouts {
    std::uint32_t tcp_established = ticks(7440);  // RFC 5382 REQ-5: not less than 2 h 4 min
    std::uint32_t tcp_transitory = ticks(240);    // RFC 5382 REQ-5: not less than 4 min
    std::uint32_t tcp_closed = ticks(240);        // RFC 7857 section 2: as transitory
    std::uint32_t udp_two_way = ticks(300);       // RFC 4787 REQ-5: recommended 5 min
    std::uint32_t udp_one_way = ticks(30);        // nobody has answered: conntrack's custom
    std::uint32_t icmp = ticks(60);               // RFC 5508 REQ-1: not less than 60 s
    std::uint32_t other = ticks(300);             // as UDP, RFC 7857 has nothing to say
};

// Of a connection of `protocol`; `answered`: packets were seen in both directions.
std::uint32_t idle_timeout(const Timeouts& timeouts, std::uint8_t protocol, TcpState state,
                           bool answered);

}  // namespace sluice::session
