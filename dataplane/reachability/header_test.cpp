// SPDX-License-Identifier: Apache-2.0
#include "dataplane/reachability/header.hpp"

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"
#include "dataplane/wire/checksum.hpp"

namespace sluice::reachability {
namespace {

using namespace wire::build;

Tunnel tunnel(std::string_view own, std::string_view remote) {
    return {.port = PortId{1},
            .own_mac = "02:00:00:00:00:01"_mac,
            .next_hop_mac = "02:00:00:00:00:02"_mac,
            .own_vtep = *parse_ip(own),
            .remote_vtep = *parse_ip(remote),
            .vni = Vni{0x123456},
            .zone = policy::ZoneSlot{3},
            .inner_source = "02:00:00:00:00:03"_mac,
            .inner_destination = "02:00:00:00:00:04"_mac,
            .inner = Family::ipv4,
            .mtu = 1450,
            .bridged = false};
}

}  // namespace

TEST_CASE("an IPv4 tunnel header is what RFC 7348 draws, per-packet fields zero",
          "[reachability]") {
    const auto adjacency = vxlan(tunnel("192.0.2.1", "192.0.2.9"));
    CHECK(adjacency.kind == policy::Adjacency::Kind::vxlan_ipv4);
    CHECK(adjacency.zone == policy::ZoneSlot{3});
    CHECK(adjacency.mtu == 1450);
    const std::array<std::uint8_t, 64> expected = {
        0x02, 0, 0,    0,    0,    2,    0x02, 0, 0,  0,  0, 1, 0x08, 0x00,  // Ethernet
        0x45, 0, 0,    0,    0,    0,    0x40, 0, 64, 17, 0, 0, 192,  0,
        2,    1, 192,  0,    2,    9,                                         // IPv4, DF
        0,    0, 0x12, 0xb5, 0,    0,    0,    0,                             // UDP 4789
        0x08, 0, 0,    0,    0x12, 0x34, 0x56, 0,                             // VXLAN
        0x02, 0, 0,    0,    0,    4,    0x02, 0, 0,  0,  0, 3, 0x08, 0x00};  // inner
    CHECK(std::equal(expected.begin(), expected.end(), adjacency.header.begin()));
    CHECK(adjacency.checksum_base ==
          wire::Sum{}.add(std::span(adjacency.header).subspan(14, 20)).folded());
}

TEST_CASE("an IPv6 tunnel header is twenty octets longer", "[reachability]") {
    auto facts = tunnel("2001:db8::1", "2001:db8::9");
    facts.inner = Family::ipv6;
    const auto adjacency = vxlan(facts);
    CHECK(adjacency.kind == policy::Adjacency::Kind::vxlan_ipv6);
    CHECK(adjacency.header[12] == 0x86);
    CHECK(adjacency.header[14] == 0x60);
    CHECK(adjacency.header[14 + 6] == 17);
    CHECK(adjacency.header[14 + 7] == 64);
    CHECK(adjacency.header[54 + 2] == 0x12);
    CHECK(adjacency.header[82] == 0x86);
    CHECK(adjacency.header[83] == 0xdd);
}

TEST_CASE("the uplink's header is Ethernet alone", "[reachability]") {
    const auto adjacency = ethernet({.port = PortId{2},
                                     .own_mac = "02:00:00:00:00:01"_mac,
                                     .next_hop_mac = "02:00:00:00:00:02"_mac,
                                     .family = Family::ipv6,
                                     .mtu = 1500});
    CHECK(adjacency.kind == policy::Adjacency::Kind::ethernet);
    CHECK(adjacency.zone == policy::ZoneSlot{0});
    const std::array<std::uint8_t, 14> expected = {0x02, 0, 0, 0, 0, 2,    0x02,
                                                   0,    0, 0, 0, 1, 0x86, 0xdd};
    CHECK(std::equal(expected.begin(), expected.end(), adjacency.header.begin()));
}

}  // namespace sluice::reachability
