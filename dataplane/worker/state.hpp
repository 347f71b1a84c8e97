// SPDX-License-Identifier: Apache-2.0
// What one worker works on, and the few things that every stage does: send, drop, sample.
// Private to this folder; all of it belongs to the worker's thread.
#pragma once

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/wire/fast_parser.hpp"
#include "dataplane/wire/parser.hpp"
#include "dataplane/worker/backlog.hpp"
#include "dataplane/worker/pacer.hpp"
#include "dataplane/worker/worker.hpp"

namespace sluice::worker {

inline constexpr unsigned kBurst = 32;

// Cycles of the TSC as nanoseconds.
class Clock {
  public:
    Clock() : multiplier_((1'000'000'000ULL << kShift) / rte_get_tsc_hz()) {}
    [[nodiscard]] std::uint64_t nanoseconds(std::uint64_t cycles) const {
        return static_cast<std::uint64_t>(static_cast<session::Product>(cycles) * multiplier_ >>
                                          kShift);
    }

  private:
    static constexpr unsigned kShift = 32;
    std::uint64_t multiplier_;
};

// A packet on its way through the stages that are not every packet's.
struct Item {
    rte_mbuf* mbuf = nullptr;
    wire::Headers headers;
    PortId port;
};

struct Batches;  // batch.hpp

struct SendQueue {
    port::TransmitQueue queue;
    std::array<rte_mbuf*, kBurst * 2> packets{};
    unsigned count = 0;
    bool multi_segment = true;
};

struct Worker::State {
    State(WorkerOptions worker_options, Shared& shared_with_all);
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    WorkerOptions options;
    Shared& shared;
    Clock clock;
    WorkerCounters counters;
    Ring<NeighbourMessage> neighbours;
    Ring<ConnectionEvent> events;
    Ring<DropSample> samples;
    Ring<session::BlockEvent> blocks;  // of NAT gateways' ports
    rte_ring* inject = nullptr;
    std::atomic<bool> stopping{false};

    // By PortId.value; element 0 is unused.
    std::vector<SendQueue> send_queues;
    std::vector<wire::Receiver> receivers;
    std::vector<wire::FastReceiver> fast_receivers;

    std::uint64_t turn_end = 0;  // TSC at the end of the last turn
    unsigned busy_turns = 0;     // since the last housekeeping

    // Of this turn.
    std::uint64_t now = 0;  // nanoseconds
    session::Tick tick;
    const policy::Snapshot* snapshot = nullptr;
    unsigned samples_left = 0;

    // The burst in hand, by family; and what it left for later.
    std::unique_ptr<Batches> batches;
    std::array<Item, kBurst * 2> misses;  // a packet may be filed twice, see examine()
    std::array<Item, kBurst> others;      // questions, ICMP errors, the gateway's own
    std::array<Item, kBurst> fragments;   // of inner packets
    // What the table of fragments hands back.
    std::unique_ptr<session::FragmentTable::Released> released =
        std::make_unique<session::FragmentTable::Released>();
    unsigned miss_count = 0;
    unsigned fragment_count = 0;
    unsigned other_count = 0;

    Backlog<Item> backlog{options.most_waiting};  // first packets whose walk has to wait

    // What bandwidth limits have delayed; and until when the packet in hand is to wait, 0: not.
    Pacer pacer{options.most_held};
    std::uint64_t hold_until = 0;
    // With which identification the datagram leaves whose fragment is in hand; 0: none was given.
    std::uint16_t identification = 0;

    std::uint64_t random = 0x9e3779b97f4a7c15ULL;

    // Where the search for connections to evict goes on: IPv4, IPv6.
    std::array<std::uint32_t, 2> evict_cursor{};

    // Ageing.
    std::array<std::uint32_t, 2> age_cursor{};  // IPv4, IPv6
    std::array<std::uint32_t, 2> age_quota{};
    session::Tick aged;
    std::uint32_t block_cursor = 0;  // of NAT gateways' ports

    [[nodiscard]] std::uint64_t nanoseconds(std::uint64_t cycles) const {
        return options.clock != nullptr ? *options.clock : clock.nanoseconds(cycles);
    }
    [[nodiscard]] const PortFacts& facts(PortId port) const { return shared.ports[port.value - 1]; }
    std::uint64_t next_random() {  // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return random;
    }
};

inline std::uint8_t* bytes_of(rte_mbuf* mbuf) {
    return rte_pktmbuf_mtod(mbuf, std::uint8_t*);
}
inline std::span<const std::uint8_t> contiguous(rte_mbuf* mbuf) {
    return {bytes_of(mbuf), mbuf->data_len};
}

// The parser of a side's frames.
inline auto* parser_of(Side side) {
    return side == Side::underlay ? &wire::parse_underlay : &wire::parse_uplink;
}
// Once more, all checks, for a frame that came by `port`.
inline wire::Headers parse_again(const Worker::State& state, PortId port, rte_mbuf* mbuf) {
    return parser_of(state.facts(port).side)(contiguous(mbuf), mbuf->pkt_len,
                                             state.receivers[port.value]);
}

// Sends what a port's queue holds; what the device does not take is dropped.
void flush(Worker::State& state, SendQueue& port);
void flush_all(Worker::State& state);

// The packet is the device's afterwards. It is complete, Ethernet header first.
inline void send(Worker::State& state, PortId port, rte_mbuf* mbuf) {
    if (__builtin_expect(state.hold_until != 0, 0)) {
        const std::uint64_t until = std::exchange(state.hold_until, 0);
        if (!state.pacer.full()) return state.pacer.hold(until, port, mbuf);
    }
    SendQueue& queue = state.send_queues[port.value];
    if (__builtin_expect(mbuf->nb_segs > 1 && !queue.multi_segment, 0) &&
        rte_pktmbuf_linearize(mbuf) != 0) {
        state.counters.zone[0].drops[static_cast<std::size_t>(DropReason::no_buffer)].add(1);
        rte_pktmbuf_free(mbuf);
        return;
    }
    queue.packets[queue.count++] = mbuf;
    if (queue.count == queue.packets.size()) flush(state, queue);
}

// Why, whose, and by which entry.
struct Drop {
    DropReason reason = DropReason::none;
    policy::ZoneSlot zone;
    const policy::Plan* plan = nullptr;  // where a walk said so
};
// Counts, samples and frees.
void drop(Worker::State& state, const Item& item, const Drop& why);
// The slot of the VPC that a packet claims to come from; for packets without a walk.
policy::ZoneSlot claimed_zone(const Worker::State& state, const wire::Headers& headers);

}  // namespace sluice::worker
