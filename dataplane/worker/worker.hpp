// SPDX-License-Identifier: Apache-2.0
// A poll-mode worker: receive, parse, look up, act, send.
//
// Purpose: carries every packet of the queues it was given. A packet that hits a connection
// costs a look-up and a rewrite; a first packet is judged by the walk and becomes a
// connection. See turn.cpp for the packet's way.
// Ownership: everything in Shared belongs to the gateway and outlives all workers.
// Threads: `run` (or `turn`) on one thread; `stop`, `counters` and the receiving ends of the
// rings from others. On its thread nothing allocates, locks, logs or blocks, except that an
// idle worker sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/policy/adjacency.hpp"
#include "dataplane/policy/plan.hpp"
#include "dataplane/port/queues.hpp"
#include "dataplane/reclaim/qsbr.hpp"
#include "dataplane/session/sessions.hpp"
#include "dataplane/worker/counters.hpp"
#include "dataplane/worker/messages.hpp"
#include "dataplane/worker/ring.hpp"

struct rte_ring;

namespace sluice::worker {

// A port as workers see it; fixed at start.
struct PortFacts {
    PortId id;
    Side side = Side::underlay;
    MacAddress mac;
    std::vector<IpAddress> addresses;  // the gateway's own on this port
    std::uint16_t mtu = 1500;          // octets of an outer IP packet
    bool multi_segment = true;         // the device sends chained buffers
};

// What all workers use.
struct Shared {
    const std::atomic<const policy::Snapshot*>* root = nullptr;  // nullptr inside: not ready
    policy::WalkFunction walk = nullptr;
    policy::ZoneFunction zone_of = nullptr;
    policy::SenderFunction sender_of = nullptr;
    const policy::AdjacencyTable* adjacencies = nullptr;
    const policy::SourceTable* sources = nullptr;
    // Generation of the last commit that concerned a zone, by ZoneSlot.
    std::span<const std::atomic<std::uint32_t>> changed;
    session::Sessions* sessions = nullptr;
    session::MeterTable* meters = nullptr;
    reclaim::Qsbr* qsbr = nullptr;  // reader index = worker index
    unsigned workers = 1;
    std::vector<PortFacts> ports;  // by PortId.value - 1
    std::vector<IpAddress> vteps;  // outer destinations that are the gateway
    // When the gateway started from tables of before (nanoseconds of the workers' clock): for so
    // long after it as a VPC wants, connections are picked up in their middle. 0: it did not.
    std::atomic<std::uint64_t> restarted{0};
};

struct WorkerOptions {
    unsigned index = 0;  // from 0; also the QSBR reader
    port::WorkerPorts ports;
    // Turns without packets before it pauses, and before it sleeps; 0 sleeps never.
    unsigned idle_turns_before_sleep = 2000;
    unsigned sleep_microseconds = 50;
    // Packets that may be walked in a turn that found its queues full; the others wait.
    unsigned walk_budget = 16;
    // Packets that may wait: for their walk (some milliseconds of walks), and for their time
    // under a bandwidth limit.
    std::uint16_t most_waiting = 2048;
    std::uint16_t most_held = 4096;
    // Nanoseconds of a clock of the caller's, so that what takes time is tested without
    // sleeping; nullptr: the TSC.
    const std::uint64_t* clock = nullptr;
    std::uint32_t event_capacity = 4096;
    std::uint32_t sample_capacity = 256;
    std::uint32_t block_capacity = 4096;  // block events that wait for the control thread
};

class Worker {
  public:
    Worker(WorkerOptions options, Shared& shared);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // Until `stop`. Registers as QSBR reader meanwhile.
    void run();
    void stop();

    // One turn of `run`, for benchmarks and tests; the caller puts the reader online.
    // Returns how many packets it received or, where none came, took from those that waited.
    unsigned turn();

    [[nodiscard]] const WorkerCounters& counters() const;
    // The control thread receives.
    Ring<NeighbourMessage>& neighbours();
    Ring<ConnectionEvent>& events();
    Ring<DropSample>& samples();
    Ring<session::BlockEvent>& blocks();
    // The control thread sends frames (rte_mbuf from the worker's pool, m->port = PortId.value)
    // as they are. Single producer.
    rte_ring* inject();

    struct State;  // worker_state.hpp

  private:
    std::unique_ptr<State> state_;
};

}  // namespace sluice::worker
