// SPDX-License-Identifier: Apache-2.0
// One route table: longest-prefix match over immutable sorted intervals.
//
// Purpose: prefixes nest or are disjoint, so a table of n of them cuts the address space
// into at most 2n + 1 intervals with one answer each; a look-up is one binary search.
// Threads: immutable, any number of readers. A change builds the next one.
// Cost: building sorts the rows; a look-up in 1,000 routes is ten steps in one array.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dataplane/openflow/tables.hpp"

namespace sluice::policy {

__extension__ using Address128 = unsigned __int128;

class RouteTable {
  public:
    RouteTable() = default;
    // Rows of one table, no two of the same destination.
    explicit RouteTable(std::vector<openflow::RouteRow> rows);

    // The row of the longest prefix that contains the address, or nullptr.
    [[nodiscard]] const openflow::RouteRow* find(const IpAddress& address) const;
    [[nodiscard]] std::span<const openflow::RouteRow> rows() const { return rows_; }

  private:
    // `starts` ascends; `rows[i]` is the answer from starts[i] to the next start: an index
    // into rows_ or kNone.
    template <class Address>
    struct Intervals {
        std::vector<Address> starts;
        std::vector<std::uint32_t> rows;

        void begin(Address start, std::uint32_t row);
        [[nodiscard]] std::uint32_t at(Address address) const;
    };
    template <class Address>
    void build(Intervals<Address>& intervals, Family family);

    static constexpr std::uint32_t kNone = ~0U;

    std::vector<openflow::RouteRow> rows_;  // by family, address, length
    Intervals<std::uint32_t> ipv4_;
    Intervals<Address128> ipv6_;
};

}  // namespace sluice::policy
