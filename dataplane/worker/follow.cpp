// SPDX-License-Identifier: Apache-2.0
// Fragments of inner packets: the first is judged by its ports like any packet, the others
// follow it (session/fragment_table.hpp). Every check of a hit holds for each of them: sender,
// policy's age, TTL, MTU, ECN, meters; only what is in the transport header is the first's alone.
#include "dataplane/wire/piece.hpp"
#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using session::FragmentKey;
using session::FragmentTable;
using session::FragmentVerdict;
using session::Transport;

constexpr auto kTcp = static_cast<std::uint8_t>(Protocol::tcp);
// What a later fragment is carried as: a protocol in whose header nothing is read or changed.
constexpr std::uint8_t kNoTransport = wire::ipv6::kFragmentHeader;
// Buckets of the table that housekeeping looks at: all of them several times a second.
constexpr unsigned kExpired = 4;

FragmentKey key_of(const Worker::State& state, const Item& item, const wire::Piece& piece) {
    const auto frame = contiguous(item.mbuf);
    const wire::Headers& headers = item.headers;
    const std::uint8_t* ip = frame.data() + headers.l3;
    FragmentKey key;
    key.zone = Vni{headers.zone};
    key.identification = piece.identification;
    key.protocol = piece.protocol;
    key.mac = wire::load_mac(frame.data() + headers.l2 + wire::ethernet::kSource);
    if (headers.has(wire::kTunnelled)) key.vtep = wire::vtep_of(frame, headers);
    if (headers.has(wire::kInnerV6)) {
        key.source = wire::load_v6(ip + wire::ipv6::kSource);
        key.destination = wire::load_v6(ip + wire::ipv6::kDestination);
    } else {
        key.source = wire::load_v4(ip + wire::ipv4::kSource);
        key.destination = wire::load_v4(ip + wire::ipv4::kDestination);
    }
    if (headers.has(wire::kTunnelled) && state.snapshot != nullptr) {
        Packet packet;
        packet.vni = key.zone;
        packet.source_mac = key.mac;
        packet.vtep = key.vtep;
        packet.tuple.source = key.source;
        const policy::Sender sender = state.shared.sender_of(*state.snapshot, packet);
        key.slot = sender.zone.value;
        key.sender = sender.endpoint;
    }
    return key;
}

void refuse(Worker::State& state, const Item& item, DropReason reason) {
    drop(state, item, {reason, claimed_zone(state, item.headers), nullptr});
}

DropReason reason_of(FragmentVerdict verdict) {
    switch (verdict) {
        case FragmentVerdict::duplicate:
            return DropReason::fragment_duplicate;
        case FragmentVerdict::overlap:
            return DropReason::fragment_overlap;
        case FragmentVerdict::full:
            return DropReason::fragment_limit;
        default:
            return DropReason::inner_fragment;
    }
}

// A packet that was held, as it was when it came.
Item taken_back(Worker::State& state, void* packet) {
    Item item{static_cast<rte_mbuf*>(packet), {}, {}};
    item.port = PortId{item.mbuf->port};
    item.headers = parse_again(state, item.port, item.mbuf);
    return item;
}

void refuse_all(Worker::State& state, const FragmentTable::Released& released, DropReason reason) {
    for (void* packet : released.all()) refuse(state, taken_back(state, packet), reason);
}

template <class Family>
void follow(Worker::State& state, Item item, const Transport& transport) {
    auto& sessions = table<Family>(state);
    item.headers.protocol = transport.protocol;
    item.headers.ports = transport.ports;
    const auto key = worker::key_of<Family>(bytes_of(item.mbuf), item.headers);
    const std::uint64_t hash = sessions.hash(key);
    const session::FlowIndex flow = sessions.find(key, hash);
    if (flow == session::kNoFlow) return refuse(state, item, DropReason::inner_fragment);
    item.headers.protocol = kNoTransport;
    const session::FlowState& words = sessions.flow(flow).state;
    state.identification = transport.identification;
    carry<Family>(state, item.port, item.mbuf, item.headers, hash, flow,
                  (*state.shared.adjacencies)[words.adjacency()],
                  (*state.shared.sources)[words.source_index()]);
    // Its connection has ended: a later fragment opens no other.
    while (state.miss_count != 0)
        refuse(state, state.misses[--state.miss_count], DropReason::inner_fragment);
}

void follow(Worker::State& state, const Item& item, const Transport& transport) {
    if (item.headers.has(wire::kInnerV6))
        follow<session::Ipv6>(state, item, transport);
    else
        follow<session::Ipv4>(state, item, transport);
}

// The datagram's ports, once the packet is carried; none if it was not. `budget`: walks left.
template <class Family>
std::optional<Transport> judge(Worker::State& state, const Item& item, unsigned& budget) {
    const wire::Headers& headers = item.headers;
    DropReason reason = DropReason::none;
    auto& sessions = table<Family>(state);
    // The packet is gone afterwards.
    const auto key = worker::key_of<Family>(bytes_of(item.mbuf), headers);
    const std::uint64_t hash = sessions.hash(key);
    const auto carried = [&] { return sessions.find(key, hash) != session::kNoFlow; };
    if (headers.kind != wire::FrameKind::connection)
        reason = DropReason::inner_fragment;
    else if (is_roce(headers))
        reason = DropReason::roce_fragment;
    else if (!carried() && budget == 0)
        reason = DropReason::walk_budget;
    if (reason != DropReason::none) {
        refuse(state, item, reason);
        return std::nullopt;
    }
    if (!carried()) --budget;
    state.identification = 0;
    run_first(state, item);
    if (!carried()) return std::nullopt;
    return Transport{headers.ports, headers.protocol, state.identification};
}

void run_fragment(Worker::State& state, const Item& item, unsigned& budget) {
    FragmentTable& fragments = state.shared.sessions->fragments;
    const auto piece = wire::piece_of(contiguous(item.mbuf), item.headers);
    if (!piece) return refuse(state, item, DropReason::inner_bad_header);
    // RFC 3128 section 2: where the flags of a TCP header would be.
    if (item.headers.protocol == kTcp && piece->offset == 8)
        return refuse(state, item, DropReason::fragment_tiny);
    const FragmentKey key = key_of(state, item, *piece);
    // What is nobody's is not held for anybody.
    if (item.headers.has(wire::kTunnelled) && key.slot == 0)
        return refuse(state, item,
                      state.snapshot == nullptr ? DropReason::not_ready : DropReason::unknown_vni);
    FragmentTable::Released& released = *state.released;

    if (!item.headers.has(wire::kFirstFragment)) {
        item.mbuf->port = static_cast<std::uint16_t>(item.port.value);
        const auto answer = fragments.later(key, *piece, item.mbuf, state.tick, released);
        refuse_all(state, released,
                   answer.verdict == FragmentVerdict::overlap ? DropReason::fragment_overlap
                                                              : DropReason::fragment_timeout);
        if (answer.verdict == FragmentVerdict::held) return;
        if (answer.verdict != FragmentVerdict::pass)
            return refuse(state, item, reason_of(answer.verdict));
        return follow(state, item, answer.transport);
    }

    const FragmentVerdict verdict = fragments.first(key, *piece, state.tick, released);
    refuse_all(state, released,
               verdict == FragmentVerdict::overlap ? DropReason::fragment_overlap
                                                   : DropReason::fragment_timeout);
    if (verdict != FragmentVerdict::pass) return refuse(state, item, reason_of(verdict));
    const auto transport = item.headers.has(wire::kInnerV6)
                               ? judge<session::Ipv6>(state, item, budget)
                               : judge<session::Ipv4>(state, item, budget);
    fragments.decide(key, transport, released);
    if (!transport) return refuse_all(state, released, DropReason::inner_fragment);
    for (void* packet : released.all()) follow(state, taken_back(state, packet), *transport);
}

}  // namespace

void run_fragments(Worker::State& state, unsigned budget) {
    for (unsigned i = 0; i < state.fragment_count; ++i)
        run_fragment(state, state.fragments[i], budget);
    state.fragment_count = 0;
}

void expire_fragments(Worker::State& state) {
    FragmentTable::Released& released = *state.released;
    // No packet came this turn, perhaps, and what was read in an earlier one may be gone.
    state.snapshot = state.shared.root->load(std::memory_order_acquire);
    if (state.shared.sessions->fragments.expire(state.tick, kExpired, released))
        refuse_all(state, released, DropReason::fragment_timeout);
}

}  // namespace sluice::worker
