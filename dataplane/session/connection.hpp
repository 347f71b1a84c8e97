// SPDX-License-Identifier: Apache-2.0
// The cold half of a connection: what no ordinary packet of an established one looks at.
//
// Life: free → building (one worker's alone) → live (published) → ended (out of the table,
// maybe still seen by readers) → free after a grace period. Only the transition live → ended
// is contended; it is a compare-and-exchange, so a connection ends exactly once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "dataplane/session/flow.hpp"
#include "dataplane/session/tracker.hpp"

namespace sluice::session {

enum class Life : std::uint8_t { free, building, live, ended };

// Index into the meter table; 0 is "unlimited".
using MeterIndex = Id<struct MeterIndexTag>;

inline constexpr std::size_t kDirections = 2;
inline constexpr std::size_t kMetersPerFlow = 2;
inline constexpr std::size_t kPathLength = 7;

// In the third octet of Connection::state.
enum ConnectionFlag : std::uint32_t {
    kHalfOpen = 1U << 16,        // nobody has answered it: counted as such
    kEndpointCounts = 1U << 17,  // its endpoint counts it, not only the VPC
    kPickedUp = 1U << 20,        // in its middle, after a restart: nobody has seen its handshake
    // Ports of NAT gateways that it holds (port_table.hpp): the one that its first packet leaves
    // with; that one's {port, remote} (remote_table.hpp); the one that its first packet came to.
    kNatSource = 1U << 21,
    kNatRemote = 1U << 22,
    kNatDestination = 1U << 23,
};

struct Connection {
    // Life in the low octet, TcpState in the next, then flags, then both ends' window scales
    // (initiator's low): what must change together.
    std::atomic<std::uint32_t> state{0};
    std::uint32_t zone_slot = 0;  // whose counters it belongs to
    Tick created;
    // Incarnations, never reused: whoever gets the address later is somebody else. 0: outside.
    EndpointId source, destination;
    // MeterIndex, per direction.
    std::array<std::array<std::atomic<std::uint32_t>, kMetersPerFlow>, kDirections> meters{};
    // Carries out of the flows' 32-bit counters.
    std::array<std::atomic<std::uint32_t>, kDirections> octets_high{};
    std::array<std::atomic<std::uint16_t>, kDirections> packets_high{};
    // The groups that admitted it for good, as egress and as ingress (policy::Established).
    std::array<std::atomic<std::uint32_t>, 2> admitted_by{};
    // The entries that decided, in the order of policy::Path. Rewritten by a re-walk, so a
    // concurrent reader may see old and new mixed: it is for people.
    std::array<std::atomic<std::uint64_t>, kPathLength> path{};

    [[nodiscard]] Life life() const {
        return static_cast<Life>(state.load(std::memory_order_acquire) & 0xff);
    }
    [[nodiscard]] TcpState tcp_state() const {
        return static_cast<TcpState>(state.load(std::memory_order_relaxed) >> 8 & 0xff);
    }
    // Whose limits it counts towards: the endpoint that opened it; from outside, the one it is
    // for.
    [[nodiscard]] EndpointId owner() const { return source ? source : destination; }

    void set(Life life, TcpState tcp, std::uint32_t flags = 0) {
        state.store(word(life, tcp) | flags, std::memory_order_release);
    }
    // False if the connection has ended or another worker moved it first.
    bool move(TcpState from, TcpState to) {
        std::uint32_t before = state.load(std::memory_order_relaxed);
        while ((before & 0xffff) == word(Life::live, from))
            if (state.compare_exchange_weak(before, (before & ~0xffffU) | word(Life::live, to),
                                            std::memory_order_acq_rel))
                return true;
        return false;
    }
    // The window scales of initiator and responder, as their SYNs said (tracker.hpp).
    [[nodiscard]] std::array<std::uint8_t, kDirections> window_scales() const {
        const std::uint32_t now = state.load(std::memory_order_relaxed);
        return {static_cast<std::uint8_t>(now >> 24 & 15), static_cast<std::uint8_t>(now >> 28)};
    }
    static constexpr std::uint32_t scale_word(std::uint8_t initiator, std::uint8_t responder) {
        return std::uint32_t{initiator} << 24 | std::uint32_t{responder} << 28;
    }
    void set_window_scale(bool responder, std::uint8_t scale) {
        const unsigned shift = responder ? 28 : 24;
        std::uint32_t before = state.load(std::memory_order_relaxed);
        while (!state.compare_exchange_weak(
            before, (before & ~(15U << shift)) | std::uint32_t{scale} << shift,
            std::memory_order_acq_rel)) {
        }
    }
    [[nodiscard]] bool has(ConnectionFlag flag) const {
        return (state.load(std::memory_order_relaxed) & flag) != 0;
    }
    // Somebody answered. The flags as they were: only one caller sees kHalfOpen.
    std::uint32_t answer() {
        if ((state.load(std::memory_order_relaxed) & kHalfOpen) == 0) return 0;
        return state.fetch_and(~std::uint32_t{kHalfOpen}, std::memory_order_acq_rel);
    }
    // Live and its flags for the one caller that ends it, 0 for the others.
    std::uint32_t end() {
        std::uint32_t before = state.load(std::memory_order_acquire);
        while (static_cast<Life>(before & 0xff) == Life::live)
            if (state.compare_exchange_weak(
                    before, (before & ~(0xffU | kHalfOpen)) | word(Life::ended, TcpState::none),
                    std::memory_order_acq_rel))
                return before;
        return 0;
    }

  private:
    static constexpr std::uint32_t word(Life life, TcpState tcp) {
        return static_cast<std::uint32_t>(life) | static_cast<std::uint32_t>(tcp) << 8;
    }
};
static_assert(sizeof(Connection) <= 112);

// Adds one packet to a flow's counters; the writer is the worker that received it.
inline void count(FlowState& flow, Connection& connection, bool reverse, std::uint32_t octets) {
    const std::uint32_t packets = flow.packets.load(std::memory_order_relaxed) + 1;
    flow.packets.store(packets, std::memory_order_relaxed);
    const std::uint32_t sum = flow.octets.load(std::memory_order_relaxed) + octets;
    flow.octets.store(sum, std::memory_order_relaxed);
    if (__builtin_expect(sum < octets, 0))
        connection.octets_high[reverse].fetch_add(1, std::memory_order_relaxed);
    if (__builtin_expect(packets == 0, 0))
        connection.packets_high[reverse].fetch_add(1, std::memory_order_relaxed);
}

struct DirectionCount {
    std::uint64_t packets = 0;
    std::uint64_t octets = 0;
};
inline DirectionCount counted(const FlowState& flow, const Connection& connection, bool reverse) {
    return {std::uint64_t{connection.packets_high[reverse].load(std::memory_order_relaxed)} << 32 |
                flow.packets.load(std::memory_order_relaxed),
            std::uint64_t{connection.octets_high[reverse].load(std::memory_order_relaxed)} << 32 |
                flow.octets.load(std::memory_order_relaxed)};
}

}  // namespace sluice::session
