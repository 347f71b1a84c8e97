// SPDX-License-Identifier: Apache-2.0
// The Internet checksum: computed (RFC 1071), updated incrementally (RFC 1624), with the
// pseudo-headers of IPv4 and IPv6 (RFC 9293 section 3.1, RFC 8200 section 8.1).
//
// Sums are kept in the machine's byte order over words as they lie in memory, which RFC 1071
// section 2(B) allows: nothing is swapped. Pure functions, no allocation; a span costs one
// step for every eight octets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/packet.hpp"
#include "dataplane/wire/raw.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::wire {

// A ones' complement sum that is not folded yet. Room for 2^32 additions.
struct Sum {
    std::uint64_t value = 0;

    // Spans are added one after another only if all but the last have an even length.
    constexpr Sum& add(be16 word) {
        value += word.raw;
        return *this;
    }
    constexpr Sum& add(be32 words) {
        value += words.raw;
        return *this;
    }
    Sum& add(std::span<const std::uint8_t> bytes) {
        const std::uint8_t* at = bytes.data();
        std::size_t left = bytes.size();
        for (; left >= 8; left -= 8, at += 8) {
            std::uint64_t words;
            std::memcpy(&words, at, 8);
            value += (words & 0xffffffff) + (words >> 32);
        }
        if (left >= 4) {
            std::uint32_t words;
            std::memcpy(&words, at, 4);
            value += words;
            left -= 4;
            at += 4;
        }
        // An odd octet is padded with a zero behind it.
        std::uint8_t rest[4] = {};
        for (std::size_t i = 0; i < left; ++i) rest[i] = at[i];
        std::uint32_t words;
        std::memcpy(&words, rest, 4);
        value += words;
        return *this;
    }
    // The 16 bits of the sum, words as they lie in memory. Zero only if all that was added is.
    [[nodiscard]] constexpr std::uint16_t folded() const { return fold(value); }
    [[nodiscard]] constexpr be16 checksum() const {
        return be16::from_raw(static_cast<std::uint16_t>(~folded()));
    }
};

// How a checksum changes when words under it are replaced: HC' = ~(~HC + ~m + m'), RFC 1624
// equation 3. Collected once, applied to any number of packets.
class ChecksumDelta {
  public:
    ChecksumDelta() = default;
    // One that was kept as `folded()`.
    constexpr explicit ChecksumDelta(std::uint16_t folded) : sum_{folded} {}

    constexpr ChecksumDelta& replace(be16 from, be16 to) {
        sum_.value += static_cast<std::uint16_t>(~from.raw);
        sum_.value += to.raw;
        return *this;
    }
    constexpr ChecksumDelta& replace(be32 from, be32 to) {
        sum_.value += static_cast<std::uint32_t>(~from.raw);
        sum_.value += to.raw;
        return *this;
    }
    // Of one family.
    ChecksumDelta& replace(const IpAddress& from, const IpAddress& to) {
        // The octets before an IPv4 address are equal and cancel out.
        for (std::size_t i = 0; i < 16; i += 4)
            replace(load32(from.bytes.data() + i), load32(to.bytes.data() + i));
        return *this;
    }

    [[nodiscard]] constexpr std::uint16_t folded() const { return sum_.folded(); }
    [[nodiscard]] constexpr be16 apply(be16 checksum) const {
        Sum sum = sum_;
        sum.value += static_cast<std::uint16_t>(~checksum.raw);
        return sum.checksum();
    }
    // UDP: zero says that there is no checksum and stays; one that comes out as zero is sent
    // as 0xffff (RFC 768).
    [[nodiscard]] constexpr be16 apply_udp(be16 checksum) const {
        if (checksum.raw == 0) return checksum;
        const be16 result = apply(checksum);
        return result.raw == 0 ? be16::from_raw(0xffff) : result;
    }

  private:
    Sum sum_;
};

// The pseudo-header of either family; `length` is that of the upper-layer packet. (The words of
// IPv6's add up to the same for the same numbers, so one formula serves both.)
inline Sum pseudo_header(const IpAddress& source, const IpAddress& destination,
                         std::uint8_t protocol, std::uint32_t length) {
    Sum sum;
    const std::size_t first = source.is_v4() ? 12 : 0;
    sum.add(std::span{source.bytes}.subspan(first));
    sum.add(std::span{destination.bytes}.subspan(first));
    sum.add(be16{protocol});
    sum.add(be32{length});
    return sum;
}

// Where an upper-layer header has its Internet checksum; nothing for protocols without one.
constexpr std::optional<std::size_t> checksum_offset(std::uint8_t protocol) {
    switch (static_cast<Protocol>(protocol)) {
        case Protocol::icmp:
        case Protocol::icmpv6:
            return icmp::kChecksum;
        case Protocol::tcp:
            return tcp::kChecksum;
        case Protocol::udp:
            return udp::kChecksum;
        default:
            return std::nullopt;
    }
}

// Of an IPv4 header, at least 20 octets; what its checksum field holds does not count.
inline be16 ipv4_header_checksum(std::span<const std::uint8_t> header) {
    return Sum{}
        .add(header.first(ipv4::kChecksum))
        .add(header.subspan(ipv4::kChecksum + 2))
        .checksum();
}
// True if the sum over the header, its checksum included, is right.
inline bool ipv4_header_checksum_ok(std::span<const std::uint8_t> header) {
    return Sum{}.add(header).folded() == 0xffff;
}

// Of an ICMP message, at least 4 octets (ICMP has no pseudo-header); its field does not count.
inline be16 icmp_checksum(std::span<const std::uint8_t> message) {
    return Sum{}
        .add(message.first(icmp::kChecksum))
        .add(message.subspan(icmp::kChecksum + 2))
        .checksum();
}

// Of a whole TCP, UDP or ICMPv6 packet under its pseudo-header; its field does not count. UDP:
// never zero, which would mean "none". `segment` holds at least that protocol's header.
inline be16 transport_checksum(const IpAddress& source, const IpAddress& destination,
                               Protocol protocol, std::span<const std::uint8_t> segment) {
    const auto number = static_cast<std::uint8_t>(protocol);
    const std::size_t field = checksum_offset(number).value_or(0);
    const be16 result =
        pseudo_header(source, destination, number, static_cast<std::uint32_t>(segment.size()))
            .add(segment.first(field))
            .add(segment.subspan(field + 2))
            .checksum();
    return protocol == Protocol::udp && result.raw == 0 ? be16::from_raw(0xffff) : result;
}
// True if the checksum of such a packet is right. (UDP without one: ask before.)
inline bool transport_checksum_ok(const IpAddress& source, const IpAddress& destination,
                                  Protocol protocol, std::span<const std::uint8_t> segment) {
    return pseudo_header(source, destination, static_cast<std::uint8_t>(protocol),
                         static_cast<std::uint32_t>(segment.size()))
               .add(segment)
               .folded() == 0xffff;
}

}  // namespace sluice::wire
