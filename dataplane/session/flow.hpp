// SPDX-License-Identifier: Apache-2.0
// One direction of a connection: its key and a ready-made action, in one cache line (IPv6:
// two).
//
// Connection i owns flows 2i (the initiator's direction) and 2i + 1 (the replies'); flow >> 1
// is the connection. Key and rewrite are written before the flow is published and never
// after; the words that change in place are atomics, each meaningful alone. Counters and TCP
// progress are written by the worker that receives this direction (two workers at once lose
// counts, nothing else).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "dataplane/session/key.hpp"
#include "dataplane/session/tick.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::session {

using FlowIndex = Id<struct FlowIndexTag>;
using ConnectionIndex = Id<struct ConnectionIndexTag>;
inline constexpr FlowIndex kNoFlow{~0U};
inline constexpr ConnectionIndex kNoConnection{~0U};

constexpr ConnectionIndex connection_of(FlowIndex flow) {
    return ConnectionIndex{flow.value >> 1};
}
constexpr FlowIndex forward_of(ConnectionIndex connection) {
    return FlowIndex{connection.value << 1};
}
constexpr FlowIndex reverse_of(ConnectionIndex connection) {
    return FlowIndex{connection.value << 1 | 1};
}
constexpr bool is_reverse(FlowIndex flow) {
    return (flow.value & 1) != 0;
}

// In the top octet of FlowState::target.
enum FlowFlag : std::uint32_t {
    kTracked = 1U << 24,           // the TCP tracker must see every segment, not only SYN, FIN, RST
    kMetered = 1U << 25,           // the connection names meters for this direction
    kTranslated = 1U << 26,        // the rewrite is not empty
    kTranslatedPort = 1U << 27,    // ... and touches a port or the ICMP identifier
    kSharedSource = 1U << 28,      // ... and the source becomes an address that is others' too
    kEndSeen = 1U << 29,           // TcpProgress::end is known
    kAcknowledgedSeen = 1U << 30,  // ... and TcpProgress::acknowledged
    kIndexMask = (1U << 24) - 1,   // the rest: an AdjacencyIndex or a SourceIndex
};

// The words that change in place.
struct FlowState {
    std::atomic<std::uint32_t> generation{0};  // at which the flow was last judged
    std::atomic<std::uint32_t> target{0};      // AdjacencyIndex | FlowFlag
    std::atomic<std::uint32_t> source{0};      // SourceIndex: who may send it
    std::atomic<std::uint32_t> last_seen{0};   // Tick
    std::atomic<std::uint32_t> packets{0};     // low 32 bits; the carry is the connection's
    std::atomic<std::uint32_t> octets{0};      // of inner IP packets, likewise

    [[nodiscard]] AdjacencyIndex adjacency() const {
        return AdjacencyIndex{target.load(std::memory_order_relaxed) & kIndexMask};
    }
    [[nodiscard]] SourceIndex source_index() const {
        return SourceIndex{source.load(std::memory_order_relaxed)};
    }
    void set_adjacency(AdjacencyIndex index) {
        std::uint32_t before = target.load(std::memory_order_relaxed);
        while (!target.compare_exchange_weak(before, (before & ~kIndexMask) | index.value,
                                             std::memory_order_relaxed)) {
        }
    }
};
static_assert(sizeof(FlowState) == 24);

// The highest end of segment and acknowledgement number sent in this direction (RFC 9293
// section 3.4; both in host order), as far as flags of FlowState::target say that they are known:
// any number is a number.
struct TcpProgress {
    std::atomic<std::uint32_t> end{0};
    std::atomic<std::uint32_t> acknowledged{0};
};

// The same as it was at some moment.
struct TcpSeen {
    std::optional<std::uint32_t> end, acknowledged;
};

// What is XORed into the packet, and the sums by which its checksums change (RFC 1624
// equation 3: ~old + new, folded). All zero: untouched.
struct Rewrite {
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
    std::uint32_t ports = 0;  // as in the key: source in the low half
    std::uint16_t ip_delta = 0;
    std::uint16_t l4_delta = 0;  // of a checksum that covers the pseudo-header
};

struct alignas(64) FlowIpv4 {
    KeyIpv4 key;
    Rewrite rewrite;
    FlowState state;
    TcpProgress tcp;
};
static_assert(sizeof(FlowIpv4) == 64);

// IPv6 is never translated.
struct alignas(128) FlowIpv6 {
    KeyIpv6 key;
    FlowState state;
    TcpProgress tcp;
};
static_assert(sizeof(FlowIpv6) == 128);

// The first of a direction's marks.
[[gnu::noinline, gnu::cold]] inline void note_first(FlowState& state,
                                                    std::atomic<std::uint32_t>& mark, FlowFlag seen,
                                                    std::uint32_t value) {
    mark.store(value, std::memory_order_relaxed);
    state.target.fetch_or(seen, std::memory_order_release);
}
// One more segment: its end, or what it acknowledges. By whoever carries the direction's packets.
[[gnu::always_inline]] inline void note_mark(FlowState& state, std::atomic<std::uint32_t>& mark,
                                             FlowFlag seen, std::uint32_t value) {
    const auto relaxed = std::memory_order_relaxed;
    if ((state.target.load(relaxed) & seen) == 0) [[unlikely]]
        return note_first(state, mark, seen, value);
    if (static_cast<std::int32_t>(value - mark.load(relaxed)) > 0) mark.store(value, relaxed);
}

// What of a direction's progress is known.
template <class Flow>
TcpSeen seen(const Flow& flow) {
    const std::uint32_t flags = flow.state.target.load(std::memory_order_acquire);
    TcpSeen result;
    if ((flags & kEndSeen) != 0) result.end = flow.tcp.end.load(std::memory_order_relaxed);
    if ((flags & kAcknowledgedSeen) != 0)
        result.acknowledged = flow.tcp.acknowledged.load(std::memory_order_relaxed);
    return result;
}

}  // namespace sluice::session
