// SPDX-License-Identifier: Apache-2.0
// Reachability: where a flow's packets go (adjacency) and from where they may come
// (source). Flows hold indexes; an index leads to a pointer to an immutable record, and a
// change (a host's VTEP, a next hop's MAC) swaps the pointer, so that any number of flows
// moves with one store and none sees half a record.
//
// Threads: one writer (the control thread); any number of readers, lock-free, between two
// quiescent states of their own (reclaim/qsbr.hpp). The writer retires replaced records
// and reuses freed indexes only after a grace period. Reuse is safe for flows that still
// hold an index: whatever takes it over marks its zone changed, so they are stale.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/wire/types.hpp"

namespace sluice::policy {

// Index into the array of "generation of the last commit that concerned it", one element
// per open VPC; 0 is the outside. Reused after a VPC closes; see above.
using ZoneSlot = Id<struct ZoneSlotTag, std::uint32_t>;
// No VPC's, and always changed: a flow whose record has been removed is judged anew.
inline constexpr ZoneSlot kNobody{1};

// Everything that stands before the inner IP header when a packet leaves.
struct alignas(64) Adjacency {
    enum class Kind : std::uint8_t {
        unreachable,  // dropped as host_unreachable
        vxlan_ipv4,   // 50 octets of Ethernet, IPv4, UDP, VXLAN, then the inner Ethernet's 14
        vxlan_ipv6,   // 70 octets, then 14
        ethernet,     // 14 octets: the uplink
    };
    // Outer lengths, UDP source port, TOS and IPv4 checksum are zero here and set per packet.
    std::array<std::uint8_t, 84> header{};
    std::uint16_t checksum_base = 0;  // folded sum over the constant part of the outer IPv4 header
    std::uint16_t mtu = 0;            // octets of the largest inner IP packet
    PortId port;
    ZoneSlot zone;  // of the destination: the outside for `ethernet`
    Kind kind = Kind::unreachable;
    // Same subnet: the inner Ethernet header and the TTL stay as they came.
    bool bridged = false;
};

// Who may send the packets of a flow; every packet is held against it.
struct alignas(64) Source {
    std::array<IpAddress, 3> vteps{};  // none: unused. Exact outer source addresses.
    MacAddress mac;                    // inner source MAC; all zero on the uplink: any
    ZoneSlot zone;
};

// A fixed-capacity array of pointers to immutable records. Index 0 holds a record that
// is safe to use and reaches nobody.
template <class Record, class Index>
class RecordTable {
  public:
    explicit RecordTable(std::uint32_t capacity)
        : slots_(std::make_unique<std::atomic<const Record*>[]>(capacity)), capacity_(capacity) {
        nothing_.zone = kNobody;
        for (std::uint32_t i = 0; i < capacity; ++i)
            slots_[i].store(&nothing_, std::memory_order_relaxed);
        free_.reserve(capacity);
        for (std::uint32_t i = capacity; i-- > 1;) free_.push_back(i);
    }
    RecordTable(const RecordTable&) = delete;
    RecordTable& operator=(const RecordTable&) = delete;

    // Any thread. The index must be below the capacity.
    [[nodiscard]] const Record& operator[](Index index) const {
        return *slots_[index.value].load(std::memory_order_acquire);
    }

    // The rest is for the writer alone.
    // An index for a new record, or 0 when the table is full.
    [[nodiscard]] Index allocate() {
        if (free_.empty()) return Index{};
        const std::uint32_t index = free_.back();
        free_.pop_back();
        return Index{index};
    }
    // Publishes a record; the caller owns it and retires the returned one after a grace
    // period (nullptr: nothing to retire).
    const Record* replace(Index index, const Record* record) {
        const Record* before =
            slots_[index.value].exchange(record ? record : &nothing_, std::memory_order_acq_rel);
        return before == &nothing_ ? nullptr : before;
    }
    // After a grace period from `replace(index, nullptr)`.
    void free(Index index) { free_.push_back(index.value); }
    [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
    [[nodiscard]] std::uint32_t used() const {
        return capacity_ - 1 - static_cast<std::uint32_t>(free_.size());
    }

  private:
    Record nothing_{};
    std::unique_ptr<std::atomic<const Record*>[]> slots_;
    std::uint32_t capacity_;
    std::vector<std::uint32_t> free_;
};

using AdjacencyTable = RecordTable<Adjacency, AdjacencyIndex>;
using SourceTable = RecordTable<Source, SourceIndex>;

}  // namespace sluice::policy
