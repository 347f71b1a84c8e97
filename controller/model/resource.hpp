// SPDX-License-Identifier: Apache-2.0
// What the cloud wants, as plain values: one struct per kind of the API.
//
// A resource is immutable once it is part of a State; a change makes a new one. What the
// fields are called outside, and what is asked of them, is in fields.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "controller/model/uuid.hpp"
#include "dataplane/openflow/settings.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::model {

// In the order in which a Spec holds them.
enum class Kind : std::uint8_t {
    vpc,
    subnet,
    host,
    endpoint,
    security_group,
    prefix_list,
    external_pool,
    elastic_ip,
    route_table,
    gateway,
    bandwidth,
    nat_gateway,
};
inline constexpr std::size_t kKinds = 12;

// A reference to another resource by its id.
template <Kind K>
struct Ref {
    Uuid id;
    constexpr auto operator<=>(const Ref&) const = default;
};

// A number that the API admits only within bounds, both inclusive.
template <class T, T Least, T Most>
struct Bounded {
    T value = Least;
    constexpr auto operator<=>(const Bounded&) const = default;
};

// A setting that gateways are told of: its name, range and default are openflow/settings.hpp's.
template <openflow::Setting S>
struct Setting {
    std::uint32_t value = openflow::find_setting(S)->otherwise;
    auto operator<=>(const Setting&) const = default;
};

// Absent: the gateway's own, which follow what is free.
struct VpcLimits {
    std::optional<Setting<openflow::Setting::connections>> connections;
    std::optional<Setting<openflow::Setting::half_open>> half_open;
    std::optional<Setting<openflow::Setting::new_per_second>> new_per_second;
    std::optional<Setting<openflow::Setting::fragments>> fragments;
    std::optional<Setting<openflow::Setting::endpoint_connections>> endpoint_connections;
    std::optional<Setting<openflow::Setting::endpoint_half_open>> endpoint_half_open;
    std::optional<Setting<openflow::Setting::endpoint_new_per_second>> endpoint_new_per_second;
    std::optional<Setting<openflow::Setting::endpoint_fragments>> endpoint_fragments;
    bool operator==(const VpcLimits&) const = default;
};

// Seconds that a connection may idle.
struct VpcTimeouts {
    Setting<openflow::Setting::tcp_established> tcp_established;
    Setting<openflow::Setting::tcp_transitory> tcp_transitory;
    Setting<openflow::Setting::tcp_time_wait> tcp_time_wait;
    Setting<openflow::Setting::udp> udp;
    Setting<openflow::Setting::udp_unanswered> udp_unanswered;
    Setting<openflow::Setting::icmp> icmp;
    Setting<openflow::Setting::sctp> sctp;
    Setting<openflow::Setting::sctp_unanswered> sctp_unanswered;
    Setting<openflow::Setting::other> other;
    Setting<openflow::Setting::other_unanswered> other_unanswered;
    bool operator==(const VpcTimeouts&) const = default;
};

struct Vpc {
    std::vector<Prefix> cidrs;
    Vni vni;              // 0 only until one is assigned
    std::string gateway;  // which gateway carries it; empty: none yet
    VpcLimits limits;
    VpcLimits limit_ceilings;  // what an admin has set last: a tenant may set that much
    VpcTimeouts timeouts;
    Setting<openflow::Setting::mid_stream> mid_stream;
    bool tcp_window_check = false;
    bool mss_clamping = true;
    bool operator==(const Vpc&) const = default;
};

using Mtu = Bounded<std::uint16_t, 1280, 9216>;

struct Subnet {
    Ref<Kind::vpc> vpc_id;
    std::optional<Prefix> cidr;       // IPv4
    std::optional<Prefix> ipv6_cidr;  // one of the two at least
    std::optional<IpAddress> gateway_ip;
    std::optional<IpAddress> gateway_ipv6;
    Mtu mtu{1450};  // an underlay of 1,500 less what VXLAN over IPv4 takes
    std::optional<Ref<Kind::route_table>> route_table_id;  // none only until it is assigned
    bool operator==(const Subnet&) const = default;
};

struct Host {
    std::vector<IpAddress> vteps;
    bool operator==(const Host&) const = default;
};

enum class EndpointKind : std::uint8_t { vm, gpu_server, physical };

struct AllowedAddress {
    Prefix cidr;
    std::optional<MacAddress> mac;  // none: the endpoint's own
    constexpr auto operator<=>(const AllowedAddress&) const = default;
};

struct Endpoint {
    Ref<Kind::subnet> subnet_id;
    EndpointKind kind = EndpointKind::vm;
    std::optional<IpAddress> ip;
    std::optional<IpAddress> ipv6;
    std::optional<MacAddress> mac;  // none only until one is assigned
    std::optional<Ref<Kind::host>> host_id;
    std::optional<IpAddress> vtep;  // instead of host_id
    // None only until the VPC's default group is filled in.
    std::optional<std::vector<Ref<Kind::security_group>>> security_group_ids;
    std::vector<AllowedAddress> allowed_addresses;
    bool source_check = true;
    bool operator==(const Endpoint&) const = default;
};

enum class RuleDirection : std::uint8_t { ingress, egress };
enum class RuleAction : std::uint8_t { allow, deny };
using Priority = Bounded<std::uint16_t, 1, 32000>;

// An IP protocol; the API names the usual ones.
struct Protocol {
    std::uint8_t number = 0;
    constexpr auto operator<=>(const Protocol&) const = default;
};

struct Rule {
    Uuid id;
    std::uint64_t number = 0;  // the cookie of its entry
    RuleDirection direction = RuleDirection::ingress;
    RuleAction action = RuleAction::allow;
    Priority priority{1000};
    std::optional<Family> family;      // none only until it is filled in
    std::optional<Protocol> protocol;  // none: every protocol
    std::optional<std::uint16_t> port_min, port_max;
    std::optional<std::uint8_t> icmp_type, icmp_code;
    std::optional<Prefix> remote_cidr;
    std::optional<Ref<Kind::security_group>> remote_group_id;
    std::optional<Ref<Kind::prefix_list>> remote_prefix_list_id;
    auto operator<=>(const Rule&) const = default;
};

struct SecurityGroup {
    Ref<Kind::vpc> vpc_id;
    std::vector<Rule> rules;
    bool is_default = false;
    bool persist_established = false;  // what a rule admitted survives the rule
    bool operator==(const SecurityGroup&) const = default;
};

struct PrefixList {
    std::vector<Prefix> cidrs;
    bool operator==(const PrefixList&) const = default;
};

enum class PoolMode : std::uint8_t { routed, on_link };

struct ExternalPool {
    Prefix cidr;
    PoolMode mode = PoolMode::routed;
    std::vector<Prefix> reserved;
    bool operator==(const ExternalPool&) const = default;
};

using Mbps = Bounded<std::uint32_t, 1, 4'000'000>;  // a meter's kbit/s have 32 bits

struct ElasticIp {
    std::optional<IpAddress> address;                 // none only until one is assigned
    std::optional<Ref<Kind::external_pool>> pool_id;  // likewise
    std::optional<Ref<Kind::endpoint>> endpoint_id;   // none: not attached
    // At most one of these; none: unlimited.
    std::optional<Mbps> bandwidth_mbps;
    std::optional<Ref<Kind::bandwidth>> bandwidth_id;
    bool operator==(const ElasticIp&) const = default;
};

struct RouteTarget {
    // Exactly one of these.
    std::optional<Ref<Kind::endpoint>> endpoint_id;
    std::optional<Ref<Kind::nat_gateway>> nat_gateway_id;
    bool internet = false;
    bool blackhole = false;
    auto operator<=>(const RouteTarget&) const = default;
};

struct Route {
    std::uint64_t number = 0;  // the cookie of its entry
    Prefix destination;
    RouteTarget next_hop;
    auto operator<=>(const Route&) const = default;
};

struct RouteTable {
    Ref<Kind::vpc> vpc_id;
    std::vector<Route> routes;
    bool is_main = false;
    bool operator==(const RouteTable&) const = default;
};

enum class AdminState : std::uint8_t { up, drain };

// A gateway exists from its first connection on; its name is the resource's.
struct Gateway {
    AdminState admin_state = AdminState::up;
    bool operator==(const Gateway&) const = default;
};

// At least a packet of the largest MTU, or none would ever pass.
using BurstKbit = Bounded<std::uint32_t, 80, 4'000'000'000>;

// A limit that elastic IPs share.
struct Bandwidth {
    Mbps mbps;
    std::optional<BurstKbit> burst_kbit;  // none: 100 ms
    bool operator==(const Bandwidth&) const = default;
};

// RFC 4787 sections 4.1 and 5; nfv/nat_gateway/README.md says what they come to.
enum class NatMapping : std::uint8_t { endpoint_independent, address_and_port_dependent };
enum class NatFiltering : std::uint8_t {
    endpoint_independent,
    address_dependent,
    address_and_port_dependent,
};
using PortsPerEndpoint = Bounded<std::uint32_t, 64, 4096>;

// Many endpoints of a VPC behind public addresses that they share.
struct NatGateway {
    Ref<Kind::vpc> vpc_id;
    std::vector<Ref<Kind::elastic_ip>> elastic_ip_ids;
    PortsPerEndpoint ports_per_endpoint{1024};  // of each protocol
    NatMapping mapping = NatMapping::endpoint_independent;
    NatFiltering filtering = NatFiltering::address_and_port_dependent;
    bool operator==(const NatGateway&) const = default;
};

using Spec = std::variant<Vpc, Subnet, Host, Endpoint, SecurityGroup, PrefixList, ExternalPool,
                          ElasticIp, RouteTable, Gateway, Bandwidth, NatGateway>;
static_assert(std::variant_size_v<Spec> == kKinds);

// Numbers come in blocks, so that what belongs to one object is numbered with it.
inline constexpr std::uint64_t kNumbersPerObject = 4;

struct Resource {
    Uuid id;
    std::uint64_t number = 0;  // durable, never reused, a multiple of kNumbersPerObject
    std::string name;
    std::string description;
    std::map<std::string, std::string> tags;
    std::string project;          // empty for the kinds that belong to none
    std::int64_t created_at = 0;  // milliseconds since 1970
    std::int64_t updated_at = 0;
    std::uint64_t version = 1;
    bool deleting = false;  // gone for the compiler, still holding what is unique
    Spec spec;
    bool operator==(const Resource&) const = default;

    [[nodiscard]] Kind kind() const { return static_cast<Kind>(spec.index()); }
    template <class S>
    [[nodiscard]] const S& as() const {
        return std::get<S>(spec);
    }
    template <class S>
    [[nodiscard]] S& as() {
        return std::get<S>(spec);
    }
    // The number as a register or a meter holds it.
    [[nodiscard]] std::uint32_t register_number(unsigned within_block = 0) const {
        return static_cast<std::uint32_t>(number + within_block);
    }
    [[nodiscard]] Cookie cookie() const { return Cookie{number}; }
};
using ResourcePtr = std::shared_ptr<const Resource>;

// Creation (no `before`), replacement, or removal (no `after`) of one resource.
struct Change {
    ResourcePtr before;
    ResourcePtr after;
    [[nodiscard]] const Resource& either() const { return after ? *after : *before; }
};
// Applied whole or not at all.
using Diff = std::vector<Change>;

}  // namespace sluice::model
