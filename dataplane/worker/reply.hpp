// SPDX-License-Identifier: Apache-2.0
// Replies of the gateway: a new frame that goes back where the packet in hand came from.
#pragma once

#include <span>

#include "dataplane/worker/state.hpp"

namespace sluice::worker {

// A buffer with a copy of what stands before the inner frame, and the room behind it; nullptr
// if there is none.
rte_mbuf* start_reply(Worker::State& state, const Item& item, std::span<std::uint8_t>& room);
// Makes the outer header of `mbuf`, a copy of the packet's, lead back to its sender.
void turn_outer(Worker::State& state, const Item& item, rte_mbuf* mbuf);
// Completes and sends.
void send_back(Worker::State& state, const Item& item, rte_mbuf* mbuf);

// `write` fills in the inner frame and returns its length; 0: there is nothing to say. The
// packet in hand stays the caller's.
template <class Write>
void reply(Worker::State& state, const Item& item, Write write) {
    std::span<std::uint8_t> room;
    rte_mbuf* mbuf = start_reply(state, item, room);
    if (mbuf == nullptr) return;
    const std::size_t length = write(room);
    if (length == 0) return rte_pktmbuf_free(mbuf);
    rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(item.headers.l2 + length));
    send_back(state, item, mbuf);
}

// The packet in hand becomes its own echo reply.
void reply_echo(Worker::State& state, const Item& item);

}  // namespace sluice::worker
