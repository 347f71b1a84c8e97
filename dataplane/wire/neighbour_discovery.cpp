// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/neighbour.hpp"
#include "dataplane/wire/special_address.hpp"

namespace sluice::wire {
namespace {

// RFC 4861 sections 4.3 and 4.4: both messages have the same shape.
constexpr std::size_t kFlags = 4, kTarget = 8, kOptions = 24;
constexpr std::uint8_t kRouter = 0x80, kSolicited = 0x40, kOverride = 0x20;
constexpr std::uint8_t kSourceLink = 1, kTargetLink = 2;
constexpr std::uint8_t kHopLimit = 255;  // proves that no router has forwarded it
constexpr std::size_t kOption = 8;

constexpr IpAddress kAllNodes{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

bool is_solicited_node_group(const IpAddress& address) {
    return solicited_node_group(address) == address;
}

struct Message {
    IpAddress source, destination, target;
    std::uint8_t flags = 0;
    std::optional<MacAddress> link;
};

// What both kinds have to fulfil; `option` is the one that carries the link-layer address.
std::optional<Message> parse(std::span<const std::uint8_t> frame, std::uint8_t type,
                             std::uint8_t option) {
    if (frame.size() < ethernet::kSize + ipv6::kSize) return std::nullopt;
    if (load16(frame.data() + ethernet::kType) != ethernet::kIpv6) return std::nullopt;
    const auto packet = frame.subspan(ethernet::kSize);
    const std::size_t length = load16(packet.data() + ipv6::kLength).host();
    if (packet[0] >> 4 != 6 ||
        packet[ipv6::kNextHeader] != static_cast<std::uint8_t>(Protocol::icmpv6) ||
        packet[ipv6::kHopLimit] != kHopLimit || length < kOptions ||
        length > packet.size() - ipv6::kSize)
        return std::nullopt;

    const auto message = packet.subspan(ipv6::kSize, length);
    Message result{load_v6(packet.data() + ipv6::kSource),
                   load_v6(packet.data() + ipv6::kDestination),
                   load_v6(message.data() + kTarget),
                   message[kFlags],
                   {}};
    if (message[icmp::kType] != type || message[icmp::kCode] != 0) return std::nullopt;
    if (result.source.is_v4() || result.destination.is_v4() || result.target.is_v4() ||
        result.source.is_multicast() || !is_station(result.target))
        return std::nullopt;
    if (!transport_checksum_ok(result.source, result.destination, Protocol::icmpv6, message))
        return std::nullopt;

    for (auto options = message.subspan(kOptions); !options.empty();) {
        if (options.size() < kOption || options[1] == 0) return std::nullopt;
        const std::size_t size = options[1] * std::size_t{8};
        if (size > options.size()) return std::nullopt;
        if (options[0] == option && size == kOption) {
            const MacAddress mac = load_mac(options.data() + 2);
            if (mac.is_multicast() || mac.is_zero()) return std::nullopt;
            result.link = mac;
        }
        options = options.subspan(size);
    }
    return result;
}

struct Outgoing {
    std::uint8_t type = 0;
    std::uint8_t flags = 0;
    std::uint8_t option = 0;
    IpAddress target;
};

std::size_t write(std::span<std::uint8_t> out, const Outgoing& what, const Neighbour& from,
                  const Neighbour& to) {
    constexpr std::size_t kLength = kOptions + kOption;
    static_assert(kNeighbourFrame == ethernet::kSize + ipv6::kSize + kLength);
    if (out.size() < kNeighbourFrame || from.address.is_v4() || from.address.is_none() ||
        to.address.is_v4() || what.target.is_v4())
        return 0;
    std::uint8_t* frame = out.data();
    std::fill_n(frame, kNeighbourFrame, std::uint8_t{0});
    store(frame + ethernet::kDestination, to.mac);
    store(frame + ethernet::kSource, from.mac);
    store(frame + ethernet::kType, ethernet::kIpv6);

    std::uint8_t* ip = frame + ethernet::kSize;
    ip[0] = 0x60;
    store(ip + ipv6::kLength, be16{kLength});
    ip[ipv6::kNextHeader] = static_cast<std::uint8_t>(Protocol::icmpv6);
    ip[ipv6::kHopLimit] = kHopLimit;
    store_v6(ip + ipv6::kSource, from.address);
    store_v6(ip + ipv6::kDestination, to.address);

    std::uint8_t* message = ip + ipv6::kSize;
    message[icmp::kType] = what.type;
    message[kFlags] = what.flags;
    store_v6(message + kTarget, what.target);
    message[kOptions] = what.option;
    message[kOptions + 1] = 1;  // in units of eight octets
    store(message + kOptions + 2, from.mac);
    store(message + icmp::kChecksum,
          transport_checksum(from.address, to.address, Protocol::icmpv6, {message, kLength}));
    return kNeighbourFrame;
}

std::uint8_t role_flag(NeighbourRole role) {
    return role == NeighbourRole::router ? kRouter : 0;
}

}  // namespace

IpAddress solicited_node_group(const IpAddress& address) {
    IpAddress group{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0}};
    std::copy(address.bytes.begin() + 13, address.bytes.end(), group.bytes.begin() + 13);
    return group;
}

MacAddress ethernet_group(const IpAddress& group) {
    MacAddress mac{{0x33, 0x33, 0, 0, 0, 0}};
    std::copy(group.bytes.begin() + 12, group.bytes.end(), mac.bytes.begin() + 2);
    return mac;
}

std::optional<NeighbourSolicitation> parse_solicitation(std::span<const std::uint8_t> frame) {
    const auto message = parse(frame, icmpv6::kNeighbourSolicitation, kSourceLink);
    if (!message) return std::nullopt;
    if (message->source.is_none() &&
        (!is_solicited_node_group(message->destination) || message->link))
        return std::nullopt;
    return NeighbourSolicitation{message->source, message->target, message->link};
}

std::optional<NeighbourAdvertisement> parse_advertisement(std::span<const std::uint8_t> frame) {
    const auto message = parse(frame, icmpv6::kNeighbourAdvertisement, kTargetLink);
    if (!message) return std::nullopt;
    const bool solicited = (message->flags & kSolicited) != 0;
    if (message->source.is_none() || (solicited && message->destination.is_multicast()))
        return std::nullopt;
    return NeighbourAdvertisement{message->source, message->target,
                                  message->link,   (message->flags & kRouter) != 0,
                                  solicited,       (message->flags & kOverride) != 0};
}

std::size_t write_solicitation(std::span<std::uint8_t> out, const Neighbour& sender,
                               const IpAddress& target) {
    const IpAddress group = solicited_node_group(target);
    return write(out, {icmpv6::kNeighbourSolicitation, 0, kSourceLink, target}, sender,
                 {group, ethernet_group(group)});
}

std::size_t write_solicitation_probe(std::span<std::uint8_t> out, const Neighbour& sender,
                                     const Neighbour& target) {
    return write(out, {icmpv6::kNeighbourSolicitation, 0, kSourceLink, target.address}, sender,
                 target);
}

std::size_t write_advertisement(std::span<std::uint8_t> out, const Neighbour& sender,
                                const Neighbour& to, NeighbourRole role) {
    if (to.address.is_none()) return write_unsolicited_advertisement(out, sender, role);
    const auto flags = static_cast<std::uint8_t>(role_flag(role) | kSolicited | kOverride);
    return write(out, {icmpv6::kNeighbourAdvertisement, flags, kTargetLink, sender.address}, sender,
                 to);
}

std::size_t write_unsolicited_advertisement(std::span<std::uint8_t> out, const Neighbour& self,
                                            NeighbourRole role) {
    const auto flags = static_cast<std::uint8_t>(role_flag(role) | kOverride);
    return write(out, {icmpv6::kNeighbourAdvertisement, flags, kTargetLink, self.address}, self,
                 {kAllNodes, ethernet_group(kAllNodes)});
}

}  // namespace sluice::wire
