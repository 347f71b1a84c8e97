// SPDX-License-Identifier: Apache-2.0
// Table entries as both sides of OpenFlow hold them: plain values, free of the wire codec.
//
// Controller and gateway share this header. `codec.hpp` turns entries into OpenFlow 1.3
// messages and back; `*/table.hpp` and `tables.hpp` turn typed rows into entries.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dataplane/wire/types.hpp"

namespace sluice::openflow {

// What a value in a match or a set-field means. The same in all tables; each has exactly
// one carrier in OpenFlow (field.hpp says which).
enum class Field : std::uint8_t {
    in_port,               // in_port
    tunnel_id,             // tun_id: the VNI
    ether_type,            // eth_type: 0x0800 or 0x86dd
    source_mac,            // eth_src
    destination_mac,       // eth_dst
    source_ip,             // ipv4_src or ipv6_src, as the value's family says
    destination_ip,        // ipv4_dst or ipv6_dst
    ip_protocol,           // ip_proto
    icmp_type,             // icmpv4_type or icmpv6_type
    icmp_code,             // icmpv4_code or icmpv6_code
    source_vpc,            // reg0
    destination_vpc,       // reg1
    source_endpoint,       // reg2
    destination_endpoint,  // reg3
    group,                 // reg4: a group of the endpoint under judgement
    remote_group,          // reg5: a group or prefix list the other side belongs to
    destination_ports,     // reg6: low 16 bits first port, high 16 bits last port
    route_table,           // reg7
    subnet,                // reg8
    host,                  // reg9
    next_hop,              // reg10: tables.hpp NextHop
    mtu,                   // reg11: octets of the largest inner IP packet; bits 16-23 prefix length
    address,               // xxreg3 (reg12–reg15): an IpAddress in 16 octets
    side,                  // metadata: 0 underlay, 1 uplink
    nat_gateway,           // tun_dst: a NAT gateway, as the store numbers it
    setting,               // pkt_mark: settings.hpp; only ever set, as often as there are settings
    count
};

struct U128 {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    constexpr auto operator<=>(const U128&) const = default;

    static constexpr U128 ones() { return {~0ULL, ~0ULL}; }
    static constexpr U128 of(std::uint64_t low) { return {0, low}; }
    static constexpr U128 of(const IpAddress& address) {
        U128 result;
        for (std::size_t i = 0; i < 8; ++i) result.high = result.high << 8 | address.bytes[i];
        for (std::size_t i = 8; i < 16; ++i) result.low = result.low << 8 | address.bytes[i];
        return result;
    }
    static constexpr U128 prefix_mask(unsigned length) {  // of 128 bits
        if (length == 0) return {};
        if (length >= 128) return ones();
        if (length <= 64) return {~0ULL << (64 - length), 0};
        return {~0ULL, ~0ULL << (128 - length)};
    }
    [[nodiscard]] constexpr IpAddress to_ip() const {
        IpAddress result;
        for (std::size_t i = 0; i < 8; ++i) {
            result.bytes[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
            result.bytes[8 + i] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
        }
        return result;
    }
};

// `mask` is all ones for an exact match (also where the field is narrower than 128 bits:
// the codec trims it). IP addresses are in the 128-bit form of IpAddress; their mask is a
// prefix of at least 96 bits for IPv4.
struct MatchField {
    Field field{};
    U128 value;
    U128 mask = U128::ones();
    constexpr auto operator<=>(const MatchField&) const = default;
};

struct SetField {
    Field field{};
    U128 value;
    constexpr auto operator<=>(const SetField&) const = default;
};

inline constexpr std::uint16_t kDefaultPriority = 0x8000;

// An entry's identity (OpenFlow 1.3.5 section 6.4): no two entries share it.
struct EntryKey {
    std::uint8_t table = 0;
    std::uint16_t priority = kDefaultPriority;
    std::vector<MatchField> match;  // sorted by field, each field at most once

    auto operator<=>(const EntryKey&) const = default;
};

// What a matching entry does: sets fields, draws from a meter, goes on to a later table.
// An entry that goes nowhere drops. `set` keeps its order; a field of kind *member* may
// occur several times and then names a set.
struct Entry {
    EntryKey key;
    Cookie cookie;
    std::vector<SetField> set;
    MeterId meter;                     // 0: none
    std::optional<std::uint8_t> next;  // goto_table

    auto operator<=>(const Entry&) const = default;
};

// OpenFlow 1.3.5 section 5.7, one drop band. Rate in kbit/s of inner IP octets, burst in
// kbit.
struct Meter {
    MeterId id;
    std::uint32_t rate_kbps = 0;
    std::uint32_t burst_kbit = 0;
    constexpr auto operator<=>(const Meter&) const = default;
};

// A set of changes that is applied whole or not at all. Applying is idempotent: `put`
// replaces an entry of the same key, `remove` of what is absent does nothing.
struct Changes {
    std::vector<Entry> put;
    std::vector<EntryKey> remove;
    std::vector<Meter> put_meters;
    std::vector<MeterId> remove_meters;

    [[nodiscard]] bool empty() const {
        return put.empty() && remove.empty() && put_meters.empty() && remove_meters.empty();
    }
};

}  // namespace sluice::openflow
