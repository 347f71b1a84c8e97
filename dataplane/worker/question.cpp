// SPDX-License-Identifier: Apache-2.0
// "Who has?", asked by a tenant, or on the uplink for a public address: the walk knows.
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

void answer_question(Worker::State& state, const Item& item) {
    if (state.snapshot == nullptr) return drop(state, item, {DropReason::not_ready, {}, nullptr});
    const Packet packet = wire::to_packet(contiguous(item.mbuf), item.headers, item.port);
    // A flood of connections to a public address is no reason not to say where that is.
    if (item.headers.has(wire::kTunnelled))
        if (const Drop refused = charge(state, packet); refused.reason != DropReason::none)
            return drop(state, item, refused);
    const policy::Plan plan =
        state.shared.walk(*state.snapshot, packet, policy::WalkMode::packet, nullptr);
    state.counters.walks.add(1);
    if (plan.verdict == policy::Verdict::answer) return answer(state, item, plan);
    const bool arp = item.headers.kind == wire::FrameKind::arp_request;
    const DropReason reason = plan.verdict == policy::Verdict::drop ? plan.reason
                              : arp                                 ? DropReason::inner_arp
                                                                    : DropReason::inner_nd;
    drop(state, item, {reason, plan.zone, &plan});
}

}  // namespace sluice::worker
