// SPDX-License-Identifier: Apache-2.0
// Everything that a commit touches, and the order in which it does: the policy store, the
// records of reachability, the meters, the file of committed tables.
//
// Use: `commit` applies a bundle whole or not at all; its token elapses when every worker acts
// on it. `tick` drives neighbours and frees what nobody reads any more.
// Ownership: owns the state that workers share, and outlives them. Threads: the control
// thread's; workers read through what `sessions`, `meters`, `adjacencies`, `sources` and the
// store's root give them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dataplane/config/config.hpp"
#include "dataplane/neighbour/neighbour.hpp"
#include "dataplane/policy/function.hpp"
#include "dataplane/policy/store.hpp"
#include "dataplane/port/port.hpp"
#include "dataplane/reachability/reachability.hpp"
#include "dataplane/reachability/routes.hpp"
#include "dataplane/reclaim/qsbr.hpp"
#include "dataplane/session/sessions.hpp"
#include "dataplane/state/state.hpp"
#include "dataplane/worker/nat_ports.hpp"
#include "dataplane/worker/worker.hpp"

namespace sluice::control {

// A VPC came to a zone slot: whatever was counted under the slot before was another's.
struct Opened {
    VpcId vpc;
    policy::ZoneSlot slot;
};

class Tables {
  public:
    static Result<std::unique_ptr<Tables>> create(const config::Config& config,
                                                  std::span<const port::Port> ports,
                                                  const policy::Pipeline& pipeline,
                                                  neighbour::Time now);
    Tables(const Tables&) = delete;
    Tables& operator=(const Tables&) = delete;

    // Validates the bundle, writes it to `file` (nullptr: nowhere), then makes it visible. An
    // error leaves everything as it was.
    Result<reclaim::Qsbr::Token> commit(const openflow::Changes& changes, state::State* file,
                                        neighbour::Time now);

    // Moves records after neighbours or links have changed.
    void follow_neighbours();
    // Frees what the last grace periods have released.
    void reclaim();

    // Addresses that the gateway answers for on an uplink, or no longer, since the last call.
    [[nodiscard]] std::vector<policy::Change<IpAddress>> take_address_changes();
    [[nodiscard]] std::vector<Opened> take_opened();

    // What workers read of it; their ports, addresses and number are the caller's to fill in.
    void share(worker::Shared& shared);

    // The reader's number of the control thread, when it looks at sessions.
    [[nodiscard]] unsigned reader() const { return qsbr.readers() - 1; }

    reclaim::Qsbr qsbr;  // a reader for each worker, and the last for the control thread
    session::Sessions sessions;
    worker::NatPorts nat_ports;
    session::MeterTable meters;
    policy::AdjacencyTable adjacencies;
    policy::SourceTable sources;
    neighbour::Neighbours neighbours;
    reachability::Routes routes;
    reachability::Reachability reachability;
    policy::Store store;

  private:
    Tables(const config::Config& config, std::span<const port::Port> ports,
           const policy::Pipeline& pipeline, neighbour::Time now);
    void install(const policy::Delta& delta, neighbour::Time now);
    void install_meters(const policy::Delta& delta);

    std::vector<policy::Change<IpAddress>> address_changes_;
    std::vector<Opened> opened_;
};

}  // namespace sluice::control
