// SPDX-License-Identifier: Apache-2.0
// What a packet is looked up by: zone (VNI; 0 is the outside), protocol, addresses, ports.
// The words lie as in the packet, so that the fast path builds a key from three loads.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "dataplane/wire/packet.hpp"

namespace sluice::session {

// zone 24 bits | protocol 8 | source port 16 | destination port 16, ports as on the wire.
constexpr std::uint64_t key_head(Vni zone, std::uint8_t protocol, std::uint32_t wire_ports) {
    return zone.value | std::uint64_t{protocol} << 24 | std::uint64_t{wire_ports} << 32;
}
constexpr std::uint32_t wire_ports(const Tuple& tuple) {
    return std::uint32_t{be16{tuple.source_port}.raw} |
           std::uint32_t{be16{tuple.destination_port}.raw} << 16;
}
constexpr void set_ports(Tuple& tuple, std::uint64_t head) {
    tuple.protocol = static_cast<std::uint8_t>(head >> 24);
    tuple.source_port = be16::from_raw(static_cast<std::uint16_t>(head >> 32)).host();
    tuple.destination_port = be16::from_raw(static_cast<std::uint16_t>(head >> 48)).host();
}

// Secret words that make bucket positions unpredictable to whoever crafts the packets.
struct HashSeed {
    std::array<std::uint64_t, 4> words{0x9e3779b97f4a7c15ULL, 0xbf58476d1ce4e5b9ULL,
                                       0x94d049bb133111ebULL, 0xd6e8feb86659fd93ULL};
};

__extension__ using Product = unsigned __int128;
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<Product>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

struct alignas(16) KeyIpv4 {
    std::uint64_t head = 0;
    std::uint64_t addresses = 0;  // source, destination, as on the wire

    friend constexpr bool operator==(const KeyIpv4&, const KeyIpv4&) = default;

    static KeyIpv4 of(Vni zone, const Tuple& tuple) {
        return {key_head(zone, tuple.protocol, wire_ports(tuple)),
                std::uint64_t{tuple.source.to_v4().raw} |
                    std::uint64_t{tuple.destination.to_v4().raw} << 32};
    }
    [[nodiscard]] constexpr Vni zone() const {
        return Vni{static_cast<std::uint32_t>(head & 0xffffff)};
    }
    [[nodiscard]] constexpr std::uint8_t protocol() const {
        return static_cast<std::uint8_t>(head >> 24);
    }
    [[nodiscard]] Tuple tuple() const {
        Tuple result;
        result.source = IpAddress::v4(be32::from_raw(static_cast<std::uint32_t>(addresses)));
        result.destination =
            IpAddress::v4(be32::from_raw(static_cast<std::uint32_t>(addresses >> 32)));
        set_ports(result, head);
        return result;
    }
    [[nodiscard]] constexpr std::uint64_t hash(const HashSeed& seed) const {
        return mix(head ^ seed.words[0], addresses ^ seed.words[1]);
    }
};
static_assert(sizeof(KeyIpv4) == 16);

struct KeyIpv6 {
    std::uint64_t head = 0;
    std::array<std::uint64_t, 4> addresses{};  // source, destination, as on the wire

    friend constexpr bool operator==(const KeyIpv6&, const KeyIpv6&) = default;

    static KeyIpv6 of(Vni zone, const Tuple& tuple) {
        KeyIpv6 result;
        result.head = key_head(zone, tuple.protocol, wire_ports(tuple));
        std::memcpy(result.addresses.data(), tuple.source.bytes.data(), 16);
        std::memcpy(result.addresses.data() + 2, tuple.destination.bytes.data(), 16);
        return result;
    }
    [[nodiscard]] constexpr Vni zone() const {
        return Vni{static_cast<std::uint32_t>(head & 0xffffff)};
    }
    [[nodiscard]] constexpr std::uint8_t protocol() const {
        return static_cast<std::uint8_t>(head >> 24);
    }
    [[nodiscard]] Tuple tuple() const {
        Tuple result;
        result.source = IpAddress::v6(addresses.data());
        result.destination = IpAddress::v6(addresses.data() + 2);
        set_ports(result, head);
        return result;
    }
    [[nodiscard]] constexpr std::uint64_t hash(const HashSeed& seed) const {
        const std::uint64_t a = mix(head ^ seed.words[0], addresses[0] ^ seed.words[1]);
        const std::uint64_t b = mix(addresses[1] ^ seed.words[2], addresses[2] ^ seed.words[3]);
        return mix(a ^ b ^ seed.words[1], addresses[3] ^ seed.words[2] ^ (b >> 32));
    }
};
static_assert(sizeof(KeyIpv6) == 40);

}  // namespace sluice::session
