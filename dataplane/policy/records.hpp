// SPDX-License-Identifier: Apache-2.0
// What the walk knows of the core's objects: the typed form of the tables `vni`, `endpoint`,
// `host`, of the subnets that `local` tells of and of the senders that `source` tells of.
// Immutable once in a snapshot.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/openflow/entry.hpp"
#include "dataplane/openflow/entry_hash.hpp"
#include "dataplane/openflow/settings.hpp"
#include "dataplane/policy/adjacency.hpp"
#include "dataplane/policy/routes.hpp"

namespace sluice::policy {

inline constexpr std::size_t kMaximumGroups = 16;
inline constexpr std::size_t kMaximumVteps = 3;

// Spreads a key's words over 64 bits: one multiplication each (splitmix64 at the end).
constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15ULL;
    return state ^ state >> 32;
}
constexpr std::uint64_t finish(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return x ^ (x >> 31);
}
constexpr std::uint64_t hash_of(std::uint64_t tag, const IpAddress& address) {
    const auto value = openflow::U128::of(address);
    return finish(mix(mix(mix(1, tag), value.high), value.low));
}

// Traits of a record whose member `key` is its key, which hashes itself.
template <class Record, class KeyType>
struct KeyedTraits {
    using Key = KeyType;
    static const Key& key(const Record& record) { return record.key; }
    static std::uint64_t hash(const Key& key) { return key.hash(); }
};

// One number as a key.
template <class Number>
struct NumberKey {
    Number number;
    constexpr NumberKey(Number value) : number(value) {}  // a key is its number
    bool operator==(const NumberKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const { return finish(mix(2, number.value)); }
};

struct VpcRecord {
    using Traits = KeyedTraits<VpcRecord, NumberKey<VpcId>>;
    NumberKey<VpcId> key{VpcId{}};
    Vni vni;
    ZoneSlot slot;
    openflow::Settings settings;  // for its connections; the walk asks none of them
    Cookie cookie;
};

struct VniRecord {
    using Traits = KeyedTraits<VniRecord, NumberKey<Vni>>;
    NumberKey<Vni> key{Vni{}};
    VpcRecord vpc;
};

struct AddressKey {
    VpcId vpc;
    IpAddress address;
    bool operator==(const AddressKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const { return hash_of(vpc.value, address); }
};

// One address of an endpoint.
struct EndpointRecord {
    using Traits = KeyedTraits<EndpointRecord, AddressKey>;
    AddressKey key;
    EndpointId endpoint;
    SubnetId subnet;
    HostId host;
    MacAddress mac;
    std::uint8_t group_count = 0;
    std::array<GroupId, kMaximumGroups> group_array{};
    AdjacencyIndex routed;   // to it from other subnets and from outside
    AdjacencyIndex bridged;  // to it from its own subnet
    Cookie cookie;

    [[nodiscard]] std::span<const GroupId> groups() const {
        return {group_array.data(), group_count};
    }
};

// Where an endpoint's addresses are found by its number.
struct EndpointKey {
    EndpointId endpoint;
    Family family;
    bool operator==(const EndpointKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const {
        return finish(mix(mix(3, endpoint.value), static_cast<std::uint64_t>(family)));
    }
};
struct EndpointAddress {
    using Traits = KeyedTraits<EndpointAddress, EndpointKey>;
    EndpointKey key;
    AddressKey where;
};

struct HostRecord {
    using Traits = KeyedTraits<HostRecord, NumberKey<HostId>>;
    NumberKey<HostId> key{HostId{}};
    std::array<IpAddress, kMaximumVteps> vteps{};  // none: unused
    Cookie cookie;

    [[nodiscard]] bool has(const IpAddress& vtep) const {
        for (const IpAddress& address : vteps)
            if (address == vtep) return true;
        return false;
    }
};

// An address that some host sends from.
struct VtepKey {
    IpAddress address;
    bool operator==(const VtepKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const { return hash_of(4, address); }
};
struct VtepRecord {
    using Traits = KeyedTraits<VtepRecord, VtepKey>;
    VtepKey key;
    std::uint32_t hosts = 0;
};

// One family of a subnet.
struct SubnetKey {
    SubnetId subnet;
    Family family;
    bool operator==(const SubnetKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const {
        return finish(mix(mix(5, subnet.value), static_cast<std::uint64_t>(family)));
    }
};
struct SubnetRecord {
    using Traits = KeyedTraits<SubnetRecord, SubnetKey>;
    SubnetKey key;
    VpcId vpc;
    IpAddress gateway;
    MacAddress mac;  // the gateway's towards this subnet
    std::uint8_t prefix_length = 0;
    RouteTableId route_table;
    std::uint16_t mtu = 1500;
    Cookie cookie;

    [[nodiscard]] Prefix block() const {
        return Prefix{gateway, prefix_length}.without_host_bits();
    }
};

// A MAC that an endpoint sends with; one source record serves all addresses it may use.
struct SenderKey {
    EndpointId endpoint;
    MacAddress mac;
    bool operator==(const SenderKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const {
        return finish(mix(mix(6, endpoint.value), mac.value()));
    }
};
struct SenderRecord {
    using Traits = KeyedTraits<SenderRecord, SenderKey>;
    SenderKey key;
    VpcId vpc;
    HostId host;
    SourceIndex source;
    std::uint32_t rows = 0;  // of table `source`
};

struct RouteTableRecord {
    using Traits = KeyedTraits<RouteTableRecord, NumberKey<RouteTableId>>;
    NumberKey<RouteTableId> key{RouteTableId{}};
    std::shared_ptr<const RouteTable> routes;
};

// Which VPCs use a group or a route table, so that a change of it concerns them.
struct UsedKey {
    enum class Kind : std::uint8_t { group, route_table };
    Kind kind{};
    std::uint32_t number = 0;
    bool operator==(const UsedKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const {
        return finish(mix(mix(7, static_cast<std::uint64_t>(kind)), number));
    }
};
struct UsedRecord {
    using Traits = KeyedTraits<UsedRecord, UsedKey>;
    UsedKey key;
    std::vector<std::pair<VpcId, std::uint32_t>> users;
};

// A public address that is a NAT gateway's.
struct NatAddressRecord {
    using Traits = KeyedTraits<NatAddressRecord, AddressKey>;
    AddressKey key;  // of the outside
    NatGatewayId nat_gateway;
    MeterId meter;  // inwards
    Cookie cookie;
};

// Which route tables lead to a NAT gateway, and by how many routes.
struct NatRoutesRecord {
    using Traits = KeyedTraits<NatRoutesRecord, NumberKey<NatGatewayId>>;
    NumberKey<NatGatewayId> key{NatGatewayId{}};
    std::vector<std::pair<RouteTableId, std::uint32_t>> route_tables;
};

struct MeterRecord {
    using Traits = KeyedTraits<MeterRecord, NumberKey<MeterId>>;
    NumberKey<MeterId> key{MeterId{}};
    openflow::Meter meter;
    std::uint32_t entries = 0;  // that draw from it
    bool present = false;       // false only while a bundle is being applied
};

struct EntryRecord {
    struct Traits {
        using Key = openflow::EntryKey;
        static const Key& key(const EntryRecord& record) { return record.entry.key; }
        static std::uint64_t hash(const Key& key) { return openflow::key_hash(key); }
    };
    openflow::Entry entry;
    std::chrono::steady_clock::time_point added{};  // modified since, perhaps, but not replaced
};

}  // namespace sluice::policy
