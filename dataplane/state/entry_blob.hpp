// SPDX-License-Identifier: Apache-2.0
// Table entries as octets, for the state file.
//
// A key and its entry are apart, because the key is the row's identity. Numbers are big-endian
// and fixed in size. Decoding checks every length and enumerator: a file may be damaged.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "dataplane/openflow/entry.hpp"

namespace sluice::state {

using Octets = std::string;

Octets encode_key(const openflow::EntryKey& key);
// Everything of the entry but its key.
Octets encode_body(const openflow::Entry& entry);

// Nothing if the octets are no entry.
std::optional<openflow::Entry> decode(std::span<const char> key, std::span<const char> body);

}  // namespace sluice::state
