// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/rewrite.hpp"

#include <array>
#include <catch2/catch.hpp>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/worker/ecn.hpp"

using namespace sluice;
using namespace sluice::worker;

TEST_CASE("a checksum that is adjusted is the one that a fresh sum gives, whatever it was") {
    // Every identification, and thus every checksum that this header can have.
    for (std::uint32_t id = 0; id <= 0xffff; ++id) {
        std::array<std::uint8_t, 20> ip = {0x45, 0, 0,  40, 0, 0,  0x40, 0, 64, 6,
                                           0,    0, 10, 0,  1, 10, 10,   0, 2,  10};
        wire::store(ip.data() + 4, be16{static_cast<std::uint16_t>(id)});
        wire::store(ip.data() + wire::ipv4::kChecksum, wire::ipv4_header_checksum(ip));
        decrement_ttl_ipv4(ip.data());
        CHECK(ip[wire::ipv4::kTtl] == 63);
        const be16 adjusted = wire::load16(ip.data() + wire::ipv4::kChecksum);
        wire::store(ip.data() + wire::ipv4::kChecksum, be16{0});
        if (adjusted != wire::ipv4_header_checksum(ip)) FAIL("identification " << id);
    }
}

TEST_CASE("zero is 0 in a TCP checksum and 0xffff in a UDP one") {
    std::array<std::uint8_t, 2> field{};
    const std::uint16_t delta = be16{0x1234}.raw;
    wire::put_raw(field.data(), static_cast<std::uint16_t>(~delta));
    add_to_field(field.data(), delta);
    CHECK(wire::raw16(field.data()) == 0);
    wire::put_raw(field.data(), static_cast<std::uint16_t>(~delta));
    add_to_udp_field(field.data(), delta);
    CHECK(wire::raw16(field.data()) == 0xffff);
}

TEST_CASE("a mark of congestion is carried over once, however often a packet is looked at") {
    std::array<std::uint8_t, 20> ip = {0x45, 0xca, 0,  40, 0, 0,  0x40, 0, 64, 6,
                                       0,    0,    10, 0,  1, 10, 10,   0, 2,  10};
    wire::store(ip.data() + wire::ipv4::kChecksum, wire::ipv4_header_checksum(ip));
    wire::Headers headers;
    headers.traffic_class = 0xca;  // ECT(0)
    headers.outer_ecn = 1;         // ECT(1)
    for (int look = 0; look < 2; ++look) {
        std::uint8_t traffic_class = headers.traffic_class;
        CHECK(combine_ecn(ip.data(), headers, traffic_class));
        CHECK(traffic_class == 0xc9);
        CHECK(ip[wire::ipv4::kTos] == 0xc9);
        CHECK(wire::ipv4_header_checksum_ok(ip));
    }
    headers.outer_ecn = 3;
    ip[wire::ipv4::kTos] = 0xc8;
    std::uint8_t traffic_class = 0xc8;
    CHECK_FALSE(combine_ecn(ip.data(), headers, traffic_class));
}
