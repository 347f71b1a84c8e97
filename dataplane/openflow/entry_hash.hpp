// SPDX-License-Identifier: Apache-2.0
// A 64-bit hash of an entry, for the digest that tells controller and gateway which tables
// differ (backend.hpp: TableDigest). Both sides compute it from the same typed entry, so
// it is independent of the wire codec and of either machine's byte order.
//
// Not a defence against a peer that wants a collision: both ends trust each other.
#pragma once

#include "dataplane/openflow/entry.hpp"

namespace sluice::openflow {

// Covers everything an entry says: key, cookie, sets in their order, meter, next table.
std::uint64_t entry_hash(const Entry& entry);
std::uint64_t meter_hash(const Meter& meter);
// Of an entry's identity alone; for hash tables.
std::uint64_t key_hash(const EntryKey& key);

}  // namespace sluice::openflow
