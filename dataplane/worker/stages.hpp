// SPDX-License-Identifier: Apache-2.0
// What stands beside the straight path: packets that are not like the one before. Each
// function disposes of the packet it is given.
#pragma once

#include <cstdint>

#include "dataplane/worker/rewrite.hpp"
#include "dataplane/worker/state.hpp"

namespace sluice::worker {

inline bool is_roce(const wire::Headers& headers) {
    return headers.protocol == static_cast<std::uint8_t>(Protocol::udp) &&
           be16::from_raw(static_cast<std::uint16_t>(headers.ports >> 16)) == wire::udp::kRoceV2;
}

// examine.cpp: a hit with something unusual about it. Returns the adjacency to send it by
// (another one, if the connection was judged anew), or nullptr when the packet was dropped,
// answered or filed as a miss. The packet's ECN may change, and `traffic_class` with it;
// `believed` becomes false if a TCP segment's numbers are not to be noted.
template <class Family>
const policy::Adjacency* examine(Worker::State& state, const Item& item, session::FlowIndex flow,
                                 const policy::Source& source, const policy::Adjacency& adjacency,
                                 std::uint8_t& traffic_class, bool& believed);

// ... and what of it is no connection's business: why the packet cannot go there, `none`: it can;
// and what its sender is told of it. Combines the packet's ECN (ecn.hpp), as often as it is asked.
struct Unfit {
    DropReason reason = DropReason::none;
    policy::Answer told = policy::Answer::none;
    std::uint16_t mtu = 0;
};
Unfit unfit(const Item& item, const policy::Adjacency& adjacency, std::uint8_t& traffic_class);

// rewalk.cpp: judges a connection anew.
enum class Judgement : std::uint8_t {
    allowed,   // its words are fresh
    ended,     // the policy says no: the packet goes no further
    restarts,  // key or translation is no longer permitted: the packet may open another
};
template <class Family>
Judgement rewalk(Worker::State& state, session::ConnectionIndex connection);

// Whether policy has changed since the connection was judged.
template <class Family>
bool is_stale(Worker::State& state, session::ConnectionIndex connection);
// Ends the connection if policy has changed and does not admit it any more: true.
template <class Family>
bool end_refused(Worker::State& state, session::ConnectionIndex connection) {
    return is_stale<Family>(state, connection) &&
           rewalk<Family>(state, connection) != Judgement::allowed;
}

// commit.cpp: a plan becomes a connection. The flow of the plan's direction, or why not.
struct Committed {
    session::FlowIndex flow = session::kNoFlow;
    DropReason reason = DropReason::none;
    bool unpublished = false;  // a plan that installs nothing: give the record back after use
};
template <class Family>
Committed commit(Worker::State& state, const policy::Plan& plan, session::TcpState tcp_state);

// What a plan says of a connection besides its flows: meters and path.
void refresh_connection(Worker::State& state, session::Connection& connection,
                        const policy::Plan& plan);

// Whether the tracker must see every segment of both directions, not only those that change state.
template <class Family>
void track_all(session::SessionTable<Family>& sessions, session::ConnectionIndex number,
               bool every) {
    constexpr auto kFlag = static_cast<std::uint32_t>(session::kTracked);
    for (const auto flow : {session::forward_of(number), session::reverse_of(number)}) {
        auto& target = sessions.flow(flow).state.target;
        if (every)
            target.fetch_or(kFlag, std::memory_order_relaxed);
        else
            target.fetch_and(~kFlag, std::memory_order_relaxed);
    }
}

// end.cpp: ends a connection, counts and tells it. False if somebody else did.
template <class Family>
bool end_connection(Worker::State& state, session::ConnectionIndex connection, EndReason reason,
                    DropReason drop_reason);
// room.cpp: whether one more connection may be opened, if need be in the place of an old one
// of the same VPC or endpoint that nobody has answered or that has closed.
template <class Family>
DropReason make_room(Worker::State& state, const session::Limits::Claim& claim);
// Ends the oldest such connection of any VPC among the next few: the table is full.
template <class Family>
void evict_any(Worker::State& state);
// Somebody answered the connection: it is not half open any more.
template <class Family>
void note_answer(Worker::State& state, session::ConnectionIndex connection);
template <class Family>
session::Limits::Claim claim_of(const session::Connection& connection, std::uint32_t flags);

void tell(Worker::State& state, const ConnectionEvent& event);
template <class Family>
ConnectionEvent describe(Worker::State& state, session::ConnectionIndex connection);

// miss.cpp: the burst's first packets are set to wait for their walk,
void file_misses(Worker::State& state);
// ... those that waited longest are walked, at most so many. Returns how many it served.
unsigned run_backlog(Worker::State& state, unsigned budget);
// What a walk for this packet is charged to, whatever it will say: the sender's own rate, and its
// VPC's; from outside, its destination's. Why it may not be walked.
Drop charge(Worker::State& state, const Packet& packet);
// ... and one that cannot wait, whose headers are from a parse with all checks.
void run_first(Worker::State& state, const Item& item);

// follow.cpp: the burst's fragments of inner packets, in the order in which they came.
void run_fragments(Worker::State& state, unsigned budget);
// ... and those that have waited too long for their first.
void expire_fragments(Worker::State& state);

// question.cpp: ARP requests and neighbour solicitations of tenants, or for public addresses.
void answer_question(Worker::State& state, const Item& item);
// answer.cpp: what a plan says the gateway replies; the packet itself is over.
void answer(Worker::State& state, const Item& item, const policy::Plan& plan);
// ... about a packet that is dropped for `why` all the same, within the rate limit.
struct ErrorAnswer {
    policy::Answer error = policy::Answer::none;
    EndpointId to;          // who sent it; on the uplink nobody
    IpAddress from;         // the gateway's address; none: as the walk or the port has it
    std::uint16_t mtu = 0;  // packet_too_big: what passes, octets
};
void answer_error(Worker::State& state, const Item& item, const ErrorAnswer& what, const Drop& why);
// icmp_error.cpp: an error that quotes a packet of a connection. `budget`: walks left.
void carry_icmp_error(Worker::State& state, const Item& item, unsigned& budget);
// local.cpp: ARP, ND and ping on the gateway's own links.
void run_local(Worker::State& state, const Item& item);

// fragment.cpp: an IPv4 packet without DF that exceeds the adjacency's MTU, rewritten already.
void send_fragments(Worker::State& state, const Item& item, const policy::Adjacency& adjacency,
                    const OuterFacts& outer);
// carry.cpp: a datagram that may be fragmented, or is, leaves with an identification of the shared
// address's own; all its fragments with the same (session/identification.hpp). Its addresses are
// translated.
[[gnu::noinline, gnu::cold]] void renumber(Worker::State& state, std::uint8_t* ip);
// ... writes the header before the IP packet at `l3` and sends.
void encapsulate(Worker::State& state, rte_mbuf* mbuf, std::uint32_t l3,
                 const policy::Adjacency& adjacency, const OuterFacts& facts);

// housekeeping.cpp: ageing, reclamation, the control thread's frames. Bounded work a turn.
void run_housekeeping(Worker::State& state);

}  // namespace sluice::worker
