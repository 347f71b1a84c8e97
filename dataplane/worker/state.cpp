// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/state.hpp"

#include <rte_ethdev.h>
#include <rte_ring.h>

#include <algorithm>
#include <string>

#include "dataplane/worker/batch.hpp"

namespace sluice::worker {

namespace {
constexpr unsigned kInjectCapacity = 1024;
constexpr unsigned kSamplesPerTurn = 4;

wire::FastReceiver fast_receiver(const PortFacts& port, std::span<const IpAddress> vteps) {
    wire::FastReceiver fast;
    std::memcpy(&fast.mac, port.mac.bytes.data(), port.mac.bytes.size());
    const auto first = std::find_if(vteps.begin(), vteps.end(),
                                    [](const IpAddress& vtep) { return vtep.is_v4(); });
    if (port.side == Side::underlay && first != vteps.end()) fast.vtep = first->to_v4().raw;
    return fast;
}
}  // namespace

Worker::State::State(WorkerOptions worker_options, Shared& shared_with_all)
    : options(std::move(worker_options)),
      shared(shared_with_all),
      counters(static_cast<std::uint32_t>(shared.changed.size()),
               static_cast<std::uint32_t>(shared.ports.size())),
      neighbours(1024),
      events(options.event_capacity),
      samples(options.sample_capacity),
      blocks(options.block_capacity),
      batches(std::make_unique<Batches>()) {
    const std::string name = "sluice_inject_" + std::to_string(options.index);
    inject = rte_ring_create(name.c_str(), kInjectCapacity, SOCKET_ID_ANY,
                             RING_F_SP_ENQ | RING_F_SC_DEQ);
    send_queues.resize(shared.ports.size() + 1);
    receivers.resize(shared.ports.size() + 1);
    fast_receivers.resize(shared.ports.size() + 1);
    for (const PortFacts& port : shared.ports) {
        SendQueue& queue = send_queues[port.id.value];
        queue.queue = options.ports.transmit[port.id.value - 1];
        queue.multi_segment = port.multi_segment;
        receivers[port.id.value] = {port.mac, shared.vteps, port.addresses};
        fast_receivers[port.id.value] = fast_receiver(port, shared.vteps);
    }
    // Under a clock that somebody sets, everything comes again in the same way.
    if (options.clock == nullptr) random ^= rte_rdtsc() * (options.index + 1);
    turn_end = rte_rdtsc();
    now = nanoseconds(turn_end);
    block_cursor = options.index;
    tick = aged = session::Tick::from_nanoseconds(now);
    samples_left = kSamplesPerTurn;
}

Worker::State::~State() {
    while (const auto item = backlog.pop()) rte_pktmbuf_free(item->mbuf);
    while (const auto held = pacer.next(~0ULL)) rte_pktmbuf_free(held->mbuf);
    // Any time so late that no fragment waits longer.
    session::FragmentTable& table = shared.sessions->fragments;
    const session::Tick end{tick.value + session::FragmentTable::kLife * 2};
    for (session::FragmentTable::Released left; table.expire(end, table.buckets(), left);)
        for (void* packet : left.all()) rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
}

void flush(Worker::State& state, SendQueue& port) {
    if (port.count == 0) return;
    std::uint64_t octets = 0;
    for (unsigned i = 0; i < port.count; ++i) octets += port.packets[i]->pkt_len;
    if (port.queue.lock != nullptr)
        while (port.queue.lock->held.exchange(true, std::memory_order_acquire)) rte_pause();
    const unsigned sent = rte_eth_tx_burst(port.queue.device, port.queue.queue, port.packets.data(),
                                           static_cast<std::uint16_t>(port.count));
    if (port.queue.lock != nullptr) port.queue.lock->held.store(false, std::memory_order_release);
    if (sent < port.count) {
        for (unsigned i = sent; i < port.count; ++i) octets -= port.packets[i]->pkt_len;
        rte_pktmbuf_free_bulk(&port.packets[sent], port.count - sent);
        state.counters.zone[0].drops[static_cast<std::size_t>(DropReason::tx_full)].add(port.count -
                                                                                        sent);
    }
    PortCounters& counters =
        state.counters.port[static_cast<std::size_t>(&port - state.send_queues.data())];
    counters.sent.add(sent);
    counters.sent_octets.add(octets);
    port.count = 0;
}

void flush_all(Worker::State& state) {
    for (SendQueue& port : state.send_queues) flush(state, port);
}

policy::ZoneSlot claimed_zone(const Worker::State& state, const wire::Headers& headers) {
    if (headers.zone == 0 || state.snapshot == nullptr) return {};
    return state.shared.zone_of(*state.snapshot, Vni{headers.zone});
}

void drop(Worker::State& state, const Item& item, const Drop& why) {
    state.counters.zone[why.zone.value].drops[static_cast<std::size_t>(why.reason)].add(1);
    if (state.samples_left > 0) {
        --state.samples_left;
        DropSample sample;
        sample.reason = why.reason;
        sample.zone = why.zone;
        sample.vni = Vni{item.headers.zone};
        sample.port = item.port;
        sample.side = state.facts(item.port).side;
        sample.time = state.now;
        const auto frame = contiguous(item.mbuf);
        if (item.headers.outer_ip != 0) sample.vtep = wire::vtep_of(frame, item.headers);
        // Offsets are filled as far as the parser came, and what they lead to was read.
        if (item.headers.l2 + std::size_t{14} <= frame.size())
            std::memcpy(sample.source_mac.bytes.data(), frame.data() + item.headers.l2 + 6, 6);
        if (why.plan != nullptr) {
            sample.tuple = why.plan->arrives;
            sample.decided_by = why.plan->decided_by;
            sample.source = why.plan->source;
            sample.destination = why.plan->destination;
            if (why.plan->leaves.destination != why.plan->arrives.destination)
                sample.translated = why.plan->leaves.destination;
        } else if (item.headers.l4 != 0 && item.headers.l4 <= frame.size()) {
            sample.tuple = wire::tuple_of(frame, item.headers);
        }
        state.samples.push(sample);
    }
    rte_pktmbuf_free(item.mbuf);
}

}  // namespace sluice::worker
