// SPDX-License-Identifier: Apache-2.0
// The gateway as a host on its own links: ARP, neighbour discovery and ping for the addresses
// of its ports; what it hears of its neighbours goes to the control thread.
#include <algorithm>

#include "dataplane/wire/icmp_error.hpp"
#include "dataplane/wire/neighbour.hpp"
#include "dataplane/wire/special_address.hpp"
#include "dataplane/worker/reply.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

namespace {

bool own(const Worker::State& state, const PortFacts& port, const IpAddress& address) {
    const auto among = [&](const std::vector<IpAddress>& list) {
        return std::find(list.begin(), list.end(), address) != list.end();
    };
    return among(port.addresses) || (port.side == Side::underlay && among(state.shared.vteps));
}

void heard(Worker::State& state, PortId port, const wire::Neighbour& who, bool solicited) {
    if (!wire::is_station(who.address) || who.mac.is_multicast() || who.mac.is_zero()) return;
    state.neighbours.push({port, who.address, who.mac, solicited});
}

void run_arp(Worker::State& state, const Item& item) {
    const PortFacts& port = state.facts(item.port);
    const auto message = wire::parse_arp(contiguous(item.mbuf));
    if (!message) return drop(state, item, {DropReason::outer_bad_header, {}, nullptr});
    const bool is_reply = message->operation == wire::ArpOperation::reply;
    if (!own(state, port, message->target.address) && !is_reply)
        return drop(state, item, {DropReason::outer_not_for_us, {}, nullptr});
    heard(state, item.port, message->sender, is_reply);
    if (!is_reply)
        reply(state, item, [&](std::span<std::uint8_t> out) {
            return wire::write_arp_reply(out, {message->target.address, port.mac}, message->sender);
        });
    rte_pktmbuf_free(item.mbuf);
}

void run_icmpv6(Worker::State& state, const Item& item) {
    const PortFacts& port = state.facts(item.port);
    const auto frame = contiguous(item.mbuf);
    const std::size_t icmp = wire::ethernet::kSize + wire::ipv6::kSize;
    const std::uint8_t* ip = frame.data() + wire::ethernet::kSize;
    if (frame.size() < icmp + wire::icmp::kSize)
        return drop(state, item, {DropReason::outer_truncated, {}, nullptr});
    const auto packet = frame.first(
        std::min<std::size_t>(frame.size(), icmp + wire::load16(ip + wire::ipv6::kLength).host()));
    switch (frame[icmp]) {
        case wire::icmpv6::kNeighbourSolicitation: {
            const auto question = wire::parse_solicitation(packet);
            if (!question) return drop(state, item, {DropReason::outer_bad_header, {}, nullptr});
            if (!own(state, port, question->target))
                return drop(state, item, {DropReason::outer_not_for_us, {}, nullptr});
            const MacAddress mac = question->source_link.value_or(
                wire::load_mac(frame.data() + wire::ethernet::kSource));
            heard(state, item.port, {question->source, mac}, false);
            reply(state, item, [&](std::span<std::uint8_t> out) {
                return wire::write_advertisement(out, {question->target, port.mac},
                                                 {question->source, mac},
                                                 wire::NeighbourRole::host);
            });
            return rte_pktmbuf_free(item.mbuf);
        }
        case wire::icmpv6::kNeighbourAdvertisement: {
            const auto news = wire::parse_advertisement(packet);
            if (!news) return drop(state, item, {DropReason::outer_bad_header, {}, nullptr});
            if (news->target_link)
                heard(state, item.port, {news->target, *news->target_link}, true);
            return rte_pktmbuf_free(item.mbuf);
        }
        case wire::icmpv6::kEchoRequest:
            if (own(state, port, IpAddress::v6(ip + wire::ipv6::kDestination)))
                return reply_echo(state, item);
            break;
        default:
            break;
    }
    drop(state, item, {DropReason::outer_not_for_us, {}, nullptr});
}

}  // namespace

void run_local(Worker::State& state, const Item& item) {
    const auto frame = contiguous(item.mbuf);
    const be16 ether_type = wire::load16(frame.data() + wire::ethernet::kType);
    if (ether_type == wire::ethernet::kArp) return run_arp(state, item);
    if (ether_type == wire::ethernet::kIpv6 &&
        frame[wire::ethernet::kSize + wire::ipv6::kNextHeader] ==
            static_cast<std::uint8_t>(Protocol::icmpv6))
        return run_icmpv6(state, item);
    if (ether_type == wire::ethernet::kIpv4 &&
        frame[wire::ethernet::kSize + wire::ipv4::kProtocol] ==
            static_cast<std::uint8_t>(Protocol::icmp))
        return reply_echo(state, item);
    drop(state, item, {DropReason::gateway_protocol, {}, nullptr});
}

}  // namespace sluice::worker
