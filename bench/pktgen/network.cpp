// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/network.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sluice::pktgen {
namespace {

constexpr std::uint32_t kFirstHost = 16;  // of a subnet; below are its gateway and some room
constexpr std::uint64_t kEndpointMacs = 0x02aa'0000'0000ULL;

constexpr std::uint32_t mix(std::uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    return x ^ (x >> 16);
}

}  // namespace

IpAddress nth(IpAddress first, std::uint32_t index) {
    std::uint64_t carry = index;
    for (std::size_t i = first.bytes.size(); carry != 0 && i-- > 0; carry >>= 8) {
        carry += first.bytes[i];
        first.bytes[i] = static_cast<std::uint8_t>(carry);
    }
    return first;
}

Prefix subnet(Family family, bool client) {
    if (family == Family::ipv4)
        return {IpAddress::v4(be32{client ? 0x0a010000U : 0x0a020000U}), 112};
    Prefix result{{}, 64};
    result.address.bytes[0] = 0xfd;
    result.address.bytes[7] = client ? 1 : 2;
    return result;
}

Endpoint Network::endpoint(std::uint32_t number) const {
    const auto& tenants = profile_.tenants;
    Endpoint result;
    result.number = number;
    result.vpc = number / tenants.endpoints;
    const std::uint32_t of_vpc = number % tenants.endpoints;
    result.client = of_vpc < profile_.clients();
    result.vni = Vni{tenants.first_vni.value + result.vpc};
    result.mac = MacAddress::from_value(kEndpointMacs + number);
    const std::uint32_t of_subnet = result.client ? of_vpc : of_vpc - profile_.clients();
    result.address = nth(subnet(tenants.family, result.client).address, kFirstHost + of_subnet);
    result.elastic = nth(tenants.elastic_pool.address, 1 + number);
    result.host = number % profile_.hosts.count;
    result.vtep = nth(profile_.hosts.first_vtep, result.host);
    return result;
}

Network::Ends Network::ends(std::uint32_t flow) const {
    const auto& tenants = profile_.tenants;
    // Queue pairs of the same ends follow each other.
    const std::uint32_t pairs = profile_.flows.queue_pairs;
    const std::uint32_t vpc = flow / pairs % tenants.vpcs;
    std::uint32_t turn = flow / pairs / tenants.vpcs;
    const std::uint32_t client = turn % profile_.clients();
    turn /= profile_.clients();
    const bool internet = profile_.flows.to == Destination::internet;
    const std::uint32_t others = internet ? profile_.internet.hosts : profile_.servers();
    const std::uint32_t other = turn % others;
    turn = turn / others * pairs + flow % pairs;
    Ends result;
    const std::uint32_t first = vpc * tenants.endpoints;
    result.client = endpoint(first + client);
    if (internet)
        result.internet = nth(profile_.internet.first, other);
    else
        result.server = endpoint(first + profile_.clients() + other);
    // A pair of ends has each port once; where it begins differs, so that ports are spread.
    const std::uint32_t begin = mix(result.client.number * 2654435761U + other);
    result.port = static_cast<std::uint16_t>(
        profile_.first_source_port() + (std::uint64_t{begin} + turn) % profile_.source_ports());
    return result;
}

Frame Network::sent(std::uint32_t flow, Way way) const {
    const Ends both = ends(flow);
    const bool forward = way == Way::forward;
    const auto to = profile_.flows.to;
    Frame frame;
    frame.source_port = forward ? both.port : profile_.flows.server_port;
    frame.destination_port = forward ? profile_.flows.server_port : both.port;
    // The same port of entropy both ways, and 4791 at the receiver's end.
    if (profile_.flows.traffic == Traffic::rocev2)
        std::tie(frame.source_port, frame.destination_port) =
            std::pair{both.port, profile_.flows.server_port};
    if (to == Destination::internet && !forward) {
        frame.side = Side::uplink;
        frame.source = both.internet;
        frame.destination = both.client.elastic;
        return frame;
    }
    const Endpoint& from = forward ? both.client : both.server;
    const Endpoint& target = forward ? both.server : both.client;
    frame.vtep = from.vtep;
    frame.vni = from.vni;
    frame.outer_port =
        static_cast<std::uint16_t>(49'152 + mix(flow * 2 + (forward ? 0 : 1)) % 16'384);
    frame.source_mac = from.mac;
    frame.destination_mac = kSubnetGateway;
    frame.source = from.address;
    frame.destination = to == Destination::peer      ? target.address
                        : to == Destination::elastic ? target.elastic
                                                     : both.internet;
    return frame;
}

Arrival Network::expected(std::uint32_t flow, Way way) const {
    const Ends both = ends(flow);
    const bool forward = way == Way::forward;
    if (profile_.flows.to == Destination::internet) {
        if (forward) return {Side::uplink, {}, Vni{}, both.client.elastic, both.internet};
        return {Side::underlay, both.client.vtep, both.client.vni, both.internet,
                both.client.address};
    }
    const Endpoint& from = forward ? both.client : both.server;
    const Endpoint& target = forward ? both.server : both.client;
    // A reply comes from the address that the client has sent to.
    const bool elastic = profile_.flows.to == Destination::elastic;
    return {Side::underlay, target.vtep, target.vni, elastic ? from.elastic : from.address,
            target.address};
}

}  // namespace sluice::pktgen
