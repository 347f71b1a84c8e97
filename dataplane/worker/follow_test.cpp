// SPDX-License-Identifier: Apache-2.0
// Fragments of tenants' packets: with the first one's verdict and translation, or not at all.
#include <algorithm>

#include "dataplane/session/datagram.hpp"
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

constexpr std::uint16_t kMore = wire::ipv4::kMoreFragments;

// A part of a packet's payload, in octets.
struct Part {
    std::size_t from, to;
};

struct Fragments : Gateway {
    Fragments() {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        a6 = with(a, "fd00:1::5");
        b6 = with(b, "fd00:1::6");
        put(openflow::RouteRow{RouteTableId{1},
                               Prefix::any(Family::ipv4),
                               openflow::NextHop::internet,
                               {},
                               Cookie{450}},
            nfv::ElasticIpRow{a.vpc, a.address, public_a, {}, Cookie{700}},
            nfv::PublicAddressRow{public_a, a.vpc, a.address, {}, Cookie{701}});
    }
    Machine with(Machine machine, const char* address) {
        machine.address = ip(address);
        put(machine.row(), machine.source());
        return machine;
    }
    static Ipv4 header(const IpAddress& source, const IpAddress& destination,
                       std::uint8_t ttl = 64) {
        return {.source = source, .destination = destination, .ttl = ttl};
    }
    // What is behind the IP header of a whole packet.
    static Bytes payload_of(const Ipv4& ip4, const Layer& upper, std::size_t octets = 3000) {
        const Bytes whole = packet(Layers{ip4, upper, Payload{filler(octets)}});
        return {whole.begin() + wire::ipv4::kSize, whole.end()};
    }
    static Layers piece(Ipv4 ip4, const Bytes& payload, const Part& part,
                        std::uint8_t protocol = 17) {
        const bool more = part.to < payload.size();
        ip4.flags_and_offset = static_cast<std::uint16_t>(part.from / 8 | (more ? kMore : 0U));
        ip4.protocol = protocol;
        return {ip4, Payload{{payload.begin() + static_cast<std::ptrdiff_t>(part.from),
                              payload.begin() + static_cast<std::ptrdiff_t>(part.to)}}};
    }
    // What arrived in pieces: every header is `ip4`'s but for the offset, and the payload whole.
    static void check_whole(const std::vector<Bytes>& packets, const Ipv4& ip4,
                            const Bytes& payload, std::uint8_t protocol = 17) {
        session::Datagram datagram;
        for (const Bytes& bytes : packets) {
            const std::uint16_t word = wire::load16(&bytes[wire::ipv4::kFragment]).host();
            const Part part{std::size_t{word & 0x1fffU} * 8,
                            (word & 0x1fffU) * 8 + bytes.size() - wire::ipv4::kSize};
            REQUIRE(part.to <= payload.size());
            CHECK(bytes == packet(piece(ip4, payload, part, protocol)));
            CHECK(datagram.add(static_cast<std::uint32_t>(part.from),
                               static_cast<std::uint32_t>(part.to),
                               (word & kMore) == 0) == session::Fit::fresh);
        }
        CHECK(datagram.complete());
    }
    // The inner IP packets that left.
    std::vector<Bytes> left(PortId port) {
        std::vector<Bytes> result;
        for (const Bytes& frame : sent(port)) {
            const Bytes inner = port == kUnderlay ? taken_apart(frame).frame : frame;
            result.emplace_back(inner.begin() + wire::ethernet::kSize, inner.end());
        }
        return result;
    }
    void between(const Ipv4& ip4, const Bytes& payload, const Part& part,
                 std::uint8_t protocol = 17) {
        receive(kUnderlay, frame_of(a, piece(ip4, payload, part, protocol), b.mac));
    }

    const IpAddress public_a = ip("203.0.113.5"), server = ip("198.51.100.1");
    const Part first{0, 1000}, second{1000, 2000}, last{2000, 3008};
    Machine a, b, a6, b6;
};

}  // namespace

TEST_CASE_METHOD(Fragments, "fragments pass between machines in whatever order they come") {
    std::vector<Part> order = {first, second, last};
    std::uint16_t identification = 1;
    const auto earlier = [](const Part& x, const Part& y) { return x.from < y.from; };
    do {
        Ipv4 ip4 = header(a.address, b.address);
        ip4.identification = identification++;
        const Bytes payload = payload_of(ip4, Udp{.source = identification, .destination = 53});
        for (const Part& part : order) between(ip4, payload, part);
        check_whole(left(kUnderlay), ip4, payload);
    } while (std::next_permutation(order.begin(), order.end(), earlier));
    CHECK(all_drops() == 0);
    CHECK(sessions.fragments.datagrams() == 0);
}

TEST_CASE_METHOD(Fragments, "every fragment is translated, outwards and back") {
    Ipv4 out = header(a.address, server);
    const Bytes payload = payload_of(out, Udp{.source = 1025, .destination = 53});
    for (const Part& part : {last, first, second})
        receive(kUnderlay, frame_of(a, piece(out, payload, part)));
    const Ipv4 outside = header(public_a, server, 63);
    check_whole(left(kUplink), outside,
                payload_of(outside, Udp{.source = 1025, .destination = 53}));

    const Ipv4 back = header(server, public_a, 50);
    const Bytes reply = payload_of(back, Udp{.source = 53, .destination = 1025});
    for (const Part& part : {second, last, first})
        receive(kUplink, from_internet(piece(back, reply, part)));
    const Ipv4 inside = header(server, a.address, 49);
    check_whole(left(kUnderlay), inside,
                payload_of(inside, Udp{.source = 53, .destination = 1025}));
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Fragments, "fragments of ping and TCP pass, translated") {
    const Ipv4 out = header(a.address, server), outside = header(public_a, server, 63);
    const auto there = [&](const Layer& upper, std::uint8_t protocol) {
        const Bytes payload = payload_of(out, upper);
        for (const Part& part : {second, first, Part{2000, payload.size()}})
            receive(kUnderlay, frame_of(a, piece(out, payload, part, protocol)));
        check_whole(left(kUplink), outside, payload_of(outside, upper), protocol);
    };
    there(Icmp{.type = 8, .identifier = 99}, 1);
    there(Tcp{.source = 1025, .destination = 443, .flags = wire::tcp::kSyn}, 6);
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Fragments, "IPv6 fragments follow their first") {
    const Ipv6 ip6{.source = a6.address, .destination = b6.address};
    const Bytes whole = packet(Layers{ip6, Udp{.source = 1025}, Payload{filler(3000)}});
    const Bytes payload{whole.begin() + wire::ipv6::kSize, whole.end()};
    const auto part = [&](const Part& range) {
        const bool more = range.to < payload.size();
        FragmentHeader fragment;
        fragment.offset_and_more = static_cast<std::uint16_t>(range.from | (more ? 1U : 0U));
        fragment.next_header = 17;
        return Layers{ip6, fragment,
                      Payload{{payload.begin() + static_cast<std::ptrdiff_t>(range.from),
                               payload.begin() + static_cast<std::ptrdiff_t>(range.to)}}};
    };
    for (const Part& range : {last, first, second})
        receive(kUnderlay, frame_of(a6, part(range), b6.mac));
    const auto packets = left(kUnderlay);
    REQUIRE(packets.size() == 3);
    CHECK(packets[0] == packet(part(first)));
    CHECK(packets[1] == packet(part(last)));
    CHECK(packets[2] == packet(part(second)));
}

TEST_CASE_METHOD(Fragments, "what follows a denied first fragment goes nowhere") {
    remove(a.row());
    a.groups.clear();
    put(a.row());
    const Ipv4 ip4 = header(a.address, b.address);
    const Bytes payload = payload_of(ip4, Udp{});
    between(ip4, payload, second);
    between(ip4, payload, first);
    between(ip4, payload, last);
    CHECK(silent());
    CHECK(drops(DropReason::egress_no_rule) == 1);
    CHECK(drops(DropReason::inner_fragment) == 2);
}

TEST_CASE_METHOD(Fragments, "no fragment follows a connection that a policy change has ended") {
    const Ipv4 ip4 = header(a.address, b.address);
    const Bytes payload = payload_of(ip4, Udp{});
    between(ip4, payload, first);
    CHECK(left(kUnderlay).size() == 1);
    nfv::RuleRow ingress;
    ingress.direction = nfv::Direction::ingress;
    ingress.group = kOpen;
    ingress.family = Family::ipv4;
    ingress.cookie = Cookie{602};
    remove(ingress);
    check_dropped(kUnderlay, frame_of(a, piece(ip4, payload, second), b.mac),
                  DropReason::policy_changed);
    check_dropped(kUnderlay, frame_of(a, piece(ip4, payload, last), b.mac),
                  DropReason::inner_fragment);
}

TEST_CASE_METHOD(Fragments, "a forged fragment neither follows nor harms another's datagram") {
    const Ipv4 ip4 = header(a.address, b.address);
    const Bytes payload = payload_of(ip4, Udp{});
    between(ip4, payload, first);
    Machine forger = a;
    forger.mac = MacAddress::from_value(0x02000000ee01);
    receive(kUnderlay, frame_of(forger, piece(ip4, payload, second), b.mac));
    receive(kUnderlay, frame_of(forger, piece(ip4, payload, {992, 1992}), b.mac));
    between(ip4, payload, second);
    between(ip4, payload, last);
    check_whole(left(kUnderlay), ip4, payload);
    // Its own first fragment is not carried either.
    Ipv4 other = ip4;
    other.identification = 7;
    check_dropped(kUnderlay, frame_of(forger, piece(other, payload, first), b.mac),
                  DropReason::spoofed_mac);
}

TEST_CASE_METHOD(Fragments, "overlaps, copies, hidden headers and impossible pieces are dropped") {
    const Ipv4 ip4 = header(a.address, b.address);
    const Bytes payload = payload_of(ip4, Udp{});
    between(ip4, payload, first);
    CHECK(left(kUnderlay).size() == 1);
    const auto refused = [&](const Layers& layers, DropReason reason) {
        check_dropped(kUnderlay, frame_of(a, layers, b.mac), reason);
    };
    refused(piece(ip4, payload, first), DropReason::fragment_duplicate);
    refused(piece(ip4, payload, {992, 2000}), DropReason::fragment_overlap);
    refused(piece(ip4, payload, second), DropReason::fragment_overlap);

    // RFC 3128: the flags of a TCP header in a second fragment, and a first one that ends before.
    const Bytes tcp = payload_of(ip4, Tcp{.flags = wire::tcp::kSyn});
    refused(piece(ip4, tcp, {8, 1008}, 6), DropReason::fragment_tiny);
    refused(piece(ip4, tcp, {0, 16}, 6), DropReason::fragment_tiny);
    // A length that is no multiple of eight, and an end that no datagram has.
    refused(piece(ip4, payload, {1000, 1999}), DropReason::inner_bad_header);
    Ipv4 beyond = ip4;
    beyond.flags_and_offset = 0x1fff;
    beyond.protocol = std::uint8_t{17};
    refused({beyond, Payload{filler(16)}}, DropReason::inner_bad_header);

    const Bytes roce = payload_of(ip4, Udp{.source = 50000, .destination = 4791});
    Ipv4 other = ip4;
    other.identification = 7;
    refused(piece(other, roce, first), DropReason::roce_fragment);
    refused(piece(other, roce, second), DropReason::inner_fragment);
}

TEST_CASE_METHOD(Fragments, "a fragment held to the end of the gateway is given back") {
    const Ipv4 ip4 = header(a.address, b.address);
    between(ip4, payload_of(ip4, Udp{}), second);
    CHECK(silent());
    CHECK(sessions.fragments.held() == 1);
}

TEST_CASE_METHOD(Fragments, "a sender cannot have more held than its part") {
    Ipv4 ip4 = header(a.address, b.address);
    const Bytes payload = payload_of(ip4, Udp{});
    const std::uint64_t part =
        session::FragmentLimits{}.held / session::FragmentLimits{}.sender_part;
    for (std::uint16_t i = 0; i < part + 10; ++i) {
        ip4.identification = i;
        between(ip4, payload, last);
    }
    CHECK(silent());
    CHECK(drops(DropReason::fragment_limit) == 10);
    CHECK(sessions.fragments.held() == part);
}

TEST_CASE_METHOD(Fragments, "a ping in fragments is no ping that the gateway answers") {
    const Ipv4 ip4 = header(a.address, ip("10.0.1.1"));
    const Bytes payload = payload_of(ip4, Icmp{.type = 8, .identifier = 99});
    check_dropped(kUnderlay, frame_of(a, piece(ip4, payload, first, 1)),
                  DropReason::inner_fragment);
}

TEST_CASE_METHOD(Fragments, "two endpoints of one host have their own share of what may wait") {
    Machine neighbour = add_machine(7);
    REQUIRE(neighbour.host == a.host);
    put(openflow::VniRow{vni_of(a), a.vpc, Cookie{1},
                         openflow::Settings().put(openflow::Setting::endpoint_fragments, 8)});
    std::uint16_t identification = 1;
    const auto flood = [&](const Machine& from) {
        const std::uint32_t before = sessions.fragments.held();
        for (int i = 0; i < 20; ++i) {
            Ipv4 ip4 = header(from.address, b.address);
            ip4.identification = identification++;
            const Bytes payload = payload_of(ip4, Udp{});
            receive(kUnderlay, frame_of(from, piece(ip4, payload, second), b.mac));
        }
        return sessions.fragments.held() - before;
    };
    CHECK(flood(a) == 8);
    CHECK(flood(a) == 0);
    CHECK(flood(neighbour) == 8);
    // Who pretends to be somebody else takes nothing of his share, nor much by being many.
    Machine nobody = a;
    nobody.mac = MacAddress::from_value(0x02000000dddd);
    CHECK(flood(nobody) == 8);
    nobody.mac = MacAddress::from_value(0x02000000eeee);
    nobody.address = ip("10.0.1.99");
    CHECK(flood(nobody) == 0);
    CHECK(drops(DropReason::fragment_limit) == 5 * 20 - 3 * 8);
}

}  // namespace sluice::worker
