// SPDX-License-Identifier: Apache-2.0
// What the gateway says to a tenant or to the internet: built beside the packet that made it
// speak, and sent back the way that one came.
#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/echo.hpp"
#include "dataplane/wire/icmp_error.hpp"
#include "dataplane/wire/neighbour.hpp"
#include "dataplane/worker/reply.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

using policy::Answer;

constexpr std::size_t kRoom = 1600;  // for the longest answer and an outer header

wire::IcmpError error_of(Answer error) {
    switch (error) {
        case Answer::time_exceeded:
            return wire::IcmpError::time_exceeded;
        case Answer::net_unreachable:
            return wire::IcmpError::no_route;
        case Answer::admin_prohibited:
            return wire::IcmpError::admin_prohibited;
        case Answer::packet_too_big:
            return wire::IcmpError::too_big;
        default:
            return wire::IcmpError::address_unreachable;
    }
}

// The port's own address of a family, for errors to the outside.
IpAddress own_address(const PortFacts& port, bool v6) {
    for (const IpAddress& address : port.addresses)
        if (address.is_v4() != v6) return address;
    return {};
}

bool within_limit(Worker::State& state, const Item& item, EndpointId to) {
    session::AnswerLimits& limits = state.shared.sessions->answers;
    if (item.headers.has(wire::kTunnelled)) return limits.allow(to, state.now);
    const std::uint8_t* ip = bytes_of(item.mbuf) + item.headers.l3;
    return limits.allow(item.headers.has(wire::kInnerV6) ? wire::load_v6(ip + wire::ipv6::kSource)
                                                         : wire::load_v4(ip + wire::ipv4::kSource),
                        state.now);
}

void answer_neighbour(Worker::State& state, const Item& item, const policy::Plan& plan) {
    const auto frame = contiguous(item.mbuf).subspan(item.headers.l2);
    const MacAddress mac = plan.answer_mac.is_zero() ? state.facts(item.port).mac : plan.answer_mac;
    reply(state, item, [&](std::span<std::uint8_t> out) -> std::size_t {
        if (plan.answer == Answer::arp_reply) {
            const auto question = wire::parse_arp(frame);
            if (!question) return 0;
            return wire::write_arp_reply(out, {question->target.address, mac}, question->sender);
        }
        const auto question = wire::parse_solicitation(frame.first(
            std::min<std::size_t>(frame.size(), wire::ethernet::kSize + item.headers.ip_length)));
        if (!question) return 0;
        return wire::write_advertisement(
            out, {question->target, mac},
            {question->source, wire::load_mac(frame.data() + wire::ethernet::kSource)},
            question->target == plan.answer_from ? wire::NeighbourRole::router
                                                 : wire::NeighbourRole::host);
    });
}

}  // namespace

void reply_echo(Worker::State& state, const Item& item) {
    rte_mbuf* mbuf = item.mbuf;
    // A chain's later segments hold payload only: they go back untouched.
    std::uint8_t* data = bytes_of(mbuf);
    const auto answer = wire::make_echo_reply(
        {data + item.headers.l2, std::size_t{mbuf->data_len} - item.headers.l2});
    if (answer.empty()) return drop(state, item, {DropReason::gateway_protocol, {}, nullptr});
    const auto shift = static_cast<std::uint16_t>(answer.data() - (data + item.headers.l2));
    if (shift != 0) {
        std::memmove(data + shift, data, item.headers.l2);
        rte_pktmbuf_adj(mbuf, shift);
    }
    if (mbuf->nb_segs == 1) {
        const std::size_t length = item.headers.l2 + answer.size();
        if (length < mbuf->data_len)
            rte_pktmbuf_trim(mbuf, static_cast<std::uint16_t>(mbuf->data_len - length));
    }
    send_back(state, item, mbuf);
}

void answer(Worker::State& state, const Item& item, const policy::Plan& plan) {
    switch (plan.answer) {
        case Answer::arp_reply:
        case Answer::neighbour_advert:
            answer_neighbour(state, item, plan);
            return rte_pktmbuf_free(item.mbuf);
        case Answer::echo_reply:
            return reply_echo(state, item);
        default:
            return answer_error(state, item, {plan.answer, plan.source, plan.answer_from, plan.mtu},
                                {plan.reason, plan.zone, &plan});
    }
}

void answer_error(Worker::State& state, const Item& item, const ErrorAnswer& what,
                  const Drop& why) {
    if (!within_limit(state, item, what.to)) {
        state.counters.answers_limited.add(1);
        return drop(state, item, why);
    }
    IpAddress source = what.from;
    if (source.is_none() && item.headers.has(wire::kTunnelled) && state.snapshot != nullptr)
        // Which gateway address speaks to this sender, only the walk knows.
        source = state.shared
                     .walk(*state.snapshot,
                           wire::to_packet(contiguous(item.mbuf), item.headers, item.port),
                           policy::WalkMode::packet, nullptr)
                     .answer_from;
    if (source.is_none() && !item.headers.has(wire::kTunnelled))
        source = own_address(state.facts(item.port), item.headers.has(wire::kInnerV6));
    if (!source.is_none())
        reply(state, item, [&](std::span<std::uint8_t> out) {
            return wire::write_icmp_error(out, contiguous(item.mbuf).subspan(item.headers.l2),
                                          {error_of(what.error), source, what.mtu});
        });
    drop(state, item, why);
}

void send_back(Worker::State& state, const Item& item, rte_mbuf* mbuf) {
    state.counters.answers.add(1);
    if (item.headers.has(wire::kTunnelled)) turn_outer(state, item, mbuf);
    send(state, item.port, mbuf);
}

void turn_outer(Worker::State& state, const Item& item, rte_mbuf* mbuf) {
    namespace wi = wire;
    std::uint8_t* frame = bytes_of(mbuf);
    const MacAddress to = wi::load_mac(frame + wi::ethernet::kSource);
    wi::store(frame + wi::ethernet::kDestination, to);
    wi::store(frame + wi::ethernet::kSource, state.facts(item.port).mac);
    std::uint8_t* ip = frame + item.headers.outer_ip;
    const std::size_t length = mbuf->pkt_len - item.headers.outer_ip;
    std::uint8_t* udp = frame + item.headers.l2 - wi::vxlan::kSize - wi::udp::kSize;
    if (item.headers.has(wi::kOuterV6)) {
        std::swap_ranges(ip + wi::ipv6::kSource, ip + wi::ipv6::kDestination,
                         ip + wi::ipv6::kDestination);
        ip[0] = 0x60;
        ip[1] = ip[2] = ip[3] = 0;
        ip[wi::ipv6::kHopLimit] = wi::kOwnTtl;
        wi::store(ip + wi::ipv6::kLength,
                  be16{static_cast<std::uint16_t>(length - wi::ipv6::kSize)});
    } else {
        const std::size_t header = wi::ipv4::header_length(ip);
        const be32 source = wi::load32(ip + wi::ipv4::kSource);
        wi::store(ip + wi::ipv4::kSource, wi::load32(ip + wi::ipv4::kDestination));
        wi::store(ip + wi::ipv4::kDestination, source);
        ip[wi::ipv4::kTos] = 0;
        ip[wi::ipv4::kTtl] = wi::kOwnTtl;
        wi::store(ip + wi::ipv4::kLength, be16{static_cast<std::uint16_t>(length)});
        wi::store(ip + wi::ipv4::kFragment, be16{wi::ipv4::kDontFragment});
        wi::store(ip + wi::ipv4::kChecksum, be16{0});
        wi::store(ip + wi::ipv4::kChecksum, wi::ipv4_header_checksum({ip, header}));
    }
    // The source port that came was hashed from the same pair of ends; it serves both ways.
    // No checksum: RFC 7348 section 5, over IPv6 RFC 6935.
    wi::store(
        udp + wi::udp::kLength,
        be16{static_cast<std::uint16_t>(mbuf->pkt_len - static_cast<std::size_t>(udp - frame))});
    wi::store(udp + wi::udp::kChecksum, be16{0});
}

rte_mbuf* start_reply(Worker::State& state, const Item& item, std::span<std::uint8_t>& room) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(state.options.ports.pool);
    if (mbuf == nullptr || rte_pktmbuf_tailroom(mbuf) < item.headers.l2 + std::size_t{128}) {
        rte_pktmbuf_free(mbuf);
        return nullptr;
    }
    std::memcpy(bytes_of(mbuf), bytes_of(item.mbuf), item.headers.l2);
    room = {bytes_of(mbuf) + item.headers.l2,
            std::min<std::size_t>(rte_pktmbuf_tailroom(mbuf), kRoom) - item.headers.l2};
    return mbuf;
}

}  // namespace sluice::worker
