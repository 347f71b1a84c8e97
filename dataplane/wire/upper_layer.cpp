// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/upper_layer.hpp"

#include "dataplane/wire/headers.hpp"

namespace sluice::wire {
namespace {

std::optional<UpperLayer> behind_ipv4(std::span<const std::uint8_t> packet) {
    if (packet.size() < ipv4::kSize) return std::nullopt;
    const std::size_t header = ipv4::header_length(packet.data());
    if (header < ipv4::kSize || header > packet.size()) return std::nullopt;
    const std::uint16_t fragment = load16(packet.data() + ipv4::kFragment).host();
    return UpperLayer{packet[ipv4::kProtocol], header,
                      static_cast<std::uint16_t>((fragment & ipv4::kOffsetMask) * 8),
                      (fragment & ipv4::kMoreFragments) != 0};
}

// What a connection's packets may have before what they carry (parse_inner.cpp).
bool is_passed(std::uint8_t next_header) {
    return next_header == ipv6::kHopByHop || next_header == ipv6::kRouting ||
           next_header == ipv6::kFragmentHeader || next_header == ipv6::kDestinationOptions;
}

bool is_extension(std::uint8_t next_header) {
    switch (next_header) {
        case ipv6::kAuthentication:
        case ipv6::kMobility:
        case ipv6::kHip:
        case ipv6::kShim6:
            return true;
        default:
            return is_passed(next_header);
    }
}

std::optional<UpperLayer> behind_ipv6(std::span<const std::uint8_t> packet,
                                      bool (*is_in_front)(std::uint8_t)) {
    if (packet.size() < ipv6::kSize) return std::nullopt;
    UpperLayer result{packet[ipv6::kNextHeader], ipv6::kSize, 0, false};
    for (std::size_t count = 0; is_in_front(result.protocol); ++count) {
        if (count == kMaxExtensionHeaders || packet.size() - result.offset < 8) return std::nullopt;
        const std::uint8_t* header = packet.data() + result.offset;
        std::size_t length = (header[1] + std::size_t{1}) * 8;
        switch (result.protocol) {
            case ipv6::kHopByHop:  // RFC 8200 section 4.1: right after the IPv6 header
                if (count != 0) return std::nullopt;
                break;
            case ipv6::kRouting:
                if (header[3] != 0) return std::nullopt;
                break;
            case ipv6::kAuthentication:  // RFC 4302 section 2.2: in words of 4, less 2
                length = (header[1] + std::size_t{2}) * 4;
                break;
            case ipv6::kFragmentHeader: {
                if (result.is_fragment()) return std::nullopt;
                const std::uint16_t fragment = load16(header + 2).host();
                length = 8;
                result.fragment_offset = fragment & 0xfff8;
                result.more_fragments = (fragment & 1) != 0;
                break;
            }
            default:
                break;
        }
        if (packet.size() - result.offset < length) return std::nullopt;
        result.protocol = header[0];
        result.offset += length;
        // What follows in a later fragment is not a header.
        if (result.is_later_fragment()) break;
    }
    return result;
}

std::optional<UpperLayer> find(std::span<const std::uint8_t> packet,
                               bool (*is_in_front)(std::uint8_t)) {
    if (packet.empty()) return std::nullopt;
    switch (packet[0] >> 4) {
        case 4:
            return behind_ipv4(packet);
        case 6:
            return behind_ipv6(packet, is_in_front);
        default:
            return std::nullopt;
    }
}

}  // namespace

std::optional<UpperLayer> find_upper_layer(std::span<const std::uint8_t> packet) {
    return find(packet, &is_extension);
}

std::optional<UpperLayer> find_connection_layer(std::span<const std::uint8_t> packet) {
    return find(packet, &is_passed);
}

}  // namespace sluice::wire
