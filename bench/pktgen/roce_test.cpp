// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/roce.hpp"

#include <catch2/catch.hpp>
#include <string_view>
#include <vector>

#include "dataplane/wire/builder.hpp"

using namespace sluice;
using namespace sluice::pktgen;

namespace {

namespace b = wire::build;

// A notification of congestion as a ConnectX-4 Lx has sent it: what its firmware took for the
// invariant CRC is the last word.
b::Bytes of_a_nic() {
    b::Bytes notification(bth::kSize + 16);
    notification[bth::kOpcode] = 0x81;
    wire::store(notification.data() + bth::kPartition, be16{0xffff});
    notification[bth::kCongestion] = 0x40;
    put_24(notification.data() + bth::kQueuePair, 0x000118);
    for (const std::uint8_t octet : std::initializer_list<std::uint8_t>{0x82, 0xfd, 0x00, 0x2a})
        notification.push_back(octet);
    return b::packet({b::Ipv4{.source = *parse_ip("10.0.17.1"),
                              .destination = *parse_ip("10.0.18.1"),
                              .ttl = 64,
                              .tos = 0xc2,
                              .identification = 0x718c,
                              .flags_and_offset = wire::ipv4::kDontFragment},
                      b::Udp{.source = 0, .destination = 4791, .checksum = 0},
                      b::Payload{notification}});
}

// IPv6 with every bit that does not count set or not.
b::Bytes over_ipv6(std::uint8_t octet) {
    b::Bytes packet =
        b::packet({b::Ipv6{.source = *parse_ip("fd00::1"), .destination = *parse_ip("fd00::2")},
                   b::Udp{.source = 50'000, .destination = 4791, .checksum = 0},
                   b::Payload{b::Bytes(bth::kSize + 20 + bth::kChecksum)}});
    std::uint8_t* header = packet.data() + wire::ipv6::kSize + wire::udp::kSize;
    begin_bth(header, 77);
    packet[0] = static_cast<std::uint8_t>(0x60 | (octet & 0x0f));
    for (const std::size_t at :
         {std::size_t{1}, std::size_t{2}, std::size_t{3}, wire::ipv6::kHopLimit,
          wire::ipv6::kSize + 6, wire::ipv6::kSize + 7})
        packet[at] = octet;
    header[bth::kCongestion] = octet;
    return packet;
}

}  // namespace

TEST_CASE("the CRC is the one of IEEE 802.3, at any length") {
    constexpr std::string_view kText = "123456789";
    const std::vector<std::uint8_t> octets(kText.begin(), kText.end());
    CHECK(~Crc32::advance(Crc32::kBegin, octets) == 0xcbf43926);
    for (std::size_t cut = 0; cut <= octets.size(); ++cut) {
        const std::span all(octets);
        CHECK(Crc32::advance(Crc32::advance(Crc32::kBegin, all.first(cut)), all.subspan(cut)) ==
              ~0xcbf43926U);
    }
}

TEST_CASE("zeros advance the CRC at once as they do one by one") {
    for (const std::size_t count : {0U, 1U, 7U, 8U, 44U, 1004U, 8938U}) {
        const Crc32::Zeros zeros(count);
        for (const std::uint32_t state : {0U, 1U, 0x80000000U, 0xdeadbeefU, 0xffffffffU})
            CHECK(zeros.behind(state) == Crc32::advance(state, std::vector<std::uint8_t>(count)));
    }
}

TEST_CASE("the invariant CRC of a packet that a NIC has sent is right, and no other") {
    b::Bytes packet = of_a_nic();
    REQUIRE(packet.size() == 60);
    CHECK(invariant_crc_ok(packet, true));
    for (std::size_t at = 1; at < packet.size(); ++at) {
        // Class, TTL, both checksums and the marks of congestion may change on the way.
        const bool free = at == wire::ipv4::kTos || at == wire::ipv4::kTtl || at == 10 ||
                          at == 11 || at == 26 || at == 27 || at == 32;
        packet[at] ^= 0x01;
        INFO("octet " << at);
        CHECK(invariant_crc_ok(packet, true) == free);
        packet[at] ^= 0x01;
    }
}

TEST_CASE("over IPv6 class, flow label, hop limit and UDP checksum do not count") {
    b::Bytes packet = over_ipv6(0);
    const std::size_t headers = wire::ipv6::kSize + wire::udp::kSize + bth::kSize;
    const std::uint32_t state = begin_invariant_crc(packet.data(), false);
    CHECK(state == begin_invariant_crc(over_ipv6(0xff).data(), false));
    put_invariant_crc(packet.data() + packet.size() - bth::kChecksum,
                      Crc32::advance(state, std::span(packet).subspan(headers, 20)));
    CHECK(invariant_crc_ok(packet, false));
    packet[wire::ipv6::kSource + 15] ^= 1;
    CHECK(!invariant_crc_ok(packet, false));
}
