// SPDX-License-Identifier: Apache-2.0
// A connection whose policy has changed is judged anew, by its stored first tuple, whichever
// direction brought the packet.
#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using policy::Plan;

// The first packet again, as far as a policy may look at it. The sender's identity is the
// Source record's: each packet was held against it.
template <class Flow>
Packet first_packet(const Worker::State& state, const Flow& forward) {
    Packet packet;
    packet.vni = forward.key.zone();
    packet.side = packet.vni.value == 0 ? Side::uplink : Side::underlay;
    packet.tuple = forward.key.tuple();
    packet.kind = packet.tuple.source.is_v4() ? EtherKind::ipv4 : EtherKind::ipv6;
    packet.source_mac = (*state.shared.sources)[forward.state.source_index()].mac;
    packet.ttl = 64;
    if (packet.tuple.protocol == static_cast<std::uint8_t>(Protocol::tcp))
        packet.tcp_flags = session::kSyn;
    packet.icmp_type = static_cast<std::uint8_t>(packet.tuple.destination_port >> 8);
    packet.icmp_code = static_cast<std::uint8_t>(packet.tuple.destination_port);
    return packet;
}

// Whether the plan's far side is the one that is installed: nothing of a key may change.
template <class Flow>
bool same_far_side(const Plan& plan, const session::Connection& connection, const Flow& forward,
                   const Flow& reverse) {
    if (plan.source != connection.source || plan.destination != connection.destination ||
        plan.destination_vni != reverse.key.zone())
        return false;
    // What is through a NAT gateway stays so, with the port that it has there; or ends.
    if (static_cast<bool>(plan.nat.source) != connection.has(session::kNatSource) ||
        static_cast<bool>(plan.nat.destination) != connection.has(session::kNatDestination))
        return false;
    Tuple wanted = plan.leaves;
    const auto installed = reversed(reverse.key.tuple());
    if (!installed) return false;
    // The port that commit chose stays permitted with the address.
    if (!plan.nat.source &&
        (forward.state.target.load(std::memory_order_relaxed) & session::kTranslatedPort) != 0)
        wanted.source_port = installed->source_port;
    return wanted == *installed;
}

template <class Flow>
void refresh(Flow& flow, const policy::DirectionPlan& direction, Generation generation) {
    const bool metered = direction.meters[0].value != 0 || direction.meters[1].value != 0;
    std::uint32_t before = flow.state.target.load(std::memory_order_relaxed);
    std::uint32_t after = 0;
    do {
        after = (before & ~(session::kIndexMask | static_cast<std::uint32_t>(session::kMetered))) |
                direction.adjacency.value | (metered ? session::kMetered : 0U);
    } while (!flow.state.target.compare_exchange_weak(before, after, std::memory_order_relaxed));
    flow.state.source.store(direction.source.value, std::memory_order_relaxed);
    // Last: whoever sees the flow fresh sees the rest fresh too.
    flow.state.generation.store(generation.value, std::memory_order_release);
}

}  // namespace

template <class Family>
Judgement rewalk(Worker::State& state, session::ConnectionIndex number) {
    auto& sessions = table<Family>(state);
    auto& connection = sessions.connection(number);
    auto& forward = sessions.flow(session::forward_of(number));
    auto& reverse = sessions.flow(session::reverse_of(number));
    if (state.snapshot == nullptr) return Judgement::ended;
    state.counters.rewalks.add(1);
    const auto admitted_by = [&](std::size_t side) {
        return GroupId{connection.admitted_by[side].load(std::memory_order_relaxed)};
    };
    policy::Established established{.egress_group = admitted_by(0),
                                    .ingress_group = admitted_by(1),
                                    .nat_source = connection.has(session::kNatSource),
                                    .source = {},
                                    .source_port = 0};
    if (established.nat_source)
        if (const auto leaves = reversed(reverse.key.tuple())) {
            established.source = leaves->source;
            established.source_port = leaves->source_port;
        }
    const Plan plan = state.shared.walk(*state.snapshot, first_packet(state, forward),
                                        policy::WalkMode::rewalk, &established);
    if (plan.verdict != policy::Verdict::forward || !plan.installs) {
        end_connection<Family>(state, number, EndReason::policy_changed, plan.reason);
        return Judgement::ended;
    }
    if (!same_far_side(plan, connection, forward, reverse)) {
        end_connection<Family>(state, number, EndReason::policy_changed, DropReason::none);
        return Judgement::restarts;
    }
    refresh_connection(state, connection, plan);
    // Its VPC may have turned the check of windows on or off.
    if (connection.tcp_state() == session::TcpState::established)
        track_all(sessions, number,
                  state.shared.sessions->zones.tcp_window_check(connection.zone_slot));
    refresh(forward, plan.forward, plan.generation);
    refresh(reverse, plan.reverse, plan.generation);
    return Judgement::allowed;
}

template <class Family>
bool is_stale(Worker::State& state, session::ConnectionIndex number) {
    const auto& flow = table<Family>(state).flow(session::forward_of(number)).state;
    const auto generation = flow.generation.load(std::memory_order_relaxed);
    const auto since = [&](policy::ZoneSlot zone) {
        return generation < state.shared.changed[zone.value].load(std::memory_order_acquire);
    };
    return since((*state.shared.sources)[flow.source_index()].zone) ||
           since((*state.shared.adjacencies)[flow.adjacency()].zone);
}

template bool is_stale<session::Ipv4>(Worker::State&, session::ConnectionIndex);
template bool is_stale<session::Ipv6>(Worker::State&, session::ConnectionIndex);
template Judgement rewalk<session::Ipv4>(Worker::State&, session::ConnectionIndex);
template Judgement rewalk<session::Ipv6>(Worker::State&, session::ConnectionIndex);

}  // namespace sluice::worker
