// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "dataplane/telemetry/queries.hpp"
#include "dataplane/telemetry/request.hpp"
#include "dataplane/telemetry/totals.hpp"

namespace sluice::telemetry {

namespace json = boost::json;

namespace {

json::array texts(std::span<const IpAddress> addresses) {
    json::array result;
    for (const IpAddress& address : addresses) result.push_back(json::string(to_string(address)));
    return result;
}

json::array own_addresses(const port::Port& port) {
    json::array result;
    for (const auto& own : port.addresses)
        result.push_back(json::string(to_string(Prefix{own.address, own.length})));
    return result;
}

json::array own_vteps(const Facts& facts) {
    json::array result;
    for (const Family family : {Family::ipv4, Family::ipv6})
        if (const auto vtep = facts.tables.routes.own_vtep(family))
            result.push_back(json::string(to_string(*vtep)));
    return result;
}

// What a VPC may have that sets nothing, as the outside sets nothing: of a table without end, so
// that what only a share bounds is more than can be set.
json::object default_limits(const session::Limits& limits) {
    constexpr std::uint32_t kEndless = ~0U;
    const auto vpc = limits.vpc_limits(0, kEndless), endpoint = limits.endpoint_limits(0, kEndless);
    return {{"connections", vpc.connections},
            {"half_open", vpc.half_open},
            {"new_per_second", vpc.per_second},
            {"endpoint_connections", endpoint.connections},
            {"endpoint_half_open", endpoint.half_open},
            {"endpoint_new_per_second", endpoint.per_second}};
}

}  // namespace

Result<std::string> gateway(const Facts& facts, std::string_view text) {
    if (auto request = parse_request(text); !request) return request.error();
    const auto& snapshot = facts.tables.store.current();
    const auto reach = facts.tables.reachability.counts();
    json::array ports;
    for (const auto& port : facts.ports.all()) {
        const auto link = facts.ports.link(port.id);
        ports.push_back({{"port", port.id.value},
                         {"name", port.name},
                         {"driver", port.driver},
                         {"role", port.role == Side::underlay ? "underlay" : "uplink"},
                         {"mac", to_string(port.mac)},
                         {"mtu", port.mtu},
                         {"addresses", own_addresses(port)},
                         {"next_hops", texts(port.next_hops)},
                         {"link", link.up ? "up" : "down"},
                         {"receive_queues", port.rx_queues},
                         {"transmit_queues", port.tx_queues}});
    }
    const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::steady_clock::now() - facts.started);
    return json::serialize(json::object{
        {"name", facts.name},
        {"version", SLUICE_VERSION},
        {"generation", snapshot.generation.value},
        {"stale", facts.freshness == Freshness::stale},
        {"sessions", live_connections(facts)},
        {"capacity", facts.tables.sessions.ipv4.capacity() + facts.tables.sessions.ipv6.capacity()},
        {"vpcs", snapshot.core.vpcs.size()},
        {"hosts", reach.hosts},
        {"hosts_unreachable", reach.unreachable_hosts},
        {"vteps", own_vteps(facts)},
        {"workers", facts.counters.workers().size()},
        {"uptime_seconds", uptime.count()},
        {"limits", default_limits(facts.tables.sessions.limits)},
        {"ports", std::move(ports)}});
}

}  // namespace sluice::telemetry
