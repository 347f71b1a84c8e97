// SPDX-License-Identifier: Apache-2.0
// Modifications put together, in their order, into one set of Changes for a Backend.
//
// Purpose: an add, modify or remove is judged against the committed state as the earlier
// ones of the same set leave it; nothing is changed until take()'s result is committed.
// OpenFlow 1.3.5 sections 6.4 (flow table modification) and 6.6 (meters).
//
// Ownership: the backend outlives it. Threads: control. Cost: an add or a strict remove a
// hash; a modify, a non-strict remove, and CHECK_OVERLAP the size of the table; removing
// meters one pass over the tables that use them for all meters of the set.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dataplane/openflow/backend.hpp"
#include "dataplane/openflow/codec.hpp"
#include "dataplane/openflow/entry_hash.hpp"

namespace sluice::openflow {

inline constexpr std::uint32_t kMeterCapacity = 1U << 18;

// The meters as all that was given to the backend leaves them, which may be ahead of what
// is committed.
using MeterTable = std::unordered_map<MeterId, Meter>;

// What can be said of a modification before its turn comes: table, match, instructions,
// actions, priority. Nothing: it may be staged.
std::optional<WireError> precheck(const Backend& backend, const FlowMod& mod);
// The OpenFlow error for an Error of the backend.
WireError to_wire(const Error& error);
// The table of that number, or null.
const TableSchema* find_table(const Backend& backend, std::uint8_t table);

// Whether the outcome depends on which entries there are.
bool depends_on_state(const FlowMod& mod);
inline bool depends_on_state(const MeterMod& mod) {
    return mod.command == MeterCommand::remove;
}

// Whether `wide` matches whatever `narrow` does (the non-strict test of section 6.4).
bool covers(const std::vector<MatchField>& wide, const std::vector<MatchField>& narrow);
// Whether some packet may match both.
bool overlaps(const std::vector<MatchField>& one, const std::vector<MatchField>& other);

class Staging {
  public:
    Staging(const Backend& backend, const MeterTable& meters)
        : backend_(backend), meters_(meters) {}

    // Expects a modification that passed precheck(). An error leaves the set as it was.
    std::optional<WireError> apply(const FlowMod& mod);
    std::optional<WireError> apply(const MeterMod& mod);
    // Ends the set.
    Changes take();

  private:
    struct KeyHash {
        std::size_t operator()(const EntryKey& key) const { return key_hash(key); }
    };
    // What an entry becomes; nothing: it goes.
    using Overlay = std::unordered_map<EntryKey, std::optional<Entry>, KeyHash>;

    std::optional<WireError> add(const FlowMod& mod);
    std::optional<WireError> modify(const FlowMod& mod);
    void remove(const FlowMod& mod);
    void put(Entry entry);
    void drop(const EntryKey& key);
    [[nodiscard]] const Entry* find(const EntryKey& key) const;
    [[nodiscard]] const Meter* find_meter(MeterId id) const;
    // The entries that a strict or non-strict request concerns.
    [[nodiscard]] std::vector<Entry> concerned(const FlowMod& mod) const;
    template <class Visitor>
    void visit(std::uint8_t table, Visitor visitor) const;
    [[nodiscard]] bool has_room(const TableSchema& schema);
    void remove_users_of_meters();

    const Backend& backend_;
    const MeterTable& meters_;
    Overlay overlay_;
    std::unordered_map<MeterId, std::optional<Meter>> meter_overlay_;
    std::unordered_set<MeterId> orphaned_;  // removed, their users not yet
    std::unordered_map<std::uint8_t, std::int64_t> growth_;
    bool all_meters_removed_ = false;
};

}  // namespace sluice::openflow
