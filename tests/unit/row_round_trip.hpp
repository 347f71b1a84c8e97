// SPDX-License-Identifier: Apache-2.0
// The property that every table's row has: what it encodes is an entry that the table's
// schema accepts, and decodes to the same row.
#pragma once

#include "dataplane/openflow/entry_hash.hpp"
#include "dataplane/openflow/schema.hpp"
#include "tests/unit/arbitrary.hpp"

namespace sluice::tests {

template <class Row>
void check_round_trip(const openflow::TableSchema& schema, const Row& row) {
    const openflow::Entry entry = row.encode();
    const auto valid = openflow::validate(schema, entry);
    if (!valid.ok()) RC_FAIL(valid.error().path + ": " + valid.error().message);
    const auto decoded = Row::decode(entry);
    if (!decoded.ok()) RC_FAIL(decoded.error().path + ": " + decoded.error().message);
    RC_ASSERT(decoded->encode() == entry);
    RC_ASSERT(openflow::entry_hash(decoded->encode()) == openflow::entry_hash(entry));
}

}  // namespace sluice::tests
