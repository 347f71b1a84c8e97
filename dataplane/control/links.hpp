// SPDX-License-Identifier: Apache-2.0
// The control thread's side of the links: asks for neighbours, announces elastic addresses,
// watches whether the links are up.
//
// It never receives: workers tell it what they heard. It never sends itself either: frames go
// to a worker, which sends them between two bursts.
// Threads: the control thread's. Ownership: refers to ports, neighbours and the ring.
#pragma once

#include <span>
#include <vector>

#include "dataplane/neighbour/announcements.hpp"
#include "dataplane/neighbour/neighbour.hpp"
#include "dataplane/port/port.hpp"
#include "dataplane/reachability/routes.hpp"

struct rte_mempool;
struct rte_ring;

namespace sluice::control {

// Frames on their way to a worker: from its pool, through its ring.
struct Injection {
    rte_mempool* pool = nullptr;
    rte_ring* ring = nullptr;
};

class Links {
  public:
    Links(const port::Ports& ports, neighbour::Neighbours& neighbours, reachability::Routes& routes,
          Injection injection);

    // Tells an on-link uplink that the address is here now, or no longer to be announced.
    void announce(const IpAddress& address, neighbour::Time now);
    void withdraw(const IpAddress& address);
    // The gateway's own addresses, which may have been another machine's or another MAC's before
    // the start.
    void announce_own(neighbour::Time now);
    // Polls the links, sends what the neighbours ask and what is to be announced. True if a
    // link changed.
    bool tick(neighbour::Time now);

  private:
    bool poll_links(neighbour::Time now);
    void ask(const neighbour::Request& request);
    void say(const neighbour::Key& here);
    void send(PortId port, std::span<const std::uint8_t> frame);

    const port::Ports& ports_;
    neighbour::Neighbours& neighbours_;
    reachability::Routes& routes_;
    Injection injection_;
    std::vector<bool> up_;
    neighbour::Time next_poll_;
    neighbour::Announcements announcements_;
};

}  // namespace sluice::control
