// SPDX-License-Identifier: Apache-2.0
// The workers' counters, summed, by VPC.
//
// A worker counts by zone slot, and slots are reused when VPCs close: what stood under a slot
// when its VPC opened is subtracted.
// Threads: the control thread reads; workers go on counting. Cost: a sum over the workers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "dataplane/policy/adjacency.hpp"
#include "dataplane/wire/drop_reason.hpp"
#include "dataplane/worker/counters.hpp"

namespace sluice::telemetry {

struct ZoneSum {
    std::array<std::uint64_t, kDropReasons> drops{};
    std::uint64_t connections_created = 0;
    std::uint64_t connections_ended = 0;
    std::uint64_t connections_evicted = 0;

    ZoneSum& operator-=(const ZoneSum& base);
    [[nodiscard]] std::uint64_t connections() const {
        // Created and ended are read at different moments.
        return connections_created > connections_ended ? connections_created - connections_ended
                                                       : 0;
    }
};

struct PortSum {
    std::uint64_t received = 0, received_octets = 0, sent = 0, sent_octets = 0;
};

class Counters {
  public:
    explicit Counters(std::vector<const worker::WorkerCounters*> workers)
        : workers_(std::move(workers)) {}

    // A VPC took the slot: it starts from zero.
    void opened(policy::ZoneSlot slot);

    [[nodiscard]] ZoneSum zone(policy::ZoneSlot slot) const;
    [[nodiscard]] PortSum port(PortId port) const;
    // Share of a worker's time that went into turns with packets, since the last call for it.
    [[nodiscard]] double busy_ratio(unsigned worker);
    [[nodiscard]] std::span<const worker::WorkerCounters* const> workers() const {
        return workers_;
    }

  private:
    [[nodiscard]] ZoneSum sum(policy::ZoneSlot slot) const;

    std::vector<const worker::WorkerCounters*> workers_;
    std::unordered_map<policy::ZoneSlot, ZoneSum> bases_;
    struct Cycles {
        std::uint64_t busy = 0, idle = 0;
    };
    std::unordered_map<unsigned, Cycles> last_cycles_;
};

}  // namespace sluice::telemetry
