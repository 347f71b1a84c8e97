// SPDX-License-Identifier: Apache-2.0
// Commit: a plan becomes a connection with two flows, or nothing at all.
#include "dataplane/wire/checksum.hpp"
#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/nat.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using policy::DirectionPlan;
using policy::Plan;
using session::ConnectionIndex;
using session::FlowIndex;
using session::Insertion;

constexpr auto kTcp = static_cast<std::uint8_t>(Protocol::tcp);
constexpr auto kUdp = static_cast<std::uint8_t>(Protocol::udp);
constexpr auto kIcmp = static_cast<std::uint8_t>(Protocol::icmp);
constexpr auto kIcmpv6 = static_cast<std::uint8_t>(Protocol::icmpv6);

// What a translation must not touch: checksums over addresses or ports that cannot be
// mended from the header alone.
DropReason untranslatable(const Plan& plan) {
    if (plan.arrives == plan.leaves) return DropReason::none;
    constexpr std::uint8_t kDccp = 33, kAuthentication = 51, kUdpLite = 136;
    const std::uint8_t protocol = plan.arrives.protocol;
    if (protocol == kDccp || protocol == kAuthentication || protocol == kUdpLite)
        return DropReason::nat_unsupported;
    if (protocol == kUdp && be16{plan.arrives.destination_port} == wire::udp::kRoceV2)
        return DropReason::roce_not_translated;
    return DropReason::none;
}

bool has_ports(std::uint8_t protocol) {
    return protocol == kTcp || protocol == kUdp || protocol == kIcmp || protocol == kIcmpv6;
}

// RFC 6056 section 3.3.1: from the dynamic range and below. Not that of RoCEv2, whose packets
// replies would be taken for.
std::uint16_t random_port(Worker::State& state) {
    constexpr std::uint16_t kFirst = 1024, kRoce = wire::udp::kRoceV2.host();
    const auto port = static_cast<std::uint16_t>(kFirst + state.next_random() % (65535 - kFirst));
    return port < kRoce ? port : static_cast<std::uint16_t>(port + 1);
}

// No packet with a private address crosses to the outside: IPv4 is translated there, IPv6 is
// not and must be global (RFC 4193 section 4.3).
bool leaks(const Plan& plan) {
    const bool out = plan.destination_vpc == kOutside && plan.source_vpc != kOutside;
    const bool in = plan.source_vpc == kOutside;
    if (!out && !in) return false;
    if (plan.arrives.source.is_v4())
        return out ? plan.arrives.source == plan.leaves.source
                   : plan.arrives.destination == plan.leaves.destination;
    const IpAddress& inside = out ? plan.leaves.source : plan.leaves.destination;
    return (inside.bytes[0] & 0xfe) == 0xfc ||
           (inside.bytes[0] == 0xfe && (inside.bytes[1] & 0xc0) == 0x80);
}

// From `before` to `after`, which carry the same packet on both sides of the gateway.
session::Rewrite rewrite_of(const Tuple& before, const Tuple& after) {
    session::Rewrite rewrite;
    rewrite.source = before.source.to_v4().raw ^ after.source.to_v4().raw;
    rewrite.destination = before.destination.to_v4().raw ^ after.destination.to_v4().raw;
    const std::uint32_t ports_before = session::wire_ports(before);
    const std::uint32_t ports_after = session::wire_ports(after);
    rewrite.ports = ports_before ^ ports_after;
    wire::ChecksumDelta addresses;
    addresses.replace(before.source, after.source).replace(before.destination, after.destination);
    wire::ChecksumDelta ports;
    ports.replace(be32::from_raw(ports_before), be32::from_raw(ports_after));
    rewrite.ip_delta = field_delta(addresses.folded());
    if (before.protocol == kIcmp) {
        rewrite.l4_delta = field_delta(ports.folded());
    } else {
        addresses.replace(be32::from_raw(ports_before), be32::from_raw(ports_after));
        rewrite.l4_delta = field_delta(addresses.folded());
    }
    return rewrite;
}

template <class Family>
void fill_flow(Worker::State& state, typename Family::Flow& flow, const Plan& plan, Vni zone,
               const Tuple& before, const Tuple& after, const DirectionPlan& direction,
               std::uint32_t tracked) {
    flow.key = Family::Key::of(zone, before);
    std::uint32_t flags = tracked;
    if constexpr (std::is_same_v<Family, session::Ipv4>) {
        flow.rewrite = rewrite_of(before, after);
        if (before != after) flags |= session::kTranslated;
        if (flow.rewrite.ports != 0) flags |= session::kTranslatedPort;
        // It leaves with an address that it shares.
        if ((plan.nat.source && &direction == &plan.forward) ||
            (plan.nat.destination && &direction == &plan.reverse))
            flags |= session::kSharedSource;
    }
    for (const MeterId meter : direction.meters)
        if (meter.value != 0) flags |= session::kMetered;
    const auto relaxed = std::memory_order_relaxed;
    flow.state.generation.store(plan.generation.value, relaxed);
    flow.state.target.store((direction.adjacency.value & session::kIndexMask) | flags, relaxed);
    flow.state.source.store(direction.source.value, relaxed);
    flow.state.last_seen.store(state.tick.value, relaxed);
    flow.state.packets.store(0, relaxed);
    flow.state.octets.store(0, relaxed);
    flow.tcp.end.store(0, relaxed);
    flow.tcp.acknowledged.store(0, relaxed);
}

void fill_connection(Worker::State& state, session::Connection& connection, const Plan& plan) {
    connection.zone_slot = plan.zone.value;
    connection.created = state.tick;
    connection.source = plan.source;
    connection.destination = plan.destination;
    for (std::size_t i = 0; i < session::kDirections; ++i) {
        connection.octets_high[i].store(0, std::memory_order_relaxed);
        connection.packets_high[i].store(0, std::memory_order_relaxed);
    }
    refresh_connection(state, connection, plan);
}

// Another connection has the replies' key and has idled away, is just slow to go, or would be
// ended by its next packet: whoever had the address before keeps no port of it.
template <class Family>
bool end_idle(Worker::State& state, const typename Family::Key& key) {
    auto& sessions = table<Family>(state);
    const FlowIndex other = sessions.find(key, sessions.hash(key));
    if (other == session::kNoFlow) return true;
    if (end_refused<Family>(state, session::connection_of(other))) return true;
    const ConnectionIndex number = session::connection_of(other);
    if (!sessions.idle_too_long(number, state.shared.sessions->zones, state.tick)) return false;
    end_connection<Family>(state, number, EndReason::idle, DropReason::none);
    return true;
}

}  // namespace

void refresh_connection(Worker::State& state, session::Connection& connection, const Plan& plan) {
    for (std::size_t i = 0; i < session::kMetersPerFlow; ++i) {
        connection.meters[0][i].store(state.shared.meters->find(plan.forward.meters[i]).value,
                                      std::memory_order_relaxed);
        connection.meters[1][i].store(state.shared.meters->find(plan.reverse.meters[i]).value,
                                      std::memory_order_relaxed);
    }
    connection.admitted_by[0].store(plan.egress_group.value, std::memory_order_relaxed);
    connection.admitted_by[1].store(plan.ingress_group.value, std::memory_order_relaxed);
    const policy::Path& path = plan.path;
    const std::array<Cookie, session::kPathLength> cookies = {path.source_endpoint,
                                                              path.egress_rule,
                                                              path.route,
                                                              path.source_translation,
                                                              path.destination_translation,
                                                              path.destination_endpoint,
                                                              path.ingress_rule};
    for (std::size_t i = 0; i < cookies.size(); ++i) {
        // A side whose groups need not allow it any more: the rule that once did stays its own.
        const bool kept =
            (i == 1 && plan.egress_group) || (i == cookies.size() - 1 && plan.ingress_group);
        if (!kept || cookies[i])
            connection.path[i].store(cookies[i].value, std::memory_order_relaxed);
    }
}

template <class Family>
Committed commit(Worker::State& state, const Plan& plan, session::TcpState tcp_state) {
    auto& sessions = table<Family>(state);
    const unsigned worker = state.options.index;
    if (const DropReason reason = untranslatable(plan); reason != DropReason::none)
        return {session::kNoFlow, reason};
    if (leaks(plan)) return {session::kNoFlow, DropReason::private_on_uplink};

    session::Limits& limits = state.shared.sessions->limits;
    const EndpointId owner = plan.source ? plan.source : plan.destination;
    const session::Limits::Claim claim{std::is_same_v<Family, session::Ipv6>, plan.zone.value,
                                       owner, tcp_state != session::TcpState::established};
    // Held before there is room: what goes for it may be what has the mapping.
    PortClaim ports(state, plan);
    if (const DropReason reason = ports.hold(); reason != DropReason::none)
        return {session::kNoFlow, reason};
    if (plan.installs)
        if (const DropReason reason = make_room<Family>(state, claim); reason != DropReason::none)
            return {session::kNoFlow, reason};
    const ConnectionIndex number = sessions.take(worker);
    if (number == session::kNoConnection) {
        evict_any<Family>(state);
        return {session::kNoFlow, DropReason::session_table_full};
    }
    fill_connection(state, sessions.connection(number), plan);
    auto& forward = sessions.flow(session::forward_of(number));
    auto& reverse = sessions.flow(session::reverse_of(number));
    // What is no TCP is looked at until its first answer.
    const bool checked = tcp_state != session::TcpState::none &&
                         state.shared.sessions->zones.tcp_window_check(plan.zone.value);
    const std::uint32_t tracked_replies =
        claim.half_open || checked ? static_cast<std::uint32_t>(session::kTracked) : 0;
    const std::uint32_t tracked = tcp_state == session::TcpState::none ? 0 : tracked_replies;

    // What was picked up may have the largest window there is.
    const std::uint8_t scale = tcp_state == session::TcpState::established
                                   ? session::kMaximumWindowScale
                                   : session::kNoWindowScale;
    const std::uint32_t scales = session::Connection::scale_word(scale, scale);
    // Counted before it can be found, for whoever ends it.
    const bool endpoint_counts = plan.installs && limits.take(claim);
    const std::uint32_t flags = (claim.half_open ? session::kHalfOpen : 0U) |
                                (endpoint_counts ? session::kEndpointCounts : 0U) |
                                (tcp_state == session::TcpState::established
                                     ? static_cast<std::uint32_t>(session::kPickedUp)
                                     : 0U) |
                                ports.flags() | scales;
    const auto refused = [&](DropReason reason) -> Committed {
        if (plan.installs) limits.release(claim, endpoint_counts);
        return {session::kNoFlow, reason};
    };

    // A key that is taken on the far side: the source port is translated too.
    constexpr int kPortAttempts = 16;
    Tuple leaves = plan.leaves;
    const bool translated = plan.leaves != plan.arrives;
    DropReason none_left = DropReason::session_conflict;
    const int attempts = ports.has_others() ? PortClaim::kAttempts : kPortAttempts;
    for (int attempt = 0; attempt <= attempts; ++attempt) {
        if (const DropReason reason = ports.take(leaves, static_cast<unsigned>(attempt));
            reason != DropReason::none) {
            // There may be a port in use that has no connection to this destination.
            if (ports.has_others() && attempt > 0 && attempt < attempts) {
                none_left = reason;
                continue;
            }
            sessions.give_back(worker, number);
            return refused(reason);
        }
        const auto replies = reversed(leaves);
        const auto replies_home = reversed(plan.arrives);
        if (!replies || !replies_home) break;
        fill_flow<Family>(state, forward, plan, plan.source_vni, plan.arrives, leaves, plan.forward,
                          tracked);
        fill_flow<Family>(state, reverse, plan, plan.destination_vni, *replies, *replies_home,
                          plan.reverse, tracked_replies);
        if (!plan.installs) return {session::forward_of(number), DropReason::none, true};
        switch (sessions.insert(worker, number, tcp_state, flags)) {
            case Insertion::done: {
                ports.keep();
                state.counters.zone[plan.zone.value].connections_created.add(1);
                ConnectionEvent event = describe<Family>(state, number);
                event.kind = ConnectionEvent::Kind::created;
                tell(state, event);
                return {session::forward_of(number), DropReason::none};
            }
            case Insertion::full:
                return refused(DropReason::session_table_full);
            case Insertion::full_and_ended:
                ports.keep();  // ... and gave back what was its
                return {session::kNoFlow, DropReason::session_table_full};
            case Insertion::forward_exists: {
                // Another worker was first: its plan is as good as this one.
                const FlowIndex winner = sessions.find(forward.key, sessions.hash(forward.key));
                sessions.give_back(worker, number);
                Committed result = refused(DropReason::none);
                result.flow = winner;
                if (winner == session::kNoFlow) result.reason = DropReason::session_conflict;
                return result;
            }
            case Insertion::reverse_exists:
                break;
        }
        ports.give_back();
        if (attempt == 0 && end_idle<Family>(state, reverse.key)) continue;
        if (ports.has_others()) continue;
        if (plan.nat.source) break;
        if (!translated || !has_ports(plan.arrives.protocol)) break;
        leaves.source_port = random_port(state);
    }
    sessions.give_back(worker, number);
    return refused(none_left);
}

template Committed commit<session::Ipv4>(Worker::State&, const Plan&, session::TcpState);
template Committed commit<session::Ipv6>(Worker::State&, const Plan&, session::TcpState);

}  // namespace sluice::worker
