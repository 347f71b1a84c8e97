// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/echo.hpp"

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

Bytes reply_to(Bytes frame) {
    const auto reply = make_echo_reply(frame);
    return {reply.begin(), reply.end()};
}

// Not answered, and not touched either.
bool refused(const std::vector<Layer>& layers) {
    Bytes frame = packet(layers);
    const Bytes before = frame;
    return make_echo_reply(frame).empty() && frame == before;
}

const Ethernet kBack{.source = Ethernet{}.destination, .destination = Ethernet{}.source};
const Ipv4 kBack4{.source = Ipv4{}.destination, .destination = Ipv4{}.source};
const Ipv6 kBack6{.source = Ipv6{}.destination, .destination = Ipv6{}.source};
const Icmp kRequest6{.type = icmpv6::kEchoRequest}, kReply6{.type = icmpv6::kEchoReply};

}  // namespace

TEST_CASE("An echo request becomes its reply, bit for bit the one that we would build") {
    const Payload payload{filler(57)};
    CHECK(reply_to(packet({Ethernet{}, Ipv4{.ttl = 3, .tos = 0x28}, Icmp{}, payload})) ==
          packet({kBack,
                  Ipv4{.source = kBack4.source, .destination = kBack4.destination, .tos = 0x28},
                  Icmp{.type = icmp::kEchoReply}, payload}));
    CHECK(reply_to(packet({Ethernet{}, Ipv6{.hop_limit = 3}, kRequest6, payload})) ==
          packet({kBack, kBack6, kReply6, payload}));
}

TEST_CASE("Options and extension headers of the request are not in the reply") {
    const Payload payload{filler(9)};
    // Record route (RFC 791), as ping -R asks for.
    CHECK(reply_to(packet({Ethernet{}, Ipv4{.options = {7, 39, 4}}, Icmp{}, payload})) ==
          packet({kBack, kBack4, Icmp{.type = icmp::kEchoReply}, payload}));
    CHECK(reply_to(packet({Ethernet{}, Ipv4{.options = Bytes(40, 1)}, Icmp{}, payload})) ==
          packet({kBack, kBack4, Icmp{.type = icmp::kEchoReply}, payload}));
    CHECK(reply_to(packet({Ethernet{}, Ipv6{}, Extension{.kind = ipv6::kHopByHop}, FragmentHeader{},
                           kRequest6, payload})) == packet({kBack, kBack6, kReply6, payload}));
}

TEST_CASE("Ethernet's padding is not part of the reply") {
    Bytes frame = packet({Ethernet{}, Ipv4{}, Icmp{}});
    const Bytes right = reply_to(frame);
    CHECK(right.size() == 42);
    frame.resize(60, 0xaa);
    CHECK(reply_to(frame) == right);
}

TEST_CASE("The headers are enough: the payload may lie elsewhere") {
    for (const bool v6 : {false, true}) {
        Bytes frame = v6 ? packet({Ethernet{}, Ipv6{}, kRequest6, Payload{filler(3000)}})
                         : packet({Ethernet{}, Ipv4{}, Icmp{}, Payload{filler(3000)}});
        const Bytes whole = reply_to(frame);
        const std::size_t headers = v6 ? 62 : 42;
        const auto first = make_echo_reply(std::span{frame}.first(headers + 10));
        CHECK(first.size() == headers + 10);
        CHECK(frame == whole);
    }
}

TEST_CASE("A request damaged on its way makes a damaged reply") {
    Bytes frame = packet({Ethernet{}, Ipv4{}, Icmp{}, Payload{filler(8)}});
    frame.back() ^= 1;
    const Bytes reply = reply_to(frame);
    REQUIRE(reply.size() == frame.size());
    CHECK(Sum{}.add(std::span{reply}.subspan(34)).folded() != 0xffff);
}

TEST_CASE("What is no echo request to a single station is not answered") {
    CHECK(refused({Ethernet{}, Ipv4{}, Icmp{.type = icmp::kEchoReply}}));
    CHECK(refused({Ethernet{}, Ipv4{}, Icmp{.type = icmp::kUnreachable}}));
    CHECK(refused({Ethernet{}, Ipv4{}, Icmp{.code = 1}}));
    CHECK(refused({Ethernet{}, Ipv4{}, Udp{}}));
    CHECK(refused({Ethernet{}, Ipv6{}, Icmp{.type = icmp::kEchoRequest}}));
    CHECK(refused({Ethernet{}, Ipv4{.protocol = 58}, kRequest6}));
    CHECK(refused({Ethernet{.type = 0x86dd}, Ipv4{}, Icmp{}}));
    CHECK(refused({Ethernet{}, Arp{}}));
    // Fragments: the checksum is not ours to update piecewise.
    CHECK(refused({Ethernet{}, Ipv4{.flags_and_offset = ipv4::kMoreFragments}, Icmp{}}));
    CHECK(refused({Ethernet{}, Ipv4{.flags_and_offset = 1}, Icmp{}}));
    CHECK(refused({Ethernet{}, Ipv6{}, FragmentHeader{.offset_and_more = 1}, kRequest6}));
    // Addresses of more than one station, or of none.
    for (auto address : {"224.0.0.1"_ip, "255.255.255.255"_ip, "0.0.0.0"_ip, "127.0.0.1"_ip}) {
        CHECK(refused({Ethernet{}, Ipv4{.source = address}, Icmp{}}));
        CHECK(refused({Ethernet{}, Ipv4{.destination = address}, Icmp{}}));
    }
    for (auto address : {"ff02::1"_ip, "::"_ip, "::1"_ip, "10.0.0.1"_ip}) {
        CHECK(refused({Ethernet{}, Ipv6{.source = address}, kRequest6}));
        CHECK(refused({Ethernet{}, Ipv6{.destination = address}, kRequest6}));
    }
    CHECK(refused({Ethernet{}, Ipv4{.source = Ipv4{}.destination}, Icmp{}}));
    CHECK(refused({Ethernet{.destination = ethernet::kBroadcast}, Ipv4{}, Icmp{}}));
    // Headers that lie.
    CHECK(refused({Ethernet{}, Ipv4{.checksum = 1}, Icmp{}}));
    CHECK(refused({Ethernet{}, Ipv4{.length = 27}, Icmp{}}));
    CHECK(refused({Ethernet{}, Ipv6{.length = 7}, kRequest6}));
}

TEST_CASE("A request cut off anywhere in its headers is not answered") {
    for (const Bytes& whole : {packet({Ethernet{}, Ipv4{.options = {1}}, Icmp{}}),
                               packet({Ethernet{}, Ipv6{}, Extension{}, kRequest6})})
        for (std::size_t size = 0; size < whole.size(); ++size) {
            Bytes piece(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
            CHECK(make_echo_reply(piece).empty());
        }
}
