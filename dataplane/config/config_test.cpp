// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config/config.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <ostream>

namespace sluice::config {
namespace {

const std::string kGood = R"(name = "gw1"
workers = [1]
vtep = ["192.0.2.1"]
state_dir = "/var/lib/sluice/gw1"
[[port]]
role = "underlay"
device = "net_af_packet0,iface=u0"
addresses = ["192.0.2.1/24"]
)";

using Lines = std::vector<std::string>;

std::vector<std::string> messages(const std::string& text) {
    std::vector<std::string> result;
    const auto parsed = parse(text);
    if (const auto* problems = std::get_if<std::vector<Problem>>(&parsed))
        for (const auto& problem : *problems) result.push_back(to_string(problem, "f"));
    return result;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

// The repository, from wherever in it the test runs.
std::filesystem::path root() {
    auto folder = std::filesystem::current_path();
    while (!std::filesystem::exists(folder / "deploy/gateway.example.toml") &&
           folder.has_relative_path())
        folder = folder.parent_path();
    return folder;
}

}  // namespace

TEST_CASE("a small configuration is complete with defaults", "[config]") {
    const auto parsed = parse(kGood);
    const auto* config = std::get_if<Config>(&parsed);
    REQUIRE(config != nullptr);
    CHECK(config->name == "gw1");
    CHECK(config->workers == std::vector<unsigned>{1});
    CHECK(config->memory.hugepages == Hugepages::automatic);
    CHECK(config->sessions.capacity == 1'000'000);
    CHECK(config->sessions.ipv6_capacity == 250'000);
    CHECK(config->sessions.nat_blocks == 65536);
    REQUIRE(config->ports.size() == 1);
    CHECK(config->ports[0].mtu == 1600);
    CHECK(config->ports[0].device_name() == "net_af_packet0");
    CHECK_FALSE(config->ports[0].is_pci());
    CHECK(to_string(config->ports[0].addresses[0].prefix()) == "192.0.2.0/24");
}

TEST_CASE("every key of a full configuration arrives", "[config]") {
    const auto parsed = parse(R"(
name = "gw1"
workers = [1, 2]
vtep = ["192.0.2.1", "2001:db8::1"]
state_dir = "/var/lib/sluice/gw1"
log = "debug"
[memory]
hugepages = "required"
packet_buffers = 65536
[sessions]
capacity = 2000000
ipv6_capacity = 4096
nat_blocks = 8192
vpc_connections = 1000
vpc_half_open = 200
vpc_connections_per_second = 5000
endpoint_connections = 300
endpoint_half_open = 30
endpoint_connections_per_second = 7000
[[port]]
role = "underlay"
device = "0000:03:00.0"
addresses = ["192.0.2.1/24", "2001:db8::1/64"]
next_hops = ["192.0.2.254", "2001:db8::fe"]
mtu = 9100
[[port]]
role = "uplink"
device = "net_tap0,iface=x0"
addresses = ["198.51.100.1/24"]
next_hops = ["198.51.100.254"]
neighbours = ["198.51.100.7 02:00:00:00:00:07"]
[openflow]
controllers = ["tcp:127.0.0.1:6653", "tcp:[::1]:6653", "unix:/run/c.sock"]
listen = "unix:/run/sluice/gw1.of"
[telemetry]
listen = "127.0.0.1:9301"
)");
    const auto* config = std::get_if<Config>(&parsed);
    REQUIRE(config != nullptr);
    CHECK(config->ports[0].is_pci());
    CHECK(config->ports[0].mtu == 9100);
    CHECK(config->ports[0].next_hops.size() == 2);
    CHECK(config->ports[1].role == Side::uplink);
    CHECK(config->ports[1].mtu == 1500);
    CHECK(to_string(config->ports[1].neighbours.at(0).mac) == "02:00:00:00:00:07");
    CHECK(config->sessions.nat_blocks == 8192);
    REQUIRE(config->openflow.controllers.size() == 3);
    CHECK(to_string(config->openflow.controllers[1]) == "tcp:[::1]:6653");
    CHECK(to_string(config->openflow.listen.value()) == "unix:/run/sluice/gw1.of");
    CHECK(config->telemetry.listen.value().port == 9301);
}

TEST_CASE("a bad file is answered with line, key and what was expected", "[config]") {
    struct Case {
        std::string from, to, message;
    };
    const auto of = GENERATE(values<Case>({
        {"name = \"gw1\"", "name = 7", "f:1: name: expected a string: the gateway's name; found 7"},
        {"name = \"gw1\"", "name = \"a b\"",
         "f:1: name: expected 1 to 63 of the characters A-Z a-z 0-9 - _ ."},
        {"name = \"gw1\"\n", "\n", "f: name: missing; expected a string: the gateway's name"},
        {"workers = [1]", "workers = []",
         "f:2: workers: expected the CPU cores to run workers on, as [1, 2]"},
        {"workers = [1]", "workers = [1, 1]", "f:2: workers[1]: expected each core once, found 1"},
        {"workers = [1]", "workers = [-1]",
         "f:2: workers[0]: expected an integer from 0 to 1023, found -1"},
        {"workers = [1]", "workers = \"1\"",
         "f:2: workers: expected an array of integers, found \"1\""},
        {"[\"192.0.2.1\"]", "[\"192.0.2.300\"]",
         "f:3: vtep[0]: expected a unicast IP address, found \"192.0.2.300\""},
        {"[\"192.0.2.1\"]", "[\"192.0.2.1\", \"192.0.2.2\"]",
         "f:3: vtep[1]: expected at most one address of each family, found \"192.0.2.2\""},
        {"[\"192.0.2.1\"]", "[\"2001:db8::1\"]",
         "f:3: vtep: expected an underlay port with an IPv6 address for 2001:db8::1"},
        {"\"/var/lib", "\"var/lib", "f:4: state_dir: expected an absolute path"},
        {"state_dir", "state",
         "f: state_dir: missing; expected a string: a folder for the "
         "committed tables"},
        {"role = \"underlay\"", "role = \"side\"",
         "f:6: port[0].role: expected \"underlay\" or \"uplink\", found \"side\""},
        {"role = \"underlay\"", "role = \"uplink\"",
         "f:5: port: expected at least one [[port]] with role = \"underlay\""},
        {"addresses = [\"192.0.2.1/24\"]", "addresses = [\"192.0.2.1\"]",
         "f:8: port[0].addresses[0]: expected a unicast address and its prefix length, as "
         "\"192.0.2.1/24\", found \"192.0.2.1\""},
        {"addresses = [\"192.0.2.1/24\"]", "",
         "f:5: port[0].addresses: expected at least one address with its prefix length"},
        {"addresses = [\"192.0.2.1/24\"]",
         "addresses = [\"192.0.2.1/24\"]\nnext_hops = [\"198.51.100.1\"]",
         "f:9: port[0].next_hops[0]: expected another address inside one of the port's own "
         "prefixes (`addresses`), found \"198.51.100.1\""},
        {"addresses = [\"192.0.2.1/24\"]", "addresses = [\"192.0.2.1/24\"]\nmtu = 100",
         "f:9: port[0].mtu: expected an integer from 1350 to 9600, found 100"},
        {"addresses = [\"192.0.2.1/24\"]", "addresses = [\"192.0.2.1/24\"]\nmtu = 1500.5",
         "f:9: port[0].mtu: expected an integer from 1350 to 9600, found 1500.5"},
        {"[[port]]", "[openflow]\nlisten = \"tcp:198.51.100.1:6653\"\n[[port]]",
         "f:6: openflow.listen: plain tcp: is for the loopback only (127.0.0.0/8 or [::1]), found "
         "\"tcp:198.51.100.1:6653\""},
        {"[[port]]", "[openflow]\nlisten = \"unix:run\"\n[[port]]",
         "f:6: openflow.listen: expected unix: and an absolute path of at most 107 characters, "
         "found \"unix:run\""},
        {"[[port]]", "[openflow]\nca = \"/x\"\n[[port]]",
         "f:6: openflow.ca: this release has no TLS; remove the key"},
        {"[[port]]", "[telemetry]\nlisten = \"9301\"\n[[port]]",
         "f:6: telemetry.listen: expected an IP address and a port, as \"127.0.0.1:9301\", found "
         "\"9301\""},
        {"[[port]]", "[memory]\nhugepages = true\n[[port]]",
         "f:6: memory.hugepages: expected \"auto\", \"required\" or \"off\", found true"},
        {"[[port]]", "[sesions]\ncapacity = 1\n[[port]]",
         "f:5: sesions: unknown key; gateway.example.toml has those that there are"},
        {"[[port]]", "[port]", "f:5: port: expected [[port]], an array of tables"},
    }));
    INFO(of.to);
    const auto found = messages(replaced(kGood, of.from, of.to));
    INFO(Catch::Detail::stringify(found));
    CHECK(std::find(found.begin(), found.end(), of.message) != found.end());
}

TEST_CASE("what is not TOML is answered with its line", "[config]") {
    const auto found = messages("name = \"gw1\"\nworkers = [1\n");
    REQUIRE(found.size() == 1);
    CHECK(found[0].starts_with("f:"));
    CHECK(found[0].find("not TOML") != std::string::npos);
}

TEST_CASE("all problems are reported at once, by line", "[config]") {
    const auto found = messages("name = 1\nworkers = 2\nvtep = 3\nstate_dir = 4\nextra = 5\n");
    REQUIRE(found.size() == 6);
    CHECK(found[0].starts_with("f: port:"));
    CHECK(found[1].starts_with("f:1: name:"));
    CHECK(found[5] == "f:5: extra: unknown key; gateway.example.toml has those that there are");
}

TEST_CASE("the same device or address on two ports is refused", "[config]") {
    const auto found = messages(kGood +
                                "[[port]]\nrole = \"uplink\"\ndevice = \"net_af_packet0,iface=v\"\n"
                                "addresses = [\"192.0.2.1/25\"]\nnext_hops = [\"192.0.2.2\"]\n");
    CHECK(found ==
          Lines{"f:9: port[1].device: expected each device once, found \"net_af_packet0\" again",
                "f:9: port[1].addresses: expected each address once, found 192.0.2.1 again",
                "f:9: port[1].addresses: expected no VTEP on an uplink, found 192.0.2.1"});
}

TEST_CASE("the same interface under two drivers, or PCI device in two spellings, is refused",
          "[config]") {
    const auto second = [](const std::string& device) {
        return "[[port]]\nrole = \"uplink\"\ndevice = \"" + device +
               "\"\naddresses = [\"198.51.100.1/24\"]\nnext_hops = [\"198.51.100.254\"]\n";
    };
    for (const auto* device : {"net_af_packet1,iface=u0", "net_af_xdp0,iface=u0",
                               "net_af_packet1,qpairs=2,iface=u0,framesz=2048"})
        CHECK(messages(kGood + second(device)) ==
              Lines{"f:9: port[1].device: expected each interface once, found iface=u0 again"});
    CHECK(messages(kGood + second("net_af_packet1,iface=u00")).empty());
    CHECK(
        messages(replaced(kGood, "net_af_packet0,iface=u0", "0000:03:00.0") + second("03:00.0")) ==
        Lines{"f:9: port[1].device: expected each device once, found \"03:00.0\" again"});
}

TEST_CASE("an address has one owner: the gateway once, or one neighbour", "[config]") {
    const auto with = [](const std::string& more) {
        return messages(kGood + more);  // line 9 and on
    };
    CHECK(with("next_hops = [\"192.0.2.9\", \"192.0.2.9\"]\n") ==
          Lines{"f:9: port[0].next_hops[1]: expected each next hop once, found \"192.0.2.9\""});
    CHECK(with("neighbours = [\"192.0.2.9 02:00:00:00:00:09\",\n\"192.0.2.9 "
               "02:00:00:00:00:0a\"]\n") ==
          Lines{"f:10: port[0].neighbours[1]: expected each neighbour once, found \"192.0.2.9 "
                "02:00:00:00:00:0a\""});
    CHECK(with("neighbours = [\"192.0.2.1 02:00:00:00:00:09\"]\n") ==
          Lines{"f:9: port[0].neighbours[0]: expected a neighbour's address, found the gateway's "
                "own 192.0.2.1"});
    // A VTEP that is another address than the port's, and the other port's own.
    auto text = replaced(kGood, "vtep = [\"192.0.2.1\"]", "vtep = [\"192.0.2.7\"]");
    CHECK(messages(text + "next_hops = [\"192.0.2.7\"]\n") ==
          Lines{"f:9: port[0].next_hops[0]: expected a neighbour's address, found the gateway's "
                "own 192.0.2.7"});
    CHECK(messages(replaced(kGood, "[\"192.0.2.1/24\"]", "[\"192.0.2.1/24\", \"192.0.2.1/25\"]")) ==
          Lines{"f:5: port[0].addresses: expected each address once, found 192.0.2.1 again"});
}

TEST_CASE("an uplink without a router leads nowhere", "[config]") {
    const auto uplink = kGood +
                        "[[port]]\nrole = \"uplink\"\ndevice = \"net_af_packet1,iface=v\"\n"
                        "addresses = [\"198.51.100.1/24\"]\n";
    CHECK(messages(uplink) ==
          Lines{"f:9: port[1].next_hops: expected the router on this link that leads to the "
                "internet"});
    CHECK(messages(uplink + "next_hops = []\n") ==
          Lines{"f:13: port[1].next_hops: expected the router on this link that leads to the "
                "internet"});
    CHECK(messages(uplink + "next_hops = [\"198.51.100.2\"]\n").empty());
}

TEST_CASE("a value of the wrong type is told as what was found", "[config]") {
    for (const auto* section : {"openflow", "telemetry"})
        for (const auto& [value, found] :
             std::initializer_list<std::pair<const char*, const char*>>{
                 {"[]", "an array"}, {"7", "7"}, {"true", "true"}, {"{}", "a table"}}) {
            const auto line =
                replaced(kGood, "[[port]]",
                         std::string("[") + section + "]\nlisten = " + value + "\n[[port]]");
            CHECK(messages(line) == Lines{std::string("f:6: ") + section +
                                          ".listen: expected a string, found " + found});
        }
    CHECK(
        messages(replaced(kGood, "[[port]]", "[telemetry]\nlisten = \"127.0.0.1:0\"\n[[port]]")) ==
        Lines{"f:6: telemetry.listen: expected an IP address and a port, as \"127.0.0.1:9301\", "
              "found \"127.0.0.1:0\""});
}

TEST_CASE("each key's line is known, for what only the machine can say", "[config]") {
    const auto reading = read(kGood + "[openflow]\nlisten = \"unix:/x\"\nwrong = 1\n");
    CHECK(reading.problems.size() == 1);
    CHECK(reading.config.line_of("openflow.listen") == 10);
    CHECK(reading.config.line_of("workers[0]") == 2);
    CHECK(reading.config.line_of("port[0].device") == 7);
    CHECK(reading.config.line_of("port[0].mtu") == 5);
    CHECK(reading.config.line_of("telemetry.listen") == 0);
}

TEST_CASE("an empty file lacks every required key", "[config]") {
    const auto path =
        std::filesystem::temp_directory_path() / ("config_test_" + std::to_string(getpid()));
    { std::ofstream empty(path); }
    const auto reading = read_file(path);
    std::filesystem::remove(path);
    REQUIRE(reading.problems.size() == 5);
    CHECK(to_string(reading.problems[0], "f") ==
          "f: name: missing; expected a string: the gateway's name");
}

TEST_CASE("the example has no problem, and every default that it names is the default",
          "[config]") {
    const auto example = load(root() / "deploy/gateway.example.toml");
    const auto* config = std::get_if<Config>(&example);
    REQUIRE(config != nullptr);
    const Config defaults;
    CHECK(config->log == defaults.log);
    CHECK(config->memory.packet_buffers == defaults.memory.packet_buffers);
    CHECK(config->sessions.capacity == defaults.sessions.capacity);
    CHECK(config->sessions.ipv6_capacity == defaults.sessions.ipv6_capacity);
    CHECK(config->sessions.nat_blocks == defaults.sessions.nat_blocks);
}

TEST_CASE("a file that cannot be read is a problem without a line", "[config]") {
    const auto parsed = load("/nonexistent/gateway.toml");
    const auto* problems = std::get_if<std::vector<Problem>>(&parsed);
    REQUIRE(problems != nullptr);
    CHECK(to_string(problems->at(0), "g") ==
          "g: cannot be read: No such file or directory; name a TOML file that exists and is "
          "readable");
    // As root every file can be read; a path through a file cannot be walked.
    const auto through = load("/etc/passwd/gateway.toml");
    CHECK(to_string(std::get<std::vector<Problem>>(through).at(0), "g") ==
          "g: cannot be read: Not a directory; name a TOML file that exists and is readable");
}

}  // namespace sluice::config
