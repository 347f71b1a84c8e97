// SPDX-License-Identifier: Apache-2.0
// A hit that is not like the packets before it: every check in its order, with its reason.
#include <algorithm>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/mss.hpp"
#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/ecn.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using policy::Adjacency;
using session::TcpEvent;
using session::TcpState;
using session::TcpVerdict;

enum class Outcome : std::uint8_t { carry, dropped, miss };

DropReason source_reason(const Item& item, const policy::Source& source) {
    const auto frame = contiguous(item.mbuf);
    return wire::load_mac(frame.data() + item.headers.l2 + wire::ethernet::kSource) != source.mac
               ? DropReason::spoofed_mac
               : DropReason::spoofed_vtep;
}

bool source_ok(const Item& item, const policy::Source& source) {
    if (!item.headers.has(wire::kTunnelled)) return true;
    const auto frame = contiguous(item.mbuf);
    if (wire::load_mac(frame.data() + item.headers.l2 + wire::ethernet::kSource) != source.mac)
        return false;
    const IpAddress vtep = wire::vtep_of(frame, item.headers);
    for (const IpAddress& known : source.vteps)
        if (known == vtep) return true;
    return false;
}

session::TcpSegment segment_of(const Item& item) {
    const std::uint8_t* tcp = bytes_of(item.mbuf) + item.headers.l4;
    const std::uint32_t header =
        item.headers.l4 - item.headers.l3 + (std::uint32_t{tcp[12]} >> 4 << 2);
    const std::uint8_t flags = item.headers.tcp_flags;
    session::TcpSegment segment;
    segment.event = session::classify_tcp(flags);
    segment.sequence = wire::load32(tcp + wire::tcp::kSequence).host();
    segment.end = segment.sequence + item.headers.ip_length - header +
                  ((flags & session::kSyn) != 0 ? 1 : 0) + ((flags & session::kFin) != 0 ? 1 : 0);
    segment.acknowledged = wire::load32(tcp + wire::tcp::kAcknowledgement).host();
    segment.has_acknowledgement = (flags & session::kAck) != 0;
    return segment;
}

// Why the packet may not open a connection, were there none.
Drop refused_opening(Worker::State& state, const Item& item) {
    if (state.snapshot == nullptr) return {DropReason::not_ready, {}, nullptr};
    const Packet packet = wire::to_packet(contiguous(item.mbuf), item.headers, item.port);
    if (const Drop refused = charge(state, packet); refused.reason != DropReason::none)
        return refused;
    const policy::Plan plan =
        state.shared.walk(*state.snapshot, packet, policy::WalkMode::packet, nullptr);
    state.counters.walks.add(1);
    return {plan.verdict == policy::Verdict::forward ? DropReason::none : plan.reason, plan.zone,
            nullptr};
}

// `believed`: what the segment says of its sender's progress is to be noted.
template <class Family>
Outcome track_tcp(Worker::State& state, const Item& item, session::FlowIndex index,
                  policy::ZoneSlot zone, bool& believed) {
    auto& sessions = table<Family>(state);
    const session::ConnectionIndex number = session::connection_of(index);
    auto& connection = sessions.connection(number);
    auto& own = sessions.flow(index);
    const bool reverse = session::is_reverse(index);
    const TcpState before = connection.tcp_state();
    const auto& peer = sessions.flow(session::FlowIndex{index.value ^ 1});
    const bool checked = state.shared.sessions->zones.tcp_window_check(zone.value);
    const std::uint32_t window =
        session::largest_window(connection.window_scales(), reverse ? 0 : 1);
    const session::TcpSegment segment = segment_of(item);
    // A connection that was picked up may never have been: whoever opens from its other end is
    // judged as if it were not there.
    if (reverse && segment.event == TcpEvent::syn && connection.has(session::kPickedUp))
        if (const Drop refused = refused_opening(state, item); refused.reason != DropReason::none) {
            drop(state, item, refused);
            return Outcome::dropped;
        }
    const session::TcpJudgement judgement =
        session::judge(before, reverse, segment, seen(own), seen(peer), window);
    believed = false;
    if (checked && segment.event == TcpEvent::ack && before >= TcpState::established &&
        !session::is_acceptable(segment, seen(own), seen(peer), window)) {
        drop(state, item, {DropReason::tcp_out_of_window, zone, nullptr});
        return Outcome::dropped;
    }
    switch (judgement.verdict) {
        case TcpVerdict::invalid:
            drop(state, item, {DropReason::tcp_invalid, zone, nullptr});
            return Outcome::dropped;
        case TcpVerdict::out_of_window:
            drop(state, item, {DropReason::tcp_out_of_window, zone, nullptr});
            return Outcome::dropped;
        case TcpVerdict::reopen:
            end_connection<Family>(state, number, EndReason::reopened, DropReason::none);
            return Outcome::miss;
        case TcpVerdict::anew:
            own.state.target.fetch_and(
                ~std::uint32_t{session::kEndSeen | session::kAcknowledgedSeen},
                std::memory_order_relaxed);
            [[fallthrough]];
        case TcpVerdict::pass:
            believed = true;
            break;
        case TcpVerdict::ignore:
            break;
    }
    if (believed && (segment.event == TcpEvent::syn || segment.event == TcpEvent::syn_ack))
        connection.set_window_scale(
            reverse, session::window_scale(contiguous(item.mbuf).subspan(item.headers.l4)));
    if (judgement.next == before || !connection.move(before, judgement.next)) return Outcome::carry;
    if (judgement.next >= TcpState::established) note_answer<Family>(state, number);
    // Where an ordinary segment changes nothing, the table need not see it.
    if (judgement.next == TcpState::established || judgement.next == TcpState::reset_doubted ||
        judgement.next == TcpState::closed)
        track_all(sessions, number, checked || judgement.next != TcpState::established);
    return Outcome::carry;
}

// Between links of different MTU, the uplink among them, neither end is to send what the other's
// does not carry: what a SYN announces is lowered to the smaller of both directions (iptables'
// --clamp-mss-to-pmtu does the same). Inside a subnet all have one MTU, and nothing is touched.
template <class Family>
void clamp_segments(Worker::State& state, const Item& item, session::FlowIndex index,
                    const Adjacency& adjacency) {
    const auto& back = table<Family>(state).flow(session::FlowIndex{index.value ^ 1});
    const Adjacency& reverse = (*state.shared.adjacencies)[back.state.adjacency()];
    std::uint16_t mtu = adjacency.mtu;
    if (reverse.kind != Adjacency::Kind::unreachable) mtu = std::min(mtu, reverse.mtu);
    std::uint8_t* const tcp = bytes_of(item.mbuf) + item.headers.l4;
    wire::clamp_mss({tcp, std::size_t{item.mbuf->data_len} - item.headers.l4},
                    wire::largest_segment(mtu, item.headers.has(wire::kInnerV6)));
}

// False: refused. Where a limit lets the packet pass later, it is held when it is sent.
template <class Family>
bool within_meters(Worker::State& state, const Item& item, session::FlowIndex index) {
    const auto& connection = table<Family>(state).connection(session::connection_of(index));
    const std::uint64_t patience = state.pacer.patience(session::MeterTable::kPatience);
    std::uint64_t departure = state.now;
    for (const auto& meter : connection.meters[session::is_reverse(index)]) {
        const std::uint64_t when = state.shared.meters->departure(
            state.options.index, session::MeterIndex{meter.load(std::memory_order_relaxed)},
            item.headers.ip_length, state.now, patience);
        if (when == session::MeterTable::kRefused) return false;
        departure = std::max(departure, when);
    }
    if (departure != state.now) state.hold_until = departure;
    return true;
}

}  // namespace

Unfit unfit(const Item& item, const Adjacency& adjacency, std::uint8_t& traffic_class) {
    using policy::Answer;
    if (adjacency.kind == Adjacency::Kind::unreachable) return {DropReason::host_unreachable};
    if (item.headers.ttl <= spent_ttl(adjacency))
        // Inside a subnet the gateway is no hop, and has nothing to say about it.
        return {DropReason::ttl_expired, adjacency.bridged ? Answer::none : Answer::time_exceeded};
    if (item.headers.ip_length > adjacency.mtu) {
        if (is_roce(item.headers)) return {DropReason::roce_too_big};
        if (item.headers.has(wire::kInnerV6) || item.headers.has(wire::kDontFragment))
            return {DropReason::too_big, Answer::packet_too_big, adjacency.mtu};
    }
    if (!combine_ecn(bytes_of(item.mbuf) + item.headers.l3, item.headers, traffic_class))
        return {DropReason::ecn_invalid};
    return {};
}

template <class Family>
const Adjacency* examine(Worker::State& state, const Item& item, session::FlowIndex index,
                         const policy::Source& known_source, const Adjacency& known_adjacency,
                         std::uint8_t& traffic_class, bool& believed) {
    auto& sessions = table<Family>(state);
    auto& flow = sessions.flow(index);
    const session::ConnectionIndex number = session::connection_of(index);
    const policy::ZoneSlot zone{sessions.connection(number).zone_slot};
    const policy::Source* source = &known_source;
    const Adjacency* adjacency = &known_adjacency;
    const auto dropped = [&](DropReason reason) -> const Adjacency* {
        drop(state, item, {reason, zone, nullptr});
        return nullptr;
    };
    const auto missed = [&]() -> const Adjacency* {
        state.misses[state.miss_count++] = item;
        return nullptr;
    };

    const auto sender = [&] {
        const auto& connection = sessions.connection(number);
        return session::is_reverse(index) ? connection.destination : connection.source;
    };

    // Policy first: the source that a stale flow names may have gone since, and its address may
    // be somebody else's now. The judgement does not depend on this packet.
    const std::uint32_t generation = flow.state.generation.load(std::memory_order_relaxed);
    const auto& changed = state.shared.changed;
    if (generation < changed[source->zone.value].load(std::memory_order_acquire) ||
        generation < changed[adjacency->zone.value].load(std::memory_order_acquire)) {
        const bool known = source_ok(item, *source);
        switch (rewalk<Family>(state, number)) {
            case Judgement::allowed:
                break;
            case Judgement::ended:
                if (!known) return missed();
                // Its VPC may be gone, and the connection's slot be nobody's.
                drop(state, item,
                     {DropReason::policy_changed,
                      item.headers.has(wire::kTunnelled) ? claimed_zone(state, item.headers) : zone,
                      nullptr});
                return nullptr;
            case Judgement::restarts:
                return missed();
        }
        adjacency = &(*state.shared.adjacencies)[flow.state.adjacency()];
        source = &(*state.shared.sources)[flow.state.source_index()];
    }
    if (!source_ok(item, *source)) return dropped(source_reason(item, *source));

    // No leak, whatever the policy said: what tenants send leaves only with a public source.
    if (adjacency->kind == Adjacency::Kind::ethernet && item.headers.has(wire::kTunnelled) &&
        std::is_same_v<Family, session::Ipv4> &&
        (flow.state.target.load(std::memory_order_relaxed) & session::kTranslated) == 0)
        return dropped(DropReason::private_on_uplink);
    if (const Unfit why = unfit(item, *adjacency, traffic_class); why.reason != DropReason::none) {
        if (why.told == policy::Answer::none) return dropped(why.reason);
        answer_error(state, item, {why.told, sender(), {}, why.mtu}, {why.reason, zone, nullptr});
        return nullptr;
    }
    if (item.headers.protocol == static_cast<std::uint8_t>(Protocol::tcp)) {
        switch (track_tcp<Family>(state, item, index, zone, believed)) {
            case Outcome::carry:
                break;
            case Outcome::dropped:
                return nullptr;
            case Outcome::miss:
                return missed();
        }
        if ((item.headers.tcp_flags & session::kSyn) != 0 && !adjacency->bridged &&
            state.shared.sessions->zones.mss_clamping(zone.value))
            clamp_segments<Family>(state, item, index, *adjacency);
    } else if (session::is_reverse(index) &&
               // A later fragment of TCP comes here too, and has nothing to say to its tracker.
               flow.key.protocol() != static_cast<std::uint8_t>(Protocol::tcp) &&
               (flow.state.target.load(std::memory_order_relaxed) & session::kTracked) != 0) {
        note_answer<Family>(state, number);
        flow.state.target.fetch_and(~static_cast<std::uint32_t>(session::kTracked),
                                    std::memory_order_relaxed);
    }
    if ((flow.state.target.load(std::memory_order_relaxed) & session::kMetered) != 0 &&
        !within_meters<Family>(state, item, index))
        return dropped(DropReason::metered);
    return adjacency;
}

template const Adjacency* examine<session::Ipv4>(Worker::State&, const Item&, session::FlowIndex,
                                                 const policy::Source&, const Adjacency&,
                                                 std::uint8_t&, bool&);
template const Adjacency* examine<session::Ipv6>(Worker::State&, const Item&, session::FlowIndex,
                                                 const policy::Source&, const Adjacency&,
                                                 std::uint8_t&, bool&);

}  // namespace sluice::worker
