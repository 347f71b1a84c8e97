// SPDX-License-Identifier: Apache-2.0
// The gateway in trouble, or asked for what cannot be: nothing is lost without its reason.
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

struct Trouble : Gateway {
    Trouble() {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        put(openflow::RouteRow{RouteTableId{1},
                               Prefix::any(Family::ipv4),
                               openflow::NextHop::internet,
                               {},
                               Cookie{450}},
            nfv::ElasticIpRow{a.vpc, a.address, public_a, {}, Cookie{700}},
            nfv::PublicAddressRow{public_a, a.vpc, a.address, {}, Cookie{701}});
    }
    [[nodiscard]] Bytes datagram(std::size_t size, std::uint16_t port = 53) const {
        return frame_of(a,
                        {Ipv4{.source = a.address, .destination = b.address},
                         Udp{.source = 1025, .destination = port}, Payload{filler(size - 28)}},
                        b.mac);
    }
    const IpAddress public_a = ip("203.0.113.5"), server = ip("198.51.100.1");
    Machine a, b;
};

}  // namespace

TEST_CASE_METHOD(Trouble, "before the first commit nothing passes, and nothing is answered") {
    const std::atomic<const policy::Snapshot*> nothing{nullptr};
    const auto* root = std::exchange(shared.root, &nothing);
    check_dropped(kUnderlay, datagram(100), DropReason::not_ready);
    check_dropped(kUnderlay,
                  frame_of(a, {Arp{.sender_mac = a.mac, .sender = a.address, .target = b.address}},
                           wire::ethernet::kBroadcast),
                  DropReason::not_ready);
    shared.root = root;
    receive(kUnderlay, datagram(100));
    CHECK(sent(kUnderlay).size() == 1);
}

TEST_CASE_METHOD(Trouble, "VXLAN in VXLAN is no reply either") {
    const auto from_to = [&](const Machine& from, const Machine& to, std::uint16_t source,
                             std::uint16_t destination) {
        return frame_of(from,
                        {Ipv4{.source = from.address, .destination = to.address},
                         Udp{.source = source, .destination = destination}, Payload{filler(30)}},
                        to.mac);
    };
    receive(kUnderlay, from_to(a, b, 4789, 53));
    CHECK(sent(kUnderlay).size() == 1);
    check_dropped(kUnderlay, from_to(b, a, 53, 4789), DropReason::inner_vxlan);
    check_dropped(kUnderlay, from_to(a, b, 1025, 4789), DropReason::inner_vxlan);
}

TEST_CASE_METHOD(Trouble, "a first packet that cannot go on opens no connection") {
    const Machine far = add_machine(8, 2);
    const auto frame = [&](const Layers& layers) { return frame_of(a, layers); };
    const Udp udp{.source = 1025, .destination = 53};
    const auto to = [&](const IpAddress& there, std::uint8_t ttl, std::uint16_t flags = 0) {
        return Ipv4{
            .source = a.address, .destination = there, .ttl = ttl, .flags_and_offset = flags};
    };
    constexpr auto kDont = wire::ipv4::kDontFragment;
    const std::vector<std::pair<DropReason, Layers>> cases = {
        {DropReason::ttl_expired, {to(far.address, 1), udp}},
        {DropReason::ttl_expired, {to(server, 1), udp}},
        {DropReason::ttl_expired, {to(far.address, 1), Tcp{.flags = wire::tcp::kSyn}}},
        {DropReason::too_big, {to(far.address, 64, kDont), udp, Payload{filler(1500)}}},
        {DropReason::roce_too_big,
         {to(far.address, 64), Udp{.source = 1025, .destination = 4791}, Payload{filler(1500)}}}};
    for (const auto& [reason, layers] : cases) {
        INFO(label(reason));
        const auto before = drops(reason);
        receive(kUnderlay, frame(layers));
        // Its sender may be told.
        for (const Bytes& told : sent(kUnderlay))
            CHECK(taken_apart(told).frame[14 + wire::ipv4::kProtocol] == 1);
        CHECK(sent(kUplink).empty());
        CHECK(drops(reason) == before + 1);
        CHECK(connections() == 0);
        CHECK(sessions.limits.use(a.id).connections[0] == 0);
    }
    // Congestion of the underlay on what cannot say so.
    Bytes congested = frame({to(far.address, 64), udp});
    congested[14 + wire::ipv4::kTos] |= 3;
    wire::store(&congested[14 + wire::ipv4::kChecksum], be16{0});
    wire::store(&congested[14 + wire::ipv4::kChecksum],
                wire::ipv4_header_checksum(std::span{congested}.subspan(14, 20)));
    check_dropped(kUnderlay, congested, DropReason::ecn_invalid);
    CHECK(connections() == 0);
    // One that can does.
    receive(kUnderlay, frame({to(far.address, 2), udp}));
    CHECK(sent(kUnderlay).size() == 1);
    CHECK(connections() == 1);
}

TEST_CASE_METHOD(Trouble, "a host that does not answer, or has no VTEP, is unreachable") {
    put(openflow::HostRow{HostId{7}, {ip("192.0.2.99")}, Cookie{503}});
    Machine lost = b;
    lost.id = EndpointId{190};
    lost.address = ip("10.0.1.90");
    lost.mac = MacAddress::from_value(0x020000000190);
    lost.host = HostId{7};
    put(lost.row(), lost.source());
    const Bytes frame =
        frame_of(a, {Ipv4{.source = a.address, .destination = lost.address}, Udp{}}, lost.mac);
    for (int round = 0; round < 2; ++round)
        check_dropped(kUnderlay, frame, DropReason::host_unreachable);
    CHECK(connections() == 0);
}

TEST_CASE_METHOD(Trouble, "without a buffer for a fragment the packet is dropped whole") {
    receive(kUnderlay, datagram(100));
    CHECK(sent(kUnderlay).size() == 1);
    std::vector<rte_mbuf*> taken(4096, nullptr);
    arrive(kUnderlay, datagram(1451), {1000});
    std::size_t count = 0;
    while ((taken[count] = rte_pktmbuf_alloc(Devices::get().pool)) != nullptr) ++count;
    run();
    CHECK(drops(DropReason::no_buffer) == 1);
    CHECK(silent());
    rte_pktmbuf_free_bulk(taken.data(), static_cast<unsigned>(count));
    receive(kUnderlay, datagram(1451), {1000});
    CHECK(sent(kUnderlay).size() == 2);
}

TEST_CASE_METHOD(Trouble, "what the device does not take is dropped and counted, and no more") {
    constexpr std::size_t kSent = 1200;
    for (std::size_t i = 0; i < kSent; ++i) receive(kUnderlay, datagram(100));
    const std::size_t passed = sent(kUnderlay).size();
    CHECK(passed < kSent);
    CHECK(drops(DropReason::tx_full) == kSent - passed);
    CHECK(all_drops() == kSent - passed);
}

TEST_CASE_METHOD(Trouble, "a protocol whose checksum cannot be mended is not translated") {
    for (const std::uint8_t protocol : {33, 51, 136})
        check_dropped(
            kUnderlay,
            frame_of(a, {Ipv4{.source = a.address, .destination = server, .protocol = protocol},
                         Payload{filler(32)}}),
            DropReason::nat_unsupported);
}

TEST_CASE_METHOD(Trouble,
                 "replies that would look like the request, and have no port, open nothing") {
    check_dropped(kUnderlay,
                  frame_of(a, {Ipv4{.source = a.address, .destination = public_a, .protocol = 47},
                               Payload{filler(8)}}),
                  DropReason::session_conflict);
    CHECK(connections() == 0);
}

}  // namespace sluice::worker
