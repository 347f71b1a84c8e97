// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/builder.hpp"

#include <catch2/catch.hpp>

#include "dataplane/wire/upper_layer.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

std::span<const std::uint8_t> behind(const Bytes& bytes, std::size_t offset) {
    return std::span{bytes}.subspan(offset);
}

}  // namespace

TEST_CASE("Lengths, types and checksums of nested headers are right by themselves") {
    const Bytes frame =
        packet({Ethernet{}, Ipv4{.source = "192.0.2.1"_ip, .destination = "192.0.2.2"_ip},
                Udp{.destination = 4789}, Vxlan{.vni = Vni{0xabcdef}}, Ethernet{}, Ipv6{},
                Tcp{.options = {2, 4, 5, 0xb4}}, Payload{{'o', 'd', 'd'}}});
    REQUIRE(frame.size() == 14 + 20 + 8 + 8 + 14 + 40 + 24 + 3);

    CHECK(load16(&frame[12]) == ethernet::kIpv4);
    const auto outer = behind(frame, 14);
    CHECK(ipv4_header_checksum_ok(outer.first(20)));
    CHECK(load16(&outer[ipv4::kLength]).host() == outer.size());
    CHECK(outer[ipv4::kProtocol] == 17);
    CHECK(load16(&outer[20 + udp::kLength]).host() == outer.size() - 20);
    CHECK(transport_checksum_ok("192.0.2.1"_ip, "192.0.2.2"_ip, Protocol::udp, outer.subspan(20)));
    CHECK(load32(&outer[28]).host() == 0x08000000);
    CHECK(load32(&outer[28 + vxlan::kVni]).host() == 0xabcdef00);

    CHECK(load16(&outer[36 + 12]) == ethernet::kIpv6);
    const auto inner = outer.subspan(50);
    CHECK(load16(&inner[ipv6::kLength]).host() == 27);
    CHECK(inner[ipv6::kNextHeader] == 6);
    CHECK(inner[40 + tcp::kDataOffset] == 0x60);
    CHECK(transport_checksum_ok("2001:db8::1"_ip, "2001:db8::2"_ip, Protocol::tcp,
                                inner.subspan(40)));
}

TEST_CASE("ICMP is of the family it lies in") {
    const Bytes v4 = packet({Ipv4{}, Icmp{}});
    CHECK(v4[ipv4::kProtocol] == 1);
    CHECK(Sum{}.add(behind(v4, 20)).folded() == 0xffff);

    const Bytes v6 = packet({Ipv6{}, Extension{}, Icmp{.type = 128}});
    CHECK(v6[ipv6::kNextHeader] == ipv6::kDestinationOptions);
    const auto upper = find_upper_layer(v6);
    REQUIRE(upper);
    CHECK(upper->protocol == 58);
    CHECK(transport_checksum_ok("2001:db8::1"_ip, "2001:db8::2"_ip, Protocol::icmpv6,
                                behind(v6, upper->offset)));
}

TEST_CASE("What is given is written as it is") {
    const Bytes frame =
        packet({Ethernet{.type = 0x1234},
                Ipv4{.version_and_words = 0x6f, .protocol = 99, .length = 1, .checksum = 0xbeef},
                Udp{.length = 7, .checksum = 0}});
    CHECK(load16(&frame[12]).host() == 0x1234);
    CHECK(frame[14] == 0x6f);
    CHECK(frame[14 + ipv4::kProtocol] == 99);
    CHECK(load16(&frame[14 + ipv4::kLength]).host() == 1);
    CHECK(load16(&frame[14 + ipv4::kChecksum]).host() == 0xbeef);
    CHECK(load16(&frame[34 + udp::kLength]).host() == 7);
    CHECK(load16(&frame[34 + udp::kChecksum]).host() == 0);
}
