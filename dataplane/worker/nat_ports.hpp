// SPDX-License-Identifier: Apache-2.0
// The sessions' ports as a walk may see them. Threads: any.
#pragma once

#include "dataplane/policy/nat_ports.hpp"
#include "dataplane/session/sessions.hpp"

namespace sluice::worker {

class NatPorts final : public policy::NatPorts {
  public:
    explicit NatPorts(const session::Sessions& sessions) : sessions_(sessions) {}

    [[nodiscard]] Choice choose(const policy::NatRequest& request) const override;
    [[nodiscard]] std::optional<Mapping> find(std::uint8_t protocol, const IpAddress& address,
                                              std::uint16_t port) const override;
    [[nodiscard]] bool admits(std::uint8_t protocol, const IpAddress& address, std::uint16_t port,
                              const IpAddress& remote) const override;

  private:
    const session::Sessions& sessions_;
};

}  // namespace sluice::worker
