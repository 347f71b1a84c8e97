// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "bench/pktgen/network.hpp"
#include "bench/pktgen/roce.hpp"
#include "dataplane/config/reader.hpp"
#include "dataplane/wire/special_address.hpp"

namespace sluice::pktgen {
namespace {

using namespace wire;
using Table = config::Reader::Table;

constexpr std::string_view kExample = "bench/profiles/elastic.toml";
constexpr std::int64_t kMostVpcs = 100'000, kMostEndpoints = 100'000, kMostFlows = 50'000'000;
constexpr std::uint64_t kMostOfAll = 1'000'000;
constexpr std::int64_t kMostHosts = 1'000, kMostInternetHosts = 60'000;
constexpr std::int64_t kMostQueuePairs = 4'096;
constexpr std::int64_t kLastVni = 0xffffff;
constexpr std::int64_t kLargestFrame = 9'018;

bool usable(const IpAddress& address) {
    return !address.is_none() && !address.is_multicast() && wire::is_station(address);
}

std::string take_address(const std::string& text, IpAddress& into) {
    const auto address = parse_ip(text);
    if (!address || !usable(*address)) return "expected a unicast IP address";
    into = *address;
    return {};
}

std::string take_mac(const std::string& text, MacAddress& into) {
    const auto mac = parse_mac(text);
    if (!mac || mac->is_multicast() || mac->is_zero()) return "expected a unicast MAC address";
    into = *mac;
    return {};
}

std::uint32_t take(Table& table, std::string_view key, std::int64_t least, std::int64_t most,
                   std::int64_t otherwise) {
    return static_cast<std::uint32_t>(table.integer(key, least, most, otherwise));
}

void read_tenants(Table table, Profile& profile) {
    auto& tenants = profile.tenants;
    tenants.vpcs = take(table, "vpcs", 1, kMostVpcs, 1);
    tenants.endpoints = take(table, "endpoints", 2, kMostEndpoints, 2);
    tenants.first_vni = Vni{take(table, "first_vni", 1, kLastVni, 100)};
    tenants.family =
        table.choice("family", {"ipv4", "ipv6"}, "ipv4") == "ipv6" ? Family::ipv6 : Family::ipv4;
    tenants.elastic_pool = *parse_prefix("198.18.0.0/15");
    table.string("elastic_pool", [&](const std::string& text) -> std::string {
        const auto pool = parse_prefix(text);
        if (!pool || pool->family() != Family::ipv4 || *pool != pool->without_host_bits())
            return "expected an IPv4 block, as \"198.18.0.0/15\"";
        tenants.elastic_pool = *pool;
        return {};
    });
    if (tenants.first_vni.value + tenants.vpcs - 1 > kLastVni)
        table.problem("first_vni",
                      fmt::format("expected a VNI of 24 bits for each of {} VPCs", tenants.vpcs));
    table.finish(kExample);
}

void read_flows(Table table, Profile& profile) {
    auto& flows = profile.flows;
    flows.count = take(table, "count", 1, kMostFlows, 1000);
    const auto to = table.choice("to", {"peer", "elastic", "internet"}, "peer");
    flows.to = to == "elastic"    ? Destination::elastic
               : to == "internet" ? Destination::internet
                                  : Destination::peer;
    const auto distribution =
        table.choice("distribution", {"round_robin", "uniform", "zipf"}, "round_robin");
    flows.distribution = distribution == "uniform" ? Distribution::uniform
                         : distribution == "zipf"  ? Distribution::zipf
                                                   : Distribution::round_robin;
    flows.exponent = table.number("exponent", 0, 4, 1);
    if (flows.distribution != Distribution::zipf)
        table.refuse("exponent", "only distribution = \"zipf\" has one; remove the key");
    const auto protocol = table.choice("protocol", {"udp", "tcp", "rocev2"}, "udp");
    flows.traffic = protocol == "tcp"      ? Traffic::tcp
                    : protocol == "rocev2" ? Traffic::rocev2
                                           : Traffic::udp;
    const bool roce = flows.traffic == Traffic::rocev2;
    if (roce) table.refuse("server_port", "protocol = \"rocev2\" has port 4791; remove the key");
    flows.server_port = static_cast<std::uint16_t>(
        take(table, "server_port", 1, 65535, roce ? udp::kRoceV2.host() : 443));
    if (!roce) table.refuse("queue_pairs", "only protocol = \"rocev2\" has them; remove the key");
    flows.queue_pairs = take(table, "queue_pairs", 1, kMostQueuePairs, 1);
    if (roce && flows.count > (kQueuePairs - kFirstQueuePair) / 2)
        table.problem("count", fmt::format("expected at most {}: each has two queue pairs, with "
                                           "numbers of 24 bits",
                                           (kQueuePairs - kFirstQueuePair) / 2));
    flows.reverse_percent = take(table, "reverse_percent", 0, 100, 0);
    if (flows.traffic == Traffic::tcp) {
        constexpr std::string_view kWhy =
            "protocol = \"tcp\" makes connections, flow by flow, both "
            "ways; remove the key";
        for (const auto* key : {"reverse_percent", "distribution"}) table.refuse(key, kWhy);
    }
    table.finish(kExample);
}

void read_frames(Table table, Profile& profile) {
    if (profile.flows.traffic == Traffic::tcp)
        for (const auto* key : {"mix", "size"})
            table.refuse(key, "segments of protocol = \"tcp\" carry no data; remove the key");
    const bool v6 = profile.tenants.family == Family::ipv6;
    const bool roce = profile.flows.traffic == Traffic::rocev2;
    const auto least = roce ? (v6 ? kLeastRoceIpv6Frame : kLeastRoceIpv4Frame)
                            : (v6 ? kLeastIpv6Frame : kLeastIpv4Frame);
    const auto mix = table.choice("mix", {"fixed", "imix"}, "fixed");
    const auto size = static_cast<std::uint16_t>(take(table, "size", least, kLargestFrame, least));
    if (mix == "imix") {
        table.refuse("size", "mix = \"imix\" has sizes of its own; remove the key");
        profile.frames = {{least, 28}, {570, 16}, {1518, 4}};
    } else {
        profile.frames = {{size, 1}};
        // Headers, invariant CRC and FCS are two more than a multiple of four.
        if (roce && size % 4 != 2)
            table.problem("size",
                          "expected two more than a multiple of four: payloads of RoCEv2 "
                          "are of whole words");
    }
    table.finish(kExample);
}

void read_port(Table table, Profile& profile) {
    Port port;
    port.line = table.line();
    port.role = table.required_choice("role", {"underlay", "uplink"}) == "uplink" ? Side::uplink
                                                                                  : Side::underlay;
    port.device = table.required_string("device", "a PCI address or a DPDK vdev with arguments");
    if (port.device.find_first_of(" \t\n") != std::string::npos)
        table.problem("device", "expected no white space");
    table.string("gateway", [&](const auto& text) { return take_address(text, port.gateway); });
    table.string("gateway_mac", [&](const auto& text) { return take_mac(text, port.gateway_mac); });
    table.string("mac", [&](const auto& text) { return take_mac(text, port.mac); });
    const bool uplink = port.role == Side::uplink;
    port.mtu = static_cast<std::uint16_t>(take(table, "mtu", 576, 9'600, uplink ? 1500 : 1600));
    if (uplink)
        table.string("address", [&](const auto& text) { return take_address(text, port.address); });
    else
        table.refuse("address", "an underlay port has the VTEPs of [hosts]; remove the key");
    if (port.gateway.is_none() && !table.has_problem("gateway"))
        table.problem("gateway", "missing; expected the gateway's address on this link");
    if (uplink && port.address.is_none() && !table.has_problem("address"))
        table.problem("address", "missing; expected the address of the router to play");
    if (uplink && port.address.family() != port.gateway.family())
        table.problem("address", "expected an address of the same family as `gateway`");
    table.finish(kExample);
    profile.ports.push_back(std::move(port));
}

// As many addresses follow the first in the last 32 bits of the address.
bool overflows(const IpAddress& first, std::uint32_t count) {
    const auto& b = first.bytes;
    const std::uint32_t last = static_cast<std::uint32_t>(b[12]) << 24 |
                               static_cast<std::uint32_t>(b[13]) << 16 |
                               static_cast<std::uint32_t>(b[14]) << 8 | b[15];
    return last > UINT32_MAX - count;
}

void check_ports(Table& root, Profile& profile) {
    auto& ports = profile.ports;
    const auto count = [&](Side role) {
        return std::count_if(ports.begin(), ports.end(),
                             [&](const Port& port) { return port.role == role; });
    };
    if (count(Side::underlay) != 1)
        root.problem("port", "expected one [[port]] with role = \"underlay\"");
    const bool internet = profile.flows.to == Destination::internet;
    if (internet && count(Side::uplink) != 1)
        root.problem("port",
                     "expected one [[port]] with role = \"uplink\" for flows.to = "
                     "\"internet\"");
    if (!internet && count(Side::uplink) != 0)
        root.problem("port", "expected no uplink: only flows.to = \"internet\" uses one");
    std::stable_sort(ports.begin(), ports.end(),
                     [](const Port& a, const Port& b) { return a.role < b.role; });
    for (const auto& port : ports) {
        // Without Ethernet and FCS; with it VXLAN, UDP, IP and the inner Ethernet header.
        const std::uint32_t inner = profile.largest_frame() - 18U;
        const std::uint32_t around = port.gateway.is_v4() ? 50 : 70;
        const std::uint32_t needed = port.role == Side::underlay ? inner + around : inner;
        if (needed > port.mtu)
            root.problem_at(
                port.line, "port.mtu",
                fmt::format("frames of {} octets take an MTU of {} on the {}, not {}",
                            profile.largest_frame(), needed,
                            port.role == Side::underlay ? "underlay" : "uplink", port.mtu));
    }
}

void check_hosts(Table& root, const Profile& profile) {
    const auto& hosts = profile.hosts;
    if (profile.ports.empty() || profile.ports[0].role != Side::underlay) return;
    if (hosts.first_vtep.family() != profile.underlay().gateway.family())
        root.problem("hosts",
                     "first_vtep: expected an address of the family of the underlay's "
                     "`gateway`");
    if (overflows(hosts.first_vtep, hosts.count))
        root.problem("hosts", "first_vtep: expected room for all hosts behind it");
    for (std::uint32_t host = 0; host < hosts.count; ++host)
        if (nth(hosts.first_vtep, host) == profile.underlay().gateway)
            root.problem("hosts", fmt::format("first_vtep: host {} has the gateway's VTEP {}", host,
                                              to_string(profile.underlay().gateway)));
}

void check_addresses(Table& root, const Profile& profile) {
    const auto& tenants = profile.tenants;
    const auto to = profile.flows.to;
    if (to != Destination::peer && tenants.family == Family::ipv6)
        root.problem("flows", fmt::format("to: elastic IPs are IPv4's; with tenants.family = "
                                          "\"ipv6\" expected \"peer\""));
    const std::uint64_t endpoints = std::uint64_t{tenants.vpcs} * tenants.endpoints;
    if (endpoints > kMostOfAll)
        root.problem("tenants", fmt::format("expected at most {} endpoints over all VPCs, not {}",
                                            kMostOfAll, endpoints));
    const std::uint64_t pool = std::uint64_t{1} << (32 - tenants.elastic_pool.family_length());
    if (to != Destination::peer && endpoints + 2 > pool)
        root.problem("tenants", fmt::format("elastic_pool: expected room for {} elastic IPs, {} "
                                            "has {} addresses",
                                            endpoints, to_string(tenants.elastic_pool), pool));
    if (to == Destination::internet) {
        if (!wire::is_internet(tenants.elastic_pool))
            root.problem("tenants", fmt::format("elastic_pool: {} is no part of the internet, and "
                                                "gateways send nothing from there",
                                                to_string(tenants.elastic_pool)));
        if (!wire::is_internet(profile.internet.first))
            root.problem("internet", "first: expected an address of the internet");
        if (!profile.internet.first.is_v4() ||
            overflows(profile.internet.first, profile.internet.hosts))
            root.problem("internet", "first: expected IPv4 and room for all hosts behind it");
    }
    const std::uint64_t far =
        to == Destination::internet ? profile.internet.hosts : profile.servers();
    const std::uint64_t most =
        std::uint64_t{tenants.vpcs} * profile.clients() * far * profile.source_ports();
    if (profile.flows.count > most)
        root.problem("flows", fmt::format("count: expected at most {}, {} for each pair of ends",
                                          most, profile.source_ports()));
}

void read_root(Table root, Profile& profile) {
    profile.name = root.required_string("name", "the profile's name");
    profile.seed = static_cast<std::uint64_t>(root.integer("seed", 0, INT64_MAX, 1));
    read_tenants(root.table("tenants"), profile);
    auto hosts = root.table("hosts");
    profile.hosts.count = take(hosts, "count", 1, kMostHosts, 2);
    profile.hosts.first_vtep = *parse_ip("192.0.2.2");
    hosts.string("first_vtep",
                 [&](const auto& text) { return take_address(text, profile.hosts.first_vtep); });
    hosts.finish(kExample);
    read_flows(root.table("flows"), profile);
    auto internet = root.table("internet");
    profile.internet.hosts = take(internet, "hosts", 1, kMostInternetHosts, 1);
    profile.internet.first = *parse_ip("192.0.2.129");
    internet.string("first",
                    [&](const auto& text) { return take_address(text, profile.internet.first); });
    internet.finish(kExample);
    read_frames(root.table("frames"), profile);
    root.tables("port", [&](Table table) { read_port(std::move(table), profile); });
    check_ports(root, profile);
    check_hosts(root, profile);
    check_addresses(root, profile);
    root.finish(kExample);
}

}  // namespace

std::uint16_t Profile::largest_frame() const {
    std::uint16_t result = 0;
    for (const auto& share : frames) result = std::max(result, share.octets);
    return result;
}

std::uint16_t Profile::smallest_frame() const {
    std::uint16_t result = UINT16_MAX;
    for (const auto& share : frames) result = std::min(result, share.octets);
    return result;
}

Reading read(std::string_view text) {
    auto reader = config::Reader::parse(text);
    Reading reading;
    if (reader.ok()) read_root(reader.root(), reading.profile);
    reading.problems = reader.problems();
    return reading;
}

Reading read_file(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    Reading reading;
    std::error_code error;
    if (!in || std::filesystem::is_directory(file, error)) {
        reading.problems.push_back({0, "", "cannot be read"});
        return reading;
    }
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return read(text);
}

}  // namespace sluice::pktgen
