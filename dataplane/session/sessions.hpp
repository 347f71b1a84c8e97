// SPDX-License-Identifier: Apache-2.0
// Both families' session tables and what they share. Owned by the gateway, outlives workers.
#pragma once

#include "dataplane/session/answer_limits.hpp"
#include "dataplane/session/fragment_table.hpp"
#include "dataplane/session/identification.hpp"
#include "dataplane/session/limits.hpp"
#include "dataplane/session/meter.hpp"
#include "dataplane/session/port_table.hpp"
#include "dataplane/session/remote_table.hpp"
#include "dataplane/session/session_table.hpp"

namespace sluice::session {

struct SessionOptions {
    std::uint32_t ipv4_capacity = 1'000'000;
    std::uint32_t ipv6_capacity = 250'000;
    unsigned workers = 1;
    HashSeed seed;  // random, drawn at start
    Allocate allocate = map_memory;
    std::uint32_t zones = 16384;         // VPCs open at once, and the outside
    std::uint32_t endpoints = 1U << 18;  // that have connections at once
    LimitDefaults limits = LimitDefaults::of(1'000'000, 1);
    FragmentLimits fragments;
    // Of NAT gateways; on plain pages, since most gateways touch little of it.
    PortTableOptions ports;
};

class Sessions {
  public:
    Sessions(const SessionOptions& options, reclaim::Qsbr& qsbr)
        : ipv4({options.ipv4_capacity, options.workers, options.seed, options.allocate}, qsbr),
          ipv6({options.ipv6_capacity, options.workers, options.seed, options.allocate}, qsbr),
          limits(options.allocate, options.limits, options.zones, options.endpoints),
          zones(options.allocate, options.zones),
          ports(ports_of(options)),
          remotes(options.ports.allocate, options.ipv4_capacity, options.seed),
          seed(options.seed),
          fragments(options.fragments, options.seed, options.zones),
          answers(options.seed),
          identifications(options.seed) {}

    // False if memory was short: then it must not be used.
    [[nodiscard]] bool ok() const {
        return ipv4.ok() && ipv6.ok() && limits.ok() && zones.ok() && ports.ok() && remotes.ok();
    }

    // No connection and no NAT port is counted under the slot.
    [[nodiscard]] bool vacant(std::uint32_t zone) const {
        const auto use = limits.use(zone);
        return use.connections[0] == 0 && use.connections[1] == 0 && ports.held(zone) == 0;
    }

    SessionTable<Ipv4> ipv4;
    SessionTable<Ipv6> ipv6;
    Limits limits;
    ZoneSettings zones;
    PortTable ports;
    RemoteTable remotes;
    const HashSeed seed;
    FragmentTable fragments;
    AnswerLimits answers;
    Identifications identifications;

  private:
    static PortTableOptions ports_of(const SessionOptions& options) {
        PortTableOptions ports = options.ports;
        ports.zones = options.zones;
        return ports;
    }
};

}  // namespace sluice::session
