// SPDX-License-Identifier: Apache-2.0
// The gateway's own routing: over which port and which neighbour a VTEP, or the internet, is
// reached.
//
// A VTEP on a port's own prefix is its own neighbour; any other is reached through the first
// next hop that answers, in the order of the configuration, over ports whose link is up.
// Ownership: refers to the ports and to the neighbours, which it asks for what it needs.
// Threads: the control thread's.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "dataplane/neighbour/neighbour.hpp"
#include "dataplane/port/port.hpp"

namespace sluice::reachability {

// The way to somewhere, as far as the first neighbour.
struct Hop {
    PortId port;
    MacAddress mac;  // the neighbour's
    bool operator==(const Hop&) const = default;
};

class Routes {
  public:
    Routes(std::span<const port::Port> ports, std::span<const IpAddress> vteps,
           neighbour::Neighbours& neighbours, neighbour::Time now);

    // Begins to resolve a VTEP; each needs its release.
    void hold(const IpAddress& vtep, neighbour::Time now);
    void release(const IpAddress& vtep);

    // The gateway's own VTEP of that family.
    [[nodiscard]] std::optional<IpAddress> own_vtep(Family family) const;
    [[nodiscard]] std::optional<Hop> to_vtep(const IpAddress& vtep) const;
    [[nodiscard]] std::optional<Hop> to_internet(Family family) const;
    [[nodiscard]] const port::Port& port(PortId id) const { return ports_[id.value - 1]; }
    // The uplink port on whose own prefix the address is.
    [[nodiscard]] const port::Port* on_link_uplink(const IpAddress& address) const;

    void link(PortId port, bool up);
    // Decides anew after neighbours or links have changed.
    struct Moved {
        std::vector<IpAddress> vteps;  // those whose hop is another one now
        bool internet = false;
    };
    [[nodiscard]] Moved refresh();

  private:
    struct Remote {
        unsigned held = 0;
        std::optional<neighbour::Key> on_link;
        std::optional<Hop> hop;
    };
    [[nodiscard]] std::optional<Hop> decide(const Remote& remote, Family family) const;
    [[nodiscard]] std::optional<Hop> first_next_hop(Side side, Family family) const;
    [[nodiscard]] std::optional<Hop> resolved(const neighbour::Key& key) const;

    std::span<const port::Port> ports_;
    std::vector<IpAddress> vteps_;
    neighbour::Neighbours& neighbours_;
    std::set<PortId> down_;
    std::map<IpAddress, Remote> remotes_;
    std::map<Family, std::optional<Hop>> internet_;
};

}  // namespace sluice::reachability
