// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/parse_inner.hpp"

#include <algorithm>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/neighbour.hpp"
#include "dataplane/wire/raw.hpp"
#include "dataplane/wire/special_address.hpp"

namespace sluice::wire {

namespace {

constexpr std::size_t kSctpSize = 12;  // common header (RFC 9260 section 3.1)
constexpr std::uint16_t kServiceVlan = 0x88a8;
constexpr auto kIcmpv6 = static_cast<std::uint8_t>(Protocol::icmpv6);

std::uint16_t host16(const std::uint8_t* at) {
    return be16::from_raw(raw16(at)).host();
}

// RFC 4291 sections 2.5.2, 2.5.3, 2.5.5: unspecified, loopback, IPv4-mapped.
bool unspecified(const std::uint8_t* address) {
    return raw64(address) == 0 && raw64(address + 8) == 0;
}
bool martian_ipv6(const std::uint8_t* address) {
    if (raw64(address) != 0) return false;
    const std::uint64_t low = be64::from_raw(raw64(address + 8)).host();
    return low <= 1 || low >> 32 == 0xffff;
}

// Options are passed except source routing (RFC 7126 section 4.3); what does not parse is not.
DropReason check_options(const std::uint8_t* options, std::size_t length) {
    constexpr std::uint8_t kEnd = 0, kNop = 1, kLooseRoute = 131, kStrictRoute = 137;
    for (std::size_t i = 0; i < length;) {
        if (options[i] == kEnd) break;
        if (options[i] == kNop) {
            ++i;
            continue;
        }
        if (i + 2 > length || options[i + 1] < 2 || i + options[i + 1] > length)
            return DropReason::inner_bad_header;
        if (options[i] == kLooseRoute || options[i] == kStrictRoute)
            return DropReason::inner_ip_options;
        i += options[i + 1];
    }
    return DropReason::none;
}

// RFC 826, Ethernet and IPv4 only. Requests alone are of use: the gateway has no questions.
void parse_question(const Octets& frame, Headers& headers) {
    if (!frame.need(headers.l3, arp::kSize, DropReason::inner_truncated, headers)) return;
    const auto message = parse_arp(std::span{frame.data + headers.l2, kArpFrame});
    if (!message || message->operation != ArpOperation::request)
        return refuse(headers, DropReason::inner_arp);
    if (message->sender.mac != load_mac(frame.data + headers.l2 + ethernet::kSource))
        return refuse(headers, DropReason::spoofed_mac);
    headers.kind = FrameKind::arp_request;
}

// RFC 4861 section 7.1.1.
void parse_question_v6(const Octets& frame, std::size_t end, Headers& headers) {
    if (!frame.need(headers.l2, end - headers.l2, DropReason::inner_truncated, headers)) return;
    const auto message = parse_solicitation(std::span{frame.data + headers.l2, end - headers.l2});
    if (!message) return refuse(headers, DropReason::inner_nd);
    if (message->source_link &&
        *message->source_link != load_mac(frame.data + headers.l2 + ethernet::kSource))
        return refuse(headers, DropReason::spoofed_mac);
    headers.kind = FrameKind::solicitation;
}

void parse_icmp(const Octets& frame, std::size_t end, Headers& headers) {
    // Multicast listener discovery (RFC 2710, RFC 3810).
    enum : std::uint8_t {
        kListenerQuery = 130,
        kListenerReport = 131,
        kListenerDone = 132,
        kListenerReport2 = 143
    };
    const std::uint8_t* message = frame.data + headers.l4;
    headers.icmp_type = message[0];
    headers.icmp_code = message[1];
    const bool v6 = headers.has(kInnerV6);
    if (opposite_icmp_type(headers.protocol, message[0])) {
        // The identifier stands for the source port, type and code for the destination's.
        headers.ports = raw16(message + 4) | std::uint32_t{raw16(message)} << 16;
        return;
    }
    if (!v6) {
        const bool error = message[0] == icmp::kUnreachable || message[0] == icmp::kTimeExceeded ||
                           message[0] == icmp::kParameterProblem;
        if (!error) return refuse(headers, DropReason::icmp_not_request);
        headers.kind = FrameKind::icmp_error;
        return;
    }
    if (message[0] >= icmpv6::kUnreachable && message[0] <= icmpv6::kParameterProblem) {
        headers.kind = FrameKind::icmp_error;
        return;
    }
    switch (message[0]) {
        case icmpv6::kNeighbourSolicitation:
            return parse_question_v6(frame, end, headers);
        case icmpv6::kRouterSolicitation:
        case kListenerQuery:
        case kListenerReport:
        case kListenerDone:
        case kListenerReport2:
            return refuse(headers, DropReason::inner_multicast);
        // Only the gateway speaks for neighbours and routers.
        case icmpv6::kRouterAdvertisement:
        case icmpv6::kNeighbourAdvertisement:
        case icmpv6::kRedirect:
            return refuse(headers, DropReason::inner_nd);
        default:
            return refuse(headers, DropReason::icmp_not_request);
    }
}

}  // namespace

void parse_frame(const Octets& frame, Headers& headers) {
    const std::uint8_t* ethernet = frame.data + headers.l2;
    headers.l3 = static_cast<std::uint16_t>(headers.l2 + ethernet::kSize);
    headers.kind = FrameKind::connection;
    if ((ethernet[6] & 1) != 0) return refuse(headers, DropReason::spoofed_mac);
    const bool group = (ethernet[0] & 1) != 0;
    const bool broadcast = group && raw32(ethernet) == ~0U && raw16(ethernet + 4) == 0xffff;
    switch (host16(ethernet + 12)) {
        case ethernet::kArp.host():
            if (group && !broadcast) return refuse(headers, DropReason::inner_multicast);
            return parse_question(frame, headers);
        case ethernet::kIpv4.host():
            if (broadcast) return refuse(headers, DropReason::inner_broadcast);
            if (group) return refuse(headers, DropReason::inner_multicast);
            return parse_ipv4(frame, headers);
        case ethernet::kIpv6.host():
            if (broadcast) return refuse(headers, DropReason::inner_broadcast);
            headers.flags |= kInnerV6;
            parse_ipv6(frame, headers);
            // Solicitations come by multicast, and nothing else of use.
            if (group && headers.kind != FrameKind::drop && headers.kind != FrameKind::incomplete &&
                headers.kind != FrameKind::solicitation)
                refuse(headers, DropReason::inner_multicast);
            return;
        case ethernet::kVlan.host():
        case kServiceVlan:
            return refuse(headers, DropReason::inner_vlan);
        default:
            return refuse(headers, DropReason::inner_ethertype);
    }
}

void parse_ipv4(const Octets& frame, Headers& headers) {
    const std::size_t at = headers.l3;
    if (!frame.need(at, ipv4::kSize, DropReason::inner_truncated, headers)) return;
    const std::uint8_t* ip = frame.data + at;
    const std::size_t header_length = std::size_t{ip[0] & 0xfU} * 4;
    const std::size_t total = host16(ip + 2);
    if (ip[0] >> 4 != 4 || header_length < ipv4::kSize || total < header_length)
        return refuse(headers, DropReason::inner_bad_header);
    if (at + total > frame.length) return refuse(headers, DropReason::inner_truncated);
    if (!frame.need(at, header_length, DropReason::inner_truncated, headers)) return;
    if (!ipv4_header_checksum_ok({ip, header_length}))
        return refuse(headers, DropReason::inner_bad_checksum);
    headers.ip_length = static_cast<std::uint16_t>(total);
    headers.traffic_class = ip[1];
    headers.ttl = ip[8];
    headers.protocol = ip[9];
    headers.l4 = static_cast<std::uint16_t>(at + header_length);
    const std::uint32_t source = be32::from_raw(raw32(ip + 12)).host();
    const std::uint32_t destination = be32::from_raw(raw32(ip + 16)).host();
    if (destination == 0xffffffff) return refuse(headers, DropReason::inner_broadcast);
    if (destination >> 28 == 0xe) return refuse(headers, DropReason::inner_multicast);
    if (!is_station(source) || !is_station(destination))
        return refuse(headers, DropReason::inner_martian);
    if (source == destination) return refuse(headers, DropReason::inner_land);
    if (header_length > ipv4::kSize) {
        headers.flags |= kOptions;
        const DropReason reason = check_options(ip + ipv4::kSize, header_length - ipv4::kSize);
        if (reason != DropReason::none) return refuse(headers, reason);
    }
    const std::uint16_t fragment = host16(ip + 6);
    if ((fragment & 0x4000) != 0) headers.flags |= kDontFragment;
    if ((fragment & 0x3fff) != 0) {
        headers.flags |= kFragment;
        if ((fragment & 0x1fff) != 0) return;
        headers.flags |= kFirstFragment;
    }
    parse_transport(frame, at + total, headers);
}

void parse_ipv6(const Octets& whole, Headers& headers) {
    const std::size_t start = headers.l3;
    if (!whole.need(start, ipv6::kSize, DropReason::inner_truncated, headers)) return;
    const std::uint8_t* ip = whole.data + start;
    if (ip[0] >> 4 != 6) return refuse(headers, DropReason::inner_bad_header);
    const std::size_t total = ipv6::kSize + host16(ip + 4);
    const std::size_t end = start + total;
    if (end > whole.length) return refuse(headers, DropReason::inner_truncated);
    if (total > 0xffff) return refuse(headers, DropReason::inner_bad_header);
    headers.ip_length = static_cast<std::uint16_t>(total);
    headers.traffic_class = static_cast<std::uint8_t>(host16(ip) >> 4);
    headers.ttl = ip[7];
    const std::uint8_t* source = ip + 8;
    const std::uint8_t* destination = ip + 24;
    if (source[0] == 0xff || (martian_ipv6(source) && !unspecified(source)) ||
        martian_ipv6(destination))
        return refuse(headers, DropReason::inner_martian);
    if (std::memcmp(source, destination, 16) == 0) return refuse(headers, DropReason::inner_land);

    // RFC 8200 section 4.1: hop-by-hop options only first; no header needs to come often.
    using ipv6::kHopByHop, ipv6::kRouting, ipv6::kFragmentHeader;
    constexpr auto kOptionsHeader = ipv6::kDestinationOptions;
    constexpr int kMostHeaders = 6;
    const Octets frame{whole.data, std::min(whole.contiguous, end), end};
    std::uint8_t next = ip[6];
    std::size_t at = start + ipv6::kSize;
    bool fragment_seen = false;
    for (int count = 0;; ++count) {
        if (next != kHopByHop && next != kRouting && next != kFragmentHeader &&
            next != kOptionsHeader)
            break;
        headers.flags |= kOptions;
        if (count == kMostHeaders || (next == kHopByHop && count != 0))
            return refuse(headers, DropReason::inner_extension_header);
        if (!frame.need(at, 8, DropReason::inner_truncated, headers)) return;
        const std::uint8_t* header = frame.data + at;
        std::size_t length = 8;
        if (next == kFragmentHeader) {
            if (fragment_seen) return refuse(headers, DropReason::inner_extension_header);
            fragment_seen = true;
            // One that is the whole packet is like any other (RFC 6946).
            const std::uint16_t fragment = host16(header + 2);
            if ((fragment & 0xfff9) != 0) headers.flags |= kFragment;
            if ((fragment & 0xfff9) == 1) headers.flags |= kFirstFragment;
        } else {
            length += std::size_t{header[1]} * 8;
            // A route through others: type 0 is forbidden (RFC 5095), no other is offered.
            if (next == kRouting && header[3] != 0)
                return refuse(headers, DropReason::inner_extension_header);
        }
        if (!frame.need(at, length, DropReason::inner_truncated, headers)) return;
        const bool later_fragment = headers.has(kFragment) && !headers.has(kFirstFragment);
        next = header[0];
        at += length;
        if (later_fragment) break;
    }
    headers.protocol = next;
    headers.l4 = static_cast<std::uint16_t>(at);
    if (headers.has(kFragment) && !headers.has(kFirstFragment)) return;
    parse_transport(frame, end, headers);
    if (headers.kind == FrameKind::drop || headers.kind == FrameKind::incomplete) return;
    if (headers.kind != FrameKind::solicitation) {
        if (destination[0] == 0xff) return refuse(headers, DropReason::inner_multicast);
        if (unspecified(source)) return refuse(headers, DropReason::inner_martian);
    }
}

void parse_transport(const Octets& whole, std::size_t end, Headers& headers) {
    const Octets frame{whole.data, std::min(whole.contiguous, end), end};
    const std::size_t at = headers.l4;
    // All of the header is in the first fragment (RFC 3128, RFC 7112), or nobody can judge it.
    const DropReason too_short =
        headers.has(kFragment) ? DropReason::fragment_tiny : DropReason::inner_truncated;
    switch (static_cast<Protocol>(headers.protocol)) {
        case Protocol::tcp: {
            if (!frame.need(at, tcp::kSize, too_short, headers)) return;
            const std::uint8_t* header = frame.data + at;
            const std::size_t length = std::size_t{header[12]} >> 4 << 2;
            if (length < tcp::kSize) return refuse(headers, DropReason::inner_bad_header);
            if (at + length > end)
                return refuse(headers, headers.has(kFragment) ? DropReason::fragment_tiny
                                                              : DropReason::inner_bad_header);
            headers.tcp_flags = header[13];
            headers.ports = raw32(header);
            return;
        }
        case Protocol::udp: {
            if (!frame.need(at, udp::kSize, too_short, headers)) return;
            const std::uint8_t* header = frame.data + at;
            const std::size_t length = host16(header + 4);
            // A first fragment's datagram goes on beyond it.
            if (length < udp::kSize || (at + length > end && !headers.has(kFragment)))
                return refuse(headers, DropReason::inner_bad_header);
            if (host16(header + 2) == udp::kVxlan.host() && headers.has(kTunnelled))
                return refuse(headers, DropReason::inner_vxlan);
            headers.ports = raw32(header);
            return;
        }
        case Protocol::sctp:
            if (!frame.need(at, kSctpSize, too_short, headers)) return;
            headers.ports = raw32(frame.data + at);
            return;
        case Protocol::icmp:
        case Protocol::icmpv6:
            // Each belongs to one family (RFC 4443 section 2.1).
            if ((headers.protocol == kIcmpv6) != headers.has(kInnerV6))
                return refuse(headers, DropReason::inner_bad_header);
            if (!frame.need(at, icmp::kSize, too_short, headers)) return;
            return parse_icmp(frame, end, headers);
        default:
            return;
    }
}

}  // namespace sluice::wire
