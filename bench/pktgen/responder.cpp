// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/responder.hpp"

#include "bench/pktgen/network.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/neighbour.hpp"

namespace sluice::pktgen {

Responder::Responder(const Profile& profile, const Port& port, const MacAddress& own)
    : first_(port.role == Side::underlay ? profile.hosts.first_vtep : port.address),
      gateway_(port.gateway),
      count_(port.role == Side::underlay ? profile.hosts.count : 1),
      own_(own) {
    if (!port.gateway_mac.is_zero()) gateway_mac_ = port.gateway_mac;
}

bool Responder::plays(const IpAddress& address) const {
    for (std::uint32_t i = 0; i < count_; ++i)
        if (nth(first_, i) == address) return true;
    return false;
}

void Responder::learn(const IpAddress& address, const MacAddress& mac) {
    if (address == gateway_ && !mac.is_zero() && !mac.is_multicast() && !gateway_mac_)
        gateway_mac_ = mac;
}

std::size_t Responder::answer(std::span<const std::uint8_t> frame, std::span<std::uint8_t> out) {
    if (const auto message = wire::parse_arp(frame)) {
        learn(message->sender.address, message->sender.mac);
        if (message->operation != wire::ArpOperation::request || !plays(message->target.address))
            return 0;
        return wire::write_arp_reply(out, {message->target.address, own_}, message->sender);
    }
    if (const auto message = wire::parse_advertisement(frame)) {
        if (message->target_link) learn(message->target, *message->target_link);
        return 0;
    }
    const auto message = wire::parse_solicitation(frame);
    if (!message || !plays(message->target)) return 0;
    const MacAddress asker = message->source_link.value_or(wire::load_mac(frame.data() + 6));
    return wire::write_advertisement(out, {message->target, own_}, {message->source, asker},
                                     wire::NeighbourRole::host);
}

std::size_t Responder::question(std::span<std::uint8_t> out) const {
    return gateway_.is_v4() ? wire::write_arp_request(out, {first_, own_}, gateway_)
                            : wire::write_solicitation(out, {first_, own_}, gateway_);
}

}  // namespace sluice::pktgen
