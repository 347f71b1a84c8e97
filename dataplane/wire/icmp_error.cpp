// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/icmp_error.hpp"

#include <algorithm>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/echo.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/special_address.hpp"
#include "dataplane/wire/upper_layer.hpp"

namespace sluice::wire {
namespace {

constexpr std::uint8_t kNumber4 = static_cast<std::uint8_t>(Protocol::icmp);
constexpr std::uint8_t kNumber6 = static_cast<std::uint8_t>(Protocol::icmpv6);
// Precedence "internetwork control": RFC 1812 section 4.3.2.5.
constexpr std::uint8_t kErrorTos = 0xc0;
constexpr std::size_t kLeastQuote = 8;  // of the upper layer: RFC 792, all that old senders keep

struct TypeAndCode {
    std::uint8_t type, code;
};

TypeAndCode in_ipv4(IcmpError error) {
    switch (error) {
        case IcmpError::time_exceeded:
            return {icmp::kTimeExceeded, 0};
        case IcmpError::no_route:
            return {icmp::kUnreachable, 0};
        case IcmpError::address_unreachable:
            return {icmp::kUnreachable, 1};
        case IcmpError::port_unreachable:
            return {icmp::kUnreachable, 3};
        case IcmpError::too_big:
            return {icmp::kUnreachable, 4};
        case IcmpError::admin_prohibited:
            break;
    }
    return {icmp::kUnreachable, 13};
}

TypeAndCode in_ipv6(IcmpError error) {
    switch (error) {
        case IcmpError::time_exceeded:
            return {icmpv6::kTimeExceeded, 0};
        case IcmpError::no_route:
            return {icmpv6::kUnreachable, 0};
        case IcmpError::address_unreachable:
            return {icmpv6::kUnreachable, 3};
        case IcmpError::port_unreachable:
            return {icmpv6::kUnreachable, 4};
        case IcmpError::too_big:
            return {icmpv6::kPacketTooBig, 0};
        case IcmpError::admin_prohibited:
            break;
    }
    return {icmpv6::kUnreachable, 1};
}

// The packet at fault, as far as the rules are concerned.
struct Offender {
    std::span<const std::uint8_t> packet;  // from its IP header, no padding
    IpAddress source;
    UpperLayer upper;
    bool v4 = false;
};

std::optional<Offender> find_offender(std::span<const std::uint8_t> frame) {
    if (frame.size() <= ethernet::kSize) return std::nullopt;
    if (load_mac(frame.data() + ethernet::kDestination).is_multicast() ||
        load_mac(frame.data() + ethernet::kSource).is_multicast())
        return std::nullopt;
    const be16 type = load16(frame.data() + ethernet::kType);
    auto packet = frame.subspan(ethernet::kSize);
    const bool v4 = type == ethernet::kIpv4;
    if ((!v4 && type != ethernet::kIpv6) || packet[0] >> 4 != (v4 ? 4 : 6)) return std::nullopt;
    const auto upper = find_upper_layer(packet);
    if (!upper || upper->is_later_fragment()) return std::nullopt;

    const std::size_t length = v4 ? load16(packet.data() + ipv4::kLength).host()
                                  : ipv6::kSize + load16(packet.data() + ipv6::kLength).host();
    if (length < upper->offset) return std::nullopt;
    packet = packet.first(std::min(packet.size(), length));

    const IpAddress source =
        v4 ? load_v4(packet.data() + ipv4::kSource) : load_v6(packet.data() + ipv6::kSource);
    const IpAddress destination = v4 ? load_v4(packet.data() + ipv4::kDestination)
                                     : load_v6(packet.data() + ipv6::kDestination);
    // An IPv4 address in IPv6 clothes is nobody's.
    if (source.is_v4() != v4 || destination.is_v4() != v4) return std::nullopt;
    if (!is_station(source) || !is_station(destination)) return std::nullopt;

    if (upper->protocol == (v4 ? kNumber4 : kNumber6) &&
        (packet.size() <= upper->offset || is_icmp_error(upper->protocol, packet[upper->offset])))
        return std::nullopt;
    return Offender{packet, source, *upper, v4};
}

void write_ipv4(std::span<std::uint8_t> packet, const Offender& offender,
                const IcmpErrorMessage& message) {
    std::uint8_t* header = packet.data();
    std::fill_n(header, ipv4::kSize + icmp::kSize, std::uint8_t{0});
    header[0] = 0x45;
    header[ipv4::kTos] = kErrorTos;
    store(header + ipv4::kLength, be16{static_cast<std::uint16_t>(packet.size())});
    // Never fragmented, so that its identification may stay zero (RFC 6864 section 4.1).
    store(header + ipv4::kFragment, be16{ipv4::kDontFragment});
    header[ipv4::kTtl] = kOwnTtl;
    header[ipv4::kProtocol] = kNumber4;
    store_v4(header + ipv4::kSource, message.from);
    store_v4(header + ipv4::kDestination, offender.source);
    store(header + ipv4::kChecksum, ipv4_header_checksum(packet.first(ipv4::kSize)));

    const TypeAndCode kind = in_ipv4(message.error);
    const auto error = packet.subspan(ipv4::kSize);
    error[icmp::kType] = kind.type;
    error[icmp::kCode] = kind.code;
    if (message.error == IcmpError::too_big)
        store(error.data() + icmp::kMtu4, be16{message.mtu});  // RFC 1191 section 4
    store(error.data() + icmp::kChecksum, icmp_checksum(error));
}

void write_ipv6(std::span<std::uint8_t> packet, const Offender& offender,
                const IcmpErrorMessage& message) {
    std::uint8_t* header = packet.data();
    const auto error = packet.subspan(ipv6::kSize);
    std::fill_n(header, ipv6::kSize + icmp::kSize, std::uint8_t{0});
    header[0] = 0x60;
    store(header + ipv6::kLength, be16{static_cast<std::uint16_t>(error.size())});
    header[ipv6::kNextHeader] = kNumber6;
    header[ipv6::kHopLimit] = kOwnTtl;
    store_v6(header + ipv6::kSource, message.from);
    store_v6(header + ipv6::kDestination, offender.source);

    const TypeAndCode kind = in_ipv6(message.error);
    error[icmp::kType] = kind.type;
    error[icmp::kCode] = kind.code;
    if (message.error == IcmpError::too_big) store(error.data() + icmp::kMtu6, be32{message.mtu});
    store(error.data() + icmp::kChecksum,
          transport_checksum(message.from, offender.source, Protocol::icmpv6, error));
}

}  // namespace

bool is_icmp_error(std::uint8_t protocol, std::uint8_t type) {
    if (protocol == kNumber6) return type < 128 || type == icmpv6::kRedirect;
    constexpr std::uint8_t kLastQuery = 18;  // address mask reply; what follows is unknown
    return type == icmp::kUnreachable || type == icmp::kSourceQuench || type == icmp::kRedirect ||
           type == icmp::kTimeExceeded || type == icmp::kParameterProblem || type > kLastQuery;
}

std::size_t write_icmp_error(std::span<std::uint8_t> out, std::span<const std::uint8_t> frame,
                             const IcmpErrorMessage& message) {
    const auto offender = find_offender(frame);
    if (!offender || message.from.is_v4() != offender->v4 || !is_station(message.from)) return 0;
    if (offender->v4 && message.error == IcmpError::too_big &&
        (load16(offender->packet.data() + ipv4::kFragment).host() & ipv4::kDontFragment) == 0)
        return 0;

    const std::size_t headers = (offender->v4 ? ipv4::kSize : ipv6::kSize) + icmp::kSize;
    const std::size_t room =
        std::min(out.size(), offender->v4 ? kMaxIcmpErrorFrame : kMaxIcmpv6ErrorFrame);
    if (room < ethernet::kSize + headers) return 0;
    const std::size_t quote = std::min(offender->packet.size(), room - ethernet::kSize - headers);
    const std::size_t least =
        std::min(offender->packet.size(), offender->upper.offset + kLeastQuote);
    if (quote < least) return 0;

    store(out.data() + ethernet::kDestination, load_mac(frame.data() + ethernet::kSource));
    store(out.data() + ethernet::kSource, load_mac(frame.data() + ethernet::kDestination));
    store(out.data() + ethernet::kType, offender->v4 ? ethernet::kIpv4 : ethernet::kIpv6);
    const auto packet = out.subspan(ethernet::kSize, headers + quote);
    std::copy_n(offender->packet.begin(), quote,
                packet.begin() + static_cast<std::ptrdiff_t>(headers));
    if (offender->v4)
        write_ipv4(packet, *offender, message);
    else
        write_ipv6(packet, *offender, message);
    return ethernet::kSize + packet.size();
}

}  // namespace sluice::wire
