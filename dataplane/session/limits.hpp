// SPDX-License-Identifier: Apache-2.0
// Who has how much of the session tables, and who may have more.
//
// Purpose: no tenant's flood takes the room or the time that another's connections need.
//
// Room. A VPC or endpoint without a limit of its own may have so many times what is free in
// the family's table (dynamic thresholds, Choudhury and Hahne 1998, as shared-buffer switches
// do): alone it may take most of the table, two that want all get equal shares, and whatever
// they do something stays free for a third. Connections that nobody has answered are held to
// a smaller share, since they cost an attacker one packet each.
// Time. A first packet's sender is charged before the walk, so that what policy refuses costs
// no more than what it admits. One GCRA word each; whoever exceeds its rate only reads it.
// Whoever is no endpoint that the packet proves to come from (spoofed, or an address it may use
// besides its own) is charged apart from the VPC's endpoints, and what comes from outside apart
// from both, by destination address: neither can use up what endpoints open with.
//
// Threads: all workers at once; `set` the control thread. Counts are relaxed atomics of the
// VPC and of the endpoint, touched when a connection opens, is first answered, or ends; they
// are exact, the limits are overrun by at most one connection a worker.
// Cost: some ten nanoseconds a first packet. Memory: 64 octets a VPC, 32 an endpoint's place.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "dataplane/session/memory.hpp"
#include "dataplane/wire/drop_reason.hpp"
#include "dataplane/wire/limits.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::session {

// So many of whatever a second, so many at once: the generic cell rate algorithm in one word,
// shared by all workers. Only those that conform write to it.
class RateWord {
  public:
    // `interval` and `tolerance` in nanoseconds; interval 0 is unlimited.
    bool take(std::uint64_t now, std::uint64_t interval, std::uint64_t tolerance);

  private:
    std::atomic<std::uint64_t> next_{0};
};

// The gateway's defaults. Shares are in eighths of the family's free records, 0: no limit.
struct LimitDefaults {
    // A lone VPC may have 4/5 of a table, a lone endpoint half of it.
    std::uint32_t vpc_connections = 32, endpoint_connections = 8;
    // A flood that nobody answers gets a fifth; one endpoint's a ninth.
    std::uint32_t vpc_half_open = 2, endpoint_half_open = 1;
    // Absolute bounds beside the shares, as SessionLimits has them.
    SessionLimits vpc, endpoint;

    // A table of `capacity` is not to be filled in less than four seconds by one VPC, nor half of
    // what the workers can walk (a million a second each) be taken by it; a quarter of that by
    // one endpoint.
    static LimitDefaults of(std::uint32_t capacity, unsigned workers);
    static LimitDefaults none() { return {0, 0, 0, 0, {}, {}}; }
};

class Limits {
  public:
    Limits(const Allocate& allocate, const LimitDefaults& defaults, std::uint32_t zones,
           std::uint32_t endpoints);

    [[nodiscard]] bool ok() const { return zones_.ok() && sets_.ok() && outside_.ok(); }
    // What a VPC may have from now on.
    void set(std::uint32_t zone, const SessionLimits& limits);

    // --- before the walk ---

    // The rate at which the VPC in `zone` opens connections, and its endpoint (0: not known).
    DropReason charge(std::uint32_t zone, EndpointId endpoint, const SessionLimits& own,
                      std::uint64_t now);
    // From outside, towards the address with this hash. `zone`: in, nothing; out, the VPC that
    // last had it, 0 if unknown.
    DropReason charge_outside(std::uint64_t address, std::uint32_t& zone, std::uint64_t now);
    // The walk knows whose it is.
    void learn(std::uint64_t address, std::uint32_t zone);

    // --- at commit ---

    struct Claim {
        std::size_t family = 0;  // 0: IPv4, 1: IPv6
        std::uint32_t zone = 0;
        EndpointId endpoint;  // whose it is, or 0
        bool half_open = true;
    };
    // Whether there is room for one more, `free` records being free.
    [[nodiscard]] DropReason check(const Claim& claim, const SessionLimits& endpoint,
                                   std::uint32_t free) const;
    // One more. True if the endpoint counts it: `release` wants to know.
    bool take(const Claim& claim);
    void answered(const Claim& claim, bool endpoint_counts);
    void release(const Claim& claim, bool endpoint_counts);

    // --- for people ---

    struct Use {
        std::array<std::uint32_t, 2> connections{}, half_open{};  // by family
        SessionLimits set;                                        // as `set` said
    };
    [[nodiscard]] Use use(std::uint32_t zone) const;
    [[nodiscard]] Use use(EndpointId endpoint) const;
    // What a VPC or an endpoint may have of a family now.
    [[nodiscard]] SessionLimits vpc_limits(const SessionLimits& own, std::uint32_t free) const;
    [[nodiscard]] SessionLimits endpoint_limits(const SessionLimits& own, std::uint32_t free) const;

  private:
    static constexpr std::size_t kWays = 8;
    static constexpr std::size_t kOutside = 4096;

    struct alignas(64) Zone {
        std::array<std::atomic<std::uint32_t>, 2> connections{}, half_open{};
        RateWord known, unknown, outside;
        std::atomic<std::uint32_t> limit_connections{0}, limit_half_open{0}, limit_rate{0};
    };
    static_assert(sizeof(Zone) == 64);
    // Endpoints that have connections, eight places a set. A place is its owner's while the count
    // beside the owner is not zero: one word, so that it is taken and left in one step.
    struct alignas(64) Set {
        using Counts = std::array<std::atomic<std::uint32_t>, kWays>;
        std::array<std::atomic<std::uint64_t>, kWays> owner{};  // EndpointId << 32 | connections
        std::array<RateWord, kWays> rate{};
        Counts ipv6{};  // of the connections
        std::array<Counts, 2> half_open{};
    };
    struct Outside {
        RateWord rate;
        std::atomic<std::uint64_t> owner{0};  // hash << 32 | zone
    };
    struct Place {
        Set* set = nullptr;
        std::size_t way = 0;
    };

    [[nodiscard]] std::size_t set_of(EndpointId endpoint) const;
    [[nodiscard]] Place find(EndpointId endpoint) const;
    static void take_back(const Set& set, Set::Counts& counts, EndpointId endpoint);

    LimitDefaults defaults_;
    std::size_t mask_;
    mutable Array<Zone> zones_;
    mutable Array<Set> sets_;
    Array<Outside> outside_;
};

}  // namespace sluice::session
