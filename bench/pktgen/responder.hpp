// SPDX-License-Identifier: Apache-2.0
// The generator as a neighbour on one of its links: answers ARP and neighbour discovery for the
// addresses that it plays (VTEPs on the underlay, the router on the uplink), and learns the
// gateway's MAC address.
//
// A plain value; one thread. No allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bench/pktgen/profile.hpp"

namespace sluice::pktgen {

class Responder {
  public:
    // Of the profile's port; `own` is the port's MAC address.
    Responder(const Profile& profile, const Port& port, const MacAddress& own);

    // Reads a frame; returns the octets of an answer in `out`, or 0.
    std::size_t answer(std::span<const std::uint8_t> frame, std::span<std::uint8_t> out);
    // Asks for the gateway; returns the octets of the question.
    std::size_t question(std::span<std::uint8_t> out) const;
    // Configured, or learned.
    [[nodiscard]] const std::optional<MacAddress>& gateway() const { return gateway_mac_; }
    [[nodiscard]] const MacAddress& own() const { return own_; }

  private:
    [[nodiscard]] bool plays(const IpAddress& address) const;
    void learn(const IpAddress& address, const MacAddress& mac);

    IpAddress first_, gateway_;
    std::uint32_t count_;  // addresses from the first
    MacAddress own_;
    std::optional<MacAddress> gateway_mac_;
};

}  // namespace sluice::pktgen
