// SPDX-License-Identifier: Apache-2.0
// What must be sent so that a switch holds what is desired: the resynchroniser's
// arithmetic, free of connections.
//
// Threads: any, values. Cost: the tables that differ, hashed once.
#pragma once

#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "controller/compiler/desired_state.hpp"
#include "dataplane/openflow/entry_hash.hpp"

namespace sluice::southbound {

struct KeyHash {
    std::size_t operator()(const openflow::EntryKey& key) const { return openflow::key_hash(key); }
};

// What was read back of a switch. Tables that are not in `tables` were not read.
struct Actual {
    std::set<std::uint8_t> tables;  // kMeterDigest: the meters
    std::unordered_map<openflow::EntryKey, openflow::Entry, KeyHash> entries;
    std::unordered_map<MeterId, openflow::Meter> meters;
};

// The desired tables (kMeterDigest: the meters) whose digest the switch does not have.
std::set<std::uint8_t> differing(std::span<const openflow::TableDigest> desired,
                                 std::span<const openflow::TableDigest> actual);

// From what was read to what is desired. Consumes `actual`.
openflow::Changes difference(const compiler::DesiredState& desired, Actual actual);

// Leaves of `later` what concerns tables that were not read (the others' difference was
// computed after it), and appends it to `changes`. `later` is in the order of publication.
void append_unread(openflow::Changes& changes, std::span<const openflow::Changes> later,
                   const std::set<std::uint8_t>& read);

}  // namespace sluice::southbound
