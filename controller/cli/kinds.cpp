// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/kinds.hpp"

#include <algorithm>

namespace sluice::cli {
namespace {

using enum FieldType;
using enum Given;
using Columns = std::string_view[];
using Words = std::string_view[];

constexpr Words kEndpointKinds = {"vm", "gpu_server", "physical"};
constexpr Words kDirections = {"ingress", "egress"};
constexpr Words kActions = {"allow", "deny"};
constexpr Words kFamilies = {"ipv4", "ipv6"};
constexpr Words kProtocols = {"tcp", "udp", "icmp", "icmpv6", "gre", "esp", "ah", "sctp"};
constexpr Words kPoolModes = {"routed", "on_link"};
constexpr Words kAdminStates = {"up", "drain"};
constexpr Words kNatMappings = {"endpoint_independent", "address_and_port_dependent"};
constexpr Words kNatFilterings = {"endpoint_independent", "address_dependent",
                                  "address_and_port_dependent"};
constexpr Words kBooleans = {"true", "false"};

constexpr Words kLimits = {
    "connections",          "half_open",          "new_per_second",          "fragments",
    "endpoint_connections", "endpoint_half_open", "endpoint_new_per_second", "endpoint_fragments"};
constexpr Words kTimeouts = {
    "tcp_established", "tcp_transitory", "tcp_time_wait",   "udp", "udp_unanswered", "icmp", "sctp",
    "sctp_unanswered", "other",          "other_unanswered"};

constexpr FieldInfo kVpc[] = {
    {"cidrs", "cidr", list, create_or_update, true, {}, "an address block, e.g. 10.0.0.0/16"},
    {"vni", "vni", number, create, false, {}, "the VXLAN network identifier (admin)"},
    {"limits",
     "limit",
     numbers,
     create_or_update,
     false,
     {},
     "how much of the gateway's sessions it, or each endpoint of it, may have; =none: default",
     kLimits},
    {"timeouts",
     "timeout",
     numbers,
     create_or_update,
     false,
     {},
     "seconds that its connections may idle; =none: default",
     kTimeouts},
    {"mid_stream",
     "mid-stream",
     number,
     create_or_update,
     false,
     {},
     "seconds after a restart in which connections are picked up; default: 60, 0: never"},
    {"tcp_window_check",
     "tcp-window-check",
     boolean,
     create_or_update,
     false,
     {},
     "drop TCP data outside of the window, default: false",
     kBooleans},
    {"mss_clamping",
     "mss-clamping",
     boolean,
     create_or_update,
     false,
     {},
     "lower the MSS of SYNs to what fits, default: true",
     kBooleans},
};
constexpr Columns kVpcColumns = {"name", "vni", "cidrs", "state", "id"};

constexpr FieldInfo kSubnet[] = {
    {"vpc_id", "vpc", reference, create, true, "vpc", "the VPC it belongs to"},
    {"cidr", "cidr", text, create, false, {}, "its IPv4 block, inside the VPC's"},
    {"ipv6_cidr", "ipv6-cidr", text, create, false, {}, "its IPv6 block"},
    {"gateway_ip", "gateway-ip", text, create, false, {}, "default: the first address"},
    {"gateway_ipv6", "gateway-ipv6", text, create, false, {}, "default: the first address"},
    {"mtu", "mtu", number, create_or_update, false, {}, "octets of an IP packet"},
    {"route_table_id", "route-table", reference, create_or_update, false, "route-table",
     "default: the VPC's main one"},
};
constexpr Columns kSubnetColumns = {"name", "vpc_id",        "cidr",  "ipv6_cidr", "gateway_ip",
                                    "mtu",  "available_ips", "state", "id"};

constexpr FieldInfo kHost[] = {
    {"vteps", "vtep", list, create_or_update, true, {}, "an address that its tunnels end at"},
};
constexpr Columns kHostColumns = {"name", "vteps", "state", "id"};

constexpr FieldInfo kEndpoint[] = {
    {"subnet_id", "subnet", reference, create, true, "subnet", "where its addresses come from"},
    {"kind", "kind", text, create, false, {}, "default: vm", kEndpointKinds},
    {"ip", "ip", text, create, false, {}, "assigned unless given"},
    {"ipv6", "ipv6", text, create, false, {}, "assigned unless given"},
    {"mac", "mac", text, create, false, {}, "assigned unless given"},
    {"host_id", "host", reference, create_or_update, false, "host",
     "the host it runs on (or say --vtep)"},
    {"vtep", "vtep", text, create_or_update, false, {}, "where its tunnel ends, instead of --host"},
    {"security_group_ids", "security-group", reference_list, create_or_update, false,
     "security-group", "default: the VPC's `default`; `none`: no traffic"},
    {"allowed_addresses",
     "allowed-addresses",
     FieldType::json,
     create_or_update,
     false,
     {},
     R"(further sources, e.g. '[{"cidr": "10.0.9.0/24"}]')"},
    {"source_check",
     "source-check",
     boolean,
     create_or_update,
     false,
     {},
     "anti-spoofing, default: true",
     kBooleans},
};
constexpr Columns kEndpointColumns = {"name",    "subnet_id",          "ip",    "ipv6", "mac",
                                      "host_id", "security_group_ids", "state", "id"};

constexpr FieldInfo kRule[] = {
    {"direction", "direction", text, create, true, {}, "which way", kDirections},
    {"action", "action", text, create, false, {}, "default: allow", kActions},
    {"priority", "priority", number, create, false, {}, "1 to 32000, the lowest wins"},
    {"family",
     "family",
     text,
     create,
     false,
     {},
     "default: that of the remote block, else ipv4",
     kFamilies},
    {"protocol", "protocol", text, create, false, {}, "default: any; or a number", kProtocols},
    {"port_min", "port-min", number, create, false, {}, "first destination port"},
    {"port_max", "port-max", number, create, false, {}, "last destination port"},
    {"icmp_type", "icmp-type", number, create, false, {}, "ICMP type"},
    {"icmp_code", "icmp-code", number, create, false, {}, "ICMP code"},
    {"remote_cidr", "remote-cidr", text, create, false, {}, "the other side's block"},
    {"remote_group_id", "remote-group", reference, create, false, "security-group",
     "the other side is a member of it"},
    {"remote_prefix_list_id", "remote-prefix-list", reference, create, false, "prefix-list",
     "the other side is in the list"},
};

constexpr FieldInfo kSecurityGroup[] = {
    {"vpc_id", "vpc", reference, create, true, "vpc", "the VPC it belongs to"},
    {"rules",
     "rules",
     FieldType::json,
     create_or_update,
     false,
     {},
     R"(all of its rules at once, e.g. '[{"direction": "ingress", "protocol": "tcp", "port_min": 443, "port_max": 443}]')"},
    {"persist_established",
     "persist-established",
     boolean,
     create_or_update,
     false,
     {},
     "connections survive the rule that admitted them, default: false",
     kBooleans},
};
constexpr Columns kGroupColumns = {"name", "vpc_id", "rules", "state", "id"};

constexpr FieldInfo kPrefixList[] = {
    {"cidrs", "cidr", list, create_or_update, true, {}, "an address block"},
};
constexpr Columns kPrefixListColumns = {"name", "cidrs", "state", "id"};

constexpr FieldInfo kExternalPool[] = {
    {"cidr", "cidr", text, create, true, {}, "its public addresses"},
    {"mode", "mode", text, create_or_update, false, {}, "default: routed", kPoolModes},
    {"reserved", "reserved", list, create_or_update, false, {}, "a block not to give away"},
};
constexpr Columns kPoolColumns = {"name", "cidr", "mode", "reserved", "state", "id"};

constexpr FieldInfo kElasticIp[] = {
    {"address", "address", text, create, false, {}, "from a pool unless given"},
    {"pool_id", "pool", reference, create, false, "external-pool", "which pool to take it from"},
    {"endpoint_id", "endpoint", reference, create_or_update, false, "endpoint",
     "what it leads to; `none` detaches it"},
    {"bandwidth_mbps",
     "bandwidth-mbps",
     number,
     create_or_update,
     false,
     {},
     "10^6 bit/s in each direction; `none`: unlimited"},
    {"bandwidth_id", "bandwidth", reference, create_or_update, false, "bandwidth",
     "a limit shared with others, instead"},
    {"nat_gateway_id", "nat-gateway", reference, never, false, "nat-gateway"},
};
constexpr Columns kElasticColumns = {
    "name",           "address",      "endpoint_id", "nat_gateway_id",
    "bandwidth_mbps", "bandwidth_id", "state",       "id"};

constexpr FieldInfo kBandwidth[] = {
    {"mbps", "mbps", number, create_or_update, true, {}, "10^6 bit/s in each direction"},
    {"burst_kbit", "burst-kbit", number, create_or_update, false, {}, "default: 100 ms"},
    {"elastic_ip_ids", "elastic-ip", reference_list, never, false, "elastic-ip"},
};
constexpr Columns kBandwidthColumns = {"name",           "mbps",  "burst_kbit",
                                       "elastic_ip_ids", "state", "id"};

constexpr FieldInfo kNatGateway[] = {
    {"vpc_id", "vpc", reference, create, true, "vpc", "the VPC it belongs to"},
    {"elastic_ip_ids", "elastic-ip", reference_list, create_or_update, true, "elastic-ip",
     "an address that its endpoints share"},
    {"ports_per_endpoint",
     "ports-per-endpoint",
     number,
     create_or_update,
     false,
     {},
     "of each protocol, a multiple of 64; default: 1024"},
    {"mapping",
     "mapping",
     text,
     create_or_update,
     false,
     {},
     "one public port for all destinations, or one each",
     kNatMappings},
    {"filtering",
     "filtering",
     text,
     create_or_update,
     false,
     {},
     "whose packets a mapped port lets in",
     kNatFilterings},
};
constexpr Columns kNatColumns = {"name",    "vpc_id",    "elastic_ip_ids", "ports_per_endpoint",
                                 "mapping", "filtering", "state",          "id"};

constexpr FieldInfo kRouteTable[] = {
    {"vpc_id", "vpc", reference, create, true, "vpc", "the VPC it belongs to"},
    {"routes",
     "routes",
     FieldType::json,
     create_or_update,
     false,
     {},
     R"(all of them at once, e.g. '[{"destination": "0.0.0.0/0", "next_hop": "internet"}]')"},
};
constexpr Columns kRouteTableColumns = {"name", "vpc_id", "routes", "state", "id"};

constexpr FieldInfo kGateway[] = {
    {"admin_state",
     "admin-state",
     text,
     create_or_update,
     false,
     {},
     "drain keeps new VPCs away",
     kAdminStates},
};
constexpr Columns kGatewayColumns = {"name",        "address",    "state",
                                     "admin_state", "sessions",   "capacity",
                                     "last_seen",   "generation", "id"};

constexpr Columns kSubnetSpare = {"id", "gateway_ip", "mtu", "available_ips"};
constexpr Columns kEndpointSpare = {"id", "mac", "ipv6"};
constexpr Columns kElasticSpare = {"id", "bandwidth_mbps", "bandwidth_id", "nat_gateway_id"};
constexpr Columns kBandwidthSpare = {"id", "burst_kbit"};
constexpr Columns kNatSpare = {"id", "filtering", "mapping", "ports_per_endpoint"};
constexpr Columns kGatewaySpare = {"id", "generation", "last_seen", "capacity"};
constexpr Columns kSpare = {"id"};

constexpr KindInfo kKinds[] = {
    {"vpc", "vpcs", "tenant networks, isolated by their VNI", kVpc, kVpcColumns, true,
     "sluicectl vpc create --name prod --cidr 10.0.0.0/16 --wait", "prod",
     "--cidr 10.0.0.0/16,10.1.0.0/16", kSpare},
    {"subnet", "subnets", "address blocks of a VPC with a gateway address", kSubnet, kSubnetColumns,
     true, "sluicectl subnet create --name front --vpc prod --cidr 10.0.1.0/24", "front",
     "--mtu 1400", kSubnetSpare},
    {"host", "hosts", "compute hosts and their VTEPs (admin)", kHost, kHostColumns, true,
     "sluicectl host create --name rack1-7 --vtep 192.0.2.17", "rack1-7", "--vtep 192.0.2.18",
     kSpare},
    {"endpoint", "endpoints", "network interfaces of machines", kEndpoint, kEndpointColumns, true,
     "sluicectl endpoint create --name web1 --subnet front --host rack1-7 --wait", "web1",
     "--security-group web,default --wait", kEndpointSpare},
    {"security-group", "security-groups", "stateful rules that endpoints share", kSecurityGroup,
     kGroupColumns, true,
     "sluicectl security-group create --name web --vpc prod\n"
     "  sluicectl security-group add-rule web --direction ingress --protocol tcp \\\n"
     "      --port 443",
     "web", "--rules @rules.json", kSpare},
    {"prefix-list", "prefix-lists", "address blocks that rules name together", kPrefixList,
     kPrefixListColumns, true, "sluicectl prefix-list create --name office --cidr 198.51.100.0/24",
     "office", "--cidr 198.51.100.0/24,192.0.2.7/32", kSpare},
    {"external-pool", "external-pools", "public addresses for elastic IPs (admin)", kExternalPool,
     kPoolColumns, true, "sluicectl external-pool create --name internet --cidr 203.0.113.0/24",
     "internet", "--reserved 203.0.113.0/30", kSpare},
    {"elastic-ip", "elastic-ips", "public addresses that lead to an endpoint", kElasticIp,
     kElasticColumns, true, "sluicectl elastic-ip create --name web --endpoint web1", "web",
     "--endpoint web2      # moves it at once", kElasticSpare},
    {"bandwidth", "bandwidths", "limits that elastic IPs share", kBandwidth, kBandwidthColumns,
     true, "sluicectl bandwidth create --name office --mbps 500", "office", "--mbps 1000",
     kBandwidthSpare},
    {"nat-gateway", "nat-gateways", "many endpoints behind shared public addresses", kNatGateway,
     kNatColumns, true,
     "sluicectl elastic-ip create --name shared\n"
     "  sluicectl nat-gateway create --name out --vpc prod --elastic-ip shared\n"
     "  sluicectl route-table add-route prod/main --destination 0.0.0.0/0 \\\n"
     "      --next-hop nat-gateway:out",
     "out", "--ports-per-endpoint 4096", kNatSpare},
    {"route-table", "route-tables", "where a subnet's packets go", kRouteTable, kRouteTableColumns,
     true,
     "sluicectl route-table create --name edge --vpc prod\n"
     "  sluicectl route-table add-route edge --destination 0.0.0.0/0 \\\n"
     "      --next-hop internet",
     "edge", "--routes @routes.json", kSpare},
    {"gateway", "gateways", "the gateways that have connected", kGateway, kGatewayColumns, false,
     "sluicectl gateway list", "gw1", "--admin-state drain", kGatewaySpare},
};

}  // namespace

std::span<const KindInfo> kinds() {
    return kKinds;
}

const KindInfo* find_kind(std::string_view command) {
    const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                     [&](const KindInfo& kind) { return kind.command == command; });
    return found == std::end(kKinds) ? nullptr : found;
}

const FieldInfo* find_field(const KindInfo& kind, std::string_view name) {
    const auto found = std::find_if(kind.fields.begin(), kind.fields.end(),
                                    [&](const FieldInfo& field) { return field.name == name; });
    return found == kind.fields.end() ? nullptr : &*found;
}

const FieldInfo* way_to_vpc(const KindInfo& kind) {
    const auto found =
        std::find_if(kind.fields.begin(), kind.fields.end(), [](const FieldInfo& field) {
            return field.refers_to == "vpc" || field.refers_to == "subnet" ||
                   field.refers_to == "endpoint";
        });
    return found == kind.fields.end() ? nullptr : &*found;
}

bool in_vpc(const KindInfo& kind) {
    return kind.command == "vpc" || way_to_vpc(kind);
}

std::string title(const KindInfo& kind) {
    std::string text(kind.command);
    std::replace(text.begin(), text.end(), '-', ' ');
    if (text == "vpc") return "VPC";
    if (text == "elastic ip") return "elastic IP";
    if (text == "nat gateway") return "NAT gateway";
    return text;
}

std::span<const std::string_view> protocol_words() {
    return kProtocols;
}

std::span<const FieldInfo> rule_fields() {
    return kRule;
}

}  // namespace sluice::cli
