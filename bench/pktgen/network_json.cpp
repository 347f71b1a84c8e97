// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/json.hpp>
#include <string>

#include "bench/pktgen/network.hpp"

namespace sluice::pktgen {
namespace {

namespace json = boost::json;

// Ids count from 1; a VPC has two subnets and two groups: its clients', its servers'.
std::uint32_t pair_id(std::uint32_t vpc, bool client) {
    return 2 * vpc + (client ? 1 : 2);
}

json::object rule(const char* direction, Protocol protocol, std::uint16_t port,
                  const std::string& remote) {
    json::object result{{"direction", direction},
                        {"protocol", static_cast<int>(protocol)},
                        {"ports", {port, port}}};
    if (!remote.empty()) result["remote"] = remote;
    return result;
}

}  // namespace

json::value Network::json() const {
    const auto& tenants = profile_.tenants;
    json::array vpcs, hosts, subnets, groups, all;
    const auto to = profile_.flows.to;
    const auto port = profile_.flows.server_port;
    const auto protocol = profile_.protocol();
    const bool peer = to == Destination::peer;
    const auto pool = to_string(tenants.elastic_pool);
    const auto text = [&](bool client) { return to_string(subnet(tenants.family, client)); };
    // As a tenant would have it: what clients may reach, who may reach servers.
    const auto reachable = peer ? text(false) : to == Destination::elastic ? pool : std::string();
    const int mtu = std::max(1500, profile_.largest_frame() - 18);
    for (std::uint32_t vpc = 0; vpc < tenants.vpcs; ++vpc) {
        vpcs.push_back({{"id", vpc + 1}, {"vni", tenants.first_vni.value + vpc}});
        for (const bool client : {true, false}) {
            const auto block = subnet(tenants.family, client);
            subnets.push_back({{"id", pair_id(vpc, client)},
                               {"vpc", vpc + 1},
                               {"cidr", to_string(block)},
                               {"gateway", to_string(nth(block.address, 1))},
                               {"mac", to_string(kSubnetGateway)},
                               {"mtu", mtu}});
            json::array rules;
            rules.push_back(client ? rule("egress", protocol, port, reachable)
                                   : rule("ingress", protocol, port, peer ? text(true) : pool));
            // What goes back is no reply: it goes to port 4791, too.
            if (profile_.flows.traffic == Traffic::rocev2 && peer)
                rules.push_back(client ? rule("ingress", protocol, port, text(false))
                                       : rule("egress", protocol, port, text(true)));
            groups.push_back({{"id", pair_id(vpc, client)}, {"rules", std::move(rules)}});
        }
    }
    for (std::uint32_t host = 0; host < profile_.hosts.count; ++host)
        hosts.push_back(
            {{"id", host + 1}, {"vtep", to_string(nth(profile_.hosts.first_vtep, host))}});
    for (std::uint32_t number = 0; number < endpoints(); ++number) {
        const Endpoint one = endpoint(number);
        json::object object{{"id", number + 1},
                            {"vpc", one.vpc + 1},
                            {"address", to_string(one.address)},
                            {"mac", to_string(one.mac)},
                            {"host", one.host + 1},
                            {"subnet", pair_id(one.vpc, one.client)},
                            {"group", pair_id(one.vpc, one.client)}};
        if (!peer) object["elastic"] = to_string(one.elastic);
        all.push_back(std::move(object));
    }
    return json::object{{"vpcs", std::move(vpcs)},
                        {"hosts", std::move(hosts)},
                        {"subnets", std::move(subnets)},
                        {"groups", std::move(groups)},
                        {"endpoints", std::move(all)}};
}

}  // namespace sluice::pktgen
