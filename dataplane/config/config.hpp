// SPDX-License-Identifier: Apache-2.0
// The gateway's configuration file: one TOML file, read once at the start.
//
// Purpose: turns text into a value that needs no further checks, or into the list of
// everything that is wrong with it. What only the machine can say (devices, hugepages,
// sockets) is checked by machine.hpp. deploy/gateway.example.toml documents every key.
// Threads: a plain value. Cost: allocates; for the start only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dataplane/wire/limits.hpp"
#include "dataplane/wire/packet.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::config {

// One thing that is wrong with the file, as people read it.
struct Problem {
    unsigned line = 0;    // from 1; 0: the file as a whole
    std::string key;      // "port[1].mtu"; empty: the file as a whole
    std::string message;  // what was expected, and what was found

    bool operator==(const Problem&) const = default;
};
// "FILE:LINE: KEY: MESSAGE"
std::string to_string(const Problem& problem, std::string_view file);

// An address of the gateway on a port, with the length of the link's prefix (of 128 bits).
struct InterfaceAddress {
    IpAddress address;
    std::uint8_t length = 128;

    [[nodiscard]] Prefix prefix() const { return Prefix{address, length}.without_host_bits(); }
    constexpr auto operator<=>(const InterfaceAddress&) const = default;
};

// A neighbour that is never asked for nor given up.
struct StaticNeighbour {
    IpAddress address;
    MacAddress mac;
};

// Where a stream connection goes to or is accepted: "unix:PATH", "tcp:ADDRESS:PORT".
struct Socket {
    enum class Kind : std::uint8_t { unix_path, tcp };
    Kind kind = Kind::unix_path;
    std::string path;        // unix_path
    IpAddress address;       // tcp
    std::uint16_t port = 0;  // tcp

    bool operator==(const Socket&) const = default;
};
std::string to_string(const Socket& socket);

struct Port {
    Side role = Side::underlay;
    std::string device;  // a PCI address or a DPDK vdev, with its arguments
    std::vector<InterfaceAddress> addresses;
    std::vector<IpAddress> next_hops;  // the first that answers is used; empty: on-link only
    std::vector<StaticNeighbour> neighbours;
    MacAddress mac;            // all zero: the device's own
    std::uint16_t mtu = 1500;  // octets of the largest IP packet
    unsigned line = 0;         // of the file

    // The device's name without its arguments.
    [[nodiscard]] std::string_view device_name() const;
    [[nodiscard]] bool is_pci() const;
    // The kernel's interface that a virtual device sits on (`iface=`), or nothing.
    [[nodiscard]] std::string_view interface() const;
};

enum class Hugepages : std::uint8_t { automatic, required, off };
enum class LogLevel : std::uint8_t { debug, info, warning, error };

struct Config {
    std::string name;
    std::vector<unsigned> workers;  // CPU cores, one worker each
    std::vector<IpAddress> vteps;   // at most one of each family
    std::filesystem::path state_dir;
    LogLevel log = LogLevel::info;
    struct {
        Hugepages hugepages = Hugepages::automatic;
        std::uint32_t packet_buffers = 32768;  // for the whole gateway
    } memory;
    struct {
        std::uint32_t capacity = 1'000'000;     // connections over IPv4
        std::uint32_t ipv6_capacity = 250'000;  // over IPv6; unless given, a quarter of that
        SessionLimits vpc, endpoint;            // of each; 0: derived from the capacity
        std::uint32_t nat_blocks = 65536;       // of 64 ports of NAT gateways' addresses
    } sessions;
    std::vector<Port> ports;
    struct {
        std::vector<Socket> controllers;
        std::optional<Socket> listen;  // unix_path
    } openflow;
    struct {
        std::optional<Socket> listen;  // tcp
    } telemetry;
    std::map<std::string, unsigned, std::less<>> lines;  // of each key that the file holds

    // Where the file says it: the line of the key or of what holds it; 0: nowhere.
    [[nodiscard]] unsigned line_of(std::string_view key) const;
};

// A file as far as it makes sense, and everything that is wrong with it, in the order of its
// lines: so that what it names can be checked in the same run. Usable only without problems.
struct Reading {
    Config config;
    std::vector<Problem> problems;
};
Reading read(std::string_view text);
// Likewise from a file; one that cannot be read is a Problem without line.
Reading read_file(const std::filesystem::path& file);

// The configuration, or what is wrong.
using Parsed = std::variant<Config, std::vector<Problem>>;
Parsed parse(std::string_view text);
Parsed load(const std::filesystem::path& file);

}  // namespace sluice::config
