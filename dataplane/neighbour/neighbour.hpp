// SPDX-License-Identifier: Apache-2.0
// Neighbours of the gateway on its links: next hops and on-link VTEPs, resolved and kept
// fresh by ARP (RFC 826) and neighbour discovery (RFC 4861 section 7.3).
//
// Purpose: a pure state machine. Time goes in with each call; what to send and what changed
// comes out of `take_requests` and `take_changes`, so that nothing here sleeps or does I/O.
// Threads: the control thread's. Cost: a tick looks at every neighbour once.
// Unlike a host, the gateway always has traffic for its neighbours, so a neighbour is probed
// whenever it was not heard from for `reachable`, without waiting for packets; a next hop
// that fails over is noticed within reachable + probes × retransmit, or at once by its
// gratuitous ARP or unsolicited advertisement.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "dataplane/wire/types.hpp"

namespace sluice::neighbour {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

struct Key {
    PortId port;
    IpAddress address;
    constexpr auto operator<=>(const Key&) const = default;
};

struct Settings {
    std::chrono::milliseconds reachable{5000};   // how long an answer is trusted
    std::chrono::milliseconds retransmit{500};   // between two requests
    std::chrono::milliseconds slow_retry{2000};  // between two requests to one that is gone
    unsigned probes = 3;                         // unanswered requests until it is given up
};

enum class State : std::uint8_t {
    incomplete,   // asked for by broadcast, no address yet
    reachable,    // answered not long ago
    probing,      // asked for by unicast; its address is still used
    unreachable,  // does not answer; asked for slowly
    pinned,       // configured; never asked for
};

// Something to send: ask `key.address` for its MAC address.
struct Request {
    Key key;
    std::optional<MacAddress> unicast_to;  // none: to everybody on the link
    bool operator==(const Request&) const = default;
};

// What a neighbour's address became: none when it is given up.
struct Change {
    Key key;
    std::optional<MacAddress> mac;
    bool operator==(const Change&) const = default;
};

class Neighbours {
  public:
    explicit Neighbours(Settings settings = {}) : settings_(settings) {}

    // Each `want` asks for one `release`.
    void want(const Key& key, Time now);
    void release(const Key& key);
    // A neighbour that is what it is.
    void pin(const Key& key, const MacAddress& mac);

    // Heard from a neighbour: a reply, an advertisement, or a request of its own. Ignored for
    // addresses that nobody wants.
    void heard(const Key& key, const MacAddress& mac, Time now);
    // The link came back or changed sides: ask everybody on the port again.
    void link_changed(PortId port, Time now);
    void tick(Time now);

    [[nodiscard]] std::optional<MacAddress> mac(const Key& key) const;
    [[nodiscard]] std::optional<State> state(const Key& key) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

    [[nodiscard]] std::vector<Request> take_requests();
    [[nodiscard]] std::vector<Change> take_changes();
    [[nodiscard]] bool has_changes() const { return !changes_.empty(); }

  private:
    struct Entry {
        State state = State::incomplete;
        MacAddress mac;
        unsigned wanted = 0;
        unsigned asked = 0;  // unanswered requests
        Time due;            // when `tick` has something to do
    };
    void expire(const Key& key, Entry& entry, Time now);
    void ask(const Key& key, Entry& entry, Time now);
    void probe(const Key& key, Entry& entry, Time now);

    Settings settings_;
    std::map<Key, Entry> entries_;
    std::vector<Request> requests_;
    std::vector<Change> changes_;
};

}  // namespace sluice::neighbour
