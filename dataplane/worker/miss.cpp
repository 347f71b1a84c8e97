// SPDX-License-Identifier: Apache-2.0
// First packets: found after all, or walked, committed and carried.
#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using policy::Plan;
using policy::Verdict;
using session::TcpEvent;
using session::TcpState;

// Where a connection from outside is charged: by destination, with words nobody can guess.
std::uint64_t outside_cell(const Worker::State& state, const Packet& packet) {
    const auto& seed = state.shared.sessions->seed;
    std::array<std::uint64_t, 2> words;
    std::memcpy(words.data(), packet.tuple.destination.bytes.data(), sizeof words);
    return session::mix(words[0] ^ seed.words[0], words[1] ^ seed.words[1]);
}

bool is_reply_only(const wire::Headers& headers) {
    if (headers.protocol == static_cast<std::uint8_t>(Protocol::icmp))
        return headers.icmp_type == wire::icmp::kEchoReply || headers.icmp_type == 14;
    return headers.protocol == static_cast<std::uint8_t>(Protocol::icmpv6) &&
           headers.icmp_type == wire::icmpv6::kEchoReply;
}

// Whether an SCTP packet opens an association: INIT, alone and with no tag yet (RFC 9260 sections
// 6.10, 8.5.1), or probes another path of one (HEARTBEAT, section 8.3).
bool sctp_opens(std::span<const std::uint8_t> packet) {
    constexpr std::size_t kTag = 4, kChunk = 12, kChunkHeader = 4;
    constexpr std::uint8_t kInit = 1, kHeartbeat = 4;
    if (packet.size() < kChunk + kChunkHeader) return false;
    const bool tagged = wire::raw32(packet.data() + kTag) != 0;
    return tagged ? packet[kChunk] == kHeartbeat : packet[kChunk] == kInit;
}

// For a while after a restart, connections that it forgot are picked up in their middle.
bool picks_up(const Worker::State& state, policy::ZoneSlot zone) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    const std::uint64_t restarted = state.shared.restarted.load(std::memory_order_relaxed);
    const std::uint64_t seconds = state.shared.sessions->zones.mid_stream(zone.value);
    return restarted != 0 && seconds != 0 && state.now < restarted + seconds * kSecond;
}

// Both VPCs of the connection must want it: neither lets the other in.
bool both_pick_up(const Worker::State& state, const Plan& plan) {
    for (const Vni vni : {plan.source_vni, plan.destination_vni})
        if (vni.value != 0 && !picks_up(state, state.shared.zone_of(*state.snapshot, vni)))
            return false;
    return true;
}

// The first state of a connection that this packet may open; else why it may not.
struct Opening {
    DropReason refused = DropReason::none;
    bool picks_up = false;  // in its middle
    TcpState state = TcpState::none;
    DropReason otherwise = DropReason::none;  // why not, if it is not to be picked up
};
Opening opening(const Worker::State& state, const Item& item, policy::ZoneSlot zone) {
    const wire::Headers& headers = item.headers;
    const auto midway = [&](DropReason otherwise, TcpState first) -> Opening {
        if (!picks_up(state, zone)) return {otherwise, false, {}, otherwise};
        return {DropReason::none, true, first, otherwise};
    };
    if (headers.protocol == static_cast<std::uint8_t>(Protocol::sctp)) {
        if (sctp_opens(contiguous(item.mbuf).subspan(headers.l4))) return {};
        return midway(DropReason::sctp_not_init, TcpState::none);
    }
    if (is_reply_only(headers)) return {DropReason::icmp_not_request, false, {}, {}};
    if (headers.protocol != static_cast<std::uint8_t>(Protocol::tcp)) return {};
    const TcpEvent event = session::classify_tcp(headers.tcp_flags);
    if (event == TcpEvent::syn) return {DropReason::none, false, TcpState::syn_sent, {}};
    if (event == TcpEvent::ack || event == TcpEvent::fin)
        return midway(DropReason::tcp_not_syn, TcpState::established);
    return {DropReason::tcp_not_syn, false, {}, {}};
}

bool judged_by_groups(DropReason reason) {
    return reason == DropReason::egress_no_rule || reason == DropReason::egress_denied ||
           reason == DropReason::ingress_no_rule || reason == DropReason::ingress_denied;
}

// A connection picked up in its middle, by a packet of its replies: what the other end may
// open is asked instead. The plan of that connection, if it covers this packet.
bool walk_as_reply(Worker::State& state, const Packet& packet, Plan& plan) {
    // Where it goes, whatever groups say: what they deny has not been translated yet.
    policy::Established admitted;
    admitted.asks_groups = false;
    const Plan there =
        state.shared.walk(*state.snapshot, packet, policy::WalkMode::packet, &admitted);
    if (there.verdict != Verdict::forward || there.nat) return false;
    const auto opened = reversed(there.leaves);
    if (!opened) return false;
    Packet first;
    first.vni = there.destination_vni;
    first.source_mac = (*state.shared.sources)[there.reverse.source].mac;
    first.side = first.vni.value == 0 ? Side::uplink : Side::underlay;
    first.kind = packet.kind;
    first.tuple = *opened;
    first.ttl = packet.ttl;
    first.tcp_flags = session::kSyn;
    plan = state.shared.walk(*state.snapshot, first, policy::WalkMode::rewalk, nullptr);
    return plan.verdict == Verdict::forward && plan.installs &&
           plan.destination_vni == packet.vni && reversed(plan.leaves) == packet.tuple;
}

template <class Family>
void carry_found(Worker::State& state, const Item& item, std::uint64_t hash,
                 session::FlowIndex flow) {
    const session::FlowState& words = table<Family>(state).flow(flow).state;
    carry<Family>(state, item.port, item.mbuf, item.headers, hash, flow,
                  (*state.shared.adjacencies)[words.adjacency()],
                  (*state.shared.sources)[words.source_index()]);
}

template <class Family>
void open(Worker::State& state, const Item& item, const Packet& packet, std::uint64_t hash) {
    Plan plan = state.shared.walk(*state.snapshot, packet, policy::WalkMode::packet, nullptr);
    state.counters.walks.add(1);
    if (packet.side == Side::uplink && plan.zone)
        state.shared.sessions->limits.learn(outside_cell(state, packet),
                                            {plan.zone.value, plan.generation});
    const Opening how = opening(state, item, plan.zone);
    bool reply = false;
    if (plan.verdict == Verdict::answer) {
        // The gateway puts nothing together.
        if (item.headers.has(wire::kFragment))
            return drop(state, item, {DropReason::inner_fragment, plan.zone, &plan});
        return answer(state, item, plan);
    }
    if (plan.verdict == Verdict::drop) {
        Plan other;
        // Of SCTP no later packet is looked at: an INIT must not pass with what was picked up so.
        if (how.picks_up && how.state == TcpState::established && judged_by_groups(plan.reason) &&
            walk_as_reply(state, packet, other)) {
            plan = other;
            reply = true;
        } else if (plan.answer != policy::Answer::none) {
            return answer_error(state, item, {plan.answer, plan.source, plan.answer_from, plan.mtu},
                                {plan.reason, plan.zone, &plan});
        } else {
            return drop(state, item, {plan.reason, plan.zone, &plan});
        }
    }
    // What a NAT gateway does not know it does not guess at.
    if (how.picks_up && (plan.nat || !both_pick_up(state, plan)))
        return drop(state, item, {how.otherwise, plan.zone, &plan});
    if (how.refused != DropReason::none) return drop(state, item, {how.refused, plan.zone, &plan});

    // What cannot go on opens nothing.
    const policy::DirectionPlan& direction = reply ? plan.reverse : plan.forward;
    std::uint8_t traffic_class = item.headers.traffic_class;
    if (const Unfit why =
            unfit(item, (*state.shared.adjacencies)[direction.adjacency], traffic_class);
        why.reason != DropReason::none) {
        const Drop unfit_drop{why.reason, plan.zone, &plan};
        if (why.told == policy::Answer::none) return drop(state, item, unfit_drop);
        return answer_error(state, item,
                            {why.told, reply ? plan.destination : plan.source,
                             reply ? IpAddress{} : plan.answer_from, why.mtu},
                            unfit_drop);
    }

    const Committed committed = commit<Family>(state, plan, how.state);
    if (committed.flow == session::kNoFlow) {
        if (committed.reason == DropReason::nat_ports_exhausted ||
            committed.reason == DropReason::nat_blocks_exhausted ||
            committed.reason == DropReason::nat_endpoint_ports)
            plan.decided_by = plan.nat.cookie;
        return drop(state, item, {committed.reason, plan.zone, &plan});
    }
    carry_found<Family>(state, item, hash,
                        reply ? session::FlowIndex{committed.flow.value ^ 1} : committed.flow);
    if (committed.unpublished)
        table<Family>(state).give_back(state.options.index, session::connection_of(committed.flow));
}

// True if it took a walk.
template <class Family>
bool run_miss(Worker::State& state, const Item& item) {
    auto& sessions = table<Family>(state);
    const auto key = key_of<Family>(bytes_of(item.mbuf), item.headers);
    const std::uint64_t hash = sessions.hash(key);
    // A packet before it may have opened it.
    const session::FlowIndex found = sessions.find(key, hash);
    if (found != session::kNoFlow) {
        carry_found<Family>(state, item, hash, found);
        return false;
    }
    const Packet packet = wire::to_packet(contiguous(item.mbuf), item.headers, item.port);
    if (const Drop refused = charge(state, packet); refused.reason != DropReason::none) {
        drop(state, item, refused);
        return false;
    }
    open<Family>(state, item, packet, hash);
    return true;
}

bool run_miss(Worker::State& state, const Item& item) {
    const bool walked = item.headers.has(wire::kInnerV6) ? run_miss<session::Ipv6>(state, item)
                                                         : run_miss<session::Ipv4>(state, item);
    // Its connection has ended under it, and it may open another.
    while (state.miss_count != 0) {
        const Item again = state.misses[--state.miss_count];
        again.headers.has(wire::kInnerV6) ? run_miss<session::Ipv6>(state, again)
                                          : run_miss<session::Ipv4>(state, again);
    }
    return walked;
}

// Whose turn a first packet waits for: its VPC's; from outside, its destination's.
std::uint64_t whose(const Worker::State& state, const Item& item) {
    if (item.headers.zone != 0) return item.headers.zone;
    return outside_cell(state, wire::to_packet(contiguous(item.mbuf), item.headers, item.port));
}

}  // namespace

Drop charge(Worker::State& state, const Packet& packet) {
    session::Limits& limits = state.shared.sessions->limits;
    if (packet.side == Side::uplink) {
        const std::uint64_t cell = outside_cell(state, packet);
        // What has changed since for the VPC that had the address: the address may be another's
        // now, or the slot.
        const session::Limits::OutsideOwner owner = limits.outside_owner(cell);
        const bool known = owner.generation.value >=
                           state.shared.changed[owner.zone].load(std::memory_order_acquire);
        const policy::ZoneSlot zone{known ? owner.zone : 0};
        return {limits.charge_outside(cell, zone.value, state.now), zone, nullptr};
    }
    const policy::Sender sender = state.shared.sender_of(*state.snapshot, packet);
    if (!sender.zone) return {};  // nobody's VPC: the walk says so at its first step
    return {limits.charge(sender.zone.value, sender.endpoint, state.now), sender.zone, nullptr};
}

void run_first(Worker::State& state, const Item& item) {
    run_miss(state, item);
}

void file_misses(Worker::State& state) {
    for (unsigned i = 0; i < state.miss_count; ++i) {
        Item item = state.misses[i];
        // The straight line left out what only a first packet can have: all checks now.
        item.headers = parse_again(state, item.port, item.mbuf);
        const wire::Headers& headers = item.headers;
        if (headers.kind == wire::FrameKind::drop)
            drop(state, item, {headers.drop, claimed_zone(state, headers), nullptr});
        else if (headers.kind != wire::FrameKind::connection)  // the gateway's own, on the uplink
            state.others[state.other_count++] = item;
        else if (state.snapshot == nullptr)
            drop(state, item, {DropReason::not_ready, {}, nullptr});
        else if (!state.backlog.push(whose(state, item), item))
            drop(state, item, {DropReason::walk_budget, claimed_zone(state, headers), nullptr});
    }
    state.miss_count = 0;
}

unsigned run_backlog(Worker::State& state, unsigned budget) {
    // What its sender's rate refuses, or another packet has opened, costs a fraction of a walk.
    constexpr unsigned kPerWalk = 4;
    const unsigned most = budget * kPerWalk;
    unsigned served = 0;
    for (unsigned walks = 0; walks < budget && served < most; ++served) {
        const auto item = state.backlog.pop();
        if (!item) break;
        walks += run_miss(state, *item) ? 1U : 0U;
    }
    return served;
}

}  // namespace sluice::worker
