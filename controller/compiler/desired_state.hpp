// SPDX-License-Identifier: Apache-2.0
// What one gateway should hold, as of one revision: the border between the compiler, which
// knows what, and the southbound, which sees to it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dataplane/openflow/backend.hpp"

namespace sluice::compiler {

// Threads: the event loop's only. Between two calls from it the visits see one revision.
class DesiredState {
  public:
    virtual ~DesiredState() = default;
    // Grows with each change of the desired state, whichever gateways it concerns.
    [[nodiscard]] virtual std::uint64_t revision() const = 0;
    using EntryVisitor = std::function<void(const openflow::Entry&)>;
    using MeterVisitor = std::function<void(const openflow::Meter&)>;
    // In the order of the keys.
    virtual void visit(std::uint8_t table, const EntryVisitor& visitor) const = 0;
    virtual void visit_meters(const MeterVisitor& visitor) const = 0;
    // Null: there is none. Holds until the desired state changes.
    [[nodiscard]] virtual const openflow::Entry* find(const openflow::EntryKey& key) const = 0;
    [[nodiscard]] virtual const openflow::Meter* find(MeterId id) const = 0;
    // One for each table the controller programs (also the empty ones), and one for the
    // meters (entry_hash.hpp). Tables absent here are left alone.
    [[nodiscard]] virtual std::vector<openflow::TableDigest> digests() const = 0;
};

}  // namespace sluice::compiler
