// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/types.hpp"

#include <arpa/inet.h>
#include <rapidcheck.h>

#include <catch2/catch.hpp>

using namespace sluice;

namespace {

IpAddress v4(std::uint32_t host) {
    return IpAddress::v4(be32{host});
}

// Groups that are often zero, so that every place and length of a zero run comes up.
rc::Gen<IpAddress> any_v6() {
    return rc::gen::suchThat(
        rc::gen::map(
            rc::gen::container<std::array<std::uint16_t, 8>>(rc::gen::weightedOneOf<std::uint16_t>(
                {{3, rc::gen::just<std::uint16_t>(0)},
                 {1, rc::gen::inRange<std::uint16_t>(0, 0x100)},
                 {2, rc::gen::arbitrary<std::uint16_t>()}})),
            [](const std::array<std::uint16_t, 8>& groups) {
                IpAddress result;
                for (std::size_t i = 0; i < 8; ++i) {
                    result.bytes[2 * i] = static_cast<std::uint8_t>(groups[i] >> 8);
                    result.bytes[2 * i + 1] = static_cast<std::uint8_t>(groups[i]);
                }
                return result;
            }),
        [](const IpAddress& address) { return !address.is_v4(); });
}

}  // namespace

TEST_CASE("An integer in network order lies in memory as on the wire") {
    const be32 value{0x01020304};
    std::uint8_t bytes[4];
    std::memcpy(bytes, &value, 4);
    CHECK(bytes[0] == 1);
    CHECK(bytes[3] == 4);
    CHECK(value.host() == 0x01020304);
    CHECK(be16::from_raw(be16{0x1234}.raw).host() == 0x1234);
    CHECK(be64{0x0102030405060708}.host() == 0x0102030405060708);
}

TEST_CASE("A MAC address is six pairs of hex digits between colons") {
    const auto mac = parse_mac("02:00:5E:ab:cd:ff");
    REQUIRE(mac);
    CHECK(to_string(*mac) == "02:00:5e:ab:cd:ff");
    CHECK(mac->value() == 0x02005eabcdffULL);
    CHECK(MacAddress::from_value(mac->value()) == *mac);
    CHECK(parse_mac("ff:ff:ff:ff:ff:ff")->is_multicast());

    for (auto bad :
         {"", "02:00:5e:ab:cd", "02:00:5e:ab:cd:ff:00", "02-00-5e-ab-cd-ff", "02005eabcdff",
          "0200.5eab.cdff", "2:0:5e:ab:cd:ff", "02:00:5e:ab:cd:fg", " 02:00:5e:ab:cd:f",
          "02:00:5e:ab:cd:ff ", "02:00:5e:ab:cd:f\n", "02:00:5e:ab:cd-ff"}) {
        INFO(bad);
        CHECK_FALSE(parse_mac(bad));
    }
}

TEST_CASE("An IPv4 address has one spelling: four decimal bytes without leading zeros") {
    CHECK(parse_ip("0.0.0.0") == v4(0));
    CHECK(parse_ip("10.1.2.3") == v4(0x0a010203));
    CHECK(parse_ip("255.255.255.255") == v4(0xffffffff));
    CHECK(parse_ip("10.1.2.3")->family() == Family::ipv4);

    for (auto bad :
         {"",         ".",          "1",        "1.2.3",    "1.2.3.4.5", "1.2.3.",    ".1.2.3",
          "1..2.3",   "01.2.3.4",   "1.2.3.04", "1.2.3.00", "256.1.1.1", "1.2.3.256", "1.2.3.1000",
          "1.2.3.-4", "+1.2.3.4",   " 1.2.3.4", "1.2.3.4 ", "1.2.3.4\n", "0x1.2.3.4", "1.2.3.a",
          "16909060", "1.2.3.4/32", "1,2,3,4",  "localhost"}) {
        INFO(bad);
        CHECK_FALSE(parse_ip(bad));
    }
}

TEST_CASE("An IPv6 address is read in any form of RFC 4291 and written in that of RFC 5952") {
    struct Row {
        const char* text;
        const char* canonical;
    };
    for (const auto& row : std::initializer_list<Row>{
             {"::", "::"},
             {"0:0:0:0:0:0:0:0", "::"},
             {"::1", "::1"},
             {"1::", "1::"},
             {"2001:DB8::1", "2001:db8::1"},
             {"2001:0db8:0000:0000:0001:0000:0000:0001", "2001:db8::1:0:0:1"},  // 4.2.3: the first
             {"2001:db8:0:0:1:0:0:0", "2001:db8:0:0:1::"},      // 4.2.3: the longest
             {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},  // 4.2.2: not one group
             {"0:1:1:1:1:1:1:1", "0:1:1:1:1:1:1:1"},
             {"1:1:1:1:1:1:0:0", "1:1:1:1:1:1::"},
             {"fe80::0a0b:c", "fe80::a0b:c"},
             {"::1.2.3.4", "::102:304"},
             {"64:ff9b::192.0.2.1", "64:ff9b::c000:201"},
         }) {
        INFO(row.text);
        const auto address = parse_ip(row.text);
        REQUIRE(address);
        CHECK(address->family() == Family::ipv6);
        CHECK(to_string(*address) == row.canonical);
    }

    for (auto bad : {":", ":::", "1:2", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3",
                     "12345::", "g::", "::1 ", " ::1", "::1%eth0", "fe80::1%1", "[::1]", "::1/128",
                     "1:2:3:4:5:6:7:", ":1:2:3:4:5:6:7", "::1.2.3", "::1.2.3.256", "1.2.3.4::",
                     // IPv4 in IPv6 clothes: two spellings of one address.
                     "::ffff:1.2.3.4", "::ffff:102:304", "0:0:0:0:0:ffff:0:0",
                     "0000:0000:0000:0000:0000:0000:255.255.255.2555"}) {
        INFO(bad);
        CHECK_FALSE(parse_ip(bad));
    }
    CHECK_FALSE(parse_ip(std::string_view{"::1\0", 4}));
    CHECK_FALSE(parse_ip(std::string_view{"1.2.3.4\0", 8}));
}

TEST_CASE("A prefix is an address and a length of its family; host bits are kept") {
    const auto ten = parse_prefix("10.0.0.0/8");
    REQUIRE(ten);
    CHECK(ten->length == 104);
    CHECK(ten->family_length() == 8);
    CHECK(ten->family() == Family::ipv4);
    CHECK(ten->contains(v4(0x0affffff)));
    CHECK_FALSE(ten->contains(v4(0x0b000000)));
    CHECK(to_string(*ten) == "10.0.0.0/8");

    CHECK(*parse_prefix("0.0.0.0/0") == Prefix::any(Family::ipv4));
    CHECK(*parse_prefix("::/0") == Prefix::any(Family::ipv6));
    CHECK(to_string(Prefix::any(Family::ipv4)) == "0.0.0.0/0");
    CHECK(to_string(Prefix::any(Family::ipv6)) == "::/0");
    CHECK_FALSE(Prefix::any(Family::ipv6).contains(v4(1)));

    const auto host_bits = parse_prefix("192.168.1.77/24");
    REQUIRE(host_bits);
    CHECK(to_string(*host_bits) == "192.168.1.77/24");
    CHECK(to_string(host_bits->without_host_bits()) == "192.168.1.0/24");
    CHECK(to_string(parse_prefix("2001:db8::1/33")->without_host_bits()) == "2001:db8::/33");

    for (auto bad :
         {"", "/", "/8", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/ 8",
          "10.0.0.0/8/8", "10.0.0.0/-1", "10.0.0.0/255.0.0.0", "10/8", "::/129", "::/0128",
          "::ffff:10.0.0.0/104", "10.0.0.0/8 ", "::/1000", "::/4294967296"}) {
        INFO(bad);
        CHECK_FALSE(parse_prefix(bad));
    }
}

TEST_CASE("What is written is read back as the same value") {
    CHECK(rc::check("MAC", [](std::uint64_t value) {
        const auto mac = MacAddress::from_value(value & 0xffffffffffffULL);
        RC_ASSERT(parse_mac(to_string(mac)) == mac);
    }));
    CHECK(rc::check("IPv4", [](std::uint32_t value) {
        RC_ASSERT(parse_ip(to_string(v4(value))) == v4(value));
    }));
    CHECK(rc::check("IPv6", [] {
        const auto address = *any_v6();
        RC_ASSERT(parse_ip(to_string(address)) == address);
    }));
    CHECK(rc::check("IPv6, as inet_ntop writes it too", [] {
        const auto address = *any_v6();
        char text[INET6_ADDRSTRLEN];
        inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
        const std::string theirs = text;
        // It writes addresses with six leading zero groups as ::a.b.c.d.
        RC_PRE(theirs.find('.') == std::string::npos);
        RC_ASSERT(to_string(address) == theirs);
    }));
    CHECK(rc::check("prefix", [] {
        const auto address = *any_v6();
        const Prefix prefix{address, *rc::gen::inRange<std::uint8_t>(0, 129)};
        RC_ASSERT(parse_prefix(to_string(prefix)) == prefix);
        const Prefix small{v4(*rc::gen::arbitrary<std::uint32_t>()),
                           *rc::gen::inRange<std::uint8_t>(96, 129)};
        RC_ASSERT(parse_prefix(to_string(small)) == small);
    }));
}

TEST_CASE("Parsing takes any text without harm") {
    CHECK(rc::check([](const std::string& text) {
        if (const auto mac = parse_mac(text)) RC_ASSERT(parse_mac(to_string(*mac)) == mac);
        if (const auto ip = parse_ip(text)) RC_ASSERT(parse_ip(to_string(*ip)) == ip);
        if (const auto prefix = parse_prefix(text))
            RC_ASSERT(parse_prefix(to_string(*prefix)) == prefix);
    }));
}
