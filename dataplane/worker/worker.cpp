// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/worker.hpp"

#include <rte_ring.h>

#include <chrono>
#include <thread>

#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

Worker::Worker(WorkerOptions options, Shared& shared)
    : state_(std::make_unique<State>(std::move(options), shared)) {}

Worker::~Worker() {
    rte_ring_free(state_->inject);
}

void Worker::run() {
    State& state = *state_;
    reclaim::Qsbr& qsbr = *state.shared.qsbr;
    const unsigned reader = state.options.index;
    qsbr.online(reader);
    unsigned idle = 0;
    while (!state.stopping.load(std::memory_order_relaxed)) {
        if (turn() != 0) {
            idle = 0;
            continue;
        }
        ++idle;
        if (state.options.idle_turns_before_sleep == 0 ||
            idle < state.options.idle_turns_before_sleep) {
            rte_pause();
            continue;
        }
        // Nobody waits for a sleeper: it holds nothing.
        qsbr.offline(reader);
        std::this_thread::sleep_for(std::chrono::microseconds(state.options.sleep_microseconds));
        qsbr.online(reader);
        const std::uint64_t now = rte_rdtsc();
        state.counters.idle_cycles.add(now - state.turn_end);
        state.turn_end = now;
    }
    qsbr.offline(reader);
}

void Worker::stop() {
    state_->stopping.store(true, std::memory_order_relaxed);
}

const WorkerCounters& Worker::counters() const {
    return state_->counters;
}
Ring<NeighbourMessage>& Worker::neighbours() {
    return state_->neighbours;
}
Ring<ConnectionEvent>& Worker::events() {
    return state_->events;
}
Ring<session::BlockEvent>& Worker::blocks() {
    return state_->blocks;
}
Ring<DropSample>& Worker::samples() {
    return state_->samples;
}
rte_ring* Worker::inject() {
    return state_->inject;
}

}  // namespace sluice::worker
