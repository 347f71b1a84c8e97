// SPDX-License-Identifier: Apache-2.0
// Room for one more connection, and who makes it: as Linux' early_drop does, but inside the VPC
// or endpoint that has too many, so that nobody pays for another tenant's flood.
#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using session::Connection;
using session::ConnectionIndex;
using session::Limits;
using session::TcpState;

// So many records are looked at, in the order in which they lie: two or three lines of memory
// each, on their way ahead of the reader. One in five belongs to whoever is at its limit of
// unanswered connections, if nobody else has any.
constexpr unsigned kLooks = 16;

enum class Want : std::uint8_t {
    unanswered,            // there are too many of them
    unanswered_or_closed,  // there are too many connections
};

// A connection that nobody would miss: never answered, or over. Never an established one.
bool expendable(std::uint32_t word, Want want) {
    if (static_cast<session::Life>(word & 0xff) != session::Life::live) return false;
    const auto tcp = static_cast<TcpState>(word >> 8 & 0xff);
    return (word & session::kHalfOpen) != 0 ||
           (want == Want::unanswered_or_closed &&
            (tcp == TcpState::closed || tcp == TcpState::time_wait));
}

// The oldest expendable one among the next kLooks that `of` approves of.
template <class Family, class Of>
bool evict(Worker::State& state, Want want, Of of) {
    auto& sessions = table<Family>(state);
    const std::uint32_t end = sessions.high_water();
    if (end == 0) return false;
    std::uint32_t& cursor = state.evict_cursor[std::is_same_v<Family, session::Ipv6>];
    ConnectionIndex oldest = session::kNoConnection;
    std::uint64_t age = 0;
    for (unsigned look = 0; look < std::min(kLooks, end); ++look) {
        if (cursor >= end) cursor = 0;
        const ConnectionIndex number{cursor++};
        const Connection& connection = sessions.connection(number);
        if (!expendable(connection.state.load(std::memory_order_acquire), want) || !of(connection))
            continue;
        const std::uint64_t since = state.tick.since(connection.created);
        if (oldest != session::kNoConnection && since <= age) continue;
        oldest = number;
        age = since;
    }
    if (oldest == session::kNoConnection) return false;
    const std::uint32_t zone = sessions.connection(oldest).zone_slot;
    if (!end_connection<Family>(state, oldest, EndReason::evicted, DropReason::none)) return false;
    state.counters.zone[zone].connections_evicted.add(1);
    return true;
}

}  // namespace

template <class Family>
Limits::Claim claim_of(const Connection& connection, std::uint32_t flags) {
    return {std::is_same_v<Family, session::Ipv6>, connection.zone_slot, connection.owner(),
            (flags & session::kHalfOpen) != 0};
}

template <class Family>
DropReason make_room(Worker::State& state, const Limits::Claim& claim) {
    Limits& limits = state.shared.sessions->limits;
    const std::uint32_t free = table<Family>(state).available(state.options.index);
    DropReason reason = limits.check(claim, free);
    // At the VPC's limit after one at the endpoint's: two are in the way at most.
    for (int round = 0; round < 2 && reason != DropReason::none; ++round) {
        const bool endpoints =
            reason == DropReason::endpoint_connections || reason == DropReason::endpoint_half_open;
        const Want want =
            reason == DropReason::vpc_half_open || reason == DropReason::endpoint_half_open
                ? Want::unanswered
                : Want::unanswered_or_closed;
        if (!evict<Family>(state, want, [&](const Connection& connection) {
                return endpoints ? connection.owner() == claim.endpoint
                                 : connection.zone_slot == claim.zone;
            }))
            break;
        reason = limits.check(claim, free);
    }
    if (reason != DropReason::none) limits.refuse(claim.endpoint, reason);
    return reason;
}

template <class Family>
void evict_any(Worker::State& state) {
    evict<Family>(state, Want::unanswered_or_closed, [](const Connection&) { return true; });
}

template <class Family>
void note_answer(Worker::State& state, ConnectionIndex number) {
    Connection& connection = table<Family>(state).connection(number);
    const std::uint32_t flags = connection.answer();
    if ((flags & session::kHalfOpen) != 0)
        state.shared.sessions->limits.answered(claim_of<Family>(connection, flags),
                                               (flags & session::kEndpointCounts) != 0);
}

template Limits::Claim claim_of<session::Ipv4>(const Connection&, std::uint32_t);
template Limits::Claim claim_of<session::Ipv6>(const Connection&, std::uint32_t);
template DropReason make_room<session::Ipv4>(Worker::State&, const Limits::Claim&);
template DropReason make_room<session::Ipv6>(Worker::State&, const Limits::Claim&);
template void evict_any<session::Ipv4>(Worker::State&);
template void evict_any<session::Ipv6>(Worker::State&);
template void note_answer<session::Ipv4>(Worker::State&, ConnectionIndex);
template void note_answer<session::Ipv6>(Worker::State&, ConnectionIndex);

}  // namespace sluice::worker
