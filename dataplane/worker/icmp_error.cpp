// SPDX-License-Identifier: Apache-2.0
// ICMP errors: matched to the connection whose packet they quote, translated as its replies
// are, quote included (RFC 5508 sections 4.2 and 4.3).
#include "dataplane/wire/quote.hpp"
#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/ecn.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using policy::Adjacency;

// A walk, for what it says of the sender: charged to it like a first packet's.
struct Walked {
    Drop refused;
    policy::Plan plan;
};
Walked walk_sender(Worker::State& state, const Item& item, unsigned& budget) {
    const auto refused = [&](DropReason reason) {
        return Walked{{reason, claimed_zone(state, item.headers), nullptr}, {}};
    };
    if (state.snapshot == nullptr) return refused(DropReason::not_ready);
    const Packet packet = wire::to_packet(contiguous(item.mbuf), item.headers, item.port);
    if (budget == 0) return refused(DropReason::walk_budget);
    if (const Drop drop = charge(state, packet); drop.reason != DropReason::none) return {drop, {}};
    --budget;
    state.counters.walks.add(1);
    return {{}, state.shared.walk(*state.snapshot, packet, policy::WalkMode::packet, nullptr)};
}

// Inside a VPC only the other end of the connection may complain: with the address that it has in
// it, or, a next hop or a router of more networks, with any other that the walk lets it send from.
// none: it is.
Drop wrong_reporter(Worker::State& state, const Item& item, const wire::Quote& quote,
                    policy::ZoneSlot zone, const policy::Source& source, const IpAddress& address,
                    EndpointId reporter, unsigned& budget) {
    const auto frame = contiguous(item.mbuf);
    const IpAddress vtep = wire::vtep_of(frame, item.headers);
    if (wire::load_mac(frame.data() + item.headers.l2 + wire::ethernet::kSource) == source.mac &&
        std::find(source.vteps.begin(), source.vteps.end(), vtep) != source.vteps.end() &&
        quote.source == address)
        return {};
    const Walked walked = walk_sender(state, item, budget);
    if (walked.refused.reason != DropReason::none) return walked.refused;
    if (!walked.plan.source) return {walked.plan.reason, zone, nullptr};
    if (walked.plan.source != reporter) return {DropReason::icmp_error_unmatched, zone, nullptr};
    return {};
}

// `index`: the flow that runs against the quoted packet, as the error does.
template <class Family>
void carry_along(Worker::State& state, const Item& item, const wire::Quote& quote,
                 session::FlowIndex index, unsigned& budget) {
    auto& sessions = table<Family>(state);
    const session::ConnectionIndex number = session::connection_of(index);
    auto& flow = sessions.flow(index);
    const policy::ZoneSlot zone{sessions.connection(number).zone_slot};
    const auto& changed = state.shared.changed;
    const auto generation = flow.state.generation.load(std::memory_order_relaxed);
    const auto is_stale = [&](policy::ZoneSlot of) {
        return generation < changed[of.value].load(std::memory_order_acquire);
    };
    if (is_stale((*state.shared.sources)[flow.state.source_index()].zone) ||
        is_stale((*state.shared.adjacencies)[flow.state.adjacency()].zone))
        if (rewalk<Family>(state, number) != Judgement::allowed)
            return drop(state, item, {DropReason::policy_changed, zone, nullptr});

    const policy::Source& source = (*state.shared.sources)[flow.state.source_index()];
    const Adjacency& adjacency = (*state.shared.adjacencies)[flow.state.adjacency()];
    const Tuple key = flow.key.tuple();
    const auto& connection = sessions.connection(number);
    if (item.headers.has(wire::kTunnelled))
        if (const Drop wrong = wrong_reporter(
                state, item, quote, zone, source, key.source,
                session::is_reverse(index) ? connection.destination : connection.source, budget);
            wrong.reason != DropReason::none)
            return drop(state, item, wrong);
    if (quote.destination != key.destination)
        return drop(state, item, {DropReason::icmp_error_unmatched, zone, nullptr});
    if (adjacency.kind == Adjacency::Kind::unreachable)
        return drop(state, item, {DropReason::host_unreachable, zone, nullptr});
    const bool too_big = item.headers.ip_length > adjacency.mtu;
    if (too_big && (item.headers.has(wire::kInnerV6) || item.headers.has(wire::kDontFragment)))
        return drop(state, item, {DropReason::too_big, zone, nullptr});
    if (item.headers.ttl <= spent_ttl(adjacency))
        return drop(state, item, {DropReason::ttl_expired, zone, nullptr});
    std::uint8_t* ip = bytes_of(item.mbuf) + item.headers.l3;
    std::uint8_t traffic_class = item.headers.traffic_class;
    if (!combine_ecn(ip, item.headers, traffic_class))
        return drop(state, item, {DropReason::ecn_invalid, zone, nullptr});

    // What this direction's packets become: the key of the other one, turned round.
    const auto after = reversed(sessions.flow(session::FlowIndex{index.value ^ 1}).key.tuple());
    const auto quoted = after ? reversed(*after) : std::nullopt;
    if (!quoted) return drop(state, item, {DropReason::icmp_error_unmatched, zone, nullptr});
    if (*after != key) {
        // The end's address is translated with the rest, and so is any other of a tenant's behind
        // it (RFC 5508 section 4.2.2, REQ-5); that of a router on the internet stays.
        const bool hidden = quote.source == key.source ||
                            (item.headers.has(wire::kTunnelled) && after->source != key.source);
        const IpAddress from = hidden ? after->source : quote.source;
        if (!wire::translate_quote({ip, std::size_t{item.mbuf->data_len} - item.headers.l3}, quote,
                                   {from, after->destination, *quoted}))
            return drop(state, item, {DropReason::nat_unsupported, zone, nullptr});
        if ((flow.state.target.load(std::memory_order_relaxed) & session::kSharedSource) != 0)
            renumber(state, ip);
    } else if (adjacency.kind == Adjacency::Kind::ethernet && item.headers.has(wire::kTunnelled) &&
               key.source.is_v4()) {
        return drop(state, item, {DropReason::private_on_uplink, zone, nullptr});
    }
    if (!adjacency.bridged) {
        if constexpr (std::is_same_v<Family, session::Ipv4>)
            decrement_ttl_ipv4(ip);
        else
            --ip[wire::ipv6::kHopLimit];
    }
    const OuterFacts outer{item.headers.ip_length,
                           static_cast<std::uint16_t>(sessions.hash(flow.key) >> 40),
                           traffic_class};
    if (too_big) return send_fragments(state, item, adjacency, outer);
    encapsulate(state, item.mbuf, item.headers.l3, adjacency, outer);
}

// What the walk finds wrong with a sender on the uplink, whatever it would say of the packet.
Drop wrong_sender(Worker::State& state, const Item& item, unsigned& budget) {
    if (item.headers.has(wire::kTunnelled)) return {};
    const Walked walked = walk_sender(state, item, budget);
    if (walked.refused.reason != DropReason::none) return walked.refused;
    const DropReason reason = walked.plan.reason;
    if (reason == DropReason::private_on_uplink || reason == DropReason::spoofed_ip)
        return {reason, {}, nullptr};
    return {};
}

template <class Family>
void match(Worker::State& state, const Item& item, const wire::Quote& quote, const Tuple& against,
           unsigned& budget) {
    auto& sessions = table<Family>(state);
    const auto key = Family::Key::of(Vni{item.headers.zone}, against);
    const session::FlowIndex flow = sessions.find(key, sessions.hash(key));
    if (flow == session::kNoFlow)
        return drop(state, item,
                    {DropReason::icmp_error_unmatched, claimed_zone(state, item.headers), nullptr});
    carry_along<Family>(state, item, quote, flow, budget);
}

}  // namespace

void carry_icmp_error(Worker::State& state, const Item& item, unsigned& budget) {
    const auto frame = contiguous(item.mbuf);
    const auto packet = frame.subspan(item.headers.l3);
    const auto quote = wire::parse_quote(
        packet.first(std::min<std::size_t>(packet.size(), item.headers.ip_length)));
    const auto against = quote ? reversed(quote->tuple) : std::nullopt;
    if (!against || against->source.is_v4() == item.headers.has(wire::kInnerV6))
        return drop(state, item,
                    {DropReason::icmp_error_unmatched, claimed_zone(state, item.headers), nullptr});
    if (const Drop wrong = wrong_sender(state, item, budget); wrong.reason != DropReason::none)
        return drop(state, item, wrong);
    if (item.headers.has(wire::kInnerV6))
        match<session::Ipv6>(state, item, *quote, *against, budget);
    else
        match<session::Ipv4>(state, item, *quote, *against, budget);
}

}  // namespace sluice::worker
