// SPDX-License-Identifier: Apache-2.0
// "Who has?", asked by a tenant, or on the uplink for a public address: the walk knows.
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

void answer_question(Worker::State& state, const Item& item) {
    if (state.snapshot == nullptr) return drop(state, item, {DropReason::not_ready, {}, nullptr});
    const policy::Plan plan = state.shared.walk(
        *state.snapshot, wire::to_packet(contiguous(item.mbuf), item.headers, item.port),
        policy::WalkMode::packet, nullptr);
    state.counters.walks.add(1);
    if (plan.verdict == policy::Verdict::answer) return answer(state, item, plan);
    const bool arp = item.headers.kind == wire::FrameKind::arp_request;
    const DropReason reason = plan.verdict == policy::Verdict::drop ? plan.reason
                              : arp                                 ? DropReason::inner_arp
                                                                    : DropReason::inner_nd;
    drop(state, item, {reason, plan.zone, &plan});
}

}  // namespace sluice::worker
