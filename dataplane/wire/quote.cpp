// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/quote.hpp"

#include <algorithm>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/upper_layer.hpp"

namespace sluice::wire {
namespace {

constexpr std::uint8_t number(Protocol protocol) {
    return static_cast<std::uint8_t>(protocol);
}
constexpr std::uint8_t icmp_of(bool v4) {
    return number(v4 ? Protocol::icmp : Protocol::icmpv6);
}

struct Addresses {
    IpAddress source, destination;
};

Addresses addresses(std::span<const std::uint8_t> packet, bool v4) {
    const std::uint8_t* header = packet.data();
    if (v4) return {load_v4(header + ipv4::kSource), load_v4(header + ipv4::kDestination)};
    return {load_v6(header + ipv6::kSource), load_v6(header + ipv6::kDestination)};
}

void store_addresses(std::uint8_t* header, const Addresses& what, bool v4) {
    if (v4) {
        store_v4(header + ipv4::kSource, what.source);
        store_v4(header + ipv4::kDestination, what.destination);
    } else {
        store_v6(header + ipv6::kSource, what.source);
        store_v6(header + ipv6::kDestination, what.destination);
    }
}

// What the IP header says that the packet has; at most what is there.
std::size_t length_of(std::span<const std::uint8_t> packet, bool v4) {
    const std::size_t length = v4 ? load16(packet.data() + ipv4::kLength).host()
                                  : ipv6::kSize + load16(packet.data() + ipv6::kLength).host();
    return std::min(length, packet.size());
}

bool is_passed_error(bool v4, std::uint8_t type) {
    if (v4)
        return type == icmp::kUnreachable || type == icmp::kTimeExceeded ||
               type == icmp::kParameterProblem;
    return type >= icmpv6::kUnreachable && type <= icmpv6::kParameterProblem;
}

bool is_query(bool v4, std::uint8_t type) {
    constexpr std::uint8_t kTimestamp = 13, kTimestampReply = 14;
    if (v4)
        return type == icmp::kEchoRequest || type == icmp::kEchoReply || type == kTimestamp ||
               type == kTimestampReply;
    return type == icmpv6::kEchoRequest || type == icmpv6::kEchoReply;
}

// RFC 4884 section 4: what follows the original datagram are extensions. In words of 4 or 8.
std::size_t original_length(const std::uint8_t* error, bool v4, std::size_t available) {
    const std::size_t length = v4 ? error[5] * std::size_t{4} : error[4] * std::size_t{8};
    const bool has_length = v4 || error[icmp::kType] == icmpv6::kUnreachable ||
                            error[icmp::kType] == icmpv6::kTimeExceeded;
    return has_length && length != 0 ? std::min(length, available) : available;
}

bool has_ports(std::uint8_t protocol) {
    switch (static_cast<Protocol>(protocol)) {
        case Protocol::tcp:
        case Protocol::udp:
        case Protocol::sctp:
            return true;
        default:
            return false;
    }
}

}  // namespace

std::optional<Quote> parse_quote(std::span<const std::uint8_t> packet) {
    const auto upper = find_upper_layer(packet);
    if (!upper || upper->is_fragment()) return std::nullopt;
    const bool v4 = packet[0] >> 4 == 4;
    packet = packet.first(length_of(packet, v4));
    if (upper->protocol != icmp_of(v4) || packet.size() < upper->offset + icmp::kSize)
        return std::nullopt;
    const std::uint8_t* error = packet.data() + upper->offset;
    if (!is_passed_error(v4, error[icmp::kType])) return std::nullopt;

    const std::size_t begin = upper->offset + icmp::kSize;
    auto quoted = packet.subspan(begin);
    quoted = quoted.first(original_length(error, v4, quoted.size()));
    const auto inner = find_connection_layer(quoted);
    if (!inner || inner->is_later_fragment() || (quoted[0] >> 4 == 4) != v4) return std::nullopt;
    quoted = quoted.first(length_of(quoted, v4));
    if (quoted.size() < inner->offset) return std::nullopt;

    const auto [source, destination] = addresses(packet, v4);
    const auto [quoted_source, quoted_destination] = addresses(quoted, v4);
    for (const auto& address : {source, destination, quoted_source, quoted_destination})
        if (address.is_v4() != v4) return std::nullopt;
    if (destination != quoted_source) return std::nullopt;

    Quote result{{quoted_source, quoted_destination, inner->protocol, 0, 0},
                 source,
                 destination,
                 error[icmp::kType],
                 error[icmp::kCode],
                 static_cast<std::uint16_t>(upper->offset),
                 static_cast<std::uint16_t>(begin),
                 static_cast<std::uint16_t>(begin + inner->offset),
                 static_cast<std::uint16_t>(begin + quoted.size()),
                 inner->is_fragment()};
    const auto l4 = quoted.subspan(inner->offset);
    if (inner->protocol == number(Protocol::icmp) || inner->protocol == number(Protocol::icmpv6)) {
        if (inner->protocol != icmp_of(v4) || l4.size() < icmp::kSize ||
            !is_query(v4, l4[icmp::kType]))
            return std::nullopt;
        result.tuple.source_port = load16(l4.data() + icmp::kIdentifier).host();
        result.tuple.destination_port = load16(l4.data()).host();  // type and code
    } else if (has_ports(inner->protocol)) {
        if (l4.size() < udp::kSize) return std::nullopt;
        result.tuple.source_port = load16(l4.data() + udp::kSource).host();
        result.tuple.destination_port = load16(l4.data() + udp::kDestination).host();
    }
    return result;
}

bool translate_quote(std::span<std::uint8_t> packet, const Quote& quote,
                     const QuoteTranslation& translation) {
    const bool v4 = quote.source.is_v4();
    const Tuple& from = quote.tuple;
    const Tuple& to = translation.quoted;
    for (const auto& address :
         {translation.source, translation.destination, to.source, to.destination})
        if (address.is_v4() != v4) return false;
    const bool icmp_query = from.protocol == icmp_of(v4);
    const bool ports_differ =
        from.source_port != to.source_port || from.destination_port != to.destination_port;
    if (to.protocol != from.protocol ||
        (icmp_query && from.destination_port != to.destination_port) ||
        (ports_differ && !icmp_query && !checksum_offset(from.protocol)))
        return false;

    // Every change inside the ICMP message changes its checksum too.
    ChecksumDelta error;
    ChecksumDelta quoted_addresses;
    quoted_addresses.replace(from.source, to.source).replace(from.destination, to.destination);
    error.replace(from.source, to.source).replace(from.destination, to.destination);
    std::uint8_t* quoted = packet.data() + quote.quoted_offset;
    store_addresses(quoted, {to.source, to.destination}, v4);
    if (v4) {
        const be16 before = load16(quoted + ipv4::kChecksum);
        const be16 after = quoted_addresses.apply(before);
        store(quoted + ipv4::kChecksum, after);
        error.replace(before, after);
    }

    std::uint8_t* l4 = packet.data() + quote.quoted_l4_offset;
    // ICMP alone has no pseudo-header.
    ChecksumDelta segment = v4 && icmp_query ? ChecksumDelta{} : quoted_addresses;
    if (ports_differ) {
        const be16 from_source{from.source_port}, to_source{to.source_port};
        segment.replace(from_source, to_source);
        error.replace(from_source, to_source);
        if (icmp_query) {
            store(l4 + icmp::kIdentifier, to_source);
        } else {
            const be16 from_destination{from.destination_port}, to_destination{to.destination_port};
            segment.replace(from_destination, to_destination);
            error.replace(from_destination, to_destination);
            store(l4 + udp::kSource, to_source);
            store(l4 + udp::kDestination, to_destination);
        }
    }
    const auto field = checksum_offset(from.protocol);
    if (field && quote.quoted_l4_offset + *field + 2 <= quote.quoted_end) {
        const be16 before = load16(l4 + *field);
        const be16 after = from.protocol == number(Protocol::udp) ? segment.apply_udp(before)
                                                                  : segment.apply(before);
        store(l4 + *field, after);
        error.replace(before, after);
    }

    ChecksumDelta outer;
    outer.replace(quote.source, translation.source)
        .replace(quote.destination, translation.destination);
    store_addresses(packet.data(), {translation.source, translation.destination}, v4);
    if (v4) {
        store(packet.data() + ipv4::kChecksum,
              outer.apply(load16(packet.data() + ipv4::kChecksum)));
    } else {
        error.replace(quote.source, translation.source)
            .replace(quote.destination, translation.destination);
    }
    std::uint8_t* checksum = packet.data() + quote.icmp_offset + icmp::kChecksum;
    store(checksum, error.apply(load16(checksum)));
    return true;
}

}  // namespace sluice::wire
