// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include "dataplane/config/reader.hpp"

namespace sluice::config {
namespace {

// Outer Ethernet excluded: IPv6 40, UDP 8, VXLAN 8, inner Ethernet 14, and an inner IPv6
// minimum of 1,280 (RFC 8200 section 5).
constexpr std::int64_t kLeastUnderlayMtu = 1280 + 70;
constexpr std::int64_t kLeastUplinkMtu = 1280;
constexpr std::int64_t kMostMtu = 9600;
constexpr std::size_t kMostPorts = 16;
constexpr std::size_t kMostWorkers = 64;

bool is_name(std::string_view text) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    };
    return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), plain) &&
           text.front() != '.' && text.front() != '-';
}

bool is_unicast(const IpAddress& address) {
    return !address.is_none() && !address.is_multicast() && address != IpAddress::v4(be32{0}) &&
           address != IpAddress::v4(be32{0xffffffff});
}

bool is_loopback(const IpAddress& address) {
    if (address.is_v4()) return address.bytes[12] == 127;
    IpAddress loopback;
    loopback.bytes[15] = 1;
    return address == loopback;
}

// "ADDRESS:PORT" with an IPv6 address in brackets.
bool parse_host_port(std::string_view text, Socket& socket) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) return false;
    auto host = text.substr(0, colon);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        return false;
    }
    const auto address = parse_ip(host);
    const auto digits = text.substr(colon + 1);
    if (!address || digits.empty() || digits.size() > 5) return false;
    unsigned port = 0;
    for (const char digit : digits) {
        if (digit < '0' || digit > '9') return false;
        port = port * 10 + static_cast<unsigned>(digit - '0');
    }
    if (port == 0 || port > 65535) return false;
    socket.kind = Socket::Kind::tcp;
    socket.address = *address;
    socket.port = static_cast<std::uint16_t>(port);
    return true;
}

constexpr std::string_view kOpenflowSocket =
    "\"unix:/PATH\", or \"tcp:ADDRESS:PORT\" with an address of the loopback";

// An OpenFlow socket, or why it is none.
std::string parse_openflow_socket(const std::string& text, Socket& socket) {
    if (text.starts_with("unix:")) {
        socket.kind = Socket::Kind::unix_path;
        socket.path = text.substr(5);
        // sun_path holds 108 octets with its terminator (unix(7)).
        if (!socket.path.starts_with('/') || socket.path.size() > 107)
            return "expected unix: and an absolute path of at most 107 characters";
        return {};
    }
    if (text.starts_with("tls:"))
        return fmt::format("this release has no TLS; expected {}", kOpenflowSocket);
    if (text.starts_with("tcp:") && parse_host_port(std::string_view(text).substr(4), socket)) {
        if (is_loopback(socket.address)) return {};
        return "plain tcp: is for the loopback only (127.0.0.0/8 or [::1])";
    }
    return fmt::format("expected {}", kOpenflowSocket);
}

void read_port(Reader::Table table, Config& config) {
    Port port;
    port.line = table.line();
    const auto role = table.required_choice("role", {"underlay", "uplink"});
    port.role = role == "uplink" ? Side::uplink : Side::underlay;
    port.device = table.required_string("device", "a PCI address or a DPDK vdev with arguments");
    if (!port.device.empty() && port.device.find_first_of(" \t\n") != std::string::npos)
        table.problem("device", "expected no white space");
    const bool underlay = port.role == Side::underlay;
    port.mtu = static_cast<std::uint16_t>(table.integer(
        "mtu", underlay ? kLeastUnderlayMtu : kLeastUplinkMtu, kMostMtu, underlay ? 1600 : 1500));
    table.strings("addresses", [&](const std::string& text) -> std::string {
        const auto prefix = parse_prefix(text);
        if (!prefix || !is_unicast(prefix->address))
            return "expected a unicast address and its prefix length, as \"192.0.2.1/24\"";
        port.addresses.push_back({prefix->address, prefix->length});
        return {};
    });
    if (port.addresses.empty() && !table.has_problem("addresses"))
        table.problem("addresses", "expected at least one address with its prefix length");
    table.strings("next_hops", [&](const std::string& text) -> std::string {
        const auto address = parse_ip(text);
        if (!address || !is_unicast(*address)) return "expected a unicast IP address";
        if (std::find(port.next_hops.begin(), port.next_hops.end(), *address) !=
            port.next_hops.end())
            return "expected each next hop once";
        const bool on_link = std::any_of(
            port.addresses.begin(), port.addresses.end(), [&](const InterfaceAddress& own) {
                return own.prefix().contains(*address) && own.address != *address;
            });
        if (!on_link)
            return "expected another address inside one of the port's own prefixes (`addresses`)";
        port.next_hops.push_back(*address);
        return {};
    });
    // On-link alone nothing of the internet is in reach.
    if (!underlay && port.next_hops.empty() && !table.has_problem("next_hops"))
        table.problem("next_hops", "expected the router on this link that leads to the internet");
    table.strings("neighbours", [&](const std::string& text) -> std::string {
        const auto space = text.find(' ');
        const auto address = parse_ip(std::string_view(text).substr(0, space));
        const auto mac = space == std::string::npos
                             ? std::nullopt
                             : parse_mac(std::string_view(text).substr(space + 1));
        if (!address || !is_unicast(*address) || !mac || mac->is_multicast() || mac->is_zero())
            return "expected an IP address, one space and a MAC address";
        for (const auto& other : port.neighbours)
            if (other.address == *address) return "expected each neighbour once";
        port.neighbours.push_back({*address, *mac});
        return {};
    });
    table.string("mac", [&](const std::string& text) -> std::string {
        const auto mac = parse_mac(text);
        if (!mac || mac->is_multicast() || mac->is_zero()) return "expected a unicast MAC address";
        port.mac = *mac;
        return {};
    });
    table.finish();
    config.ports.push_back(std::move(port));
}

void read_vteps(Reader::Table& root, Config& config) {
    root.strings("vtep", [&](const std::string& text) -> std::string {
        const auto address = parse_ip(text);
        if (!address || !is_unicast(*address)) return "expected a unicast IP address";
        for (const auto& other : config.vteps)
            if (other.family() == address->family())
                return "expected at most one address of each family";
        config.vteps.push_back(*address);
        return {};
    });
    if (config.vteps.empty() && !root.has_problem("vtep"))
        root.problem("vtep", "expected one IPv4 address, one IPv6 address, or both");
}

void read_workers(Reader::Table& root, Config& config) {
    root.integers("workers", 0, 1023, [&](std::int64_t core) -> std::string {
        const auto value = static_cast<unsigned>(core);
        if (std::find(config.workers.begin(), config.workers.end(), value) != config.workers.end())
            return "expected each core once";
        if (config.workers.size() == kMostWorkers) return "expected at most 64 cores";
        config.workers.push_back(value);
        return {};
    });
    if (config.workers.empty() && !root.has_problem("workers"))
        root.problem("workers", "expected the CPU cores to run workers on, as [1, 2]");
}

// An address is the gateway's own on one port, or a neighbour's, and a VTEP is on no uplink.
void check_owners(Reader::Table& root, const Config& config) {
    const auto is_own = [&](const IpAddress& address) {
        return std::any_of(config.ports.begin(), config.ports.end(), [&](const Port& port) {
            return std::any_of(port.addresses.begin(), port.addresses.end(),
                               [&](const auto& own) { return own.address == address; });
        });
    };
    const auto refuse_own = [&](const std::string& key, const IpAddress& address) {
        const bool vtep =
            std::find(config.vteps.begin(), config.vteps.end(), address) != config.vteps.end();
        if (vtep || is_own(address))
            root.problem_at(
                config.line_of(key), key,
                fmt::format("expected a neighbour's address, found the gateway's own {}",
                            to_string(address)));
    };
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        const auto& port = config.ports[i];
        for (std::size_t n = 0; n < port.next_hops.size(); ++n)
            refuse_own(fmt::format("port[{}].next_hops[{}]", i, n), port.next_hops[n]);
        for (std::size_t n = 0; n < port.neighbours.size(); ++n)
            refuse_own(fmt::format("port[{}].neighbours[{}]", i, n), port.neighbours[n].address);
        for (const auto& own : port.addresses)
            if (port.role == Side::uplink && std::find(config.vteps.begin(), config.vteps.end(),
                                                       own.address) != config.vteps.end())
                root.problem_at(
                    port.line, fmt::format("port[{}].addresses", i),
                    fmt::format("expected no VTEP on an uplink, found {}", to_string(own.address)));
    }
}

// What concerns several ports at once.
void check_ports(Reader::Table& root, const Config& config) {
    if (config.ports.size() > kMostPorts)
        root.problem("port", fmt::format("expected at most {} ports", kMostPorts));
    const bool underlay = std::any_of(config.ports.begin(), config.ports.end(),
                                      [](const Port& p) { return p.role == Side::underlay; });
    if (!underlay) root.problem("port", "expected at least one [[port]] with role = \"underlay\"");
    std::set<std::string> devices;
    std::set<std::string_view> interfaces;
    std::set<IpAddress> addresses;
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        const auto& port = config.ports[i];
        const auto key = fmt::format("port[{}]", i);
        std::string device(port.device_name());
        if (std::count(device.begin(), device.end(), ':') == 1) device.insert(0, "0000:");
        if (!device.empty() && !devices.insert(std::move(device)).second)
            root.problem_at(
                port.line, key + ".device",
                fmt::format("expected each device once, found \"{}\" again", port.device_name()));
        // Two drivers on one interface would both receive every packet.
        if (const auto interface = port.interface();
            !interface.empty() && !interfaces.insert(interface).second)
            root.problem_at(
                port.line, key + ".device",
                fmt::format("expected each interface once, found iface={} again", interface));
        for (const auto& own : port.addresses)
            if (!addresses.insert(own.address).second)
                root.problem_at(port.line, key + ".addresses",
                                fmt::format("expected each address once, found {} again",
                                            to_string(own.address)));
    }
    check_owners(root, config);
    for (const auto& vtep : config.vteps) {
        const bool reachable =
            std::any_of(config.ports.begin(), config.ports.end(), [&](const Port& port) {
                return port.role == Side::underlay &&
                       std::any_of(port.addresses.begin(), port.addresses.end(),
                                   [&](const InterfaceAddress& own) {
                                       return own.address.family() == vtep.family();
                                   });
            });
        if (underlay && !reachable)
            root.problem("vtep", fmt::format("expected an underlay port with an {} address for {}",
                                             vtep.is_v4() ? "IPv4" : "IPv6", to_string(vtep)));
    }
}

void read_openflow(Reader::Table table, Config& config) {
    auto& controllers = config.openflow.controllers;
    table.strings("controllers", [&](const std::string& text) -> std::string {
        Socket socket;
        auto why = parse_openflow_socket(text, socket);
        if (why.empty() &&
            std::find(controllers.begin(), controllers.end(), socket) != controllers.end())
            why = "expected each controller once";
        if (why.empty()) controllers.push_back(std::move(socket));
        return why;
    });
    table.string("listen", [&](const std::string& text) -> std::string {
        Socket socket;
        auto why = parse_openflow_socket(text, socket);
        if (why.empty() && socket.kind != Socket::Kind::unix_path)
            why = "expected unix: and an absolute path";
        if (why.empty()) config.openflow.listen = std::move(socket);
        return why;
    });
    for (const auto* key : {"certificate", "key", "ca"})
        table.refuse(key, "this release has no TLS; remove the key");
    table.finish();
}

void read_telemetry(Reader::Table table, Config& config) {
    table.string("listen", [&](const std::string& text) -> std::string {
        Socket socket;
        if (!parse_host_port(text, socket))
            return "expected an IP address and a port, as \"127.0.0.1:9301\"";
        config.telemetry.listen = std::move(socket);
        return {};
    });
    table.finish();
}

// WHOSE_connections, WHOSE_half_open, WHOSE_connections_per_second
void read_limits(Reader::Table& table, const std::string& whose, SessionLimits& limits) {
    const auto read = [&](const char* what, std::uint32_t& value) {
        value = static_cast<std::uint32_t>(
            table.integer((whose + what).c_str(), 0, 100'000'000, value));
    };
    read("_connections", limits.connections);
    read("_half_open", limits.half_open);
    read("_connections_per_second", limits.per_second);
}

void read_root(Reader::Table root, Config& config) {
    config.name = root.required_string("name", "the gateway's name");
    if (!config.name.empty() && !is_name(config.name))
        root.problem("name", "expected 1 to 63 of the characters A-Z a-z 0-9 - _ .");
    read_workers(root, config);
    read_vteps(root, config);
    config.state_dir = root.required_string("state_dir", "a folder for the committed tables");
    if (!config.state_dir.empty() && !config.state_dir.is_absolute())
        root.problem("state_dir", "expected an absolute path");
    const auto level = root.choice("log", {"debug", "info", "warning", "error"}, "info");
    config.log = level == "debug"     ? LogLevel::debug
                 : level == "warning" ? LogLevel::warning
                 : level == "error"   ? LogLevel::error
                                      : LogLevel::info;

    auto memory = root.table("memory");
    const auto pages = memory.choice("hugepages", {"auto", "required", "off"}, "auto");
    config.memory.hugepages = pages == "required" ? Hugepages::required
                              : pages == "off"    ? Hugepages::off
                                                  : Hugepages::automatic;
    config.memory.packet_buffers = static_cast<std::uint32_t>(
        memory.integer("packet_buffers", 4096, 4'000'000, config.memory.packet_buffers));
    memory.finish();

    auto sessions = root.table("sessions");
    config.sessions.capacity = static_cast<std::uint32_t>(
        sessions.integer("capacity", 1024, 100'000'000, config.sessions.capacity));
    config.sessions.ipv6_capacity = static_cast<std::uint32_t>(sessions.integer(
        "ipv6_capacity", 1024, 50'000'000, std::max(1024U, config.sessions.capacity / 4)));
    config.sessions.nat_blocks = static_cast<std::uint32_t>(
        sessions.integer("nat_blocks", 1024, 4'000'000, config.sessions.nat_blocks));
    read_limits(sessions, "vpc", config.sessions.vpc);
    read_limits(sessions, "endpoint", config.sessions.endpoint);
    sessions.finish();

    root.tables("port", [&](Reader::Table table) { read_port(std::move(table), config); });
    read_openflow(root.table("openflow"), config);
    read_telemetry(root.table("telemetry"), config);
    config.lines = root.lines();
    check_ports(root, config);
    root.finish();
}

}  // namespace

std::string to_string(const Problem& problem, std::string_view file) {
    std::string result{file};
    if (problem.line != 0) result += fmt::format(":{}", problem.line);
    result += ": ";
    if (!problem.key.empty()) result += problem.key + ": ";
    return result + problem.message;
}

std::string to_string(const Socket& socket) {
    if (socket.kind == Socket::Kind::unix_path) return "unix:" + socket.path;
    const auto address = to_string(socket.address);
    return socket.address.is_v4() ? fmt::format("tcp:{}:{}", address, socket.port)
                                  : fmt::format("tcp:[{}]:{}", address, socket.port);
}

std::string_view Port::device_name() const {
    return std::string_view(device).substr(0, device.find(','));
}

std::string_view Port::interface() const {
    constexpr std::string_view kKey = ",iface=";
    const std::string_view text = device;
    const auto at = text.find(kKey);
    if (at == std::string_view::npos) return {};
    const auto value = text.substr(at + kKey.size());
    return value.substr(0, value.find(','));
}

bool Port::is_pci() const {
    // "0000:03:00.0" or "03:00.0": a vdev's name never holds a colon.
    return device_name().find(':') != std::string_view::npos;
}

unsigned Config::line_of(std::string_view key) const {
    while (!key.empty()) {
        if (const auto at = lines.find(key); at != lines.end()) return at->second;
        const auto end = key.find_last_of(".[");
        key = key.substr(0, end == std::string_view::npos ? 0 : end);
    }
    return 0;
}

Reading read(std::string_view text) {
    Reading reading;
    auto reader = Reader::parse(text);
    if (reader.ok()) read_root(reader.root(), reading.config);
    reading.problems = reader.problems();
    return reading;
}

Reading read_file(const std::filesystem::path& file) {
    const auto unreadable = [](std::string why) {
        return Reading{{}, {Problem{0, "", std::move(why)}}};
    };
    std::error_code error;
    if (std::filesystem::is_directory(file, error))
        return unreadable("is a directory; name a TOML file");
    errno = 0;
    std::ifstream stream(file, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    if (!stream.is_open() || stream.bad())
        return unreadable(
            fmt::format("cannot be read: {}; name a TOML file that exists and is "
                        "readable",
                        std::system_category().message(errno != 0 ? errno : EIO)));
    return read(text);
}

Parsed parse(std::string_view text) {
    Reading reading = read(text);
    if (!reading.problems.empty()) return std::move(reading.problems);
    return std::move(reading.config);
}

Parsed load(const std::filesystem::path& file) {
    Reading reading = read_file(file);
    if (!reading.problems.empty()) return std::move(reading.problems);
    return std::move(reading.config);
}

}  // namespace sluice::config
