// SPDX-License-Identifier: Apache-2.0
// Every field of every kind, in the order in which the API shows them.
#include "controller/model/field_table.hpp"

namespace sluice::model {
namespace {

constexpr Field<VpcLimits> kVpcLimits[] = {
    field<&VpcLimits::connections>("connections"),
    field<&VpcLimits::half_open>("half_open"),
    field<&VpcLimits::new_per_second>("new_per_second"),
    field<&VpcLimits::fragments>("fragments"),
    field<&VpcLimits::endpoint_connections>("endpoint_connections"),
    field<&VpcLimits::endpoint_half_open>("endpoint_half_open"),
    field<&VpcLimits::endpoint_new_per_second>("endpoint_new_per_second"),
    field<&VpcLimits::endpoint_fragments>("endpoint_fragments"),
};

constexpr Field<VpcTimeouts> kVpcTimeouts[] = {
    field<&VpcTimeouts::tcp_established>("tcp_established"),
    field<&VpcTimeouts::tcp_transitory>("tcp_transitory"),
    field<&VpcTimeouts::tcp_time_wait>("tcp_time_wait"),
    field<&VpcTimeouts::udp>("udp"),
    field<&VpcTimeouts::udp_unanswered>("udp_unanswered"),
    field<&VpcTimeouts::icmp>("icmp"),
    field<&VpcTimeouts::sctp>("sctp"),
    field<&VpcTimeouts::sctp_unanswered>("sctp_unanswered"),
    field<&VpcTimeouts::other>("other"),
    field<&VpcTimeouts::other_unanswered>("other_unanswered"),
};

constexpr Field<Vpc> kVpc[] = {
    field<&Vpc::cidrs>("cidrs", kRequired),
    field<&Vpc::vni>("vni", kAdmin | kImmutable),
    field<&Vpc::gateway>("gateway", kInternal),
    field<&Vpc::limits>("limits"),
    field<&Vpc::limit_ceilings>("limit_ceilings", kReadOnly),
    field<&Vpc::timeouts>("timeouts"),
    field<&Vpc::mid_stream>("mid_stream"),
    field<&Vpc::tcp_window_check>("tcp_window_check"),
    field<&Vpc::mss_clamping>("mss_clamping"),
};

constexpr Field<Subnet> kSubnet[] = {
    field<&Subnet::vpc_id>("vpc_id", kRequired | kImmutable),
    field<&Subnet::cidr>("cidr", kImmutable),
    field<&Subnet::ipv6_cidr>("ipv6_cidr", kImmutable),
    field<&Subnet::gateway_ip>("gateway_ip", kImmutable),
    field<&Subnet::gateway_ipv6>("gateway_ipv6", kImmutable),
    field<&Subnet::mtu>("mtu"),
    field<&Subnet::route_table_id>("route_table_id"),
};

constexpr Field<Host> kHost[] = {
    field<&Host::vteps>("vteps", kRequired),
};

constexpr Field<AllowedAddress> kAllowedAddress[] = {
    field<&AllowedAddress::cidr>("cidr", kRequired),
    field<&AllowedAddress::mac>("mac"),
};

constexpr Field<Endpoint> kEndpoint[] = {
    field<&Endpoint::subnet_id>("subnet_id", kRequired | kImmutable),
    field<&Endpoint::kind>("kind", kImmutable),
    field<&Endpoint::ip>("ip", kImmutable),
    field<&Endpoint::ipv6>("ipv6", kImmutable),
    field<&Endpoint::mac>("mac", kImmutable),
    field<&Endpoint::host_id>("host_id"),
    field<&Endpoint::vtep>("vtep"),
    field<&Endpoint::security_group_ids>("security_group_ids"),
    field<&Endpoint::allowed_addresses>("allowed_addresses"),
    field<&Endpoint::source_check>("source_check"),
};

constexpr Field<Rule> kRule[] = {
    field<&Rule::id>("id"),
    field<&Rule::direction>("direction", kRequired),
    field<&Rule::action>("action"),
    field<&Rule::priority>("priority"),
    field<&Rule::family>("family"),
    field<&Rule::protocol>("protocol"),
    field<&Rule::port_min>("port_min"),
    field<&Rule::port_max>("port_max"),
    field<&Rule::icmp_type>("icmp_type"),
    field<&Rule::icmp_code>("icmp_code"),
    field<&Rule::remote_cidr>("remote_cidr"),
    field<&Rule::remote_group_id>("remote_group_id"),
    field<&Rule::remote_prefix_list_id>("remote_prefix_list_id"),
};

constexpr Field<SecurityGroup> kSecurityGroup[] = {
    field<&SecurityGroup::vpc_id>("vpc_id", kRequired | kImmutable),
    field<&SecurityGroup::rules>("rules"),
    field<&SecurityGroup::persist_established>("persist_established"),
    field<&SecurityGroup::is_default>("is_default", kReadOnly),
};

constexpr Field<PrefixList> kPrefixList[] = {
    field<&PrefixList::cidrs>("cidrs", kRequired),
};

constexpr Field<ExternalPool> kExternalPool[] = {
    field<&ExternalPool::cidr>("cidr", kRequired | kImmutable),
    field<&ExternalPool::mode>("mode"),
    field<&ExternalPool::reserved>("reserved"),
};

constexpr Field<ElasticIp> kElasticIp[] = {
    field<&ElasticIp::address>("address", kImmutable),
    field<&ElasticIp::pool_id>("pool_id", kImmutable),
    field<&ElasticIp::endpoint_id>("endpoint_id"),
    field<&ElasticIp::bandwidth_mbps>("bandwidth_mbps"),
    field<&ElasticIp::bandwidth_id>("bandwidth_id"),
};

constexpr Field<RouteTarget> kRouteTarget[] = {
    field<&RouteTarget::endpoint_id>("endpoint_id"),
    field<&RouteTarget::nat_gateway_id>("nat_gateway_id"),
    field<&RouteTarget::internet>("internet"),
    field<&RouteTarget::blackhole>("blackhole"),
};

constexpr Field<Route> kRoute[] = {
    field<&Route::destination>("destination", kRequired),
    field<&Route::next_hop>("next_hop", kRequired),
};

constexpr Field<RouteTable> kRouteTable[] = {
    field<&RouteTable::vpc_id>("vpc_id", kRequired | kImmutable),
    field<&RouteTable::routes>("routes"),
    field<&RouteTable::is_main>("is_main", kReadOnly),
};

constexpr Field<Gateway> kGateway[] = {
    field<&Gateway::admin_state>("admin_state"),
};

constexpr Field<Bandwidth> kBandwidth[] = {
    field<&Bandwidth::mbps>("mbps", kRequired),
    field<&Bandwidth::burst_kbit>("burst_kbit"),
};

constexpr Field<NatGateway> kNatGateway[] = {
    field<&NatGateway::vpc_id>("vpc_id", kRequired | kImmutable),
    field<&NatGateway::elastic_ip_ids>("elastic_ip_ids", kRequired),
    field<&NatGateway::ports_per_endpoint>("ports_per_endpoint"),
    field<&NatGateway::mapping>("mapping"),
    field<&NatGateway::filtering>("filtering"),
};

constexpr std::string_view kVpcLater[] = {"rdma"};
constexpr std::string_view kSubnetLater[] = {"profile"};
constexpr std::string_view kEndpointLater[] = {"bandwidth_mbps"};

constexpr KindInfo kInfos[] = {
    {Kind::vpc, "vpcs", "vpc", "a tenant's network, isolated by its VNI", true, false, true,
     kVpcLater},
    {Kind::subnet, "subnets", "subnet", "an address block of a VPC with a gateway address", true,
     false, true, kSubnetLater},
    {Kind::host, "hosts", "host", "a compute host and its VTEPs", false, true, true, {}},
    {Kind::endpoint, "endpoints", "endpoint", "a network interface of a machine", true, false, true,
     kEndpointLater},
    {Kind::security_group,
     "security-groups",
     "security_group",
     "stateful rules that endpoints share",
     true,
     false,
     true,
     {}},
    {Kind::prefix_list,
     "prefix-lists",
     "prefix_list",
     "address blocks that rules name together",
     true,
     false,
     true,
     {}},
    {Kind::external_pool,
     "external-pools",
     "external_pool",
     "public addresses that elastic IPs come from",
     false,
     true,
     true,
     {}},
    {Kind::elastic_ip,
     "elastic-ips",
     "elastic_ip",
     "a public address that may be attached to an endpoint or a NAT gateway",
     true,
     false,
     true,
     {}},
    {Kind::route_table,
     "route-tables",
     "route_table",
     "where a subnet's packets go",
     true,
     false,
     true,
     {}},
    {Kind::gateway, "gateways", "gateway", "a gateway that has connected", false, true, false, {}},
    {Kind::bandwidth,
     "bandwidths",
     "bandwidth",
     "a limit that elastic IPs share",
     true,
     false,
     true,
     {}},
    {Kind::nat_gateway,
     "nat-gateways",
     "nat_gateway",
     "many endpoints behind shared public addresses",
     true,
     false,
     true,
     {}},
};
static_assert(std::size(kInfos) == kKinds);

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): S is a type
#define SLUICE_FIELDS(S, table)                \
    template <>                                \
    std::span<const Field<S>> fields_of<S>() { \
        return table;                          \
    }
SLUICE_FIELDS(Vpc, kVpc)
SLUICE_FIELDS(VpcLimits, kVpcLimits)
SLUICE_FIELDS(VpcTimeouts, kVpcTimeouts)
SLUICE_FIELDS(Subnet, kSubnet)
SLUICE_FIELDS(Host, kHost)
SLUICE_FIELDS(AllowedAddress, kAllowedAddress)
SLUICE_FIELDS(Endpoint, kEndpoint)
SLUICE_FIELDS(Rule, kRule)
SLUICE_FIELDS(SecurityGroup, kSecurityGroup)
SLUICE_FIELDS(PrefixList, kPrefixList)
SLUICE_FIELDS(ExternalPool, kExternalPool)
SLUICE_FIELDS(ElasticIp, kElasticIp)
SLUICE_FIELDS(RouteTarget, kRouteTarget)
SLUICE_FIELDS(Route, kRoute)
SLUICE_FIELDS(RouteTable, kRouteTable)
SLUICE_FIELDS(Gateway, kGateway)
SLUICE_FIELDS(Bandwidth, kBandwidth)
SLUICE_FIELDS(NatGateway, kNatGateway)
#undef SLUICE_FIELDS
// NOLINTEND(bugprone-macro-parentheses)

void visit_references(const Rule& value, const std::string& at, const ReferenceVisitor& visit) {
    references_of_struct(fields_of<Rule>(), value, at, visit);
}
void visit_references(const RouteTarget& value, const std::string& at,
                      const ReferenceVisitor& visit) {
    references_of_struct(fields_of<RouteTarget>(), value, at, visit);
}
void visit_references(const Route& value, const std::string& at, const ReferenceVisitor& visit) {
    references_of_struct(fields_of<Route>(), value, at, visit);
}

const KindInfo& info(Kind kind) {
    return kInfos[static_cast<std::size_t>(kind)];
}
std::span<const KindInfo> all_kinds() {
    return kInfos;
}
const KindInfo* find_kind(std::string_view path) {
    const auto* found = std::find_if(std::begin(kInfos), std::end(kInfos),
                                     [&](const KindInfo& kind) { return kind.path == path; });
    return found == std::end(kInfos) ? nullptr : found;
}

}  // namespace sluice::model
