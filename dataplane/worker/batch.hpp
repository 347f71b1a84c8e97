// SPDX-License-Identifier: Apache-2.0
// The packets of one family in a burst, as structure of arrays, and the stages that every one
// of them passes. Between two stages the memory that the next one needs is on its way.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "dataplane/worker/rewrite.hpp"
#include "dataplane/worker/state.hpp"

namespace sluice::worker {

template <class Family>
session::SessionTable<Family>& table(Worker::State& state) {
    if constexpr (std::is_same_v<Family, session::Ipv4>)
        return state.shared.sessions->ipv4;
    else
        return state.shared.sessions->ipv6;
}

template <class Family>
typename Family::Key key_of(const std::uint8_t* frame, const wire::Headers& headers) {
    typename Family::Key key;
    key.head = session::key_head(Vni{headers.zone}, headers.protocol, headers.ports);
    if constexpr (std::is_same_v<Family, session::Ipv4>)
        std::memcpy(&key.addresses, frame + headers.l3 + wire::ipv4::kSource, 8);
    else
        std::memcpy(&key.addresses, frame + headers.l3 + wire::ipv6::kSource, 32);
    return key;
}

template <class Family>
struct Batch {
    unsigned count = 0;
    std::array<rte_mbuf*, kBurst> mbufs;
    std::array<wire::Headers, kBurst> headers;
    std::array<typename Family::Key, kBurst> keys;
    std::array<std::uint64_t, kBurst> hashes;
    std::array<session::FlowIndex, kBurst> flows;
    std::array<const policy::Adjacency*, kBurst> adjacencies;
    std::array<const policy::Source*, kBurst> sources;
};

struct Batches {
    // Frames that wire::is_common knows: their headers are where they always are, and `headers`
    // is not filled in.
    Batch<session::Ipv4> overlay_ipv4;
    Batch<session::Ipv6> overlay_ipv6;
    Batch<session::Ipv4> uplink_ipv4;
    // Any others.
    Batch<session::Ipv4> ipv4;
    Batch<session::Ipv6> ipv6;
};

// Carries one packet of a flow: source, staleness, TTL, MTU, ECN, TCP state and meters are
// checked, then it is counted, rewritten, encapsulated and handed to its port. Drops it with a
// reason otherwise; or, when its connection has ended and this packet may open another, files
// it under the misses. The mbuf is not the caller's afterwards.
template <class Family>
void carry(Worker::State& state, PortId port, rte_mbuf* mbuf, const wire::Headers& headers,
           std::uint64_t hash, session::FlowIndex flow, const policy::Adjacency& adjacency,
           const policy::Source& source);

// Looks a batch up and carries what hits; what does not is filed under the misses.
void run_batches(Worker::State& state, PortId port, Batches& batches);

}  // namespace sluice::worker
