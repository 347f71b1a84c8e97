// SPDX-License-Identifier: Apache-2.0
// Which addresses can be a station's on a network (RFC 6890's registries, as far as forwarding
// is concerned).
#pragma once

#include "dataplane/wire/types.hpp"

namespace sluice::wire {

// True for an address that a single station can have: not multicast, broadcast, "this network"
// (0.0.0.0/8, ::), loopback or reserved (240.0.0.0/4). RFC 1122 section 3.2.1.3, RFC 4291 section
// 2.5. A subnet's own broadcast address cannot be told without its prefix.
constexpr bool is_station(std::uint32_t ipv4) {
    const std::uint32_t first = ipv4 >> 24;
    return first != 0 && first != 127 && first < 224;
}
constexpr bool is_station(const IpAddress& address) {
    if (address.is_v4()) return is_station(address.to_v4().host());
    constexpr IpAddress kLoopback{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    return !address.is_multicast() && !address.is_none() && address != kLoopback;
}

// One of these blocks by its top bits.
struct SpecialBlock {
    std::uint64_t bits;
    unsigned length;
    constexpr bool contains(std::uint64_t value, unsigned width) const {
        return ((value ^ bits) >> (width - length)) == 0;
    }
};

inline constexpr SpecialBlock kSpecialIpv4[] = {
    {0x00000000, 8},   // this network, RFC 791
    {0x0a000000, 8},   // private, RFC 1918
    {0x64400000, 10},  // shared, RFC 6598
    {0x7f000000, 8},   // loopback, RFC 1122
    {0xa9fe0000, 16},  // link-local, RFC 3927
    {0xac100000, 12},  // private, RFC 1918
    {0xc0000000, 24},  // protocol assignments, RFC 6890, but for two anycast addresses
    {0xc0a80000, 16},  // private, RFC 1918
    {0xc6120000, 15},  // benchmarks, RFC 2544
    {0xf0000000, 4},   // reserved, RFC 1112; broadcast
};

// What no packet on the internet may be for or from: the blocks that IANA's special-purpose
// registries (RFC 6890, RFC 8190) call not globally reachable. Documentation blocks are let pass:
// nobody is there, and laboratories number their internet out of them. Multicast is not asked
// about. Cost: some twenty comparisons.
constexpr bool is_internet(const IpAddress& address) {
    if (address.is_v4()) {
        const std::uint32_t value = address.to_v4().host();
        if (value == 0xc0000009 || value == 0xc000000a) return true;  // RFC 7723, RFC 8155
        for (const SpecialBlock& block : kSpecialIpv4)
            if (block.contains(value, 32)) return false;
        return true;
    }
    constexpr SpecialBlock kReachable[] = {
        {0x2001000100000000, 64},  // anycast of PCP, TURN and DNS-SD: RFC 7723, RFC 8155, RFC 9665
        {0x2001000300000000, 32},  // AMT, RFC 7450
        {0x2001000401120000, 48},  // AS112, RFC 7535
        {0x2001002000000000, 28},  // ORCHIDv2, RFC 7343
        {0x2001003000000000, 28},  // drones, RFC 9374
    };
    constexpr SpecialBlock kBlocks[] = {
        {0x0000000000000000, 64},  // unspecified, loopback, mapped: RFC 4291
        {0x0064ff9b00010000, 48},  // local translation, RFC 8215
        {0x0100000000000000, 64},  // discard, RFC 6666
        {0x2001000000000000, 23},  // protocol assignments, RFC 2928
        {0x5f00000000000000, 16},  // segment identifiers, RFC 9602
        {0xfc00000000000000, 7},   // unique local, RFC 4193
        {0xfe80000000000000, 10},  // link-local, RFC 4291
        {0xfec0000000000000, 10},  // site-local, RFC 3879
    };
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value = value << 8 | address.bytes[i];
    for (const SpecialBlock& block : kReachable)
        if (block.contains(value, 64)) return true;
    for (const SpecialBlock& block : kBlocks)
        if (block.contains(value, 64)) return false;
    return true;
}

// True for an IPv4 block whose addresses can all be stations' on the internet.
constexpr bool is_internet(const Prefix& block) {
    const std::uint32_t value = block.address.to_v4().host();
    const SpecialBlock own{value, block.family_length()};
    if (block.family() != Family::ipv4 || SpecialBlock{0xe0000000, 4}.contains(value, 32) ||
        own.contains(0xe0000000, 32))
        return false;
    for (const SpecialBlock& special : kSpecialIpv4)
        if (special.contains(value, 32) || own.contains(special.bits, 32)) return false;
    return true;
}

}  // namespace sluice::wire
