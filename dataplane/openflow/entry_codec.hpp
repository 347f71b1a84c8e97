// SPDX-License-Identifier: Apache-2.0
// Private to the codec's .cpp files: matches and instructions between an Entry and the
// library's structures. Field by field; this is the one place that knows which OpenFlow
// field carries which of ours.
#pragma once

#include <vector>

#include "dataplane/openflow/ovs.hpp"

namespace sluice::openflow::ovs {

// The carrier of a field; `v6` decides where it depends on the family.
mf_field_id carrier(Field field, bool v6);

// Match fields whose mask is zero are left out.
void encode_match(const std::vector<MatchField>& fields, match& result);
// kBadMatchField for anything that no Field stands for. Sorted by field.
Decoded<std::vector<MatchField>> decode_match(const match& source);

// Meter, set fields, next table.
void encode_instructions(const Entry& entry, ofpbuf* acts);
// Fills entry.set, .meter and .next.
Decoded<bool> decode_instructions(const ofpact* acts, std::size_t length, Entry& entry);

}  // namespace sluice::openflow::ovs
