// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/checksum.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <vector>

using namespace sluice;
using namespace sluice::wire;

namespace {

using Bytes = std::vector<std::uint8_t>;

// RFC 1071 section 4.1, word by word in network order.
std::uint16_t plain_sum(const Bytes& bytes) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        sum += static_cast<std::uint32_t>(bytes[i] << 8);
        if (i + 1 < bytes.size()) sum += bytes[i + 1];
        while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    }
    return static_cast<std::uint16_t>(sum);
}

Bytes some_bytes(std::size_t least, std::size_t most) {
    const auto size = *rc::gen::inRange(least, most + 1);
    // Often 0 and 0xff, where the two zeros of ones' complement meet.
    return *rc::gen::container<Bytes>(
        size, rc::gen::weightedOneOf<std::uint8_t>({{2, rc::gen::just<std::uint8_t>(0)},
                                                    {2, rc::gen::just<std::uint8_t>(0xff)},
                                                    {3, rc::gen::arbitrary<std::uint8_t>()}}));
}

IpAddress address(const char* text) {
    return *parse_ip(text);
}

}  // namespace

TEST_CASE("The example of RFC 1071 section 3") {
    const Bytes bytes{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    const Sum sum = Sum{}.add(bytes);
    CHECK(be16::from_raw(sum.folded()).host() == 0xddf2);
    CHECK(sum.checksum().host() == 0x220d);
}

TEST_CASE("The example of RFC 1624 section 4 does not come out as the other zero") {
    // Equation 2 of RFC 1141 would give 0xffff here.
    const ChecksumDelta delta = ChecksumDelta{}.replace(be16{0x5555}, be16{0x3285});
    CHECK(delta.apply(be16{0xdd2f}).host() == 0x0000);
}

TEST_CASE("The sum of any octets is that of RFC 1071's plain loop") {
    CHECK(rc::check([] {
        const Bytes bytes = some_bytes(0, 90);
        RC_ASSERT(be16::from_raw(Sum{}.add(bytes).folded()).host() == plain_sum(bytes));
    }));
    const Bytes longest(65535, 0xff);
    CHECK(Sum{}.add(longest).folded() == be16{plain_sum(longest)}.raw);
}

TEST_CASE("Spans may be summed in pieces of even length") {
    CHECK(rc::check([] {
        const Bytes bytes = some_bytes(0, 90);
        const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size() / 2 + 1) * 2;
        const std::span<const std::uint8_t> all{bytes};
        RC_ASSERT(Sum{}.add(all.first(cut)).add(all.subspan(cut)).folded() ==
                  Sum{}.add(all).folded());
    }));
}

TEST_CASE("An incremental update is what computing anew gives, bit for bit") {
    CHECK(rc::check([] {
        Bytes header = some_bytes(20, 60);
        header[0] = 0x45;  // not all zero, like every header
        header.resize(header.size() & ~std::size_t{1});
        const be16 before = ipv4_header_checksum(header);
        const auto at = *rc::gen::elementOf(std::vector<std::size_t>{2, 4, 8, 12, 14, 16, 18});
        const be16 from = load16(header.data() + at);
        const be16 to{*rc::gen::arbitrary<std::uint16_t>()};
        store(header.data() + at, to);
        const ChecksumDelta delta = ChecksumDelta{}.replace(from, to);
        RC_ASSERT(delta.apply(before) == ipv4_header_checksum(header));
        RC_ASSERT(ChecksumDelta{delta.folded()}.apply(before) == ipv4_header_checksum(header));
    }));
}

TEST_CASE("One delta collects the change of two addresses and two ports") {
    CHECK(rc::check([] {
        Bytes segment = some_bytes(20, 40);
        segment[4] = 1;
        const bool v4 = *rc::gen::arbitrary<bool>();
        const auto any = [&] {
            if (v4) return IpAddress::v4(be32{*rc::gen::arbitrary<std::uint32_t>()});
            IpAddress result;
            for (auto& byte : result.bytes) byte = *rc::gen::arbitrary<std::uint8_t>();
            return result;
        };
        const IpAddress source = any(), destination = any(), source2 = any(), destination2 = any();
        const be16 before = transport_checksum(source, destination, Protocol::tcp, segment);
        ChecksumDelta delta;
        delta.replace(source, source2).replace(destination, destination2);
        const be32 ports = load32(segment.data());
        const be32 ports2{*rc::gen::arbitrary<std::uint32_t>()};
        store(segment.data(), ports2);
        delta.replace(ports, ports2);
        RC_ASSERT(delta.apply(before) ==
                  transport_checksum(source2, destination2, Protocol::tcp, segment));
        // Changing it back gives back what was there.
        ChecksumDelta back;
        back.replace(source2, source).replace(destination2, destination).replace(ports2, ports);
        RC_ASSERT(back.apply(delta.apply(before)) == before);
    }));
}

TEST_CASE("UDP without checksum stays so, and no update makes one disappear") {
    const ChecksumDelta delta = ChecksumDelta{}.replace(be16{0x5555}, be16{0x3285});
    CHECK(delta.apply_udp(be16{0}).host() == 0);
    CHECK(delta.apply_udp(be16{0xdd2f}).host() == 0xffff);  // 0 by arithmetic, see RFC 1624
    // 0xffff stands for a computed 0 and is taken as such.
    CHECK(delta.apply_udp(be16{0xffff}) == delta.apply(be16{0}));

    CHECK(rc::check([] {
        const be16 checksum{*rc::gen::inRange<std::uint16_t>(1, 0xffff)};
        const auto some = [] { return be16{*rc::gen::arbitrary<std::uint16_t>()}; };
        RC_ASSERT(ChecksumDelta{}.replace(some(), some()).apply_udp(checksum).raw != 0);
    }));
}

TEST_CASE("An IPv4 header of the field") {
    Bytes header{0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                 0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
    CHECK(ipv4_header_checksum(header).host() == 0xb861);
    CHECK_FALSE(ipv4_header_checksum_ok(header));
    store(header.data() + ipv4::kChecksum, be16{0xb861});
    CHECK(ipv4_header_checksum_ok(header));
    CHECK(ipv4_header_checksum(header).host() == 0xb861);
    header[8] ^= 1;
    CHECK_FALSE(ipv4_header_checksum_ok(header));
}

TEST_CASE("Pseudo-headers cover addresses, protocol and length") {
    Bytes message{128, 0, 0, 0, 0x12, 0x34, 0x00, 0x01};
    const auto source = address("2001:db8::1"), destination = address("2001:db8::2");
    // By hand: 2001+0db8+1, 2001+0db8+2, 8, 58, 8000+1234+1.
    std::uint32_t sum = 0x2001 + 0x0db8 + 1 + 0x2001 + 0x0db8 + 2 + 8 + 58 + 0x8000 + 0x1234 + 1;
    sum = (sum & 0xffff) + (sum >> 16);
    const be16 checksum = transport_checksum(source, destination, Protocol::icmpv6, message);
    CHECK(checksum.host() == static_cast<std::uint16_t>(~sum));
    CHECK_FALSE(transport_checksum_ok(source, destination, Protocol::icmpv6, message));
    store(message.data() + icmp::kChecksum, checksum);
    CHECK(transport_checksum_ok(source, destination, Protocol::icmpv6, message));
    CHECK(transport_checksum(source, destination, Protocol::icmpv6, message) == checksum);
    CHECK_FALSE(transport_checksum_ok(source, address("2001:db8::3"), Protocol::icmpv6, message));
    CHECK_FALSE(transport_checksum_ok(source, destination, Protocol::tcp, message));
}

TEST_CASE("A computed UDP checksum is never zero") {
    // The payload is chosen so that everything adds up to 0xffff.
    Bytes datagram{0, 0, 0, 0, 0, 10, 0, 0, 0, 0};
    const auto source = address("0.0.0.0"), destination = address("0.0.0.0");
    const be16 first = transport_checksum(source, destination, Protocol::udp, datagram);
    store(datagram.data() + 8, first);
    CHECK(transport_checksum(source, destination, Protocol::udp, datagram).host() == 0xffff);
    store(datagram.data() + udp::kChecksum, be16{0xffff});
    CHECK(transport_checksum_ok(source, destination, Protocol::udp, datagram));
}
