// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/icmp_error.hpp"

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"
#include "dataplane/wire/special_address.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

const IpAddress kFrom4 = "10.0.0.254"_ip, kFrom6 = "2001:db8::fe"_ip;
const Ethernet kBack{.source = Ethernet{}.destination, .destination = Ethernet{}.source};

Bytes error_about(const Bytes& frame, const IcmpErrorMessage& message, std::size_t room = 4096) {
    Bytes out(room);
    out.resize(write_icmp_error(out, frame, message));
    return out;
}

// About a packet that expired: the family's rules decide alone whether something may be said.
bool silent(const std::vector<Layer>& layers) {
    const Bytes frame = packet(layers);
    return error_about(frame, {IcmpError::time_exceeded, kFrom4}).empty() &&
           error_about(frame, {IcmpError::time_exceeded, kFrom6}).empty();
}

Bytes first(const Bytes& bytes, std::size_t offset, std::size_t count) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(std::min(count, bytes.size() - offset))};
}

// The frame that RFC 792 and RFC 1812 ask for, built otherwise.
Bytes expected4(const Bytes& about, Icmp icmp) {
    return packet({kBack,
                   Ipv4{.source = kFrom4,
                        .destination = Ipv4{}.source,
                        .tos = 0xc0,
                        .identification = 0,
                        .flags_and_offset = ipv4::kDontFragment},
                   icmp, Payload{first(about, 14, 548)}});
}
Bytes expected6(const Bytes& about, Icmp icmp) {
    return packet({kBack, Ipv6{.source = kFrom6, .destination = Ipv6{}.source}, icmp,
                   Payload{first(about, 14, 1232)}});
}

}  // namespace

TEST_CASE("ICMP: types and codes of RFC 792 and RFC 1812, the packet quoted whole if it is short") {
    struct Row {
        IcmpError error;
        std::uint8_t type, code;
    };
    const Bytes frame = packet({Ethernet{}, Ipv4{.ttl = 1}, Udp{}, Payload{filler(30)}});
    for (const auto& row :
         {Row{IcmpError::time_exceeded, 11, 0}, Row{IcmpError::no_route, 3, 0},
          Row{IcmpError::address_unreachable, 3, 1}, Row{IcmpError::port_unreachable, 3, 3},
          Row{IcmpError::admin_prohibited, 3, 13}})
        CHECK(
            error_about(frame, {row.error, kFrom4}) ==
            expected4(frame, {.type = row.type, .code = row.code, .identifier = 0, .sequence = 0}));
}

TEST_CASE("ICMPv6: types and codes of RFC 4443") {
    struct Row {
        IcmpError error;
        std::uint8_t type, code;
    };
    const Bytes frame = packet({Ethernet{}, Ipv6{.hop_limit = 1}, Tcp{}, Payload{filler(30)}});
    for (const auto& row :
         {Row{IcmpError::time_exceeded, 3, 0}, Row{IcmpError::no_route, 1, 0},
          Row{IcmpError::address_unreachable, 1, 3}, Row{IcmpError::port_unreachable, 1, 4},
          Row{IcmpError::admin_prohibited, 1, 1}})
        CHECK(
            error_about(frame, {row.error, kFrom6}) ==
            expected6(frame, {.type = row.type, .code = row.code, .identifier = 0, .sequence = 0}));
}

TEST_CASE("Too big: the MTU where RFC 1191 and RFC 4443 have it") {
    const Bytes v4 = packet(
        {Ethernet{}, Ipv4{.flags_and_offset = ipv4::kDontFragment}, Tcp{}, Payload{filler(1460)}});
    CHECK(error_about(v4, {IcmpError::too_big, kFrom4, 1450}) ==
          expected4(v4, {.type = 3, .code = 4, .identifier = 0, .sequence = 1450}));
    const Bytes v6 = packet({Ethernet{}, Ipv6{}, Tcp{}, Payload{filler(1460)}});
    CHECK(error_about(v6, {IcmpError::too_big, kFrom6, 1450}) ==
          expected6(v6, {.type = 2, .code = 0, .identifier = 0, .sequence = 1450}));
    // Without DF it would have been fragmented.
    const Bytes without = packet({Ethernet{}, Ipv4{}, Tcp{}, Payload{filler(1460)}});
    CHECK(error_about(without, {IcmpError::too_big, kFrom4, 1450}).empty());
}

TEST_CASE("An error is never longer than 576 octets (ICMPv6: 1,280)") {
    for (std::size_t size : {0U, 8U, 519U, 520U, 521U, 1203U, 1204U, 1205U, 9000U}) {
        const Bytes v4 = packet({Ethernet{}, Ipv4{}, Udp{}, Payload{filler(size)}});
        const Bytes about4 = error_about(v4, {IcmpError::no_route, kFrom4});
        CHECK(about4.size() == 14 + std::min<std::size_t>(576, 28 + 28 + size));
        CHECK(about4.size() <= kMaxIcmpErrorFrame);
        const Bytes v6 = packet({Ethernet{}, Ipv6{}, Udp{}, Payload{filler(size)}});
        const Bytes about6 = error_about(v6, {IcmpError::no_route, kFrom6});
        CHECK(about6.size() == 14 + std::min<std::size_t>(1280, 48 + 48 + size));
        CHECK(about6.size() <= kMaxIcmpv6ErrorFrame);
    }
}

TEST_CASE("Only the packet is quoted, not Ethernet's padding behind it") {
    Bytes frame = packet({Ethernet{}, Ipv4{}, Udp{}});
    const Bytes right = error_about(frame, {IcmpError::no_route, kFrom4});
    frame.resize(60, 0xaa);
    CHECK(error_about(frame, {IcmpError::no_route, kFrom4}) == right);
}

TEST_CASE("A smaller span quotes less, down to eight octets of the upper layer") {
    const Bytes frame = packet({Ethernet{}, Ipv4{.options = {1}}, Tcp{}, Payload{filler(100)}});
    const std::size_t least = 14 + 20 + 8 + 24 + 8;
    for (std::size_t room = 0; room < 14 + 28 + 144; ++room) {
        const Bytes error = error_about(frame, {IcmpError::no_route, kFrom4}, room);
        CHECK(error.size() == (room < least ? 0 : room));
        if (error.empty()) continue;
        CHECK(Sum{}.add(std::span{error}.subspan(34)).folded() == 0xffff);
        CHECK(load16(&error[14 + ipv4::kLength]).host() == room - 14);
    }
}

// RFC 1122 section 3.2.2: "An ICMP error message MUST NOT be sent as the result of receiving".
TEST_CASE("RFC 1122: no error about an ICMP error message") {
    for (std::uint8_t type : {3, 4, 5, 11, 12, 19, 40, 255})
        CHECK(silent({Ethernet{}, Ipv4{}, Icmp{.type = type}}));
    for (std::uint8_t type : {0, 8, 13, 14})
        CHECK_FALSE(silent({Ethernet{}, Ipv4{}, Icmp{.type = type}}));
    // One that is too short to have a type is no query either.
    CHECK(silent({Ethernet{}, Ipv4{.protocol = 1}}));
}

TEST_CASE("RFC 1122: no error about a datagram to an IP broadcast or multicast address") {
    for (auto address : {"255.255.255.255"_ip, "224.0.0.1"_ip, "239.1.2.3"_ip})
        CHECK(silent({Ethernet{}, Ipv4{.destination = address}, Udp{}}));
}

TEST_CASE("RFC 1122: no error about a datagram sent as a link-layer broadcast") {
    CHECK(silent({Ethernet{.destination = ethernet::kBroadcast}, Ipv4{}, Udp{}}));
    CHECK(silent({Ethernet{.destination = "01:00:5e:00:00:01"_mac}, Ipv4{}, Udp{}}));
}

TEST_CASE("RFC 1122: no error about a non-initial fragment") {
    CHECK(silent({Ethernet{}, Ipv4{.flags_and_offset = 1}, Udp{}}));
    CHECK(silent({Ethernet{}, Ipv4{.flags_and_offset = 0x2001}, Udp{}}));
    CHECK_FALSE(silent({Ethernet{}, Ipv4{.flags_and_offset = 0x2000}, Udp{}}));
}

TEST_CASE("RFC 1122: no error about a source that does not define a single host") {
    for (auto address : {"0.0.0.0"_ip, "0.1.2.3"_ip, "127.0.0.1"_ip, "224.0.0.1"_ip, "240.0.0.1"_ip,
                         "255.255.255.255"_ip})
        CHECK(silent({Ethernet{}, Ipv4{.source = address}, Udp{}}));
    CHECK(silent({Ethernet{.source = ethernet::kBroadcast}, Ipv4{}, Udp{}}));
}

TEST_CASE("RFC 4443 section 2.4 (e): the same for ICMPv6") {
    for (std::uint8_t type : {0, 1, 2, 3, 4, 100, 127, 137})
        CHECK(silent({Ethernet{}, Ipv6{}, Icmp{.type = type}}));
    for (std::uint8_t type : {128, 129, 135, 136})
        CHECK_FALSE(silent({Ethernet{}, Ipv6{}, Icmp{.type = type}}));
    CHECK(silent({Ethernet{}, Ipv6{}, Extension{}, Icmp{.type = 1}}));
    CHECK(silent({Ethernet{}, Ipv6{.destination = "ff02::1"_ip}, Udp{}}));
    CHECK(silent({Ethernet{.destination = "33:33:00:00:00:01"_mac}, Ipv6{}, Udp{}}));
    for (auto address : {"::"_ip, "::1"_ip, "ff02::1"_ip, "10.0.0.1"_ip})
        CHECK(silent({Ethernet{}, Ipv6{.source = address}, Udp{}}));
    CHECK(silent({Ethernet{}, Ipv6{}, FragmentHeader{.offset_and_more = 8}, Udp{}}));
    CHECK_FALSE(silent({Ethernet{}, Ipv6{}, FragmentHeader{.offset_and_more = 1}, Udp{}}));
}

TEST_CASE("No error about what is no IP packet, or whose headers lie") {
    CHECK(silent({Ethernet{}, Arp{}}));
    CHECK(silent({Ethernet{.type = 0x86dd}, Ipv4{}, Udp{}}));
    CHECK(silent({Ethernet{}, Ipv4{.version_and_words = 0x44}, Udp{}}));
    CHECK(silent({Ethernet{}, Ipv4{.length = 19}, Udp{}}));
    CHECK(silent({Ethernet{}, Ipv6{}, Extension{.length = 200}, Udp{}}));
    const Bytes frame = packet({Ethernet{}, Ipv4{}, Udp{}});
    CHECK(error_about(frame, {IcmpError::no_route, {}}).empty());
    CHECK(error_about(frame, {IcmpError::no_route, "224.0.0.1"_ip}).empty());
    for (std::size_t size = 0; size < 34; ++size)
        CHECK(error_about(first(frame, 0, size), {IcmpError::no_route, kFrom4}).empty());
}

TEST_CASE("A packet that was cut off behind its headers is quoted as far as it is there") {
    const Bytes frame = packet({Ethernet{}, Ipv4{}, Udp{}, Payload{filler(500)}});
    const Bytes error = error_about(first(frame, 0, 100), {IcmpError::no_route, kFrom4});
    CHECK(error.size() == 14 + 28 + 86);
    CHECK(first(error, 42, 86) == first(frame, 14, 86));
}

TEST_CASE("No answer to an answer: an error about our own error is never written") {
    const Bytes frame = packet({Ethernet{}, Ipv4{}, Udp{}});
    const Bytes error = error_about(frame, {IcmpError::no_route, kFrom4});
    CHECK(error_about(error, {IcmpError::time_exceeded, kFrom4}).empty());
    const Bytes frame6 = packet({Ethernet{}, Ipv6{}, Udp{}});
    const Bytes error6 = error_about(frame6, {IcmpError::no_route, kFrom6});
    CHECK(error_about(error6, {IcmpError::time_exceeded, kFrom6}).empty());
}
