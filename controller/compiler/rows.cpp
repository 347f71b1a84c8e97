// SPDX-License-Identifier: Apache-2.0
#include "controller/compiler/rows.hpp"

#include <algorithm>

#include "controller/model/mac.hpp"
#include "dataplane/openflow/tables.hpp"
#include "nfv/anti_spoof/table.hpp"
#include "nfv/elastic_ip/table.hpp"
#include "nfv/gateway_address/table.hpp"
#include "nfv/nat_gateway/table.hpp"

namespace sluice::compiler {
namespace {

using model::ResourcePtr;
using model::State;
using nfv::Direction;

// The one with this id that is not on its way out.
template <model::Kind K>
ResourcePtr alive(const State& state, const model::Uuid& id) {
    auto resource = state.find(K, id);
    return resource && !resource->deleting ? resource : nullptr;
}

template <class NumberId>
NumberId number_of(const model::Resource& resource) {
    return NumberId{resource.register_number()};
}

struct Placed {
    ResourcePtr resource;
    ResourcePtr vpc;
    [[nodiscard]] explicit operator bool() const { return resource && vpc; }
    [[nodiscard]] VpcId vpc_number() const { return number_of<VpcId>(*vpc); }
    [[nodiscard]] Compiled empty() const { return {vpc->as<model::Vpc>().gateway, {}, {}}; }
};
template <model::Kind K>
Placed placed(const State& state, const model::Uuid& id) {
    Placed result{alive<K>(state, id), nullptr};
    if (result.resource) result.vpc = state.vpc_of(*result.resource);
    return result;
}

// Only what is not the default, so that a VPC without settings is compiled as ever.
openflow::Settings settings_of(const model::Vpc& vpc) {
    openflow::Settings settings;
    const auto put = [&]<openflow::Setting S>(const model::Setting<S>& one) {
        if (one != model::Setting<S>{}) settings.put(S, one.value);
    };
    const auto put_all = [&](const auto&... ones) { (put(ones), ...); };
    const auto put_given = [&](const auto&... ones) { ((ones ? put(*ones) : void()), ...); };
    const auto& limits = vpc.limits;
    put_given(limits.connections, limits.half_open, limits.new_per_second, limits.fragments,
              limits.endpoint_connections, limits.endpoint_half_open,
              limits.endpoint_new_per_second, limits.endpoint_fragments);
    const auto& t = vpc.timeouts;
    put_all(t.tcp_established, t.tcp_transitory, t.tcp_time_wait, t.udp, t.udp_unanswered, t.icmp,
            t.sctp, t.sctp_unanswered, t.other, t.other_unanswered, vpc.mid_stream);
    if (vpc.tcp_window_check) settings.put(openflow::Setting::tcp_window_check, 1);
    if (!vpc.mss_clamping) settings.put(openflow::Setting::mss_clamping, 0);
    return settings;
}

Compiled compile_vpc(const State& state, const Unit& unit) {
    const auto vpc = alive<model::Kind::vpc>(state, unit.a);
    if (!vpc) return {};
    Compiled compiled{vpc->as<model::Vpc>().gateway, {}, {}};
    compiled.entries.push_back(openflow::VniRow{vpc->as<model::Vpc>().vni, number_of<VpcId>(*vpc),
                                                vpc->cookie(), settings_of(vpc->as<model::Vpc>())}
                                   .encode());
    return compiled;
}

Compiled compile_subnet(const State& state, const Unit& unit) {
    const auto subnet_in = placed<model::Kind::subnet>(state, unit.a);
    if (!subnet_in) return {};
    const auto& subnet = subnet_in.resource->as<model::Subnet>();
    const auto table = subnet.route_table_id ? state.find(*subnet.route_table_id) : nullptr;
    Compiled compiled = subnet_in.empty();
    const auto add = [&](const std::optional<Prefix>& block,
                         const std::optional<IpAddress>& gateway) {
        if (!block || !gateway || !table) return;
        compiled.entries.push_back(
            nfv::LocalRow{.vpc = subnet_in.vpc_number(),
                          .address = *gateway,
                          .mac = model::gateway_mac(subnet_in.resource->register_number()),
                          .subnet = number_of<SubnetId>(*subnet_in.resource),
                          .prefix_length = block->length,
                          .route_table = number_of<RouteTableId>(*table),
                          .mtu = subnet.mtu.value,
                          .cookie = subnet_in.resource->cookie()}
                .encode());
    };
    add(subnet.cidr, subnet.gateway_ip);
    add(subnet.ipv6_cidr, subnet.gateway_ipv6);
    return compiled;
}

Compiled compile_host(const State& state, const Unit& unit) {
    const auto host = alive<model::Kind::host>(state, unit.a);
    const auto gateway = alive<model::Kind::gateway>(state, unit.b);
    if (!host || !gateway) return {};
    return {
        gateway->name,
        {openflow::HostRow{number_of<HostId>(*host), host->as<model::Host>().vteps, host->cookie()}
             .encode()},
        {}};
}

Compiled compile_endpoint(const State& state, const Unit& unit) {
    const auto endpoint_in = placed<model::Kind::endpoint>(state, unit.a);
    if (!endpoint_in) return {};
    const auto& resource = *endpoint_in.resource;
    const auto& endpoint = resource.as<model::Endpoint>();
    const auto host_of = endpoint.host_id ? state.find(*endpoint.host_id) : nullptr;
    const auto subnet = state.find(endpoint.subnet_id);
    Compiled compiled = endpoint_in.empty();

    // An endpoint that names a VTEP is a host of its own.
    const HostId host = number_of<HostId>(host_of ? *host_of : resource);
    if (endpoint.vtep)
        compiled.entries.push_back(
            openflow::HostRow{host, {*endpoint.vtep}, resource.cookie()}.encode());

    std::vector<GroupId> groups;
    if (endpoint.security_group_ids)
        for (const auto& ref : *endpoint.security_group_ids)
            if (const auto group = state.find(ref)) groups.push_back(number_of<GroupId>(*group));
    std::sort(groups.begin(), groups.end());
    for (const auto& address : {endpoint.ip, endpoint.ipv6})
        if (address)
            compiled.entries.push_back(
                openflow::EndpointRow{.vpc = endpoint_in.vpc_number(),
                                      .address = *address,
                                      .endpoint = number_of<EndpointId>(resource),
                                      .subnet = number_of<SubnetId>(*subnet),
                                      .host = host,
                                      .mac = *endpoint.mac,
                                      .groups = groups,
                                      .cookie = resource.cookie()}
                    .encode());
    for (const auto& source : model::sources_of(endpoint))
        compiled.entries.push_back(nfv::SourceRow{.vpc = endpoint_in.vpc_number(),
                                                  .mac = source.mac,
                                                  .address = source.block,
                                                  .endpoint = number_of<EndpointId>(resource),
                                                  .host = host,
                                                  .cookie = resource.cookie()}
                                       .encode());
    return compiled;
}

Compiled compile_group(const State& state, const Unit& unit) {
    const auto group_in = placed<model::Kind::security_group>(state, unit.a);
    if (!group_in) return {};
    const auto& resource = *group_in.resource;
    Compiled compiled = group_in.empty();
    if (resource.as<model::SecurityGroup>().persist_established)
        for (const Direction direction : {Direction::egress, Direction::ingress})
            compiled.entries.push_back(nfv::PersistingRow{direction, number_of<GroupId>(resource),
                                                          group_in.vpc_number(), resource.cookie()}
                                           .encode());
    return compiled;
}

Compiled compile_rule(const State& state, const Unit& unit) {
    const auto group_in = placed<model::Kind::security_group>(state, unit.a);
    if (!group_in) return {};
    const auto& group = group_in.resource->as<model::SecurityGroup>();
    const auto& rules = group.rules;
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const model::Rule& one) { return one.id == unit.b; });
    if (rule == rules.end()) return {};

    nfv::RuleRow row;
    row.direction =
        rule->direction == model::RuleDirection::egress ? Direction::egress : Direction::ingress;
    row.group = number_of<GroupId>(*group_in.resource);
    row.allow = rule->action == model::RuleAction::allow;
    row.priority = rule->priority.value;
    row.family = rule->family.value_or(Family::ipv4);
    if (rule->protocol) row.protocol = rule->protocol->number;
    row.port_min = rule->port_min.value_or(0);
    row.port_max = rule->port_max.value_or(65535);
    row.icmp_type = rule->icmp_type;
    row.icmp_code = rule->icmp_code;
    row.remote_prefix = rule->remote_cidr;
    if (rule->remote_group_id)
        if (const auto remote = state.find(*rule->remote_group_id))
            row.remote_group = number_of<GroupId>(*remote);
    if (rule->remote_prefix_list_id)
        if (const auto remote = state.find(*rule->remote_prefix_list_id))
            row.remote_group = number_of<GroupId>(*remote);
    row.cookie = Cookie{rule->number};
    Compiled compiled = group_in.empty();
    compiled.entries.push_back(row.encode());
    return compiled;
}

Compiled compile_member(const State& state, const NamedCounts& named, const Unit& unit,
                        Direction direction) {
    const auto group_in = placed<model::Kind::security_group>(state, unit.a);
    const auto endpoint = alive<model::Kind::endpoint>(state, unit.b);
    if (!group_in || !endpoint || !named.contains({unit.a, direction, group_in.vpc->id})) return {};
    const auto& member = endpoint->as<model::Endpoint>();
    const auto& groups = member.security_group_ids;
    if (!groups || std::find(groups->begin(), groups->end(),
                             model::Ref<model::Kind::security_group>{unit.a}) == groups->end())
        return {};
    Compiled compiled = group_in.empty();
    for (const auto& address : {member.ip, member.ipv6})
        if (address)
            compiled.entries.push_back(
                nfv::GroupAddressRow{direction, group_in.vpc_number(), Prefix::host(*address),
                                     number_of<GroupId>(*group_in.resource), endpoint->cookie()}
                    .encode());
    return compiled;
}

Compiled compile_list(const State& state, const NamedCounts& named, const Unit& unit,
                      Direction direction) {
    const auto list = alive<model::Kind::prefix_list>(state, unit.a);
    const auto vpc = alive<model::Kind::vpc>(state, unit.b);
    if (!list || !vpc || !named.contains({unit.a, direction, unit.b})) return {};
    Compiled compiled{vpc->as<model::Vpc>().gateway, {}, {}};
    for (const auto& block : list->as<model::PrefixList>().cidrs)
        compiled.entries.push_back(nfv::GroupAddressRow{direction, number_of<VpcId>(*vpc), block,
                                                        number_of<GroupId>(*list), list->cookie()}
                                       .encode());
    return compiled;
}

Compiled compile_routes(const State& state, const Unit& unit) {
    const auto table_in = placed<model::Kind::route_table>(state, unit.a);
    if (!table_in) return {};
    const auto table = number_of<RouteTableId>(*table_in.resource);
    Compiled compiled = table_in.empty();
    for (const auto& block : table_in.vpc->as<model::Vpc>().cidrs)
        compiled.entries.push_back(openflow::RouteRow{
            table, block, openflow::NextHop::local, {}, table_in.resource->cookie()}
                                       .encode());
    for (const auto& route : table_in.resource->as<model::RouteTable>().routes) {
        openflow::RouteRow row{
            table, route.destination, openflow::NextHop::blackhole, {}, Cookie{route.number}};
        if (route.next_hop.internet) row.next_hop = openflow::NextHop::internet;
        if (route.next_hop.nat_gateway_id)
            if (const auto nat = state.find(*route.next_hop.nat_gateway_id)) {
                row.next_hop = openflow::NextHop::nat_gateway;
                row.nat_gateway = number_of<NatGatewayId>(*nat);
            }
        if (route.next_hop.endpoint_id)
            if (const auto endpoint = state.find(*route.next_hop.endpoint_id)) {
                row.next_hop = openflow::NextHop::endpoint;
                row.endpoint = number_of<EndpointId>(*endpoint);
            }
        compiled.entries.push_back(row.encode());
    }
    return compiled;
}

// Each direction has a meter of its own, so that one cannot use up the other's share.
struct MeterPair {
    MeterId outwards, inwards;
};
MeterPair meters_of(const model::Resource& limit) {
    return {MeterId{limit.register_number(1)}, MeterId{limit.register_number(2)}};
}
void add_meters(Compiled& compiled, const MeterPair& pair, model::Mbps rate,
                std::optional<model::BurstKbit> burst) {
    const std::uint32_t kbps = rate.value * 1000;
    constexpr std::uint32_t kBurstsPerSecond = 10;  // 100 ms
    for (const auto id : {pair.outwards, pair.inwards})
        compiled.meters.push_back({id, kbps, burst ? burst->value : kbps / kBurstsPerSecond});
}

// The meters of a bandwidth are on each gateway that has one of its elastic IPs.
Compiled compile_bandwidth(const State& state, const Unit& unit) {
    const auto bandwidth = alive<model::Kind::bandwidth>(state, unit.a);
    const auto gateway = alive<model::Kind::gateway>(state, unit.b);
    if (!bandwidth || !gateway) return {};
    bool is_used = false;
    state.each_referrer(bandwidth->id, model::Kind::elastic_ip, [&](const ResourcePtr& elastic) {
        const auto vpc = elastic->deleting ? nullptr : state.vpc_of(*elastic);
        is_used = vpc && vpc->as<model::Vpc>().gateway == gateway->name;
        return !is_used;
    });
    if (!is_used) return {};
    Compiled compiled{gateway->name, {}, {}};
    const auto& limit = bandwidth->as<model::Bandwidth>();
    add_meters(compiled, meters_of(*bandwidth), limit.mbps, limit.burst_kbit);
    return compiled;
}

// Which meters an elastic IP draws from: its own, which are then compiled with it, those of
// the bandwidth it shares, or none.
MeterPair limit_of(const State& state, const model::Resource& resource, Compiled& compiled) {
    const auto& elastic = resource.as<model::ElasticIp>();
    if (elastic.bandwidth_mbps) {
        add_meters(compiled, meters_of(resource), *elastic.bandwidth_mbps, std::nullopt);
        return meters_of(resource);
    }
    const auto shared = elastic.bandwidth_id ? state.find(*elastic.bandwidth_id) : nullptr;
    return shared ? meters_of(*shared) : MeterPair{};
}

Compiled compile_elastic_ip(const State& state, const Unit& unit) {
    const auto elastic_in = placed<model::Kind::elastic_ip>(state, unit.a);
    if (!elastic_in) return {};
    const auto& elastic = elastic_in.resource->as<model::ElasticIp>();
    if (!elastic.address) return {};
    Compiled compiled = elastic_in.empty();
    const auto [outwards, inwards] = limit_of(state, *elastic_in.resource, compiled);
    const auto cookie = elastic_in.resource->cookie();
    if (!elastic.endpoint_id) {
        const auto nat = state.nat_gateway_of(*elastic_in.resource);
        nfv::PublicAddressRow row{.public_address = *elastic.address,
                                  .vpc = {},
                                  .private_address = {},
                                  .meter = inwards,
                                  .cookie = cookie,
                                  .nat_gateway = number_of<NatGatewayId>(*nat)};
        compiled.entries.push_back(row.encode());
        return compiled;
    }
    const auto endpoint = state.find(*elastic.endpoint_id);
    const auto& private_address = endpoint->as<model::Endpoint>().ip;
    if (endpoint->deleting || !private_address) return {};
    compiled.entries.push_back(nfv::ElasticIpRow{elastic_in.vpc_number(), *private_address,
                                                 *elastic.address, outwards, cookie}
                                   .encode());
    compiled.entries.push_back(nfv::PublicAddressRow{*elastic.address, elastic_in.vpc_number(),
                                                     *private_address, inwards, cookie}
                                   .encode());
    return compiled;
}

nfv::NatMapping mapping_of(model::NatMapping mapping) {
    return mapping == model::NatMapping::endpoint_independent
               ? nfv::NatMapping::endpoint_independent
               : nfv::NatMapping::address_and_port_dependent;
}
nfv::NatFiltering filtering_of(model::NatFiltering filtering) {
    switch (filtering) {
        case model::NatFiltering::endpoint_independent:
            return nfv::NatFiltering::endpoint_independent;
        case model::NatFiltering::address_dependent:
            return nfv::NatFiltering::address_dependent;
        case model::NatFiltering::address_and_port_dependent:
            break;
    }
    return nfv::NatFiltering::address_and_port_dependent;
}

// Its addresses are units of their own (compile_elastic_ip), with the meters inwards.
Compiled compile_nat_gateway(const State& state, const Unit& unit) {
    const auto nat_in = placed<model::Kind::nat_gateway>(state, unit.a);
    if (!nat_in) return {};
    const auto& nat = nat_in.resource->as<model::NatGateway>();
    nfv::NatGatewayRow row{.nat_gateway = number_of<NatGatewayId>(*nat_in.resource),
                           .addresses = {},
                           .ports_per_endpoint = nat.ports_per_endpoint.value,
                           .mapping = mapping_of(nat.mapping),
                           .filtering = filtering_of(nat.filtering),
                           .meter = {},
                           .cookie = nat_in.resource->cookie()};
    for (const auto& ref : nat.elastic_ip_ids) {
        const auto elastic = state.find(ref);
        Compiled unused;  // its own meters are compiled with it
        row.meter = limit_of(state, *elastic, unused).outwards;
        row.addresses.push_back(*elastic->as<model::ElasticIp>().address);
    }
    Compiled compiled = nat_in.empty();
    compiled.entries.push_back(row.encode());
    return compiled;
}

}  // namespace

Compiled compile(const State& state, const NamedCounts& named, const Unit& unit) {
    switch (unit.kind) {
        case Unit::Kind::vpc:
            return compile_vpc(state, unit);
        case Unit::Kind::subnet:
            return compile_subnet(state, unit);
        case Unit::Kind::host:
            return compile_host(state, unit);
        case Unit::Kind::endpoint:
            return compile_endpoint(state, unit);
        case Unit::Kind::group:
            return compile_group(state, unit);
        case Unit::Kind::rule:
            return compile_rule(state, unit);
        case Unit::Kind::egress_member:
            return compile_member(state, named, unit, Direction::egress);
        case Unit::Kind::ingress_member:
            return compile_member(state, named, unit, Direction::ingress);
        case Unit::Kind::egress_list:
            return compile_list(state, named, unit, Direction::egress);
        case Unit::Kind::ingress_list:
            return compile_list(state, named, unit, Direction::ingress);
        case Unit::Kind::routes:
            return compile_routes(state, unit);
        case Unit::Kind::elastic_ip:
            return compile_elastic_ip(state, unit);
        case Unit::Kind::bandwidth:
            return compile_bandwidth(state, unit);
        case Unit::Kind::nat_gateway:
            return compile_nat_gateway(state, unit);
    }
    return {};
}

}  // namespace sluice::compiler
