// SPDX-License-Identifier: Apache-2.0
// The generator's devices: those of the profile, and for each of them a loop that gives back what
// it is sent, on which the generator measures itself.
//
// One per process: it starts DPDK and stops it. The calling thread stays the control thread; `work`
// runs on the generator's core. Errors name the profile's key.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bench/pktgen/engine.hpp"
#include "bench/pktgen/profile.hpp"
#include "dataplane/port/eal.hpp"
#include "dataplane/port/port.hpp"

namespace sluice::pktgen {

enum class Devices : std::uint8_t { loops, profile_and_loops };

// What DPDK is started with; also for checks that start it otherwise.
config::Config device_config(const Profile& profile, unsigned core, Devices devices);

class Rig {
  public:
    static Result<std::unique_ptr<Rig>> open(const Profile& profile, unsigned core,
                                             Devices devices);

    // The profile's, in its order, once their gateways' MAC addresses are known. Waits for the
    // links and for the answers for at most so many seconds each.
    Result<std::vector<Link>> links(double seconds);
    // The loops, in the same order.
    [[nodiscard]] std::vector<Link> loops() const;
    void launch(std::function<void()> work) { eal_->launch(0, std::move(work)); }
    void join() { eal_->join(); }

  private:
    explicit Rig(const Profile& profile) : profile_(profile) {}
    const Profile& profile_;
    std::unique_ptr<port::Eal> eal_;
    std::unique_ptr<port::Ports> ports_;  // before the EAL in destruction
    std::size_t first_loop_ = 0;
};

}  // namespace sluice::pktgen
