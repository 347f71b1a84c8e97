// SPDX-License-Identifier: Apache-2.0
// Arithmetic on addresses, as address assignment needs it.
#pragma once

#include "dataplane/wire/types.hpp"

namespace sluice::model {

// The address after, or before, this one; wraps at the ends of the 128 bits.
constexpr IpAddress next(IpAddress address) {
    for (std::size_t i = 16; i-- > 0;)
        if (++address.bytes[i] != 0) break;
    return address;
}
constexpr IpAddress previous(IpAddress address) {
    for (std::size_t i = 16; i-- > 0;)
        if (address.bytes[i]-- != 0) break;
    return address;
}
constexpr IpAddress last_of(const Prefix& prefix) {
    IpAddress result = prefix.address;
    for (std::size_t bit = prefix.length; bit < 128; ++bit)
        result.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
    return result;
}

// The addresses of a subnet that a station may have: of an IPv4 block of more than two,
// all but the network's and the broadcast address (RFC 3021 exempts a /31); of an IPv6
// block, all but the subnet-router anycast address (RFC 4291 section 2.6.1; a /127 and
// /128 have none, RFC 6164).
constexpr IpAddress first_usable(const Prefix& prefix) {
    return prefix.length >= 127 ? prefix.address : next(prefix.address);
}
constexpr IpAddress last_usable(const Prefix& prefix) {
    const IpAddress last = last_of(prefix);
    return prefix.family() == Family::ipv4 && prefix.length < 127 ? previous(last) : last;
}
constexpr bool is_usable(const Prefix& prefix, const IpAddress& address) {
    return prefix.contains(address) && address >= first_usable(prefix) &&
           address <= last_usable(prefix);
}

// Of the usable ones; at most 2^63.
constexpr std::uint64_t count_usable(const Prefix& prefix) {
    const unsigned bits = 128U - prefix.length;
    if (bits >= 63) return std::uint64_t{1} << 63;
    const std::uint64_t all = std::uint64_t{1} << bits;
    if (bits <= 1) return all;
    return prefix.family() == Family::ipv4 ? all - 2 : all - 1;
}

// A number where an address stands, in its last eight bytes.
constexpr IpAddress number_as_address(std::uint64_t number) {
    IpAddress result;
    for (std::size_t i = 16; i-- > 8; number >>= 8)
        result.bytes[i] = static_cast<std::uint8_t>(number);
    return result;
}

}  // namespace sluice::model
