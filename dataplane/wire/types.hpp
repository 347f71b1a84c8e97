// SPDX-License-Identifier: Apache-2.0
// The typed integers and addresses that every module's border is made of.
//
// Purpose: byte order and meaning are type errors, not comments. Plain values,
// trivially copyable, no allocation, safe from any thread.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// An integer in network byte order, exactly as it lies in a packet.
template <class T>
struct BigEndian {
    T raw{};

    constexpr BigEndian() = default;
    constexpr explicit BigEndian(T host) : raw(swap(host)) {}
    [[nodiscard]] constexpr T host() const { return swap(raw); }
    constexpr auto operator<=>(const BigEndian&) const = default;

    static constexpr BigEndian from_raw(T raw) {
        BigEndian result;
        result.raw = raw;
        return result;
    }

  private:
    static constexpr T swap(T value) {
        if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) return value;
        if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(value));
        if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(value));
        if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(value));
    }
};
using be16 = BigEndian<std::uint16_t>;
using be32 = BigEndian<std::uint32_t>;
using be64 = BigEndian<std::uint64_t>;

// A number with a meaning of its own; `Tag` keeps two kinds of number apart.
template <class Tag, class T = std::uint32_t>
struct Id {
    T value{};

    constexpr Id() = default;
    constexpr explicit Id(T number) : value(number) {}
    constexpr auto operator<=>(const Id&) const = default;
    [[nodiscard]] constexpr explicit operator bool() const { return value != 0; }
};

// VXLAN network identifier, 24 bits (RFC 7348 section 5).
using Vni = Id<struct VniTag>;
// A VPC, as the controller's store numbers it; never reused. 0 is the outside.
using VpcId = Id<struct VpcTag>;
// One incarnation of an endpoint; never reused, so a recycled address inherits nothing.
using EndpointId = Id<struct EndpointTag>;
using SubnetId = Id<struct SubnetTag>;
using HostId = Id<struct HostTag>;
using RouteTableId = Id<struct RouteTableTag>;
// A security group or a prefix list: whatever a rule can name as a set of addresses.
using GroupId = Id<struct GroupTag>;
using MeterId = Id<struct MeterTag>;
// A NAT gateway, as the controller's store numbers it; never reused.
using NatGatewayId = Id<struct NatGatewayTag>;
// Port number of the gateway as OpenFlow numbers it, from 1.
using PortId = Id<struct PortTag>;
// Which store object an entry was compiled from; durable, never reused.
using Cookie = Id<struct CookieTag, std::uint64_t>;
// Number of a policy commit; grows by one with each.
using Generation = Id<struct GenerationTag>;
// Index into the adjacency table; 0 is "none".
using AdjacencyIndex = Id<struct AdjacencyTag>;
// Index into the source table (who may send a flow's packets); 0 is "none".
using SourceIndex = Id<struct SourceTag>;

inline constexpr VpcId kOutside{0};

struct MacAddress {
    std::array<std::uint8_t, 6> bytes{};

    constexpr auto operator<=>(const MacAddress&) const = default;
    [[nodiscard]] constexpr bool is_multicast() const { return (bytes[0] & 1) != 0; }
    [[nodiscard]] constexpr bool is_zero() const { return *this == MacAddress{}; }
    // The 48 bits, first byte on the wire in the highest position.
    [[nodiscard]] constexpr std::uint64_t value() const {
        std::uint64_t result = 0;
        for (auto byte : bytes) result = result << 8 | byte;
        return result;
    }
    static constexpr MacAddress from_value(std::uint64_t value) {
        MacAddress result;
        for (int i = 5; i >= 0; --i, value >>= 8)
            result.bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value);
        return result;
    }
};

enum class Family : std::uint8_t { ipv4 = 4, ipv6 = 6 };

// An IPv4 or IPv6 address in 16 bytes: IPv4 is held as ::ffff:a.b.c.d (RFC 4291
// section 2.5.5.2). A packet whose IPv6 header carries such an address is dropped by
// the parser, so the two families never meet.
struct IpAddress {
    std::array<std::uint8_t, 16> bytes{};

    constexpr auto operator<=>(const IpAddress&) const = default;

    static constexpr IpAddress v4(be32 address) {
        IpAddress result;
        result.bytes[10] = result.bytes[11] = 0xff;
        const std::uint32_t host = address.host();
        for (std::size_t i = 0; i < 4; ++i)
            result.bytes[12 + i] = static_cast<std::uint8_t>(host >> (24 - 8 * i));
        return result;
    }
    static IpAddress v6(const void* sixteen_bytes) {
        IpAddress result;
        std::memcpy(result.bytes.data(), sixteen_bytes, 16);
        return result;
    }
    [[nodiscard]] constexpr bool is_v4() const {
        for (std::size_t i = 0; i < 10; ++i)
            if (bytes[i] != 0) return false;
        return bytes[10] == 0xff && bytes[11] == 0xff;
    }
    [[nodiscard]] constexpr Family family() const { return is_v4() ? Family::ipv4 : Family::ipv6; }
    // Only for an IPv4 address.
    [[nodiscard]] constexpr be32 to_v4() const {
        return be32{static_cast<std::uint32_t>(bytes[12]) << 24 |
                    static_cast<std::uint32_t>(bytes[13]) << 16 |
                    static_cast<std::uint32_t>(bytes[14]) << 8 | bytes[15]};
    }
    // All zero: "no address".
    [[nodiscard]] constexpr bool is_none() const { return *this == IpAddress{}; }
    [[nodiscard]] constexpr bool is_multicast() const {
        return is_v4() ? (bytes[12] & 0xf0) == 0xe0 : bytes[0] == 0xff;
    }
};

// An address block. `length` counts from the top of the 128 bits, so an IPv4 /24 is 120
// here; use `v4_length`/`family_length` where people read it. Host bits are zero.
struct Prefix {
    IpAddress address;
    std::uint8_t length = 0;

    constexpr auto operator<=>(const Prefix&) const = default;

    static constexpr Prefix host(IpAddress address) { return {address, 128}; }
    static constexpr Prefix any(Family family) {
        return family == Family::ipv4 ? Prefix{IpAddress::v4(be32{0}), 96} : Prefix{{}, 0};
    }
    [[nodiscard]] constexpr Family family() const {
        return address.is_v4() && length >= 96 ? Family::ipv4 : Family::ipv6;
    }
    // The length as people write it: 0–32 for IPv4, 0–128 for IPv6.
    [[nodiscard]] constexpr unsigned family_length() const {
        return family() == Family::ipv4 ? length - 96U : length;
    }
    // True for an address of the same family whose first `length` bits agree.
    [[nodiscard]] constexpr bool contains(const IpAddress& other) const {
        if (family() != other.family()) return false;
        const std::size_t whole = length / 8;
        for (std::size_t i = 0; i < whole; ++i)
            if (address.bytes[i] != other.bytes[i]) return false;
        const unsigned rest = length % 8;
        return rest == 0 || ((address.bytes[whole] ^ other.bytes[whole]) >> (8 - rest)) == 0;
    }
    [[nodiscard]] constexpr bool overlaps(const Prefix& other) const {
        return contains(other.address) || other.contains(address);
    }
    // The same block with every bit beyond `length` cleared.
    [[nodiscard]] constexpr Prefix without_host_bits() const {
        Prefix result = *this;
        for (std::size_t bit = length; bit < 128; ++bit)
            result.address.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
        return result;
    }
};

// Text forms (RFC 5952 for IPv6). Parsing accepts exactly one spelling per family:
// dotted quad without leading zeros, or RFC 4291 text; nothing around it. A v4-mapped
// IPv6 text is refused. Allocating: for the control side.
std::optional<MacAddress> parse_mac(std::string_view text);
std::optional<IpAddress> parse_ip(std::string_view text);
// "address/length"; host bits are kept, so that the caller can refuse them.
std::optional<Prefix> parse_prefix(std::string_view text);
std::string to_string(const MacAddress& mac);
std::string to_string(const IpAddress& address);
std::string to_string(const Prefix& prefix);

}  // namespace sluice

template <class Tag, class T>
struct std::hash<sluice::Id<Tag, T>> {
    std::size_t operator()(const sluice::Id<Tag, T>& id) const noexcept {
        // 64-bit finaliser (splitmix64): ids are dense, buckets want spread bits.
        std::uint64_t x = static_cast<std::uint64_t>(id.value) + 0x9e3779b97f4a7c15ULL;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
        return static_cast<std::size_t>(x ^ (x >> 31));
    }
};
template <>
struct std::hash<sluice::IpAddress> {
    std::size_t operator()(const sluice::IpAddress& address) const noexcept {
        std::uint64_t high, low;
        std::memcpy(&high, address.bytes.data(), 8);
        std::memcpy(&low, address.bytes.data() + 8, 8);
        std::uint64_t x = (high ^ 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 29) ^ low) * 0x94d049bb133111ebULL;
        return static_cast<std::size_t>(x ^ (x >> 32));
    }
};
template <>
struct std::hash<sluice::MacAddress> {
    std::size_t operator()(const sluice::MacAddress& mac) const noexcept {
        return static_cast<std::size_t>(mac.value() * 0x9e3779b97f4a7c15ULL);
    }
};
template <>
struct std::hash<sluice::Prefix> {
    std::size_t operator()(const sluice::Prefix& prefix) const noexcept {
        return std::hash<sluice::IpAddress>{}(prefix.address) * 131 + prefix.length;
    }
};
