// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/machine.hpp"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "dataplane/state/state.hpp"

namespace sluice::control {
namespace {

struct Folder {
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "machine_XXXXXX").string();
        path = mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
};

config::Config good(const Folder& folder) {
    config::Config config;
    config.name = "gw1";
    config.workers = {0};
    config.state_dir = folder.path / "state";
    config::Port port;
    port.device = "net_null0";
    config.ports = {port};
    for (int i = 0; i < 3; ++i) config.lines["port[" + std::to_string(i) + "]"] = 9;
    config.openflow.listen =
        config::Socket{config::Socket::Kind::unix_path, folder.path / "of", {}, 0};
    return config;
}

std::vector<std::string> problems(const config::Config& config) {
    std::vector<std::string> result;
    for (const auto& problem : check_machine(config, Depth::start).problems)
        result.push_back(to_string(problem, "f"));
    return result;
}

}  // namespace

TEST_CASE("a machine that has everything has no problem", "[machine]") {
    Folder folder;
    CHECK(problems(good(folder)).empty());
}

TEST_CASE("each lack of the machine is named with its key, all at once", "[machine]") {
    Folder folder;
    auto config = good(folder);
    config.workers = {0, 1000};
    config.ports[0].device = "net_af_packet0,iface=no_such";
    config.ports.push_back(config.ports[0]);
    config.ports[1].device = "ffff:1f:1f.7";
    config.ports.push_back(config.ports[0]);
    config.ports[2].device = "net_af_packet1,iface=lo";
    config.ports[2].mtu = 65535;
    { std::ofstream(folder.path / "of") << "a file"; }
    const auto found = problems(config);
    REQUIRE(found.size() >= 4);
    CHECK(found[0] == "f: workers[1]: this machine has no core 1000 online; name one that it has");
    CHECK(found[1] == "f:9: port[0].device: there is no interface no_such; name one of: ip link");
    CHECK(found[2] ==
          "f:9: port[1].device: this machine has no PCI device ffff:1f:1f.7; see: lspci -D");
    CHECK(found.back().find("openflow.listen: ") != std::string::npos);
    CHECK(found.back().find("is a file and no socket; name another path") != std::string::npos);
}

TEST_CASE("a gateway that runs is no problem, nor are the memory and sockets that it holds",
          "[machine]") {
    Folder folder;
    auto config = good(folder);
    CHECK_FALSE(check_machine(config, Depth::start).runs);
    const auto first = state::Lock::take(config.state_dir, config.name);
    REQUIRE(first.ok());
    config.openflow.listen->path = "/nowhere/of";
    config.memory.hugepages = config::Hugepages::required;
    config.memory.packet_buffers = 4'000'000'000;
    const auto machine = check_machine(config, Depth::start);
    CHECK(machine.problems.empty());
    CHECK(machine.runs == std::to_string(getpid()));
    CHECK(state::Lock::take(config.state_dir, config.name)
              .error()
              .message.find("another gateway \"gw1\" runs on") == 0);
}

TEST_CASE("a check leaves nothing behind", "[machine]") {
    Folder folder;
    CHECK(problems(good(folder)).empty());
    CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a folder that is missing, or cannot be written, is named", "[machine]") {
    Folder folder;
    auto config = good(folder);
    config.openflow.listen->path = folder.path / "no/of";
    config.lines["openflow.listen"] = 12;
    { std::ofstream(folder.path / "file") << "x"; }
    config.state_dir = folder.path / "file/state";
    const auto found = problems(config);
    REQUIRE(found.size() == 2);
    CHECK(found[0].starts_with("f: state_dir: "));
    CHECK(found[1] == "f:12: openflow.listen: there is no folder " + (folder.path / "no").string() +
                          " for the socket; run: mkdir -p " + (folder.path / "no").string());
}

TEST_CASE("what DPDK has no driver for is found beside whatever else is wrong", "[machine]") {
    Folder folder;
    auto config = good(folder);
    config.workers = {1000};
    config.ports.push_back(config.ports[0]);
    config.ports[1].device = "net_nothing0,iface=lo";
    config.ports.push_back(config.ports[0]);
    config.ports[2].device = "net_af_packet0";
    std::vector<std::string> found;
    for (const auto& problem : check_machine(config, Depth::drivers).problems)
        found.push_back(to_string(problem, "f"));
    REQUIRE(found.size() == 3);
    CHECK(found[0].find("no core 1000 online") != std::string::npos);
    CHECK(found[1].find("port[2].device: expected the interface as well") != std::string::npos);
    CHECK(found[2].find("port[1].device: DPDK has no driver for \"net_nothing0\"") !=
          std::string::npos);
}

TEST_CASE("a socket that somebody listens on is refused, a dead one is not", "[machine]") {
    Folder folder;
    const auto config = good(folder);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    config.openflow.listen->path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int handle = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(handle, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    CHECK(problems(config).empty());
    REQUIRE(listen(handle, 1) == 0);
    const auto found = problems(config);
    REQUIRE(found.size() == 1);
    CHECK(found[0].find("openflow.listen: another program listens on") != std::string::npos);
    close(handle);
}

TEST_CASE("required hugepages that are not there are asked for in megabytes", "[machine]") {
    Folder folder;
    auto config = good(folder);
    config.memory.hugepages = config::Hugepages::required;
    config.memory.packet_buffers = 4'000'000'000;
    const auto found = problems(config);
    REQUIRE(found.size() == 1);
    CHECK(found[0].find("memory.hugepages: ") != std::string::npos);
    CHECK(found[0].find("sysctl vm.nr_hugepages=") != std::string::npos);
}

}  // namespace sluice::control
