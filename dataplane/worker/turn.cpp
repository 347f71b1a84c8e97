// SPDX-License-Identifier: Apache-2.0
// A packet's way through a worker, top to bottom: receive, parse, look up, act, send.
//
//   receive    a burst from a queue
//   parse      into one batch per family; what no connection carries is set aside
//   look up    batch by batch, memory prefetched a stage ahead   (carry.cpp)
//   act        source, policy age, TTL, MTU, ECN, TCP, meter; rewrite, encapsulate (carry.cpp)
//   send       hits first
//   then       first packets are walked and committed             (miss.cpp)
//              fragments follow their first one                   (follow.cpp)
//              questions, ICMP errors, the gateway's own packets
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using wire::FrameKind;

// Headers lie within so many octets of a frame, whatever comes in it.
constexpr std::uint32_t kHeaderOctets = 512;

// Pulls the headers of a chained buffer into its first segment. False if that has no room.
bool pull(rte_mbuf* mbuf, std::uint32_t wanted) {
    while (mbuf->data_len < wanted && mbuf->next != nullptr) {
        rte_mbuf* next = mbuf->next;
        const std::uint32_t take = std::min<std::uint32_t>(wanted - mbuf->data_len, next->data_len);
        if (take > rte_pktmbuf_tailroom(mbuf)) return false;
        std::memcpy(rte_pktmbuf_mtod_offset(mbuf, char*, mbuf->data_len), bytes_of(next), take);
        mbuf->data_len = static_cast<std::uint16_t>(mbuf->data_len + take);
        next->data_off = static_cast<std::uint16_t>(next->data_off + take);
        next->data_len = static_cast<std::uint16_t>(next->data_len - take);
        if (next->data_len == 0) {
            mbuf->next = next->next;
            --mbuf->nb_segs;
            next->next = nullptr;
            next->nb_segs = 1;
            rte_pktmbuf_free_seg(next);
        }
    }
    return true;
}

// RFC 7348 section 4.1.2 lets a receiver verify the outer UDP checksum that it need not; a
// VTEP that sends one over IPv6 (RFC 8200 section 8.1) wants it verified.
bool outer_checksum_ok(rte_mbuf* mbuf, const wire::Headers& headers) {
    if (mbuf->nb_segs == 1) return wire::outer_udp_checksum_ok(contiguous(mbuf), headers);
    std::array<std::uint8_t, 65536 + 64> whole;
    if (mbuf->pkt_len > whole.size()) return false;
    const void* at = rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, whole.data());
    return wire::outer_udp_checksum_ok({static_cast<const std::uint8_t*>(at), mbuf->pkt_len},
                                       headers);
}

wire::Headers parse_general(Worker::State& state, const port::ReceiveQueue& queue, rte_mbuf* mbuf) {
    const wire::Receiver& receiver = state.receivers[queue.port.value];
    const auto parse = parser_of(queue.side);
    wire::Headers headers = parse(contiguous(mbuf), mbuf->pkt_len, receiver);
    if (headers.kind == FrameKind::incomplete) {
        if (pull(mbuf, std::min(kHeaderOctets, mbuf->pkt_len)))
            headers = parse(contiguous(mbuf), mbuf->pkt_len, receiver);
        // Headers longer than that are nobody's.
        if (headers.kind == FrameKind::incomplete)
            wire::refuse(headers, DropReason::inner_bad_header);
    }
    if (headers.kind != FrameKind::drop && headers.has(wire::kCheckOuterUdp) &&
        !outer_checksum_ok(mbuf, headers))
        wire::refuse(headers, DropReason::outer_bad_checksum);
    return headers;
}

template <class Family>
[[gnu::always_inline]] inline void enter(Worker::State& state, Batch<Family>& batch, rte_mbuf* mbuf,
                                         const wire::Headers& headers) {
    auto& sessions = table<Family>(state);
    const unsigned i = batch.count++;
    batch.mbufs[i] = mbuf;
    batch.keys[i] = key_of<Family>(bytes_of(mbuf), headers);
    batch.hashes[i] = sessions.hash(batch.keys[i]);
    sessions.prefetch(batch.hashes[i]);
}

// What is not the common frame.
void sort(Worker::State& state, const port::ReceiveQueue& queue, rte_mbuf* mbuf) {
    const wire::Headers headers = parse_general(state, queue, mbuf);
    const auto refuse = [&](DropReason reason) {
        drop(state, {mbuf, headers, queue.port}, {reason, claimed_zone(state, headers), nullptr});
    };
    if (headers.kind == FrameKind::drop) return refuse(headers.drop);
    if (headers.has(wire::kFragment)) {
        state.fragments[state.fragment_count++] = {mbuf, headers, queue.port};
        return;
    }
    if (headers.kind != FrameKind::connection) {
        state.others[state.other_count++] = {mbuf, headers, queue.port};
        return;
    }
    if (headers.has(wire::kInnerV6)) {
        Batch<session::Ipv6>& ipv6 = state.batches->ipv6;
        ipv6.headers[ipv6.count] = headers;
        enter(state, ipv6, mbuf, headers);
    } else {
        Batch<session::Ipv4>& ipv4 = state.batches->ipv4;
        ipv4.headers[ipv4.count] = headers;
        enter(state, ipv4, mbuf, headers);
    }
}

void run_others(Worker::State& state, unsigned budget) {
    for (unsigned i = 0; i < state.other_count; ++i) {
        const Item& item = state.others[i];
        switch (item.headers.kind) {
            case FrameKind::icmp_error:
                carry_icmp_error(state, item, budget);
                break;
            case FrameKind::arp_request:
            case FrameKind::solicitation:
                answer_question(state, item);
                break;
            default:
                run_local(state, item);
                break;
        }
    }
    state.other_count = 0;
}

template <wire::Shape shape, class Family>
[[gnu::always_inline]] inline bool enter_common(Worker::State& state, Batch<Family>& batch,
                                                rte_mbuf* mbuf, const wire::FastReceiver& fast) {
    const std::uint8_t* frame = bytes_of(mbuf);
    if (!wire::is_common<shape>(frame, mbuf->data_len, mbuf->pkt_len, fast)) return false;
    enter(state, batch, mbuf, wire::common_headers<shape>(frame));
    return true;
}

// Common frames go into their batch, others are sorted. Returns how many octets there are.
template <Side side>
std::uint64_t parse_burst(Worker::State& state, const port::ReceiveQueue& queue,
                          std::span<rte_mbuf* const> burst) {
    using wire::Shape;
    Batches& batches = *state.batches;
    const wire::FastReceiver& fast = state.fast_receivers[queue.port.value];
    std::uint64_t octets = 0;
    for (rte_mbuf* mbuf : burst) {
        octets += mbuf->pkt_len;
        bool common = false;
        if constexpr (side == Side::uplink)
            common = enter_common<Shape::uplink_ipv4>(state, batches.uplink_ipv4, mbuf, fast);
        else if (!wire::may_be_ipv6(bytes_of(mbuf), mbuf->data_len)) [[likely]]
            common = enter_common<Shape::overlay_ipv4>(state, batches.overlay_ipv4, mbuf, fast);
        else
            common = enter_common<Shape::overlay_ipv6>(state, batches.overlay_ipv6, mbuf, fast);
        if (!common) sort(state, queue, mbuf);
    }
    return octets;
}

unsigned run_queue(Worker::State& state, const port::ReceiveQueue& queue) {
    std::array<rte_mbuf*, kBurst> received;
    const unsigned count = rte_eth_rx_burst(queue.device, queue.queue, received.data(), kBurst);
    if (count == 0) return 0;
    state.snapshot = state.shared.root->load(std::memory_order_acquire);
    for (unsigned i = 0; i < count; ++i) {
        __builtin_prefetch(bytes_of(received[i]));
        __builtin_prefetch(bytes_of(received[i]) + 64);
    }

    Batches& batches = *state.batches;
    batches.overlay_ipv4.count = batches.overlay_ipv6.count = batches.uplink_ipv4.count = 0;
    batches.ipv4.count = batches.ipv6.count = 0;
    const std::span<rte_mbuf* const> burst(received.data(), count);
    const std::uint64_t octets = queue.side == Side::underlay
                                     ? parse_burst<Side::underlay>(state, queue, burst)
                                     : parse_burst<Side::uplink>(state, queue, burst);
    PortCounters& counters = state.counters.port[queue.port.value];
    counters.received.add(count);
    counters.received_octets.add(octets);

    run_batches(state, queue.port, batches);
    flush_all(state);
    const unsigned budget = count == kBurst ? state.options.walk_budget : kBurst;
    if (state.miss_count != 0) file_misses(state);
    if (!state.backlog.empty()) run_backlog(state, budget);
    if (state.fragment_count != 0) run_fragments(state, budget);
    if (state.other_count != 0) run_others(state, budget);
    return count;
}

// What a bandwidth limit had delayed until now.
void release(Worker::State& state) {
    while (const auto held = state.pacer.next(state.now)) send(state, held->port, held->mbuf);
}

}  // namespace

unsigned Worker::turn() {
    State& state = *state_;
    const std::uint64_t start = state.turn_end;
    state.now = state.nanoseconds(start);
    state.tick = session::Tick::from_nanoseconds(state.now);
    release(state);
    unsigned count = 0;
    for (const port::ReceiveQueue& queue : state.options.ports.receive)
        count += run_queue(state, queue);
    if (count == 0 && !state.backlog.empty()) {
        state.snapshot = state.shared.root->load(std::memory_order_acquire);
        count = run_backlog(state, kBurst);
        flush_all(state);
    }
    // While packets come one after another, the rest can wait for a few turns.
    constexpr unsigned kBusyTurns = 8;
    if (count == 0 || ++state.busy_turns == kBusyTurns) {
        state.busy_turns = 0;
        run_housekeeping(state);
        flush_all(state);
    }
    state.shared.qsbr->quiescent(state.options.index);

    // One reading of the clock ends this turn and starts the next.
    state.turn_end = rte_rdtsc();
    const std::uint64_t cycles = state.turn_end - start;
    state.counters.turns.add(1);
    if (count == 0) {
        state.counters.idle_turns.add(1);
        state.counters.idle_cycles.add(cycles);
    } else {
        state.counters.busy_cycles.add(cycles);
    }
    return count;
}

}  // namespace sluice::worker
