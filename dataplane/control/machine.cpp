// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/machine.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "dataplane/port/device_string.hpp"
#include "dataplane/port/eal.hpp"
#include "dataplane/state/state.hpp"

namespace sluice::control {
namespace {

using Problems = std::vector<config::Problem>;

bool core_is_online(unsigned core) {
    const auto folder = fmt::format("/sys/devices/system/cpu/cpu{}", core);
    if (!std::filesystem::exists(folder)) return false;
    // Core 0 has no such file where it cannot be taken offline.
    char online = '1';
    std::ifstream(folder + "/online") >> online;
    return online == '1';
}

void check_cores(const config::Config& config, Problems& problems) {
    for (std::size_t i = 0; i < config.workers.size(); ++i)
        if (!core_is_online(config.workers[i]))
            problems.push_back(
                {0, fmt::format("workers[{}]", i),
                 fmt::format("this machine has no core {} online; name one that it has",
                             config.workers[i])});
}

void check_hugepages(const config::Config& config, Problems& problems) {
    if (config.memory.hugepages != config::Hugepages::required) return;
    const auto needed = port::memory_megabytes(config);
    const auto free = port::free_hugepage_megabytes();
    if (free < needed)
        problems.push_back(
            {0, "memory.hugepages",
             fmt::format("{} MB of free hugepages are required and {} MB are there; reserve them "
                         "(sysctl vm.nr_hugepages={}) or set hugepages = \"auto\"",
                         needed, free, (needed + 1) / 2)});
}

void check_devices(const config::Config& config, Problems& problems) {
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
        const auto& port = config.ports[i];
        const auto key = fmt::format("port[{}].device", i);
        if (port.is_pci()) {
            auto address = std::string(port.device_name());
            if (address.size() < 12) address = "0000:" + address;
            if (!std::filesystem::exists("/sys/bus/pci/devices/" + address))
                problems.push_back(
                    {port.line, key,
                     fmt::format("this machine has no PCI device {}; see: lspci -D", address)});
            continue;
        }
        const auto interface = port::interface_of(port.device);
        // A TAP interface is made by the driver.
        if (interface.empty() || port.device_name().starts_with("net_tap")) continue;
        const auto mtu = port::interface_mtu(interface);
        if (!mtu)
            problems.push_back(
                {port.line, key,
                 fmt::format("there is no interface {}; name one of: ip link", interface)});
        else if (*mtu < port.mtu)
            problems.push_back(
                {port.line, fmt::format("port[{}].mtu", i),
                 fmt::format(
                     "the interface {} has an MTU of {}, not {}; run: ip link set {} mtu {}",
                     interface, *mtu, port.mtu, interface, port.mtu)});
    }
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

void check_openflow(const config::Config& config, Problems& problems) {
    if (!config.openflow.listen) return;
    const auto& path = config.openflow.listen->path;
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_socket(status))
        problems.push_back({0, "openflow.listen",
                            fmt::format("{} is a file and no socket; name another path", path)});
    else if (somebody_listens(path))
        problems.push_back(
            {0, "openflow.listen",
             fmt::format("another program listens on {}; stop it or name another path", path)});
}

void check_telemetry(const config::Config& config, Problems& problems) {
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
        problems.push_back(
            {0, "telemetry.listen",
             fmt::format("{} cannot be listened on: {}; stop the other program or name another "
                         "address and port",
                         to_string(listen).substr(4), error.message())});
}

void check_state(const config::Config& config, Problems& problems) {
    if (const auto lock = state::Lock::take(config.state_dir, config.name); !lock)
        problems.push_back({0, lock.error().path, lock.error().message});
}

}  // namespace

Problems check_machine(const config::Config& config) {
    Problems problems;
    check_cores(config, problems);
    check_hugepages(config, problems);
    check_devices(config, problems);
    check_state(config, problems);
    // Its own sockets are in use where the same gateway runs already: said once, above.
    if (!problems.empty() && problems.back().key == "state_dir") return problems;
    check_openflow(config, problems);
    check_telemetry(config, problems);
    return problems;
}

}  // namespace sluice::control
