// SPDX-License-Identifier: Apache-2.0
// Which addresses to announce on which link, and when: gratuitous ARP (RFC 5227 section 2.3) and
// unsolicited neighbour advertisements (RFC 4861 section 7.2.6), so that neighbours that knew the
// address elsewhere send here from now on.
//
// Purpose: a pure state machine. Time goes in with each call, what to send comes out of `take`.
// An address is announced kRounds times, kPause apart, since any one may be lost. Each `take` is
// bounded, so that a start with thousands of addresses floods nobody; what has never been
// announced goes first, so that an elastic IP that moves does not wait behind them.
// Threads: the control thread's. Cost: O(log n) a call and an address.
#pragma once

#include <array>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dataplane/neighbour/neighbour.hpp"

namespace sluice::neighbour {

class Announcements {
  public:
    static constexpr unsigned kRounds = 3;
    static constexpr std::chrono::milliseconds kPause{1000};

    // The address is here now.
    void put(const Key& key, Time now);
    // It is no longer: whoever has it next must not be contradicted.
    void remove(const IpAddress& address);
    // The link was down: what was learnt behind it may be forgotten, so all is said again, after
    // what is new.
    void link_up(PortId port, Time now);

    // At most `most` of those whose time has come.
    [[nodiscard]] std::vector<Key> take(Time now, std::size_t most);

    [[nodiscard]] std::size_t size() const { return all_.size(); }

  private:
    struct Entry {
        PortId port;
        unsigned left = 0;  // rounds to go; 0: none
        Time due;
    };
    void schedule(const IpAddress& address, Entry& entry, unsigned left, Time due);

    std::unordered_map<IpAddress, Entry> all_;
    // By rounds to go.
    std::array<std::set<std::pair<Time, IpAddress>>, kRounds + 1> due_;
};

}  // namespace sluice::neighbour
