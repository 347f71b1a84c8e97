// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/echo.hpp"

#include <algorithm>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/special_address.hpp"
#include "dataplane/wire/upper_layer.hpp"

namespace sluice::wire {
namespace {

void swap_octets(std::uint8_t* one, std::uint8_t* other, std::size_t count) {
    std::swap_ranges(one, one + count, other);
}

// Moves `count` octets that end at `from_end` so that they end at `to_end`.
void move_up(std::uint8_t* frame, std::size_t from_end, std::size_t to_end, std::size_t count) {
    std::memmove(frame + to_end - count, frame + from_end - count, count);
}

}  // namespace

std::span<std::uint8_t> make_echo_reply(std::span<std::uint8_t> frame) {
    if (frame.size() < ethernet::kSize + ipv4::kSize) return {};
    if (load_mac(frame.data() + ethernet::kSource).is_multicast() ||
        load_mac(frame.data() + ethernet::kDestination).is_multicast())
        return {};
    const auto packet = frame.subspan(ethernet::kSize);
    const bool v4 = load16(frame.data() + ethernet::kType) == ethernet::kIpv4;
    if (!v4 && load16(frame.data() + ethernet::kType) != ethernet::kIpv6) return {};
    if (packet[0] >> 4 != (v4 ? 4 : 6)) return {};
    const auto upper = find_upper_layer(packet);
    if (!upper || upper->is_fragment() || packet.size() - upper->offset < icmp::kSize) return {};

    const std::size_t fixed = v4 ? ipv4::kSize : ipv6::kSize;
    const std::size_t length = v4 ? load16(packet.data() + ipv4::kLength).host()
                                  : ipv6::kSize + load16(packet.data() + ipv6::kLength).host();
    if (length < upper->offset + icmp::kSize) return {};
    const IpAddress source =
        v4 ? load_v4(packet.data() + ipv4::kSource) : load_v6(packet.data() + ipv6::kSource);
    const IpAddress destination = v4 ? load_v4(packet.data() + ipv4::kDestination)
                                     : load_v6(packet.data() + ipv6::kDestination);
    if (source.is_v4() != v4 || destination.is_v4() != v4 || source == destination ||
        !is_station(source) || !is_station(destination))
        return {};
    if (v4 && !ipv4_header_checksum_ok(packet.first(upper->offset))) return {};

    std::uint8_t* message = packet.data() + upper->offset;
    const std::uint8_t request = v4 ? icmp::kEchoRequest : icmpv6::kEchoRequest;
    const std::uint8_t reply = v4 ? icmp::kEchoReply : icmpv6::kEchoReply;
    const auto number = static_cast<std::uint8_t>(v4 ? Protocol::icmp : Protocol::icmpv6);
    if (upper->protocol != number || message[icmp::kType] != request || message[icmp::kCode] != 0)
        return {};

    // All checked: from here the frame changes. Swapped addresses leave ICMPv6's pseudo-header as
    // it was, and neither dropped options nor extension headers are part of it.
    const be16 before = load16(message);
    message[icmp::kType] = reply;
    store(
        message + icmp::kChecksum,
        ChecksumDelta{}.replace(before, load16(message)).apply(load16(message + icmp::kChecksum)));

    const std::size_t dropped = upper->offset - fixed;
    if (dropped != 0)
        move_up(frame.data(), ethernet::kSize + fixed, ethernet::kSize + upper->offset,
                ethernet::kSize + fixed);
    const auto answer = frame.subspan(
        dropped, std::min(frame.size() - dropped, ethernet::kSize + length - dropped));
    swap_octets(answer.data() + ethernet::kSource, answer.data() + ethernet::kDestination, 6);
    std::uint8_t* ip = answer.data() + ethernet::kSize;
    const auto left = static_cast<std::uint16_t>(length - dropped);
    if (v4) {
        ip[0] = 0x45;
        store(ip + ipv4::kLength, be16{left});
        ip[ipv4::kTtl] = kOwnTtl;
        swap_octets(ip + ipv4::kSource, ip + ipv4::kDestination, 4);
        store(ip + ipv4::kChecksum, ipv4_header_checksum({ip, ipv4::kSize}));
    } else {
        store(ip + ipv6::kLength, be16{static_cast<std::uint16_t>(left - ipv6::kSize)});
        ip[ipv6::kNextHeader] = number;
        ip[ipv6::kHopLimit] = kOwnTtl;
        swap_octets(ip + ipv6::kSource, ip + ipv6::kDestination, 16);
    }
    return answer;
}

}  // namespace sluice::wire
