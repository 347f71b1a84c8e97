// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/machine.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "dataplane/port/device_string.hpp"
#include "dataplane/port/eal.hpp"
#include "dataplane/state/state.hpp"

namespace sluice::control {
namespace {

// Gathers problems, each with its line.
class Findings {
  public:
    explicit Findings(const config::Config& config) : config_(config) {}
    void add(const std::string& key, std::string message) {
        problems.push_back({config_.line_of(key), key, std::move(message)});
    }
    std::vector<config::Problem> problems;

  private:
    const config::Config& config_;
};

bool core_is_online(unsigned core) {
    const auto folder = fmt::format("/sys/devices/system/cpu/cpu{}", core);
    if (!std::filesystem::exists(folder)) return false;
    // Core 0 has no such file where it cannot be taken offline.
    char online = '1';
    std::ifstream(folder + "/online") >> online;
    return online == '1';
}

void check_cores(const config::Config& config, Findings& findings) {
    for (std::size_t i = 0; i < config.workers.size(); ++i)
        if (!core_is_online(config.workers[i]))
            findings.add(fmt::format("workers[{}]", i),
                         fmt::format("this machine has no core {} online; name one that it has",
                                     config.workers[i]));
}

void check_hugepages(const config::Config& config, Findings& findings) {
    if (config.memory.hugepages != config::Hugepages::required) return;
    const auto needed = port::memory_megabytes(config);
    const auto free = port::free_hugepage_megabytes();
    if (free < needed)
        findings.add(
            "memory.hugepages",
            fmt::format("{} MB of free hugepages are required and {} MB are there; reserve them "
                        "(sysctl vm.nr_hugepages={}) or set hugepages = \"auto\"",
                        needed, free, (needed + 1) / 2));
}

void check_pci_device(std::string address, const std::string& key, Findings& findings) {
    if (address.size() < 12) address = "0000:" + address;
    if (!std::filesystem::exists("/sys/bus/pci/devices/" + address))
        findings.add(key, fmt::format("this machine has no PCI device {}; see: lspci -D", address));
}

void check_interface(const config::Port& port, const std::string& key, Findings& findings) {
    const std::string interface(port.interface());
    if (interface.empty()) {
        if (port.device_name().starts_with("net_af_"))
            findings.add(key + ".device", "expected the interface as well: \",iface=NAME\"");
        return;
    }
    // A TAP interface is made by the driver.
    if (port.device_name().starts_with("net_tap")) return;
    const auto mtu = port::interface_mtu(interface);
    if (!mtu)
        findings.add(key + ".device",
                     fmt::format("there is no interface {}; name one of: ip link", interface));
    else if (*mtu < port.mtu)
        findings.add(
            key + ".mtu",
            fmt::format("the interface {} has an MTU of {}, not {}; run: ip link set {} mtu {}",
                        interface, *mtu, port.mtu, interface, port.mtu));
}

void check_devices(const config::Config& config, Findings& findings) {
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        const auto& port = config.ports[i];
        const auto key = fmt::format("port[{}]", i);
        if (port.is_pci())
            check_pci_device(std::string(port.device_name()), key + ".device", findings);
        else
            check_interface(port, key, findings);
    }
}

void check_drivers(const config::Config& config, Findings& findings) {
    const auto unknown = port::unknown_devices(config);
    if (!unknown) return findings.add(unknown.error().path, unknown.error().message);
    for (const std::size_t i : *unknown)
        findings.add(fmt::format("port[{}].device", i),
                     fmt::format("DPDK has no driver for \"{}\"; see the devices in "
                                 "deploy/gateway.example.toml",
                                 config.ports[i].device_name()));
}

// Somebody accepts connections there. A socket file nobody listens on is taken over.
bool somebody_listens(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (handle < 0) return false;
    const bool answered =
        connect(handle, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
        errno == EAGAIN;
    close(handle);
    return answered;
}

void check_openflow(const config::Config& config, Findings& findings) {
    if (!config.openflow.listen) return;
    const auto& path = config.openflow.listen->path;
    constexpr auto kKey = "openflow.listen";
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_socket(status))
        return findings.add(kKey,
                            fmt::format("{} is a file and no socket; name another path", path));
    if (somebody_listens(path))
        return findings.add(
            kKey, fmt::format("another program listens on {}; stop it or name another path", path));
    const auto folder = std::filesystem::path(path).parent_path();
    if (!std::filesystem::is_directory(folder, error))
        findings.add(kKey, fmt::format("there is no folder {} for the socket; run: mkdir -p {}",
                                       folder.string(), folder.string()));
    else if (access(folder.c_str(), W_OK | X_OK) != 0)
        findings.add(kKey, fmt::format("no socket can be made in {}: {}", folder.string(),
                                       std::system_category().message(errno)));
}

void check_telemetry(const config::Config& config, Findings& findings) {
    if (!config.telemetry.listen) return;
    const auto& listen = *config.telemetry.listen;
    namespace asio = boost::asio;
    boost::system::error_code error;
    const auto address = asio::ip::make_address(to_string(listen.address), error);
    asio::io_context context;
    asio::ip::tcp::acceptor acceptor(context);
    const asio::ip::tcp::endpoint endpoint(address, listen.port);
    if (!error) acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(1, error);
    if (error)
        findings.add(
            "telemetry.listen",
            fmt::format("{} cannot be listened on: {}; stop the other program or name another "
                        "address and port",
                        to_string(listen).substr(4), error.message()));
}

// The folder is made by the start where there is none: then the first one above it counts.
void check_folder(const config::Config& config, Findings& findings) {
    if (config.state_dir.empty()) return;
    std::error_code error;
    std::filesystem::path there = config.state_dir;
    while (there.has_relative_path() && !std::filesystem::exists(there, error) && !error)
        there = there.parent_path();
    if (error)
        findings.add("state_dir",
                     fmt::format("{} cannot be reached: {}", there.string(), error.message()));
    else if (!std::filesystem::is_directory(there, error))
        findings.add("state_dir", fmt::format("{} is no folder; name another", there.string()));
    else if (access(there.c_str(), W_OK | X_OK) != 0)
        findings.add("state_dir",
                     fmt::format("nothing can be written in {}: {}; change its owner or mode, or "
                                 "name another folder",
                                 there.string(), std::system_category().message(errno)));
}

}  // namespace

Machine check_machine(const config::Config& config, Depth depth) {
    Findings findings(config);
    Machine machine;
    machine.runs = state::Lock::holder(config.state_dir);
    check_cores(config, findings);
    check_devices(config, findings);
    check_folder(config, findings);
    // Where the same gateway runs already, its memory and sockets are in use: by itself.
    if (!machine.runs) {
        check_hugepages(config, findings);
        check_openflow(config, findings);
        check_telemetry(config, findings);
    }
    if (depth == Depth::drivers) check_drivers(config, findings);
    machine.problems = std::move(findings.problems);
    return machine;
}

}  // namespace sluice::control
