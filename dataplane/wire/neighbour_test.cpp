// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/neighbour.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "dataplane/wire/builder.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

const Neighbour kGateway{"10.0.0.1"_ip, "02:00:00:00:00:01"_mac};
const Neighbour kHost{"10.0.0.2"_ip, "02:00:00:00:00:02"_mac};
const Neighbour kGateway6{"2001:db8::1"_ip, "02:00:00:00:00:01"_mac};
const Neighbour kHost6{"2001:db8::aa:bbcc"_ip, "02:00:00:00:00:02"_mac};

// What a writer writes; every span that is too short for it is refused and left alone.
Bytes written(const std::function<std::size_t(std::span<std::uint8_t>)>& writer) {
    Bytes out(2048, 0xee);
    out.resize(writer(out));
    for (std::size_t size = 0; size < out.size(); ++size) {
        Bytes small(size, 0xee);
        CHECK(writer(small) == 0);
        CHECK(small == Bytes(size, 0xee));
    }
    return out;
}

Bytes arp_frame(const Arp& message) {
    return packet({Ethernet{}, message});
}

// A neighbour solicitation or advertisement with everything right.
struct Discovery {
    Ipv6 ip{.source = kHost6.address, .destination = kGateway6.address, .hop_limit = 255};
    Icmp icmp{.type = icmpv6::kNeighbourSolicitation, .identifier = 0, .sequence = 0};
    IpAddress target = kGateway6.address;
    Bytes options = {1, 1, 2, 0, 0, 0, 0, 2};

    [[nodiscard]] Bytes frame() const {
        Bytes body(target.bytes.begin(), target.bytes.end());
        body.insert(body.end(), options.begin(), options.end());
        return packet({Ethernet{}, ip, icmp, Payload{body}});
    }
};

}  // namespace

TEST_CASE("ARP: a request is read") {
    const auto message = parse_arp(arp_frame({}));
    REQUIRE(message);
    CHECK(message->operation == ArpOperation::request);
    CHECK(message->sender == Neighbour{"10.0.0.1"_ip, "02:00:00:00:00:01"_mac});
    CHECK(message->target.address == "10.0.0.2"_ip);
    // A probe asks without having the address yet.
    CHECK(parse_arp(arp_frame({.sender = "0.0.0.0"_ip})));
}

TEST_CASE("ARP: what is malformed or from no single station is not read") {
    CHECK_FALSE(parse_arp(arp_frame({.operation = be16{3}})));  // RARP
    CHECK_FALSE(parse_arp(arp_frame({.hardware = be16{6}})));
    CHECK_FALSE(parse_arp(arp_frame({.protocol = be16{0x86dd}})));
    CHECK_FALSE(parse_arp(arp_frame({.hardware_length = 8})));
    CHECK_FALSE(parse_arp(arp_frame({.protocol_length = 16})));
    CHECK_FALSE(parse_arp(arp_frame({.sender_mac = ethernet::kBroadcast})));
    CHECK_FALSE(parse_arp(arp_frame({.sender_mac = {}})));
    CHECK_FALSE(parse_arp(arp_frame({.sender = "224.0.0.1"_ip})));
    CHECK_FALSE(parse_arp(arp_frame({.sender = "255.255.255.255"_ip})));
    CHECK_FALSE(parse_arp(arp_frame({.operation = arp::kReply, .sender = "0.0.0.0"_ip})));
    CHECK_FALSE(parse_arp(packet({Ethernet{.type = 0x0800}, Arp{}})));
    const Bytes whole = arp_frame({});
    for (std::size_t size = 0; size < whole.size(); ++size)
        CHECK_FALSE(parse_arp(std::span{whole}.first(size)));
}

TEST_CASE("ARP: a request goes to all, a probe to one station") {
    const Bytes request =
        written([](auto out) { return write_arp_request(out, kGateway, kHost.address); });
    CHECK(request ==
          packet({Ethernet{.source = kGateway.mac, .destination = ethernet::kBroadcast}, Arp{}}));
    const Bytes probe = written([](auto out) { return write_arp_probe(out, kGateway, kHost); });
    CHECK(probe == packet({Ethernet{.source = kGateway.mac, .destination = kHost.mac}, Arp{}}));
    CHECK(parse_arp(probe));
}

TEST_CASE("ARP: a reply names both ends") {
    const Bytes reply = written([](auto out) { return write_arp_reply(out, kGateway, kHost); });
    CHECK(reply == packet({Ethernet{.source = kGateway.mac, .destination = kHost.mac},
                           Arp{.operation = arp::kReply,
                               .sender_mac = kGateway.mac,
                               .sender = kGateway.address,
                               .target_mac = kHost.mac,
                               .target = kHost.address}}));
}

TEST_CASE("ARP: an announcement asks for the sender's own address (RFC 5227 section 3)") {
    const Bytes frame = written([](auto out) { return write_arp_announcement(out, kGateway); });
    const auto message = parse_arp(frame);
    REQUIRE(message);
    CHECK(load_mac(frame.data()) == ethernet::kBroadcast);
    CHECK(message->operation == ArpOperation::request);
    CHECK(message->sender == kGateway);
    CHECK(message->target.address == kGateway.address);
    CHECK(message->target.mac.is_zero());
}

TEST_CASE("ARP speaks of IPv4 only, Neighbour Discovery of IPv6 only") {
    Bytes out(2048);
    CHECK(write_arp_request(out, kGateway6, kHost.address) == 0);
    CHECK(write_arp_request(out, kGateway, kHost6.address) == 0);
    CHECK(write_arp_reply(out, kGateway, kHost6) == 0);
    CHECK(write_solicitation(out, kGateway6, kHost.address) == 0);
    CHECK(write_solicitation(out, kGateway, kHost6.address) == 0);
    CHECK(write_solicitation(out, {{}, kGateway.mac}, kHost6.address) == 0);
    CHECK(write_advertisement(out, kGateway6, kHost, NeighbourRole::host) == 0);
    CHECK(write_unsolicited_advertisement(out, kGateway, NeighbourRole::host) == 0);
}

TEST_CASE("Groups of RFC 4291 section 2.7.1 and RFC 2464 section 7") {
    CHECK(solicited_node_group("4037::01:800:200e:8c6c"_ip) == "ff02::1:ff0e:8c6c"_ip);
    CHECK(ethernet_group("ff02::1:ff0e:8c6c"_ip) == "33:33:ff:0e:8c:6c"_mac);
    CHECK(ethernet_group("ff02::1"_ip) == "33:33:00:00:00:01"_mac);
}

TEST_CASE("ND: a solicitation goes to the target's group, a probe to one station") {
    const Bytes asked =
        written([](auto out) { return write_solicitation(out, kGateway6, kHost6.address); });
    CHECK(load_mac(asked.data()) == "33:33:ff:aa:bb:cc"_mac);
    CHECK(load_v6(&asked[14 + ipv6::kDestination]) == "ff02::1:ffaa:bbcc"_ip);
    CHECK(asked[14 + ipv6::kHopLimit] == 255);
    const auto message = parse_solicitation(asked);
    REQUIRE(message);
    CHECK(message->source == kGateway6.address);
    CHECK(message->target == kHost6.address);
    CHECK(message->source_link == kGateway6.mac);

    const Bytes probe =
        written([](auto out) { return write_solicitation_probe(out, kGateway6, kHost6); });
    CHECK(load_mac(probe.data()) == kHost6.mac);
    CHECK(load_v6(&probe[14 + ipv6::kDestination]) == kHost6.address);
    CHECK(parse_solicitation(probe)->target == kHost6.address);
}

TEST_CASE("ND: an advertisement answers the one who asked") {
    const Bytes frame = written([](auto out) {
        return write_advertisement(out, kGateway6, kHost6, NeighbourRole::router);
    });
    CHECK(load_mac(frame.data()) == kHost6.mac);
    CHECK(load_mac(&frame[6]) == kGateway6.mac);
    const auto message = parse_advertisement(frame);
    REQUIRE(message);
    CHECK(message->source == kGateway6.address);
    CHECK(message->target == kGateway6.address);
    CHECK(message->target_link == kGateway6.mac);
    CHECK(message->router);
    CHECK(message->solicited);
    CHECK(message->override_known);
    CHECK_FALSE(parse_solicitation(frame));
}

TEST_CASE("ND: who asks without an address is answered through all nodes (RFC 4861 7.2.4)") {
    const Bytes frame = written([](auto out) {
        return write_advertisement(out, kGateway6, {{}, kHost6.mac}, NeighbourRole::host);
    });
    CHECK(load_mac(frame.data()) == "33:33:00:00:00:01"_mac);
    CHECK(load_v6(&frame[14 + ipv6::kDestination]) == "ff02::1"_ip);
    const auto message = parse_advertisement(frame);
    REQUIRE(message);
    CHECK_FALSE(message->router);
    CHECK_FALSE(message->solicited);
    CHECK(frame == written([](auto out) {
              return write_unsolicited_advertisement(out, kGateway6, NeighbourRole::host);
          }));
}

TEST_CASE("ND: a solicitation passes only if every check of RFC 4861 section 7.1.1 does") {
    const Discovery right;
    const auto message = parse_solicitation(right.frame());
    REQUIRE(message);
    CHECK(message->source == kHost6.address);
    CHECK(message->source_link == "02:00:00:00:00:02"_mac);

    const auto refused = [](const std::function<void(Discovery&)>& spoil) {
        Discovery wrong;
        spoil(wrong);
        return !parse_solicitation(wrong.frame());
    };
    CHECK(refused([](auto& d) { d.ip.hop_limit = 254; }));
    CHECK(refused([](auto& d) { d.icmp.checksum = 0x1234; }));
    CHECK(refused([](auto& d) { d.icmp.code = 1; }));
    CHECK(refused([](auto& d) { d.icmp.type = icmpv6::kRouterSolicitation; }));
    CHECK(refused([](auto& d) { d.ip.length = 23; }));
    CHECK(refused([](auto& d) { d.ip.length = 200; }));
    CHECK(refused([](auto& d) { d.ip.version = 4; }));
    CHECK(refused([](auto& d) { d.ip.source = "ff02::1"_ip; }));
    CHECK(refused([](auto& d) { d.ip.source = IpAddress::v4(be32{0x0a000001}); }));
    CHECK(refused([](auto& d) { d.target = "ff02::1"_ip; }));
    CHECK(refused([](auto& d) { d.target = {}; }));
    CHECK(refused([](auto& d) { d.target = IpAddress::v4(be32{0x0a000001}); }));
    // Options: of no length, longer than the message, a remainder, an address of many.
    CHECK(refused([](auto& d) { d.options = {1, 0, 2, 0, 0, 0, 0, 2}; }));
    CHECK(refused([](auto& d) { d.options = {1, 2, 2, 0, 0, 0, 0, 2}; }));
    CHECK(refused([](auto& d) { d.options.push_back(0); }));
    CHECK(refused([](auto& d) { d.options = {1, 1, 1, 0, 0, 0, 0, 2}; }));
    // Others are skipped; none is needed.
    CHECK_FALSE(refused([](auto& d) { d.options = {14, 1, 1, 2, 3, 4, 5, 6}; }));
    CHECK_FALSE(refused([](auto& d) { d.options = {}; }));

    const Bytes whole = right.frame();
    for (std::size_t size = 0; size < whole.size(); ++size)
        CHECK_FALSE(parse_solicitation(std::span{whole}.first(size)));
}

TEST_CASE("ND: duplicate address detection asks the group, and names no link-layer address") {
    Discovery probe;
    probe.ip.source = {};
    probe.ip.destination = solicited_node_group(probe.target);
    probe.options = {};
    const auto message = parse_solicitation(probe.frame());
    REQUIRE(message);
    CHECK(message->source.is_none());
    CHECK_FALSE(message->source_link);

    Discovery named = probe;
    named.options = Discovery{}.options;
    CHECK_FALSE(parse_solicitation(named.frame()));
    Discovery direct = probe;
    direct.ip.destination = direct.target;
    CHECK_FALSE(parse_solicitation(direct.frame()));
}

TEST_CASE("ND: an advertisement to a group cannot be solicited (RFC 4861 section 7.1.2)") {
    Discovery advertisement;
    advertisement.icmp = {
        .type = icmpv6::kNeighbourAdvertisement, .identifier = 0x4000, .sequence = 0};
    advertisement.options = {2, 1, 2, 0, 0, 0, 0, 2};
    CHECK(parse_advertisement(advertisement.frame())->solicited);
    advertisement.ip.destination = "ff02::1"_ip;
    CHECK_FALSE(parse_advertisement(advertisement.frame()));
    advertisement.icmp.identifier = 0;
    CHECK_FALSE(parse_advertisement(advertisement.frame())->solicited);
    advertisement.ip.source = {};
    CHECK_FALSE(parse_advertisement(advertisement.frame()));
}
