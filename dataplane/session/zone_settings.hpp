// SPDX-License-Identifier: Apache-2.0
// What a VPC has decided for its connections, by zone slot, besides limits (limits.hpp).
//
// Threads: workers read; `set`, `close` the control thread. Each value is an atomic of its own:
// a change is in effect on the next look, no matter whether others changed with it.
// Cost: a load; one cache line a VPC.
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/session/memory.hpp"
#include "dataplane/session/tracker.hpp"

namespace sluice::session {

// As values. A connection between two VPCs is held to those of the VPC that counts it: the
// sender's, from outside the destination's.
struct ZoneValues {
    Timeouts timeouts;
    // Seconds after a restart in which a connection that the restart forgot is picked up in its
    // middle.
    std::uint32_t mid_stream = 60;
    bool mss_clamping = true;       // SYNs are told what fits
    bool tcp_window_check = false;  // data outside of the receiver's window are dropped

    bool operator==(const ZoneValues&) const = default;
};

class ZoneSettings {
  public:
    ZoneSettings(const Allocate& allocate, std::uint32_t zones) : zones_(allocate, zones) {
        for (std::uint32_t zone = 0; zone < zones_.size(); ++zone) set(zone, {});
    }
    [[nodiscard]] bool ok() const { return zones_.ok(); }

    void set(std::uint32_t zone, const ZoneValues& values) {
        Zone& of = zones_[zone];
        for (std::size_t i = 0; i < kTimeouts; ++i)
            of.timeouts[i].store(values.timeouts.of[i], kRelaxed);
        of.mid_stream.store(values.mid_stream, kRelaxed);
        of.flags.store((values.mss_clamping ? kMssClamping : 0U) |
                           (values.tcp_window_check ? kTcpWindowCheck : 0U),
                       kRelaxed);
    }
    // The VPC is gone: what it had ends, however recently it was used.
    void close(std::uint32_t zone) { zones_[zone].flags.fetch_or(kClosed, kRelaxed); }

    // Ticks that a connection may idle.
    [[nodiscard]] std::uint32_t timeout(std::uint32_t zone, Timeout which) const {
        return zones_[zone].timeouts[static_cast<std::size_t>(which)].load(kRelaxed);
    }
    [[nodiscard]] std::uint32_t mid_stream(std::uint32_t zone) const {
        return zones_[zone].mid_stream.load(kRelaxed);
    }
    [[nodiscard]] bool mss_clamping(std::uint32_t zone) const { return has(zone, kMssClamping); }
    [[nodiscard]] bool tcp_window_check(std::uint32_t zone) const {
        return has(zone, kTcpWindowCheck);
    }
    [[nodiscard]] bool closed(std::uint32_t zone) const { return has(zone, kClosed); }

  private:
    static constexpr auto kRelaxed = std::memory_order_relaxed;
    static constexpr std::uint32_t kMssClamping = 1, kTcpWindowCheck = 2, kClosed = 4;

    struct alignas(64) Zone {
        std::array<std::atomic<std::uint32_t>, kTimeouts> timeouts{};
        std::atomic<std::uint32_t> mid_stream{0};
        std::atomic<std::uint32_t> flags{0};
    };
    static_assert(sizeof(Zone) == 64);

    [[nodiscard]] bool has(std::uint32_t zone, std::uint32_t flag) const {
        return (zones_[zone].flags.load(kRelaxed) & flag) != 0;
    }

    Array<Zone> zones_;
};

}  // namespace sluice::session
