// SPDX-License-Identifier: Apache-2.0
// The connections of one address family: look-up, insertion of a pair of flows, ending,
// ageing.
//
// Purpose: every packet after a connection's first costs one look-up here. Two buckets are
// possible for a key; the first is preferred while it is not crowded; nothing is ever moved.
// Threads: `candidate`, `find`, `flow`, `connection` from any online QSBR reader, lock-free;
// what they lead to stays readable until that reader's next quiescent state. The rest is for
// workers, each with its own number. Insertion and ending lock the (at most four) buckets of
// the two keys in index order, for some tens of nanoseconds.
// Cost: a look-up touches one bucket line (two when crowded) and the flow's; an insertion
// about 50 ns. Memory per connection: two flows, a connection record, 4 octets, and its share
// of buckets (16 octets at half load).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "dataplane/session/bucket.hpp"
#include "dataplane/session/connection.hpp"
#include "dataplane/session/pool.hpp"
#include "dataplane/session/zone_settings.hpp"

namespace sluice::session {

struct Ipv4 {
    using Key = KeyIpv4;
    using Flow = FlowIpv4;
};
struct Ipv6 {
    using Key = KeyIpv6;
    using Flow = FlowIpv6;
};

struct TableOptions {
    std::uint32_t capacity = 0;  // connections
    unsigned workers = 1;
    HashSeed seed;
    Allocate allocate = map_memory;
};

enum class Insertion : std::uint8_t {
    done,
    forward_exists,  // the initiator's key leads to another live connection
    reverse_exists,  // the replies' key does, or it equals the initiator's
    full,            // both buckets of a key are
    full_and_ended,  // ... and another worker, who saw the one flow, has ended it meanwhile
};

template <class Family>
class SessionTable {
  public:
    using Key = typename Family::Key;
    using Flow = typename Family::Flow;

    SessionTable(const TableOptions& options, reclaim::Qsbr& qsbr);

    // False if memory was short: then nothing else may be called.
    [[nodiscard]] bool ok() const;
    [[nodiscard]] std::uint32_t capacity() const { return pool_.capacity(); }
    [[nodiscard]] std::uint32_t high_water() const { return pool_.high_water(); }
    // Records that are free, about; see ConnectionPool.
    [[nodiscard]] std::uint32_t available(unsigned worker) const { return pool_.available(worker); }
    [[nodiscard]] std::uint32_t available() const { return pool_.available(); }

    [[nodiscard]] std::uint64_t hash(const Key& key) const { return key.hash(seed_); }
    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&buckets_[first(hash)]); }

    // A flow that most likely has the key behind this hash, or kNoFlow. The caller compares
    // keys, and asks `find` when they differ.
    [[nodiscard]] FlowIndex candidate(std::uint64_t hash) const {
        const std::uint16_t wanted = tag(hash);
        const Bucket* bucket = &buckets_[first(hash)];
        unsigned slots = bucket->matching(wanted);
        if (__builtin_expect(slots == 0, 0)) {
            bucket = &buckets_[second(hash)];
            slots = bucket->matching(wanted);
            if (slots == 0) return kNoFlow;
        }
        return bucket->flow(static_cast<unsigned>(__builtin_ctz(slots)));
    }
    [[nodiscard]] FlowIndex find(const Key& key, std::uint64_t hash) const;

    [[nodiscard]] Flow& flow(FlowIndex index) { return flows_[index.value]; }
    [[nodiscard]] const Flow& flow(FlowIndex index) const { return flows_[index.value]; }
    [[nodiscard]] Connection& connection(ConnectionIndex index) {
        return connections_[index.value];
    }
    [[nodiscard]] const Connection& connection(ConnectionIndex index) const {
        return connections_[index.value];
    }

    // A record to fill (its state is `building`, everything else as its last owner left it),
    // or kNoConnection when the table is full.
    ConnectionIndex take(unsigned worker);
    // Publishes a filled record under its two flows' keys: both, or none. Unless `done`, or
    // one of the `full` (then it is disposed of), the record is still the caller's.
    Insertion insert(unsigned worker, ConnectionIndex index, TcpState state,
                     std::uint32_t flags = 0);
    // Gives an unpublished record back.
    void give_back(unsigned worker, ConnectionIndex index);

    // Not 0 for the one caller that ends it, but the state word as it was: it is out of the table
    // then.
    std::uint32_t end(unsigned worker, ConnectionIndex index);

    // By its VPC's time-outs; also where its VPC is gone.
    [[nodiscard]] bool idle_too_long(ConnectionIndex index, const ZoneSettings& zones,
                                     Tick now) const;
    // Packets were seen in both directions.
    [[nodiscard]] bool answered(ConnectionIndex index) const;

    // Frees ended records whose grace period is over, at most `budget`.
    void reclaim(unsigned worker, unsigned budget) { pool_.reclaim(worker, budget); }

  private:
    static std::uint16_t tag(std::uint64_t hash) {
        return static_cast<std::uint16_t>(hash >> 48 | 1);
    }
    [[nodiscard]] std::size_t first(std::uint64_t hash) const { return hash & mask_; }
    [[nodiscard]] std::size_t second(std::uint64_t hash) const { return hash >> 24 & mask_; }

    FlowIndex find_in(std::size_t bucket, std::uint16_t tag, const Key& key) const;
    bool place(std::uint64_t hash, FlowIndex flow);
    void remove(std::uint64_t hash, FlowIndex flow);

    // Locks the distinct buckets of two keys in index order for its lifetime.
    class Locked {
      public:
        Locked(SessionTable& table, std::uint64_t one, std::uint64_t other);
        ~Locked();
        Locked(const Locked&) = delete;
        Locked& operator=(const Locked&) = delete;

      private:
        SessionTable& table_;
        std::array<std::size_t, 4> buckets_{};
        unsigned count_ = 0;
    };

    HashSeed seed_;
    std::size_t mask_;
    Array<Bucket> buckets_;
    Array<Flow> flows_;
    Array<Connection> connections_;
    ConnectionPool pool_;
};

extern template class SessionTable<Ipv4>;
extern template class SessionTable<Ipv6>;

}  // namespace sluice::session
