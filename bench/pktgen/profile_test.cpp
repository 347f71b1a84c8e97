// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/profile.hpp"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::pktgen;

namespace {

const std::string kPort =
    "[[port]]\nrole = \"underlay\"\ndevice = \"net_null0\"\ngateway = \"192.0.2.1\"\n";

// Everything that is wrong with it, as people read it.
std::string problems(const std::string& text) {
    std::string result;
    for (const auto& problem : read(text).problems) result += to_string(problem, "p.toml") + "\n";
    return result;
}

}  // namespace

TEST_CASE("a profile needs a name and a port, all else has defaults") {
    const auto [profile, found] = read("name = \"x\"\n" + kPort);
    REQUIRE(found.empty());
    CHECK(profile.flows.count == 1000);
    CHECK(profile.flows.to == Destination::peer);
    CHECK(profile.frames == std::vector<FrameShare>{{64, 1}});
    CHECK(profile.tenants.first_vni == Vni{100});
    CHECK(profile.underlay().gateway == *parse_ip("192.0.2.1"));
    CHECK(problems("").find("name: missing") != std::string::npos);
}

TEST_CASE("a problem of a profile names file, line, key and cause") {
    CHECK(problems("name = \"x\"\n[flows]\ncount = 0\n" + kPort) ==
          "p.toml:3: flows.count: expected an integer from 1 to 50000000, found 0\n");
    CHECK(problems("name = \"x\"\nspeed = 3\n" + kPort) ==
          "p.toml:2: speed: unknown key; bench/profiles/elastic.toml has those that there are\n");
    CHECK(problems("name = \"x\"\n[flows]\nexponent = 1.1\n" + kPort) ==
          "p.toml:3: flows.exponent: only distribution = \"zipf\" has one; remove the key\n");
    CHECK(problems("name = ").find("p.toml:1: not TOML") == 0);
}

TEST_CASE("IMIX is 28 small, 16 middle and 4 large frames, and has no size of its own") {
    const auto [profile, found] = read("name = \"x\"\n[frames]\nmix = \"imix\"\n" + kPort);
    REQUIRE(found.empty());
    CHECK(profile.frames == std::vector<FrameShare>{{64, 28}, {570, 16}, {1518, 4}});
    CHECK(problems("name = \"x\"\n[frames]\nmix = \"imix\"\nsize = 64\n" + kPort)
              .find("frames.size") != std::string::npos);
}

TEST_CASE("a frame must hold a stamp and fit the ports' MTU") {
    CHECK(problems("name = \"x\"\n[frames]\nsize = 63\n" + kPort).find("from 64") !=
          std::string::npos);
    CHECK(problems("name = \"x\"\n[tenants]\nfamily = \"ipv6\"\n[frames]\nsize = 83\n" + kPort)
              .find("from 84") != std::string::npos);
    CHECK(problems("name = \"x\"\n[frames]\nsize = 1569\n" + kPort) ==
          "p.toml:4: port.mtu: frames of 1569 octets take an MTU of 1601 on the underlay, not "
          "1600\n");
    CHECK(problems("name = \"x\"\n[frames]\nsize = 1568\n" + kPort).empty());
}

TEST_CASE("RoCEv2 has its own port, whole words and queue pairs, which nothing else has") {
    const std::string roce = "name = \"x\"\n[flows]\nprotocol = \"rocev2\"\n";
    CHECK(problems(roce + "queue_pairs = 8\n" + kPort).empty());
    CHECK(problems(roce + "server_port = 443\n" + kPort).find("has port 4791") !=
          std::string::npos);
    CHECK(
        problems(roce + "[frames]\nsize = 84\n" + kPort) ==
        "p.toml:5: frames.size: expected two more than a multiple of four: payloads of RoCEv2 are "
        "of whole words\n");
    CHECK(problems(roce + "[frames]\nsize = 78\n" + kPort).find("from 82") != std::string::npos);
    CHECK(problems(roce + "count = 9000000\n" + kPort).find("at most 8388607") !=
          std::string::npos);
    CHECK(problems("name = \"x\"\n[flows]\nqueue_pairs = 8\n" + kPort) ==
          "p.toml:3: flows.queue_pairs: only protocol = \"rocev2\" has them; remove the key\n");
}

TEST_CASE("no more flows than there are tuples, and no host with the gateway's VTEP") {
    CHECK(problems("name = \"x\"\n[flows]\ncount = 64001\n" + kPort).find("at most 64000") !=
          std::string::npos);
    CHECK(problems("name = \"x\"\n[hosts]\nfirst_vtep = \"192.0.2.0\"\n" + kPort)
              .find("host 1 has the gateway's VTEP") != std::string::npos);
}

TEST_CASE("flows to the internet need an uplink and addresses of the internet") {
    const std::string flows = "name = \"x\"\n[flows]\nto = \"internet\"\n";
    const auto without = problems(flows + kPort);
    CHECK(without.find("role = \"uplink\"") != std::string::npos);
    CHECK(without.find("198.18.0.0/15 is no part of the internet") != std::string::npos);
    CHECK(problems(flows + "[tenants]\nelastic_pool = \"203.0.113.0/24\"\n" + kPort +
                   "[[port]]\nrole = \"uplink\"\ndevice = \"net_null1\"\n"
                   "gateway = \"198.51.100.1\"\naddress = \"198.51.100.254\"\n")
              .empty());
    CHECK(
        problems("name = \"x\"\n[flows]\nto = \"elastic\"\n[tenants]\nfamily = \"ipv6\"\n" + kPort)
            .find("elastic IPs are IPv4's") != std::string::npos);
}
