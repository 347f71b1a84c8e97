// SPDX-License-Identifier: Apache-2.0
#include "controller/model/surroundings.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>

namespace sluice::model {
namespace {

namespace json = boost::json;

// Ethernet, VXLAN (RFC 7348), UDP and the outer IP header.
constexpr std::uint64_t kOverheadIpv4 = 14 + 8 + 8 + 20, kOverheadIpv6 = 14 + 8 + 8 + 40;

bool contains(const std::vector<IpAddress>& all, const IpAddress& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

// The texts of an array member; a prefix length behind an address is left out.
void read_addresses(const json::object& from, std::string_view name, std::vector<IpAddress>& to) {
    const auto* list = from.if_contains(name);
    if (!list || !list->is_array()) return;
    for (const auto& item : list->get_array()) {
        if (!item.is_string()) continue;
        const std::string_view text(item.get_string());
        if (const auto address = parse_ip(text.substr(0, text.find('/')))) to.push_back(*address);
    }
}

}  // namespace

std::string Surroundings::own(const IpAddress& address) const {
    for (const auto& [name, facts] : gateways)
        if (contains(facts.vteps, address) || contains(facts.addresses, address))
            return "gateway " + name + "'s own address";
    return {};
}

std::string Surroundings::taken(const IpAddress& address) const {
    for (const auto& [name, facts] : gateways)
        if (contains(facts.next_hops, address)) return "a next hop of gateway " + name;
    return own(address);
}

std::optional<std::uint16_t> Surroundings::largest_mtu(const std::string& gateway) const {
    const auto at = gateways.find(gateway);
    return at == gateways.end() ? std::nullopt : at->second.tenant_mtu;
}

GatewayFacts read_facts(const std::string& text) {
    GatewayFacts facts;
    boost::system::error_code error;
    const json::value report = json::parse(text, error);
    if (error || !report.is_object()) return facts;
    read_addresses(report.get_object(), "vteps", facts.vteps);
    const bool has_ipv4 = std::any_of(facts.vteps.begin(), facts.vteps.end(),
                                      [](const IpAddress& vtep) { return vtep.is_v4(); });
    const std::uint64_t overhead = has_ipv4 ? kOverheadIpv4 : kOverheadIpv6;
    if (const auto* limits = report.get_object().if_contains("limits");
        limits && limits->is_object())
        for (const auto& limit : limits->get_object())
            if (const auto value = limit.value().to_number<std::uint64_t>(error); !error)
                facts.limits.emplace(limit.key(), value);
    const auto* ports = report.get_object().if_contains("ports");
    if (!ports || !ports->is_array()) return facts;
    for (const auto& item : ports->get_array()) {
        if (!item.is_object()) continue;
        const auto& port = item.get_object();
        read_addresses(port, "addresses", facts.addresses);
        read_addresses(port, "next_hops", facts.next_hops);
        const auto* role = port.if_contains("role");
        const auto* mtu = port.if_contains("mtu");
        if (!role || !mtu || *role != json::value("underlay")) continue;
        const auto octets = mtu->to_number<std::uint64_t>(error);
        if (error || octets <= overhead || octets > 65'535) continue;
        const auto tenant = static_cast<std::uint16_t>(octets - overhead);
        facts.tenant_mtu = std::min(tenant, facts.tenant_mtu.value_or(tenant));
    }
    return facts;
}

}  // namespace sluice::model
