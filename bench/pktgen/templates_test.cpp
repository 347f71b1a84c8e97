// SPDX-License-Identifier: Apache-2.0
// What is written for a lane is what the network says it sends, with right checksums, found again.
#include "bench/pktgen/templates.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "bench/pktgen/find_stamp.hpp"
#include "dataplane/wire/parser.hpp"

using namespace sluice;
using namespace sluice::pktgen;

namespace {

const LinkMacs kUnderlay{*parse_mac("02:00:00:00:00:02"), *parse_mac("02:00:00:00:00:01")};
const LinkMacs kUplink{*parse_mac("02:00:00:00:00:04"), *parse_mac("02:00:00:00:00:03")};

void check_all(const std::string& text) {
    const auto [profile, problems] = read("name = \"x\"\n" + text);
    for (const auto& problem : problems) UNSCOPED_INFO(to_string(problem, "profile"));
    REQUIRE(problems.empty());
    const Network network(profile);
    const Templates templates(profile, network, {kUnderlay, kUplink});
    const Lanes lanes(profile);
    const IpAddress vtep = profile.underlay().gateway;
    const wire::Receiver gateway{kUnderlay.gateway, {&vtep, 1}, {}};
    const wire::Receiver router{kUplink.gateway, {}, {}};
    std::uint32_t turn = 0;
    for (std::uint32_t lane = 0; lane < lanes.count(); ++lane) {
        for (std::size_t share = 0; share < profile.frames.size(); ++share) {
            std::vector<std::uint8_t> frame(10'000);
            const Stamp stamp{lane, turn * 0x01234567U, turn * 0x9e3779b97f4a7c15ULL};
            ++turn;
            const auto octets =
                templates.write(frame.data(), lane, share, stamp.sequence, stamp.time);
            frame.resize(octets);
            const Frame sent = network.sent(lanes.flow(lane), lanes.way(lane));
            REQUIRE(templates.side(lane) == sent.side);
            const bool tunnelled = sent.side == Side::underlay;
            const auto headers = tunnelled ? wire::parse_underlay(frame, octets, gateway)
                                           : wire::parse_uplink(frame, octets, router);
            INFO("lane " << lane << " share " << share);
            REQUIRE(headers.drop == DropReason::none);
            REQUIRE(headers.kind == wire::FrameKind::connection);
            const Packet packet = wire::to_packet(frame, headers, PortId{1});
            CHECK(packet.vni == sent.vni);
            CHECK(packet.tuple == Tuple{sent.source, sent.destination, 17, sent.source_port,
                                        sent.destination_port});
            if (tunnelled) CHECK(packet.vtep == sent.vtep);
            if (tunnelled) CHECK(packet.source_mac == sent.source_mac);
            CHECK(packet.ip_length + 18 == profile.frames[share].octets);
            const auto found = find_stamp(frame);
            REQUIRE(found);
            CHECK(found->stamp == stamp);
            CHECK(found->side == sent.side);
            CHECK(found->vni == sent.vni.value);
            CHECK(checksums_ok(frame, *found));
            ++frame[octets - 1U];
            CHECK(!checksums_ok(frame, *found));
            const bool roce = profile.flows.traffic == Traffic::rocev2;
            CHECK(found->roce == roce);
            const std::size_t end = found->l4 + 8U + (roce ? bth::kSize : 0) + stamp::kSize;
            for (std::size_t cut = 0; cut < end; ++cut)
                REQUIRE(!find_stamp(std::span(frame).first(cut)));
        }
    }
}

const std::string kPort =
    "[[port]]\nrole = \"underlay\"\ndevice = \"net_null0\"\ngateway = \"192.0.2.1\"\n";
const std::string kPort6 =
    "[hosts]\nfirst_vtep = \"2001:db8::2\"\n"
    "[[port]]\nrole = \"underlay\"\ndevice = \"net_null0\"\ngateway = \"2001:db8::1\"\n";

}  // namespace

TEST_CASE("frames of flows between peers are right in both directions") {
    check_all("[tenants]\nvpcs = 3\nendpoints = 5\n[flows]\ncount = 40\nreverse_percent = 50\n" +
              kPort);
}
TEST_CASE("frames of every size of a mix have right lengths and checksums") {
    check_all("[frames]\nmix = \"imix\"\n[flows]\ncount = 10\nto = \"elastic\"\n" + kPort);
    check_all("[tenants]\nfamily = \"ipv6\"\n[frames]\nmix = \"imix\"\n[flows]\ncount = 10\n" +
              kPort);
    check_all("[frames]\nmix = \"imix\"\n[flows]\ncount = 10\n" + kPort6);
}
TEST_CASE("frames of IPv6 in IPv6 are right") {
    check_all("[tenants]\nfamily = \"ipv6\"\n[flows]\ncount = 10\n" + kPort6);
}
TEST_CASE("frames of the internet's hosts are plain ones on the uplink") {
    check_all(
        "[tenants]\nelastic_pool = \"203.0.113.0/24\"\n[flows]\ncount = 30\nto = \"internet\"\n"
        "reverse_percent = 30\n[internet]\nhosts = 3\n" +
        kPort +
        "[[port]]\nrole = \"uplink\"\ndevice = \"net_null1\"\n"
        "gateway = \"198.51.100.1\"\naddress = \"198.51.100.254\"\n");
}
TEST_CASE("frames of RoCEv2 are right in the overlay and on the uplink, of every size") {
    const std::string roce = "protocol = \"rocev2\"\n";
    check_all("[flows]\ncount = 10\nqueue_pairs = 3\nreverse_percent = 50\n" + roce + kPort);
    check_all("[tenants]\nfamily = \"ipv6\"\n[frames]\nmix = \"imix\"\n[flows]\ncount = 10\n" +
              roce + kPort6);
    check_all(
        "[tenants]\nelastic_pool = \"203.0.113.0/24\"\n[frames]\nsize = 1086\n[flows]\n"
        "count = 30\nto = \"internet\"\nreverse_percent = 30\n" +
        roce + kPort +
        "[[port]]\nrole = \"uplink\"\ndevice = \"net_null1\"\n"
        "gateway = \"198.51.100.1\"\naddress = \"198.51.100.254\"\n");
}
TEST_CASE(
    "messages of RoCEv2 count up for each queue pair, in buffers that other sizes have used") {
    const auto [profile, problems] = read(
        "name = \"x\"\n[frames]\nmix = \"imix\"\n[flows]\ncount = 3\n"
        "protocol = \"rocev2\"\nreverse_percent = 50\n" +
        kPort);
    REQUIRE(problems.empty());
    const Network network(profile);
    const Templates templates(profile, network, {kUnderlay, kUplink});
    std::vector<std::uint8_t> buffer(4'000);
    std::uint32_t turn = 0;
    for (const std::size_t share : {0U, 2U, 1U, 2U, 0U, 1U, 2U})
        for (std::uint32_t lane = 0; lane < 6; ++lane) {
            const std::uint32_t sequence = 0xfffffd + turn++ / 6;
            const auto octets = templates.write(buffer.data(), lane, share, sequence, turn);
            const auto frame = std::span<const std::uint8_t>(buffer).first(octets);
            const auto found = find_stamp(frame);
            REQUIRE(found);
            CHECK(checksums_ok(frame, *found));
            const std::uint8_t* header = frame.data() + found->l4 + wire::udp::kSize;
            CHECK(header[bth::kOpcode] == bth::kReliableSendOnly);
            // Lane 2 i goes to the server's queue pair, lane 2 i + 1 to the client's; 24 bits.
            CHECK(wire::load32(header + 4).host() == (2 + lane / 2 * 2 + (lane % 2 == 0 ? 1 : 0)));
            CHECK(wire::load32(header + 8).host() == (sequence & 0xffffff));
        }
}
TEST_CASE("segments of connections have what they are given, and right checksums") {
    for (const std::string& more : {std::string{}, std::string{"[tenants]\nfamily = \"ipv6\"\n"}}) {
        const auto [profile, problems] =
            read("name = \"x\"\n" + more + "[flows]\ncount = 5\nprotocol = \"tcp\"\n" + kPort);
        REQUIRE(problems.empty());
        const Network network(profile);
        const Templates templates(profile, network, {kUnderlay, kUplink});
        const Lanes lanes(profile);
        REQUIRE(lanes.count() == 10);
        for (std::uint32_t lane = 0; lane < lanes.count(); ++lane) {
            std::vector<std::uint8_t> frame(256);
            frame.resize(templates.write_segment(frame.data(), lane, 0x89abcdef, 0xfedcba98, 0x12));
            const auto found = locate(frame);
            REQUIRE(found);
            CHECK(found->protocol == 6);
            CHECK(checksums_ok(frame, *found));
            const std::uint8_t* header = frame.data() + found->l4;
            CHECK(wire::load32(header + wire::tcp::kSequence).host() == 0x89abcdef);
            CHECK(wire::load32(header + wire::tcp::kAcknowledgement).host() == 0xfedcba98);
            CHECK(header[wire::tcp::kFlags] == 0x12);
            CHECK(frame.size() == found->l4 + wire::tcp::kSize);
        }
    }
}
