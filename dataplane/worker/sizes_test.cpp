// SPDX-License-Identifier: Apache-2.0
// Sizes at the border: what passes whole, what in fragments, what is refused and told to its
// sender, on every way through the gateway; the segments that TCP may announce; how many errors are
// sent.
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

constexpr std::uint16_t kFront = 1450, kBack = 1400, kUplinkMtu = 1500;

struct Sizes : Gateway {
    Sizes() {
        build_vpc();
        open_group();
        const VpcId vpc{1};
        for (const auto& [address, length] :
             {std::pair{"10.0.2.1", 120}, std::pair{"fd00:2::1", 64}})
            put(nfv::LocalRow{vpc, ip(address), kGatewayMac, SubnetId{12},
                              static_cast<std::uint8_t>(length), RouteTableId{1}, kBack,
                              Cookie{302}});
        for (const Family family : {Family::ipv4, Family::ipv6})
            put(openflow::RouteRow{RouteTableId{1},
                                   Prefix::any(family),
                                   openflow::NextHop::internet,
                                   {},
                                   Cookie{450}});
        a = add_machine(5);
        b = add_machine(6);
        c = add_machine(8, 2);
        for (Machine* machine : {&a, &b, &c}) {
            Machine six = *machine;
            const std::string subnet = machine == &c ? "2" : "1";
            six.address = ip(("fd00:" + subnet + "::" + std::to_string(machine->id.value)).c_str());
            put(six.row(), six.source());
            sixes.push_back(six);
        }
        global = c;
        global.id = EndpointId{161};
        global.mac = MacAddress::from_value(0x020000001061);
        global.address = ip("2001:db8:1::8");
        put(global.row(), global.source());
        for (const auto& [machine, address] :
             {std::pair{a, public_a}, std::pair{c, public_c}, std::pair{global, global.address}})
            put(nfv::ElasticIpRow{machine.vpc, machine.address, address, {}, Cookie{700}},
                nfv::PublicAddressRow{address, machine.vpc, machine.address, {}, Cookie{701}});
    }

    // One way through the gateway: who sends to whom, and what fits.
    struct Way {
        const char* name;
        const Machine* from;  // nullptr: from the internet
        IpAddress source, destination;
        MacAddress next;
        bool to_uplink;
        std::uint16_t mtu;
        IpAddress gateway;  // who speaks when it does not fit
    };
    [[nodiscard]] std::vector<Way> ways() const {
        const IpAddress front = ip("10.0.1.1"), front6 = ip("fd00:1::1"), back = ip("10.0.2.1"),
                        back6 = ip("fd00:2::1");
        const auto way = [](const char* name, const Machine& from, const IpAddress& to,
                            MacAddress next, bool up, std::uint16_t mtu, const IpAddress& by) {
            return Way{name, &from, from.address, to, next, up, mtu, by};
        };
        return {
            way("inside a subnet", a, b.address, b.mac, false, kFront, front),
            way("inside a subnet, IPv6", sixes[0], sixes[1].address, b.mac, false, kFront, front6),
            way("across subnets", a, c.address, kGatewayMac, false, kBack, front),
            way("across subnets, IPv6", sixes[0], sixes[2].address, kGatewayMac, false, kBack,
                front6),
            way("to the wider subnet", c, a.address, kGatewayMac, false, kFront, back),
            way("to the wider subnet, IPv6", sixes[2], sixes[0].address, kGatewayMac, false, kFront,
                back6),
            way("to the internet", a, server, kGatewayMac, true, kUplinkMtu, front),
            way("to the internet, IPv6", global, server6, kGatewayMac, true, kUplinkMtu, back6),
            way("hairpin", a, public_c, kGatewayMac, false, kBack, front),
            {"from the internet", nullptr, server, public_a, {}, false, kFront, kUplinkAddress},
            {"from the internet, IPv6",
             nullptr,
             server6,
             global.address,
             {},
             false,
             kBack,
             kUplinkAddress6},
        };
    }
    static Bytes ip_packet(const Way& way, std::size_t size, bool dont_fragment) {
        if (way.source.is_v4())
            return packet({Ipv4{.source = way.source,
                                .destination = way.destination,
                                .flags_and_offset =
                                    dont_fragment ? wire::ipv4::kDontFragment : std::uint16_t{0}},
                           Udp{.source = 1025, .destination = 53}, Payload{filler(size - 28)}});
        return packet({Ipv6{.source = way.source, .destination = way.destination},
                       Udp{.source = 1025, .destination = 53}, Payload{filler(size - 48)}});
    }
    void send(const Way& way, const Bytes& what) {
        if (way.from == nullptr)
            return receive(kUplink,
                           packet({Ethernet{kRouterMac, kUplinkMac,
                                            way.source.is_v4() ? wire::ethernet::kIpv4.host()
                                                               : wire::ethernet::kIpv6.host()},
                                   Payload{what}}));
        const IpAddress vtep = vtep_of(way.from->host);
        receive(kUnderlay, packet({Ethernet{host_mac(vtep), kUnderlayMac},
                                   Ipv4{.source = vtep, .destination = kVtep},
                                   Udp{.source = 50000, .destination = 4789, .checksum = 0},
                                   Vxlan{.vni = vni_of(*way.from)},
                                   Ethernet{way.from->mac, way.next,
                                            way.source.is_v4() ? wire::ethernet::kIpv4.host()
                                                               : wire::ethernet::kIpv6.host()},
                                   Payload{what}}));
    }
    // IP packets that left, by port.
    std::vector<Bytes> left(PortId port) {
        std::vector<Bytes> result;
        for (const Bytes& frame : sent(port)) {
            const Bytes inner = port == kUnderlay ? taken_apart(frame).frame : frame;
            result.emplace_back(inner.begin() + wire::ethernet::kSize, inner.end());
        }
        return result;
    }

    const IpAddress public_a = ip("203.0.113.5"), public_c = ip("203.0.113.8");
    const IpAddress server = ip("198.51.100.1"), server6 = ip("2001:db8:99::1");
    Machine a, b, c, global;
    std::vector<Machine> sixes;
};

std::uint16_t length_of(const Bytes& packet) {
    return wire::load16(&packet[wire::ipv4::kLength]).host();
}

}  // namespace

TEST_CASE_METHOD(Sizes, "one octet under the MTU and the MTU itself pass whole, on every way") {
    for (const Way& way : ways())
        for (const int below : {1, 0})
            for (const bool rigid : {false, true}) {
                INFO(way.name);
                const std::size_t size = static_cast<std::size_t>(way.mtu - below);
                send(way, ip_packet(way, size, rigid));
                const auto there = left(way.to_uplink ? kUplink : kUnderlay);
                REQUIRE(there.size() == 1);
                CHECK(there[0].size() == size);
                CHECK(silent());
            }
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Sizes, "one octet over: told to the sender with the MTU, or fragmented") {
    std::uint64_t refused = 0;
    for (const Way& way : ways()) {
        INFO(way.name);
        const bool v4 = way.source.is_v4();
        // As a first packet and as one of a connection.
        for (int round = 0; round < 2; ++round) {
            const Bytes big = ip_packet(way, way.mtu + 1U, true);
            send(way, big);
            ++refused;
            CHECK(drops(DropReason::too_big) == refused);
            const auto told = left(way.from != nullptr ? kUnderlay : kUplink);
            REQUIRE(told.size() == 1);
            CHECK(silent());
            const std::size_t room = v4 ? 576 : 1280, header = v4 ? 28 : 48;
            CHECK(told[0].size() == room);
            if (v4) {
                CHECK(wire::load_v4(&told[0][wire::ipv4::kSource]) == way.gateway);
                CHECK(wire::load_v4(&told[0][wire::ipv4::kDestination]) == way.source);
                CHECK(wire::load16(&told[0][20]).host() == 0x0304);
                CHECK(wire::load16(&told[0][26]).host() == way.mtu);
            } else {
                CHECK(wire::load_v6(&told[0][wire::ipv6::kSource]) == way.gateway);
                CHECK(wire::load_v6(&told[0][wire::ipv6::kDestination]) == way.source);
                CHECK(wire::load16(&told[0][40]).host() == 0x0200);
                CHECK(wire::load32(&told[0][44]).host() == way.mtu);
            }
            // The packet as it was sent: no TTL less, nothing translated.
            CHECK(std::equal(told[0].begin() + static_cast<std::ptrdiff_t>(header), told[0].end(),
                             big.begin()));
        }
        if (!v4) continue;
        const Bytes loose = ip_packet(way, way.mtu + 1U, false);
        send(way, loose);
        const auto pieces = left(way.to_uplink ? kUplink : kUnderlay);
        REQUIRE(pieces.size() == 2);
        std::size_t payload = 0;
        for (const Bytes& piece : pieces) {
            CHECK(piece.size() <= way.mtu);
            CHECK(length_of(piece) == piece.size());
            CHECK(wire::ipv4_header_checksum_ok(std::span{piece}.first(20)));
            CHECK((wire::load16(&piece[wire::ipv4::kFragment]).host() & 0x1fff) * 8U == payload);
            payload += piece.size() - 20;
        }
        CHECK(payload == loose.size() - 20);
        CHECK(silent());
    }
    CHECK(all_drops() == refused);
}

TEST_CASE_METHOD(Sizes, "RoCEv2 is never fragmented: dropped by its own reason") {
    const auto roce = [&](std::size_t size) {
        return frame_of(a, {Ipv4{.source = a.address, .destination = c.address},
                            Udp{.source = 50000, .destination = 4791}, Payload{filler(size - 28)}});
    };
    check_dropped(kUnderlay, roce(kBack + 1U), DropReason::roce_too_big);
    receive(kUnderlay, roce(kBack));
    CHECK(left(kUnderlay).size() == 1);
    check_dropped(kUnderlay, roce(kBack + 1U), DropReason::roce_too_big);
}

TEST_CASE_METHOD(Sizes, "what a SYN announces is lowered to the smaller MTU of both directions") {
    const Bytes announced{2, 4, 0x05, 0xb4, 1, 1};  // 1,460
    for (const Way& way : ways()) {
        INFO(way.name);
        const bool v4 = way.source.is_v4(), bridged = way.from != nullptr && way.next == b.mac;
        const std::uint16_t back = way.from == nullptr            ? kUplinkMtu
                                   : way.from->subnet == c.subnet ? kBack
                                                                  : kFront;
        const auto most = static_cast<std::uint16_t>(std::min(way.mtu, back) - (v4 ? 40 : 60));
        const auto layers = [&](std::uint8_t flags, std::uint16_t port) {
            const Tcp tcp{.source = port, .destination = 443, .flags = flags, .options = announced};
            return v4 ? packet({Ipv4{.source = way.source, .destination = way.destination}, tcp})
                      : packet({Ipv6{.source = way.source, .destination = way.destination}, tcp});
        };
        send(way, layers(wire::tcp::kSyn, 2000));
        const auto there = left(way.to_uplink ? kUplink : kUnderlay);
        REQUIRE(there.size() == 1);
        const std::size_t l4 = v4 ? 20 : 40;
        const std::uint16_t got = wire::load16(&there[0][l4 + 22]).host();
        CHECK(got == (bridged ? 1460 : most));
        const auto address = [&](std::size_t in_v4, std::size_t in_v6) {
            return v4 ? wire::load_v4(&there[0][in_v4]) : wire::load_v6(&there[0][in_v6]);
        };
        CHECK(wire::transport_checksum_ok(address(12, 8), address(16, 24), Protocol::tcp,
                                          std::span{there[0]}.subspan(l4)));
    }
    CHECK(all_drops() == 0);
}

TEST_CASE_METHOD(Sizes, "the answer to a SYN is lowered too, and a small MSS is not raised") {
    const auto segment = [&](const Machine& from, const Machine& to, std::uint16_t source,
                             std::uint16_t destination, std::uint8_t flags, const Bytes& options) {
        return frame_of(from, {Ipv4{.source = from.address, .destination = to.address},
                               Tcp{.source = source,
                                   .destination = destination,
                                   .sequence = from.id == c.id ? 5000U : 1000U,
                                   .acknowledgement = from.id == c.id ? 1001U : 0U,
                                   .flags = flags,
                                   .options = options}});
    };
    const auto mss = [&] { return wire::load16(&left(kUnderlay).at(0)[42]).host(); };
    receive(kUnderlay, segment(a, c, 2000, 443, wire::tcp::kSyn, {2, 4, 0x03, 0xe8}));
    CHECK(mss() == 1000);
    receive(kUnderlay,
            segment(c, a, 443, 2000, wire::tcp::kSyn | wire::tcp::kAck, {2, 4, 0x05, 0xb4}));
    CHECK(mss() == kBack - 40);
}

TEST_CASE_METHOD(Sizes, "a VPC that wants its SYNs left alone has them so, from the next one on") {
    std::uint16_t port = 2000;
    const auto mss = [&] {
        receive(kUnderlay, frame_of(a, {Ipv4{.source = a.address, .destination = c.address},
                                        Tcp{.source = port++,
                                            .destination = 443,
                                            .flags = wire::tcp::kSyn,
                                            .options = {2, 4, 0x05, 0xb4}}}));
        return wire::load16(&left(kUnderlay).at(0)[42]).host();
    };
    const auto set = [&](std::uint32_t value) {
        openflow::VniRow row{Vni{5001}, VpcId{1}, Cookie{1}};
        row.settings.put(openflow::Setting::mss_clamping, value);
        put(row);
    };
    CHECK(mss() == kBack - 40);
    set(0);
    CHECK(mss() == 1460);
    set(1);
    CHECK(mss() == kBack - 40);
}

TEST_CASE_METHOD(Sizes,
                 "errors are sent to an endpoint at a bounded rate, and to others as before") {
    const Way way = ways()[2];
    REQUIRE(std::string(way.name) == "across subnets");
    constexpr std::size_t kMany = 200;
    const Bytes big = ip_packet(way, kBack + 1U, true);
    std::size_t told = 0;
    for (std::size_t i = 0; i < kMany; ++i) {
        send(way, big);
        told += left(kUnderlay).size();
    }
    CHECK(told >= session::AnswerLimits::kBurst);
    CHECK(told < kMany);
    CHECK(drops(DropReason::too_big) == kMany);
    CHECK(worker->counters().answers_limited.read() == kMany - told);
    Way other = way;
    other.from = &b;
    other.source = b.address;
    send(other, ip_packet(other, kBack + 1U, true));
    CHECK(left(kUnderlay).size() == 1);
}

TEST_CASE_METHOD(Sizes, "no error about an error, a later fragment, or what is for everybody") {
    const Ipv4 rigid{.source = a.address,
                     .destination = c.address,
                     .flags_and_offset = wire::ipv4::kDontFragment};
    const Way way = ways()[2];
    send(way, ip_packet(way, 100, false));
    const Bytes carried = left(kUnderlay).at(0);
    // An error of c's that is larger than what a's subnet carries.
    Bytes quote = carried;
    quote.resize(kFront, 0);
    check_dropped(
        kUnderlay,
        frame_of(c, {Ipv4{.source = c.address,
                          .destination = a.address,
                          .flags_and_offset = wire::ipv4::kDontFragment},
                     Icmp{.type = 3, .code = 3, .identifier = 0, .sequence = 0}, Payload{quote}}),
        DropReason::too_big);
    // Without DF it is fragmented as any other packet.
    receive(kUnderlay, frame_of(c, {Ipv4{.source = c.address, .destination = a.address},
                                    Icmp{.type = 3, .code = 3, .identifier = 0, .sequence = 0},
                                    Payload{quote}}));
    CHECK(left(kUnderlay).size() == 2);
    // The first fragment is told, the later one is not.
    Ipv4 first = rigid, later = rigid;
    first.flags_and_offset = wire::ipv4::kDontFragment | wire::ipv4::kMoreFragments;
    later.flags_and_offset = wire::ipv4::kDontFragment | 181;
    later.protocol = 17;
    receive(kUnderlay, frame_of(a, {first, Udp{.source = 1025, .destination = 53, .length = 3000},
                                    Payload{filler(1440)}}));
    CHECK(left(kUnderlay).size() == 1);
    receive(kUnderlay, frame_of(a, {later, Payload{filler(1440)}}));
    CHECK(silent());
    CHECK(drops(DropReason::too_big) == 3);
    CHECK(all_drops() == 3);
}

TEST_CASE_METHOD(Sizes, "of an address that many share, what may be fragmented is numbered anew") {
    const Way way = ways()[6];
    REQUIRE(std::string(way.name) == "to the internet");
    const auto sent_with = [&](std::uint16_t number, std::uint16_t word, std::size_t size) {
        Layers layers{Ipv4{.source = way.source,
                           .destination = way.destination,
                           .identification = number,
                           .flags_and_offset = word,
                           .protocol = 17}};
        Udp udp{.source = 1025, .destination = 53, .checksum = 0};
        if ((word & wire::ipv4::kMoreFragments) != 0) udp.length = 2000;
        if ((word & wire::ipv4::kOffsetMask) == 0) layers.push_back(udp);
        layers.push_back(Payload{filler(size)});
        send(way, packet(layers));
        std::vector<std::uint16_t> numbers;
        for (const Bytes& out : left(kUplink)) {
            CHECK(wire::ipv4_header_checksum_ok(std::span{out}.first(20)));
            numbers.push_back(wire::load16(&out[wire::ipv4::kIdentification]).host());
        }
        return numbers;
    };
    using Numbers = std::vector<std::uint16_t>;
    constexpr std::uint16_t kRigid = wire::ipv4::kDontFragment, kMore = wire::ipv4::kMoreFragments;
    // An elastic IP's own number is right as it is.
    CHECK(sent_with(7, 0, 100) == Numbers{7});
    const Tuple tuple{way.source, way.destination, 17, 1025, 53};
    auto& table = sessions.ipv4;
    const auto key = session::Ipv4::Key::of(vni_of(a), tuple);
    const auto flow = table.find(key, table.hash(key));
    REQUIRE(flow != session::kNoFlow);
    table.flow(flow).state.target.fetch_or(session::kSharedSource);
    const std::uint16_t first = sent_with(7, 0, 100).at(0);
    CHECK(sent_with(7, 0, 100) == Numbers{static_cast<std::uint16_t>(first % 0xffff + 1)});
    // What can never be fragmented needs none (RFC 6864 section 4.1).
    CHECK(sent_with(7, kRigid, 100) == Numbers{7});
    // Fragments of one datagram leave with one number, in whatever order they come.
    CHECK(sent_with(9, kMore | 6, 40).empty());
    const Numbers both = sent_with(9, kMore, 40);
    REQUIRE(both.size() == 2);
    CHECK(both[0] == both[1]);
    CHECK(both[0] != 9);
    CHECK(both[0] != first);
    CHECK(sent_with(9, 11, 40) == Numbers{both[0]});
    // ... also of one that is fragmented here.
    const Numbers made = sent_with(11, 0, 1600);
    REQUIRE(made.size() == 2);
    CHECK(made[0] == made[1]);
    CHECK(made[0] != 11);
}

}  // namespace sluice::worker
