// SPDX-License-Identifier: Apache-2.0
// Ports of NAT gateways: what a walk sees of them, what a commit takes, what an end gives back.
#pragma once

#include "dataplane/policy/nat_ports.hpp"
#include "dataplane/session/sessions.hpp"
#include "dataplane/worker/state.hpp"

namespace sluice::worker {

// The ports that a plan wants, taken for a connection that is being made. What is not kept is
// given back: nobody has used it.
class PortClaim {
  public:
    PortClaim(Worker::State& state, const policy::Plan& plan) : state_(state), plan_(plan) {}
    ~PortClaim() { undo(); }
    PortClaim(const PortClaim&) = delete;
    PortClaim& operator=(const PortClaim&) = delete;

    // Holds the mapping that the connection goes to, if it goes to one.
    DropReason hold();
    // Takes a port for the source, if it gets one: another with each attempt.
    DropReason take(Tuple& leaves, unsigned attempt);
    // Gives the source's port back.
    void give_back();
    // Another attempt may have another port: so many may.
    [[nodiscard]] bool has_others() const {
        return plan_.nat.source && !plan_.nat.endpoint_independent;
    }
    static constexpr int kAttempts = 2;
    // As ConnectionFlag.
    [[nodiscard]] std::uint32_t flags() const;
    // They are the connection's from now on.
    void keep() { taken_ = held_ = false; }

  private:
    session::PortTable::Taken take_used(const session::PortRequest& request, Tuple leaves);
    void undo();

    Worker::State& state_;
    const policy::Plan& plan_;
    session::NatPort source_, destination_;
    std::uint64_t random_ = 0;
    bool taken_ = false, held_ = false;
};

// Gives back what a connection has that ended; `flags`: of its state word.
void release_ports(Worker::State& state, std::uint32_t flags, const Tuple& arrives,
                   const Tuple& leaves, session::Tick last_seen);
// Blocks whose ports have rested, a bounded number a tick.
void expire_ports(Worker::State& state);

}  // namespace sluice::worker
