// SPDX-License-Identifier: Apache-2.0
// An inner IPv4 packet that exceeds the destination's MTU and may be fragmented, is: on this
// side of the tunnel, so that the outer packet never has to be (RFC 7348 section 4.3).
#include "dataplane/wire/fragment.hpp"

#include <algorithm>
#include <utility>

#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

void send_fragments(Worker::State& state, const Item& item, const policy::Adjacency& adjacency,
                    const OuterFacts& outer) {
    const policy::ZoneSlot zone = adjacency.zone;
    // A limit that delays the packet delays each of its pieces.
    const std::uint64_t until = std::exchange(state.hold_until, 0);
    const std::uint32_t l3 = item.headers.l3;
    // Each fragment is one buffer: where the MTU is a jumbo one, buffers are the limit.
    constexpr std::size_t kFront = wire::ethernet::kSize;
    rte_mempool* pool = state.options.ports.pool;
    const std::size_t room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM - kFront;
    const auto plan = wire::FragmentPlan::make(contiguous(item.mbuf).subspan(l3),
                                               std::min<std::size_t>(adjacency.mtu, room));
    if (!plan) return drop(state, item, {DropReason::too_big, zone, nullptr});
    for (std::size_t i = 0; i < plan->count(); ++i) {
        const wire::Fragment piece = (*plan)[i];
        rte_mbuf* mbuf = rte_pktmbuf_alloc(pool);
        const std::size_t length = std::size_t{piece.header_length} + piece.payload_length;
        if (mbuf == nullptr) return drop(state, item, {DropReason::no_buffer, zone, nullptr});
        // The inner Ethernet header goes with each: a bridged fragment keeps its source MAC.
        std::uint8_t* data = bytes_of(mbuf);
        std::memcpy(data, bytes_of(item.mbuf) + l3 - kFront, kFront);
        plan->write_header(i, {data + kFront, std::size_t{piece.header_length}});
        std::uint8_t* payload = data + kFront + piece.header_length;
        const void* from =
            rte_pktmbuf_read(item.mbuf, l3 + piece.payload_offset, piece.payload_length, payload);
        if (from == nullptr) {
            rte_pktmbuf_free(mbuf);
            return drop(state, item, {DropReason::inner_truncated, zone, nullptr});
        }
        if (from != payload) std::memcpy(payload, from, piece.payload_length);
        rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(kFront + length));
        OuterFacts facts = outer;
        facts.ip_length = static_cast<std::uint32_t>(length);
        state.hold_until = until;
        encapsulate(state, mbuf, kFront, adjacency, facts);
    }
    state.hold_until = 0;
    rte_pktmbuf_free(item.mbuf);
}

}  // namespace sluice::worker
