// SPDX-License-Identifier: Apache-2.0
// The one writer of policy.
//
// Use: `prepare` a bundle (validates all of it, then builds the next snapshot; nothing is
// visible yet), then `publish` it, or drop it, which undoes it. `reclaim` once in a while.
// Ownership: owns all snapshots. What it was given outlives it.
// Threads: everything on the control thread, except `root` and `changed`, which workers read.
// Cost: of prepare: that of the changed entries, whatever else there is; of a rule or route,
// that of its group or route table.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/openflow/backend.hpp"
#include "dataplane/policy/commit.hpp"
#include "dataplane/policy/function.hpp"
#include "dataplane/policy/snapshot.hpp"
#include "dataplane/reclaim/qsbr.hpp"

namespace sluice::policy {

class Store;

// A bundle that could be applied. Dropped, it gives back what it took. At most one at a time.
class Prepared {
  public:
    Prepared(Prepared&& other) noexcept
        : store_(std::exchange(other.store_, nullptr)),
          next_(std::move(other.next_)),
          delta_(std::move(other.delta_)),
          zones_(std::move(other.zones_)),
          taken_(std::move(other.taken_)),
          released_(std::move(other.released_)) {}
    Prepared& operator=(Prepared&&) = delete;
    ~Prepared();

    [[nodiscard]] const Snapshot& next() const { return *next_; }
    [[nodiscard]] const Delta& delta() const { return delta_; }
    // Whose connections must be judged again.
    [[nodiscard]] std::span<const ZoneSlot> zones() const { return zones_; }

  private:
    friend class Store;
    explicit Prepared(Store& store) : store_(&store) {}

    Store* store_;  // nullptr: published, or moved from
    std::unique_ptr<Snapshot> next_;
    Delta delta_;
    std::vector<ZoneSlot> zones_;
    IndexLists taken_, released_;
};

class Store {
  public:
    struct Options {
        AdjacencyTable& adjacencies;
        SourceTable& sources;
        reclaim::Qsbr& qsbr;
        const Pipeline& pipeline;
        Outside outside;
        std::span<const openflow::PortRow> ports;        // the built-in entries of table `port`
        OwnAddresses own = {};                           // that no entry may give away
        std::chrono::steady_clock::time_point now = {};  // when the built-in entries are added
        std::uint32_t zone_capacity = 16384;             // VPCs open at once, and the outside
        std::uint32_t meter_capacity = (1U << 16) - 1;
        // Whether nothing is counted under the slot of a VPC that is gone any more: only then may
        // another VPC have it.
        std::function<bool(ZoneSlot)> vacant = {};
        const NatPorts* nat_ports = nullptr;  // that walks look at
    };

    explicit Store(const Options& options);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    // What is wrong with an entry of a table that is there, whatever else is in the tables.
    [[nodiscard]] std::optional<openflow::Problem> check(const openflow::Entry& entry) const;

    // Errors: those of `check`; not_found for an unknown table or meter; read_only for a
    // built-in table; exhausted when a table is full; conflict. Removals come before puts;
    // of two puts of one key the last counts. `now`: when new entries are added. An entry that is
    // put again with its cookie is modified, and as old as it was (OpenFlow 1.3.5 section 6.4).
    using Time = std::chrono::steady_clock::time_point;
    Result<Prepared> prepare(const openflow::Changes& changes, Time now = {});

    // Of the latest `prepare`. In this order: marks the zones, calls `install(delta)`, which makes
    // the records of reachability say what the delta says, swaps the root. Marks come first, so
    // that no flow meets a reused index before it is stale; flows are stamped with the generation
    // that they were judged by, so early marks only cost a second judgement. A removed
    // record stays where it is until its index is reused: flows that still hold it are stale
    // by its zone. Elapsed of the result: every worker acts on the new snapshot.
    template <class Install>
    reclaim::Qsbr::Token publish(Prepared prepared, Install&& install) {
        mark(prepared);
        install(static_cast<const Delta&>(prepared.delta_));
        return swap(std::move(prepared));
    }

    // Frees snapshots and indexes that nobody can hold any more.
    void reclaim();

    [[nodiscard]] const Snapshot& current() const { return *current_; }
    // For workers: nullptr inside until the first publish.
    [[nodiscard]] const std::atomic<const Snapshot*>& root() const { return root_; }
    // For workers: by ZoneSlot, the generation of the last commit that concerned it.
    [[nodiscard]] std::span<const std::atomic<std::uint32_t>> changed() const {
        return {changed_.get(), zone_capacity_};
    }

  private:
    friend class Prepared;
    struct Retired {
        reclaim::Qsbr::Token token;
        std::unique_ptr<const Snapshot> snapshot;
        IndexLists indexes;
    };

    void mark(const Prepared& prepared);
    reclaim::Qsbr::Token swap(Prepared prepared);
    void give_back(const IndexLists& indexes);

    IndexSources indexes() { return {adjacencies_, sources_, zones_}; }

    AdjacencyTable& adjacencies_;
    SourceTable& sources_;
    reclaim::Qsbr& qsbr_;
    const Pipeline& pipeline_;
    const OwnAddresses own_;
    std::uint32_t zone_capacity_;
    std::uint32_t meter_capacity_;
    std::function<bool(ZoneSlot)> vacant_;
    ZoneSlots zones_;
    std::vector<ZoneSlot> resting_;  // until they are vacant
    std::unique_ptr<std::atomic<std::uint32_t>[]> changed_;
    std::atomic<const Snapshot*> root_{nullptr};
    std::unique_ptr<const Snapshot> current_;
    std::deque<Retired> retired_;
};

}  // namespace sluice::policy
