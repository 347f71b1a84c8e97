// SPDX-License-Identifier: Apache-2.0
// A profile: the network and the traffic that sluice-pktgen makes, one TOML file.
//
// Purpose: turns text into a value that needs no further checks, or into the list of everything
// that is wrong with it. bench/profiles/elastic.toml documents every key.
// Threads: a plain value. Cost: allocates; for the start only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/config.hpp"
#include "dataplane/wire/packet.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::pktgen {

// Where the flows of a VPC's clients go.
enum class Destination : std::uint8_t {
    peer,      // a server of the same VPC, by its own address
    elastic,   // a server of the same VPC, by its elastic IP: a hairpin through both translations
    internet,  // a host behind the uplink; the client's elastic IP is its source there
};

enum class Traffic : std::uint8_t {
    udp,
    tcp,     // connections of six packets
    rocev2,  // UDP to port 4791 between queue pairs, of which each flow has one at both ends
};

enum class Distribution : std::uint8_t {
    round_robin,  // each flow in its turn
    uniform,      // drawn at random
    zipf,         // drawn at random, flow i with a weight of 1 / (i + 1)^exponent
};

// Frames of `octets`, with the frame check sequence and without what the overlay puts around
// them; `weight` of the sum of all weights are of this size.
struct FrameShare {
    std::uint16_t octets = 64;
    std::uint32_t weight = 1;

    bool operator==(const FrameShare&) const = default;
};

// One of the generator's own ports. It has at most one of each role.
struct Port {
    Side role = Side::underlay;
    std::string device;      // a PCI address or a DPDK vdev with its arguments
    MacAddress mac;          // all zero: the device's own
    IpAddress address;       // uplink: of the router that the generator plays
    IpAddress gateway;       // underlay: the VTEP that frames go to; uplink: the gateway's address
    MacAddress gateway_mac;  // all zero: it is asked for by ARP or neighbour discovery
    std::uint16_t mtu = 1600;
    unsigned line = 0;  // of the file
};

struct Profile {
    std::string name;
    std::uint64_t seed = 1;
    struct {
        std::uint32_t vpcs = 1;
        std::uint32_t endpoints = 2;  // of each VPC: the first half are clients, the rest servers
        Vni first_vni{100};
        Family family = Family::ipv4;
        Prefix elastic_pool;  // IPv4
    } tenants;
    struct {
        std::uint32_t count = 2;  // VTEPs that the generator plays
        IpAddress first_vtep;
    } hosts;
    struct {
        std::uint32_t count = 1000;
        Destination to = Destination::peer;
        Distribution distribution = Distribution::round_robin;
        double exponent = 1;
        std::uint16_t server_port = 443;
        Traffic traffic = Traffic::udp;
        std::uint32_t queue_pairs = 1;  // RoCEv2: so many flows in a row have the same two ends
        unsigned reverse_percent = 0;   // of the packets, from the server to the client
    } flows;
    struct {
        std::uint32_t hosts = 1;
        IpAddress first;
    } internet;
    std::vector<FrameShare> frames;
    std::vector<Port> ports;  // the underlay's first

    [[nodiscard]] Protocol protocol() const {
        return flows.traffic == Traffic::tcp ? Protocol::tcp : Protocol::udp;
    }
    // Source ports that each pair of ends has, and the first.
    [[nodiscard]] std::uint32_t source_ports() const {
        return flows.traffic == Traffic::rocev2 ? 16'384 : 64'000;
    }
    [[nodiscard]] std::uint16_t first_source_port() const {
        return flows.traffic == Traffic::rocev2 ? 49'152 : 1024;
    }
    [[nodiscard]] std::uint32_t clients() const { return (tenants.endpoints + 1) / 2; }
    [[nodiscard]] std::uint32_t servers() const { return tenants.endpoints / 2; }
    [[nodiscard]] const Port& underlay() const { return ports[0]; }
    // Only with flows to the internet.
    [[nodiscard]] const Port& uplink() const { return ports[1]; }
    [[nodiscard]] std::uint16_t largest_frame() const;
    [[nodiscard]] std::uint16_t smallest_frame() const;
};

// The smallest frame that holds a stamp, with its frame check sequence.
inline constexpr std::uint16_t kLeastIpv4Frame = 64, kLeastIpv6Frame = 84;
// The same of RoCEv2: with its header and invariant CRC, and a payload of whole words.
inline constexpr std::uint16_t kLeastRoceIpv4Frame = 82, kLeastRoceIpv6Frame = 102;

// The profile, which is usable only without problems.
struct Reading {
    Profile profile;
    std::vector<config::Problem> problems;  // by line
};
Reading read(std::string_view text);
// Likewise from a file; one that cannot be read is a problem without a line.
Reading read_file(const std::filesystem::path& file);

}  // namespace sluice::pktgen
