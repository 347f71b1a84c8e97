// SPDX-License-Identifier: Apache-2.0
// What a turn does besides packets, a bounded amount each: ageing, reclamation, frames of the
// control thread.
#include <rte_ring.h>

#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/nat.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

constexpr unsigned kReclaimed = 16;
constexpr unsigned kAged = 32;
constexpr unsigned kInjected = 16;
// All connections are looked at once in so many ticks (two seconds).
constexpr std::uint32_t kRound = 32;
// Workers share the connections in blocks of this size, in turns.
constexpr std::uint32_t kBlock = 64;

// Connections that ageing judges anew in a turn.
constexpr unsigned kJudged = 4;

constexpr std::uint64_t kMaxUint32 = ~0U;

// Ports of a NAT gateway's address go with what allowed them, though no packet asks: the next
// owner of the address shall not wait for the last one's connections to idle away.
template <class Family>
bool has_shared_ports(const session::Connection& connection) {
    return std::is_same_v<Family, session::Ipv4> &&
           (connection.has(session::kNatSource) || connection.has(session::kNatDestination));
}

template <class Family>
void age(Worker::State& state, std::size_t which) {
    auto& sessions = table<Family>(state);
    const std::uint32_t workers = state.shared.workers;
    const std::uint32_t end = sessions.high_water();
    std::uint32_t& cursor = state.age_cursor[which];
    std::uint32_t& quota = state.age_quota[which];
    unsigned judgements = kJudged;
    for (unsigned step = 0; step < kAged && quota > 0; ++step, --quota) {
        if (cursor % kBlock == 0 && cursor / kBlock % workers != state.options.index)
            cursor +=
                (state.options.index + workers - cursor / kBlock % workers) % workers * kBlock;
        if (cursor >= end) {
            cursor = state.options.index * kBlock;
            if (cursor >= end) return;
        }
        const session::ConnectionIndex number{cursor++};
        const auto& connection = sessions.connection(number);
        if (connection.life() != session::Life::live) continue;
        if (sessions.idle_too_long(number, state.shared.sessions->zones, state.tick)) {
            end_connection<Family>(state, number, EndReason::idle, DropReason::none);
        } else if (has_shared_ports<Family>(connection) && is_stale<Family>(state, number)) {
            if (judgements-- == 0) {
                --cursor;  // the next turn goes on here
                return;
            }
            rewalk<Family>(state, number);
        }
    }
}

template <class Family>
std::uint32_t quota(const Worker::State& state, session::SessionTable<Family>& sessions,
                    std::uint64_t ticks) {
    const std::uint64_t share =
        std::uint64_t{sessions.high_water()} / (std::uint64_t{state.shared.workers} * kRound) + 1;
    return static_cast<std::uint32_t>(
        std::min(share * std::min<std::uint64_t>(ticks, kRound), kMaxUint32));
}

void send_injected(Worker::State& state) {
    std::array<void*, kInjected> frames;
    const unsigned count =
        rte_ring_sc_dequeue_burst(state.inject, frames.data(), kInjected, nullptr);
    for (unsigned i = 0; i < count; ++i) {
        auto* mbuf = static_cast<rte_mbuf*>(frames[i]);
        send(state, PortId{mbuf->port}, mbuf);
    }
}

}  // namespace

void run_housekeeping(Worker::State& state) {
    constexpr unsigned kSamples = 4;
    auto& sessions = *state.shared.sessions;
    const std::uint64_t ticks = state.tick.since(state.aged);
    if (ticks > 0) {
        state.aged = state.tick;
        state.age_quota = {quota(state, sessions.ipv4, ticks), quota(state, sessions.ipv6, ticks)};
        // So many samples a tick: a flood of drops costs no more.
        state.samples_left = kSamples;
        expire_ports(state);
    }
    if (state.age_quota[0] > 0) age<session::Ipv4>(state, 0);
    if (state.age_quota[1] > 0) age<session::Ipv6>(state, 1);
    sessions.ipv4.reclaim(state.options.index, kReclaimed);
    sessions.ipv6.reclaim(state.options.index, kReclaimed);
    expire_fragments(state);
    send_injected(state);
}

}  // namespace sluice::worker
