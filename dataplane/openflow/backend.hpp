// SPDX-License-Identifier: Apache-2.0
// What the OpenFlow switch side asks of the gateway behind it. The switch (protocol,
// bundles, errors) knows nothing of packets; the gateway knows nothing of messages.
//
// Threads: all calls come from, and all callbacks are made on, the control thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/openflow/entry.hpp"
#include "dataplane/openflow/schema.hpp"

namespace sluice::openflow {

struct PortInfo {
    PortId port;
    std::string name;
    MacAddress mac;
    bool link_up = false;
    std::uint32_t speed_mbps = 0;
    std::uint64_t rx_packets = 0, tx_packets = 0, rx_bytes = 0, tx_bytes = 0;
    std::uint64_t rx_dropped = 0, tx_dropped = 0;
};

// A counter that is not kept is the field's largest value (OpenFlow 1.3.5 section 5.8).
inline constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};

struct EntryStats {
    std::uint64_t packets = kNotCounted;
    std::uint64_t bytes = kNotCounted;
    std::chrono::nanoseconds age{0};  // since it was added
};

// Order-independent digest of a table's entries: the sum, modulo 2^64, of a hash of each
// (entry_hash.hpp). `table` kMeterDigest stands for the meters.
inline constexpr std::uint8_t kMeterDigest = 0xff;

struct TableDigest {
    std::uint8_t table = 0;
    std::uint32_t count = 0;
    std::uint64_t sum = 0;
    constexpr auto operator<=>(const TableDigest&) const = default;
};

class Backend {
  public:
    virtual ~Backend() = default;

    // What the switch is.
    [[nodiscard]] virtual std::string name() const = 0;           // the gateway's, in DESC
    [[nodiscard]] virtual std::uint64_t datapath_id() const = 0;  // stable for a name
    [[nodiscard]] virtual std::vector<PortInfo> ports() const = 0;
    [[nodiscard]] virtual std::span<const TableSchema* const> tables() const = 0;

    // The committed state. Pointers hold until control returns to the event loop.
    [[nodiscard]] virtual const Entry* find(const EntryKey& key) const = 0;
    // Calls `visit` for each entry of a table in a fixed order, from the entry after
    // `after` (nullptr: from the first), until it returns false.
    virtual void visit(std::uint8_t table, const EntryKey* after,
                       const std::function<bool(const Entry&)>& visit) const = 0;
    // Of an entry that `visit` has just shown.
    [[nodiscard]] virtual EntryStats stats(const Entry& entry) const = 0;
    // Brings what `stats` says up to date, a bounded amount of work a turn; then calls `done`,
    // perhaps at once.
    virtual void refresh_stats(const std::function<void()>& done) { done(); }
    [[nodiscard]] virtual std::uint32_t count(std::uint8_t table) const = 0;
    [[nodiscard]] virtual std::vector<Meter> meters() const = 0;
    [[nodiscard]] virtual std::vector<TableDigest> digests() const = 0;

    // What is wrong with an entry that its table's schema accepts, whatever else is in the tables;
    // so that it alone is refused, and not the commit that it would have been in.
    [[nodiscard]] virtual std::optional<Problem> check(const Entry& /*entry*/) const {
        return std::nullopt;
    }

    // Applies all changes or none. `done` is called, once, on the control thread: with no
    // error when every worker acts on the new state and the state is on disk (so a
    // barrier may be answered), else with the reason and nothing changed. Calls are
    // served in order.
    virtual void commit(Changes changes, std::function<void(Result<void>)> done) = 0;

    // Experimenter requests: a JSON text in, a JSON text out. `kind` is one of "explain",
    // "flows", "drops", "gateway". `done` is called once, perhaps at once: what takes long is
    // spread over turns of the loop.
    virtual void query(std::string_view kind, std::string_view request,
                       std::function<void(Result<std::string>)> done) = 0;
};

}  // namespace sluice::openflow
