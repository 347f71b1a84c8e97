// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/quote.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

const IpAddress kRouter4 = "198.51.100.9"_ip, kRouter6 = "2001:db8:9::9"_ip;

// An error about `quoted`, sent by a router to whoever sent it; `least` octets of it are kept.
Bytes error4(Bytes quoted, IpAddress to,
             Icmp icmp = {.type = 3, .code = 1, .identifier = 0, .sequence = 0}) {
    return packet({Ipv4{.source = kRouter4, .destination = to}, icmp, Payload{std::move(quoted)}});
}
Bytes error6(Bytes quoted, IpAddress to,
             Icmp icmp = {.type = 1, .code = 3, .identifier = 0, .sequence = 0}) {
    return packet({Ipv6{.source = kRouter6, .destination = to}, icmp, Payload{std::move(quoted)}});
}

Bytes first(const Bytes& bytes, std::size_t count) {
    return {bytes.begin(),
            bytes.begin() + static_cast<std::ptrdiff_t>(std::min(count, bytes.size()))};
}

// The upper layer of a packet between two ends, and both ends as its tuple has them.
struct Ends {
    IpAddress source, destination;
    std::uint16_t source_port = 0, destination_port = 0;
};

std::vector<Layer> sent(const Ends& ends, std::uint8_t protocol, const Ipv4& like4 = {},
                        const Ipv6& like6 = {}) {
    std::vector<Layer> layers;
    if (ends.source.is_v4()) {
        Ipv4 ip = like4;
        ip.source = ends.source;
        ip.destination = ends.destination;
        if (protocol == 99) ip.protocol = 99;
        layers.emplace_back(ip);
    } else {
        Ipv6 ip = like6;
        ip.source = ends.source;
        ip.destination = ends.destination;
        if (protocol == 99) ip.next_header = 99;
        layers.emplace_back(ip);
    }
    if (protocol == 6)
        layers.emplace_back(Tcp{.source = ends.source_port, .destination = ends.destination_port});
    if (protocol == 17)
        layers.emplace_back(Udp{.source = ends.source_port, .destination = ends.destination_port});
    if (protocol == 1 || protocol == 58)
        layers.emplace_back(Icmp{.type = static_cast<std::uint8_t>(ends.destination_port >> 8),
                                 .identifier = ends.source_port});
    return layers;
}

}  // namespace

TEST_CASE("The quoted packet's tuple is that of its sender's direction") {
    const auto quote = parse_quote(
        error4(packet({Ipv4{.ttl = 1}, Udp{.source = 5000, .destination = 6000}}), "10.0.0.1"_ip));
    REQUIRE(quote);
    CHECK(quote->tuple == Tuple{"10.0.0.1"_ip, "10.0.0.2"_ip, 17, 5000, 6000});
    CHECK(quote->source == kRouter4);
    CHECK(quote->destination == "10.0.0.1"_ip);
    CHECK(quote->type == 3);
    CHECK(quote->code == 1);
    CHECK(quote->icmp_offset == 20);
    CHECK(quote->quoted_offset == 28);
    CHECK(quote->quoted_l4_offset == 48);
    CHECK_FALSE(quote->fragment);
}

TEST_CASE("Options and extension headers are passed, outside and in the quote") {
    const Bytes inner4 = packet({Ipv4{.options = {1, 1, 1, 1}}, Tcp{}});
    const Bytes v4 =
        packet({Ipv4{.source = kRouter4, .destination = "10.0.0.1"_ip, .options = Bytes(8, 1)},
                Icmp{.type = 11}, Payload{inner4}});
    const auto quote = parse_quote(v4);
    REQUIRE(quote);
    CHECK(quote->tuple == Tuple{"10.0.0.1"_ip, "10.0.0.2"_ip, 6, 40000, 80});
    CHECK(quote->icmp_offset == 28);
    CHECK(quote->quoted_l4_offset == 36 + 24);

    const Bytes inner6 = packet({Ipv6{}, Extension{}, FragmentHeader{.offset_and_more = 1}, Tcp{}});
    const Bytes v6 = packet({Ipv6{.source = kRouter6, .destination = "2001:db8::1"_ip},
                             Extension{.kind = ipv6::kHopByHop}, Icmp{.type = 2}, Payload{inner6}});
    const auto quote6 = parse_quote(v6);
    REQUIRE(quote6);
    CHECK(quote6->tuple == Tuple{"2001:db8::1"_ip, "2001:db8::2"_ip, 6, 40000, 80});
    CHECK(quote6->fragment);
    CHECK(quote6->quoted_l4_offset == 40 + 8 + 8 + 40 + 16);
}

TEST_CASE("A quoted query is known by its identifier, type and code") {
    const auto v4 = parse_quote(error4(packet({Ipv4{}, Icmp{.identifier = 7}}), "10.0.0.1"_ip));
    REQUIRE(v4);
    CHECK(v4->tuple == Tuple{"10.0.0.1"_ip, "10.0.0.2"_ip, 1, 7, 8 << 8});
    const auto v6 =
        parse_quote(error6(packet({Ipv6{}, Icmp{.type = 129, .identifier = 7}}), "2001:db8::1"_ip));
    REQUIRE(v6);
    CHECK(v6->tuple == Tuple{"2001:db8::1"_ip, "2001:db8::2"_ip, 58, 7, 129 << 8});
}

TEST_CASE("A protocol without ports needs none of its octets in the quote") {
    const auto quote = parse_quote(error4(packet({Ipv4{.protocol = 50}}), "10.0.0.1"_ip));
    REQUIRE(quote);
    CHECK(quote->tuple == Tuple{"10.0.0.1"_ip, "10.0.0.2"_ip, 50, 0, 0});
}

TEST_CASE("What a connection is known by is not looked behind in its quote") {
    for (const std::uint8_t kind :
         {ipv6::kAuthentication, ipv6::kMobility, ipv6::kHip, ipv6::kShim6})
        for (const std::size_t cut : {std::size_t{0}, std::size_t{8}, std::size_t{24}}) {
            auto quoted = packet({Ipv6{}, Extension{}, Extension{.kind = kind, .body = Bytes(14)},
                                  Udp{.source = 5000, .destination = 6000}});
            quoted.resize(quoted.size() - cut);
            const auto quote = parse_quote(error6(quoted, Ipv6{}.source));
            REQUIRE(quote);
            CHECK(quote->tuple == Tuple{Ipv6{}.source, Ipv6{}.destination, kind, 0, 0});
            CHECK(quote->quoted_l4_offset == 48 + 40 + 8);
        }
}

TEST_CASE("Eight octets of the upper layer are enough, fewer are not") {
    for (std::uint8_t protocol : {6, 17, 1}) {
        const Bytes quoted = packet(sent({"10.0.0.1"_ip, "10.0.0.2"_ip, 1, 8 << 8}, protocol));
        CHECK(parse_quote(error4(first(quoted, 28), "10.0.0.1"_ip)));
        for (std::size_t size = 0; size < 28; ++size)
            CHECK_FALSE(parse_quote(error4(first(quoted, size), "10.0.0.1"_ip)));
    }
    for (std::uint8_t protocol : {6, 17, 58}) {
        const Bytes quoted =
            packet(sent({"2001:db8::1"_ip, "2001:db8::2"_ip, 1, 128 << 8}, protocol));
        CHECK(parse_quote(error6(first(quoted, 48), "2001:db8::1"_ip)));
        for (std::size_t size = 0; size < 48; ++size)
            CHECK_FALSE(parse_quote(error6(first(quoted, size), "2001:db8::1"_ip)));
    }
}

TEST_CASE("Only errors that a host has to know of cross the gateway") {
    const Bytes quoted4 = packet({Ipv4{}, Udp{}}), quoted6 = packet({Ipv6{}, Udp{}});
    for (unsigned type = 0; type < 256; ++type) {
        const auto number = static_cast<std::uint8_t>(type);
        INFO(type);
        CHECK(parse_quote(error4(quoted4, "10.0.0.1"_ip, {.type = number, .identifier = 0}))
                  .has_value() == (type == 3 || type == 11 || type == 12));
        CHECK(parse_quote(error6(quoted6, "2001:db8::1"_ip, {.type = number, .identifier = 0}))
                  .has_value() == (type >= 1 && type <= 4));
    }
}

TEST_CASE("What no honest router quotes has no tuple") {
    const auto to = "10.0.0.1"_ip;
    CHECK(parse_quote(error4(packet({Ipv4{}, Udp{}}), to)));
    // To somebody who did not send what is quoted.
    CHECK_FALSE(parse_quote(error4(packet({Ipv4{}, Udp{}}), "10.0.0.3"_ip)));
    // An error about an error, or about a later fragment.
    CHECK_FALSE(parse_quote(error4(packet({Ipv4{}, Icmp{.type = 3}}), to)));
    CHECK_FALSE(parse_quote(error4(packet({Ipv4{.flags_and_offset = 1}, Udp{}}), to)));
    CHECK(parse_quote(error4(packet({Ipv4{.flags_and_offset = 0x2000}, Udp{}}), to))->fragment);
    // The other family's packet or ICMP.
    CHECK_FALSE(parse_quote(error4(packet({Ipv6{}, Udp{}}), to)));
    CHECK_FALSE(parse_quote(error4(packet({Ipv4{.protocol = 58}, Icmp{.type = 128}}), to)));
    CHECK_FALSE(parse_quote(
        packet({Ipv4{.protocol = 58}, Icmp{.type = 1}, Payload{packet({Ipv4{}, Udp{}})}})));
    // Quoted headers that lie.
    CHECK_FALSE(parse_quote(error4(packet({Ipv4{.version_and_words = 0x44}, Udp{}}), to)));
    CHECK_FALSE(parse_quote(error4(packet({Ipv4{.length = 27}, Udp{}}), to)));
    // An error in pieces.
    CHECK_FALSE(parse_quote(packet({Ipv4{.destination = to, .flags_and_offset = 0x2000},
                                    Icmp{.type = 3}, Payload{packet({Ipv4{}, Udp{}})}})));
    // IPv4 addresses in IPv6 clothes.
    CHECK_FALSE(parse_quote(error6(packet({Ipv6{.source = to}, Udp{}}), to)));
}

TEST_CASE("Extensions of RFC 4884 behind the quote are not taken for a part of it") {
    // 28 octets of packet, of which the length field (in words) covers 32; then an extension.
    Bytes quoted = packet({Ipv4{}, Udp{}});
    quoted.resize(32);
    quoted.resize(44, 0x20);
    const Bytes packet = error4(quoted, "10.0.0.1"_ip, {.type = 11, .identifier = 8});
    const auto quote = parse_quote(packet);
    REQUIRE(quote);
    CHECK(quote->quoted_end == 28 + 28);
    // A length that covers less than the headers.
    CHECK_FALSE(parse_quote(error4(quoted, "10.0.0.1"_ip, {.type = 11, .identifier = 6})));
}

TEST_CASE("Translated back, the error is the one that the untranslated packet would have got") {
    CHECK(rc::check([] {
        const bool v4 = *rc::gen::arbitrary<bool>();
        const auto protocol = *rc::gen::element<std::uint8_t>(6, 17, v4 ? 1 : 58, 99);
        const bool query = protocol == 1 || protocol == 58;
        const bool ports = protocol != 99;
        const auto any_address = [&] {
            if (v4) return IpAddress::v4(be32{*rc::gen::inRange<std::uint32_t>(1, 0xe0000000)});
            IpAddress result{{0x20, 1}};
            for (std::size_t i = 2; i < 16; ++i)
                result.bytes[i] = *rc::gen::arbitrary<std::uint8_t>();
            return result;
        };
        const auto any_port = [&](bool present) {
            return present ? *rc::gen::arbitrary<std::uint16_t>() : std::uint16_t{0};
        };
        // As its sender sent it, and as it was behind the translation.
        const auto kind = static_cast<std::uint16_t>(v4 ? 8 << 8 : 128 << 8);
        const Ends inside{any_address(), any_address(), any_port(ports),
                          query ? kind : any_port(ports)};
        const Ends outside{any_address(), any_address(), any_port(ports),
                           query ? kind : any_port(ports)};
        const auto size = *rc::gen::inRange<std::size_t>(0, 60);
        const auto whole = [&](const Ends& ends) {
            auto layers = sent(ends, protocol);
            layers.emplace_back(Payload{filler(size)});
            return packet(layers);
        };
        const std::size_t least = (v4 ? 20U : 40U) + 8;
        const auto kept = *rc::gen::inRange<std::size_t>(least, least + 70);
        // Half of a checksum cannot be updated.
        RC_PRE(protocol != 6 || kept != least + 9);
        const auto error = [&](const Ends& ends, const IpAddress& from) {
            const Bytes quoted = first(whole(ends), kept);
            const auto code = static_cast<std::uint8_t>(v4 ? 1 : 3);
            const Icmp icmp{.type = static_cast<std::uint8_t>(v4 ? 3 : 1),
                            .code = code,
                            .identifier = 0,
                            .sequence = 0};
            if (v4)
                return packet(
                    {Ipv4{.source = from, .destination = ends.source}, icmp, Payload{quoted}});
            return packet(
                {Ipv6{.source = from, .destination = ends.source}, icmp, Payload{quoted}});
        };
        const IpAddress from_outside = any_address(), from_inside = any_address();

        Bytes received = error(outside, from_outside);
        const auto quote = parse_quote(received);
        RC_ASSERT(quote.has_value());
        const Tuple back{inside.source, inside.destination, protocol, inside.source_port,
                         inside.destination_port};
        RC_ASSERT(translate_quote(received, *quote, {from_inside, inside.source, back}));
        RC_ASSERT(received == error(inside, from_inside));
        RC_ASSERT(parse_quote(received)->tuple == back);
    }));
}

TEST_CASE("A quoted UDP packet without checksum stays without") {
    Bytes received =
        error4(packet({Ipv4{.source = "203.0.113.1"_ip}, Udp{.checksum = 0}}), "203.0.113.1"_ip);
    const auto quote = parse_quote(received);
    REQUIRE(quote);
    const Tuple back{"10.0.0.1"_ip, "10.0.0.2"_ip, 17, 40000, 53};
    REQUIRE(translate_quote(received, *quote, {kRouter4, back.source, back}));
    CHECK(received == error4(packet({Ipv4{}, Udp{.checksum = 0}}), "10.0.0.1"_ip));
}

TEST_CASE("A wrong checksum stays wrong") {
    for (std::size_t damaged : {8U, 22U, 32U}) {  // outer TTL, ICMP checksum, quoted identification
        Bytes received =
            error4(packet({Ipv4{.source = "203.0.113.1"_ip}, Udp{}}), "203.0.113.1"_ip);
        received[damaged] ^= 1;
        const auto quote = parse_quote(received);
        REQUIRE(quote);
        const Tuple back{"10.0.0.1"_ip, "10.0.0.2"_ip, 17, 40000, 53};
        REQUIRE(translate_quote(received, *quote, {kRouter4, back.source, back}));
        const std::span<const std::uint8_t> all{received};
        CHECK((!ipv4_header_checksum_ok(all.first(20)) ||
               Sum{}.add(all.subspan(20)).folded() != 0xffff));
    }
}

TEST_CASE("What cannot be translated is left as it is") {
    const Bytes before =
        error4(packet({Ipv4{.protocol = 132}, Payload{filler(12)}}), "10.0.0.1"_ip);
    const auto quote = parse_quote(before);
    REQUIRE(quote);
    const auto refused = [&](const Tuple& to, IpAddress source, IpAddress destination) {
        Bytes received = before;
        return !translate_quote(received, *quote, {source, destination, to}) && received == before;
    };
    Tuple to = quote->tuple;
    CHECK_FALSE(refused(to, kRouter4, "10.0.0.7"_ip));
    CHECK(refused(to, kRouter6, "10.0.0.7"_ip));
    CHECK(refused(to, kRouter4, "2001:db8::7"_ip));
    to.protocol = 6;
    CHECK(refused(to, kRouter4, "10.0.0.7"_ip));
    to = quote->tuple;
    to.source_port ^= 1;  // SCTP's CRC covers all of the packet, which the quote does not hold
    CHECK(refused(to, kRouter4, "10.0.0.7"_ip));
    to = quote->tuple;
    to.source = kRouter6;
    CHECK(refused(to, kRouter4, "10.0.0.7"_ip));
}
