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
// Cost: some ten nanoseconds a first packet. Memory: 128 octets a VPC, 48 an endpoint's place.
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

// How many of whatever there were in the last whole second: one word. About: two workers at once
// may lose some, nothing else.
class RecentRate {
  public:
    void note(std::uint64_t now) {
        const std::uint64_t word = word_.load(std::memory_order_relaxed);
        const std::uint64_t second = second_of(now);
        std::uint64_t next = word + ((word & kMost) != kMost ? 1 : 0);
        if (word >> 2 * kBits != second)
            next = second << 2 * kBits | (follows(second, word) ? (word & kMost) << kBits : 0) | 1;
        word_.store(next, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint32_t per_second(std::uint64_t now) const {
        const std::uint64_t word = word_.load(std::memory_order_relaxed);
        const std::uint64_t second = second_of(now);
        if (word >> 2 * kBits == second) return static_cast<std::uint32_t>(word >> kBits & kMost);
        return follows(second, word) ? static_cast<std::uint32_t>(word & kMost) : 0;
    }

  private:
    // The second (it wraps after 12 days), the count of the one before it, its own: up to four
    // million.
    static constexpr unsigned kBits = 22;
    static constexpr std::uint64_t kMost = (1U << kBits) - 1, kSeconds = (1U << 20) - 1;
    static constexpr std::uint64_t second_of(std::uint64_t now) {
        return now / 1'000'000'000 & kSeconds;
    }
    static constexpr bool follows(std::uint64_t second, std::uint64_t word) {
        return (((word >> 2 * kBits) + 1) & kSeconds) == second;
    }
    std::atomic<std::uint64_t> word_{0};
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
    // What a VPC and each of its endpoints may have from now on.
    void set(std::uint32_t zone, const VpcLimits& limits);

    // --- before the walk ---

    // The rate at which the VPC in `zone` opens connections, and its endpoint (0: not known).
    DropReason charge(std::uint32_t zone, EndpointId endpoint, std::uint64_t now);
    // From outside, towards the address with this hash: at its own rate, and that of the VPC in
    // `zone`, 0: nobody's as far as is known.
    DropReason charge_outside(std::uint64_t address, std::uint32_t zone, std::uint64_t now);
    // The VPC that had the address when it was last walked to, in a snapshot of that generation.
    struct OutsideOwner {
        std::uint32_t zone = 0;  // 0: unknown
        Generation generation;
    };
    [[nodiscard]] OutsideOwner outside_owner(std::uint64_t address) const;
    // The walk knows whose it is.
    void learn(std::uint64_t address, const OutsideOwner& owner);

    // --- at commit ---

    struct Claim {
        std::size_t family = 0;  // 0: IPv4, 1: IPv6
        std::uint32_t zone = 0;
        EndpointId endpoint;  // whose it is, or 0
        bool half_open = true;
    };
    // Whether there is room for one more, `free` records being free.
    [[nodiscard]] DropReason check(const Claim& claim, std::uint32_t free) const;
    // It was refused for this reason: counted, if it is the endpoint's, for people.
    void refuse(EndpointId endpoint, DropReason reason);
    // One more. True if the endpoint counts it: `release` wants to know.
    bool take(const Claim& claim);
    void answered(const Claim& claim, bool endpoint_counts);
    void release(const Claim& claim, bool endpoint_counts);

    // --- for people ---

    struct Use {
        std::array<std::uint32_t, 2> connections{}, half_open{};  // by family
        std::uint32_t per_second = 0;  // tried in the last whole second, about
    };
    // Of an endpoint, by reason, since it last had no connection.
    struct Refused {
        std::uint32_t connections = 0, half_open = 0, per_second = 0;
    };
    [[nodiscard]] Use use(std::uint32_t zone, std::uint64_t now = 0) const;
    [[nodiscard]] Use use(EndpointId endpoint, std::uint64_t now = 0) const;
    [[nodiscard]] Refused refused(EndpointId endpoint) const;
    // Calls visit(EndpointId) for each that has connections, or had some lately.
    template <class Visit>
    void visit(Visit visit) const {
        for (std::size_t i = 0; i < sets_.size(); ++i)
            for (const auto& owner : sets_[i].owner)
                if (const std::uint64_t word = owner.load(std::memory_order_relaxed); word != 0)
                    visit(EndpointId{static_cast<std::uint32_t>(word >> 32)});
    }
    // What `set` said.
    [[nodiscard]] VpcLimits own(std::uint32_t zone) const;
    // What a VPC or an endpoint of it may have of a family now, `free` records being free.
    [[nodiscard]] SessionLimits vpc_limits(std::uint32_t zone, std::uint32_t free) const;
    [[nodiscard]] SessionLimits endpoint_limits(std::uint32_t zone, std::uint32_t free) const;

  private:
    static constexpr std::size_t kWays = 8;
    static constexpr std::size_t kOutside = 4096;

    // As `set` said; 0: the gateway's default.
    struct Bounds {
        std::atomic<std::uint32_t> connections{0}, half_open{0}, per_second{0};
        void store(const SessionLimits& limits);
        [[nodiscard]] SessionLimits load() const;
    };
    struct alignas(64) Zone {
        std::array<std::atomic<std::uint32_t>, 2> connections{}, half_open{};
        RateWord known, unknown, outside;
        Bounds vpc, endpoint;
        RecentRate recent;
    };
    static_assert(sizeof(Zone) == 128);
    // Endpoints that have connections, eight places a set. A place is its owner's while the count
    // beside the owner is not zero: one word, so that it is taken and left in one step.
    struct alignas(64) Set {
        using Counts = std::array<std::atomic<std::uint32_t>, kWays>;
        std::array<std::atomic<std::uint64_t>, kWays> owner{};  // EndpointId << 32 | connections
        std::array<RateWord, kWays> rate{};
        Counts ipv6{};  // of the connections
        std::array<Counts, 2> half_open{};
        std::array<RecentRate, kWays> recent{};
        std::array<Counts, 3> refused{};  // connections, half open, a second
        void forget(std::size_t way);     // what was another's
    };
    struct Outside {
        RateWord rate;
        // Of the hash 16 bits, zone 16, generation 32: one word, so that they belong together.
        std::atomic<std::uint64_t> owner{0};
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
    mutable Array<Outside> outside_;
};

}  // namespace sluice::session
