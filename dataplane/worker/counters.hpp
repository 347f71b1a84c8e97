// SPDX-License-Identifier: Apache-2.0
// What a worker counts. One writer, the worker; any thread reads. No sum is kept: the reader
// adds the workers up.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "dataplane/policy/adjacency.hpp"
#include "dataplane/wire/drop_reason.hpp"

namespace sluice::worker {

class Counter {
  public:
    void add(std::uint64_t amount) {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t read() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

struct ZoneCounters {
    std::array<Counter, kDropReasons> drops;
    Counter connections_created;
    Counter connections_ended;    // live ones are the difference, summed over the workers
    Counter connections_evicted;  // ended early, unanswered or closed, to make room for new ones
};

struct PortCounters {
    Counter received, received_octets;
    Counter sent, sent_octets;
};

struct WorkerCounters {
    WorkerCounters(std::uint32_t zone_count, std::uint32_t port_count)
        : zone(std::make_unique<ZoneCounters[]>(zone_count)),
          port(std::make_unique<PortCounters[]>(port_count + 1)),
          zones(zone_count),
          ports(port_count) {}

    std::unique_ptr<ZoneCounters[]> zone;  // by ZoneSlot; 0: the outside and the unknown
    std::unique_ptr<PortCounters[]> port;  // by PortId.value
    std::uint32_t zones, ports;

    Counter turns, idle_turns;         // of the poll loop; idle: nothing received
    Counter busy_cycles, idle_cycles;  // TSC cycles spent in either kind
    Counter walks, rewalks;
    Counter answers;          // packets the gateway itself sent
    Counter answers_limited;  // ... and those the rate limit kept back
};

}  // namespace sluice::worker
