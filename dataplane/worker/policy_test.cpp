// SPDX-License-Identifier: Apache-2.0
// Connections under a policy that changes, and under senders that lie.
#include "tests/unit/worker_cloud.hpp"

namespace sluice::worker {
namespace {

using namespace tests;
using session::kPsh, session::kUrg;
using wire::tcp::kAck, wire::tcp::kFin, wire::tcp::kRst, wire::tcp::kSyn;

}  // namespace

TEST_CASE_METHOD(Cloud, "who lies about his MAC, address, host or VPC opens nothing") {
    // A neighbour's MAC, one that nobody has, and both with an address that nobody has.
    Machine liar = a;
    liar.mac = b.mac;
    check_dropped(kUnderlay, datagram(liar, c), DropReason::spoofed_ip);
    liar.mac = mac("02:00:00:00:00:77");
    check_dropped(kUnderlay, datagram(liar, c), DropReason::spoofed_mac);
    liar.address = ip("10.0.1.77");
    check_dropped(kUnderlay, datagram(liar, c), DropReason::unknown_source);
    liar.mac = a.mac;
    check_dropped(kUnderlay, datagram(liar, c), DropReason::spoofed_ip);
    liar.address = b.address;
    check_dropped(kUnderlay, datagram(liar, c), DropReason::spoofed_ip);
    liar = a;
    liar.host = HostId{1};
    check_dropped(kUnderlay, datagram(liar, c), DropReason::spoofed_vtep);
    liar.host = HostId{50};
    check_dropped(kUnderlay, datagram(liar, c), DropReason::unknown_vtep);
    Bytes elsewhere = datagram(a, c);
    elsewhere[48] ^= 1;  // the VNI
    check_dropped(kUnderlay, elsewhere, DropReason::unknown_vni);
    CHECK(connections() == 0);
}

TEST_CASE_METHOD(Cloud, "copies of a live connection's packets: dropped, and its counters stand") {
    check_passes(datagram(a, b));
    const auto before = counted(a, b);
    Machine liar = a;
    liar.mac = c.mac;
    check_dropped(kUnderlay, datagram(liar, b), DropReason::spoofed_mac);
    liar = a;
    liar.host = HostId{1};
    check_dropped(kUnderlay, datagram(liar, b), DropReason::spoofed_vtep);
    liar.host = HostId{50};
    check_dropped(kUnderlay, datagram(liar, b), DropReason::spoofed_vtep);
    Bytes elsewhere = datagram(a, b);
    elsewhere[48] ^= 1;
    check_dropped(kUnderlay, elsewhere, DropReason::unknown_vni);
    CHECK(counted(a, b) == before);
    check_passes(datagram(a, b));
    CHECK(counted(a, b).first == before.first + 1);
}

TEST_CASE_METHOD(Cloud, "replies are held against their own sender") {
    check_passes(datagram(a, b));
    const auto reply = [&](const Machine& from) {
        return frame_of(from,
                        {Ipv4{.source = b.address, .destination = a.address},
                         Udp{.source = 2000, .destination = 1025}},
                        a.mac);
    };
    check_passes(reply(b));
    check_dropped(kUnderlay, reply(c), DropReason::spoofed_mac);
    Machine moved = b;
    moved.host = HostId{2};
    check_dropped(kUnderlay, reply(moved), DropReason::spoofed_vtep);
}

TEST_CASE_METHOD(Cloud, "a change that concerns it not leaves a connection as it is") {
    establish();
    const auto walks = worker->counters().rewalks.read();
    put(openflow::RouteRow{
        RouteTableId{1}, block("172.16.0.0/12"), openflow::NextHop::blackhole, {}, Cookie{460}});
    for (int i = 0; i < 3; ++i) {
        check_passes(forth(kAck, 1001));
        check_passes(back(kAck));
    }
    CHECK(worker->counters().rewalks.read() == walks + 1);
    CHECK(connections() == 1);
}

TEST_CASE_METHOD(Cloud, "a rule taken away cuts what it allowed, whichever end speaks first") {
    const auto ingress = rule(nfv::Direction::ingress, Family::ipv4, 602);
    for (const bool replies_first : {false, true}) {
        establish();
        remove(ingress);
        check_dropped(kUnderlay, replies_first ? back(kAck) : forth(kAck, 1001),
                      DropReason::policy_changed);
        CHECK(connections() == 0);
        receive(kUnderlay, replies_first ? forth(kAck, 1001) : back(kAck));
        CHECK(silent());
        check_dropped(kUnderlay, forth(kSyn, 1000, 0), DropReason::ingress_no_rule);
        put(ingress);
    }
    establish();
    CHECK(connections() == 1);
}

TEST_CASE_METHOD(Cloud, "an endpoint that moves to another host takes its connections with it") {
    check_passes(datagram(a, b));
    b.host = HostId{2};
    put(b.row(), b.source());
    receive(kUnderlay, datagram(a, b));
    CHECK(tunnelled().to == vtep_of(HostId{2}));
    CHECK(connections() == 1);
    // From its old host it cannot come any more.
    Machine old = b;
    old.host = HostId{1};
    const auto reply = [&](const Machine& from) {
        return frame_of(from,
                        {Ipv4{.source = b.address, .destination = a.address},
                         Udp{.source = 2000, .destination = 1025}},
                        a.mac);
    };
    check_dropped(kUnderlay, reply(old), DropReason::spoofed_vtep);
    check_passes(reply(b));
}

TEST_CASE_METHOD(Cloud, "a host's VTEP changes: flows follow without being judged") {
    check_passes(datagram(a, b));
    put(openflow::HostRow{HostId{1}, {ip("2001:db8:ff::13")}, Cookie{501}});
    receive(kUnderlay, datagram(a, b));
    CHECK(tunnelled().to == ip("2001:db8:ff::13"));
}

TEST_CASE_METHOD(Cloud, "a recycled address inherits nothing") {
    establish();
    remove(b.row(), b.source());
    Machine next = b;
    next.id = EndpointId{999};
    put(next.row(), next.source());
    // Somebody else now: the old connection is over, and its packets open nothing.
    receive(kUnderlay, forth(kAck, 1001));
    CHECK(silent());
    receive(kUnderlay, back(kAck));
    CHECK(silent());
    CHECK(connections() == 0);
    check_passes(forth(kSyn, 1000, 0));
}

TEST_CASE_METHOD(Cloud, "a VPC that closes: its live connections' packets are counted outside") {
    const Bytes packet = datagram(a, b);
    check_passes(packet);
    remove(openflow::VniRow{vni_of(a), a.vpc, {}});
    const auto outside = [&] {
        std::uint64_t sum = 0;
        for (const auto& drops : worker->counters().zone[0].drops) sum += drops.read();
        return sum;
    };
    for (std::uint64_t i = 1; i <= 3; ++i) {
        receive(kUnderlay, packet);
        CHECK(silent());
        CHECK(outside() == i);
    }
}

TEST_CASE_METHOD(Cloud,
                 "connections of what is deleted end with their next packet, and are counted") {
    const Bytes packet = datagram(a, b);
    check_passes(packet);
    remove(a.row(), a.source(), b.row(), b.source());
    remove(openflow::VniRow{vni_of(a), a.vpc, {}});
    check_dropped(kUnderlay, packet, DropReason::unknown_vni);
    CHECK(connections() == 0);
    check_dropped(kUnderlay, packet, DropReason::unknown_vni);
}

TEST_CASE_METHOD(Cloud, "TCP: only a SYN opens, flags that cannot be are refused") {
    for (const std::uint8_t flags :
         {int{kAck}, kSyn | kAck, kFin | kAck, int{kRst}, 0, kSyn | kFin, kSyn | kRst})
        check_dropped(kUnderlay, forth(flags), DropReason::tcp_not_syn);
    establish();
    for (const std::uint8_t flags : {kSyn | kFin, kSyn | kRst, kRst | kFin})
        check_dropped(kUnderlay, forth(flags, 1001), DropReason::tcp_invalid);
    check_passes(forth(kAck, 1001));
}

TEST_CASE_METHOD(Cloud, "TCP: closed by both, or reset, the same ports open a connection anew") {
    for (const bool reset : {false, true}) {
        establish();
        if (reset) {
            check_passes(back(kRst, 5000));
        } else {
            check_passes(forth(kFin | kAck, 1001));
            check_passes(back(kFin | kAck, 5000, 1002));
            check_passes(forth(kAck, 1002, 5001));
        }
        const auto walks = worker->counters().walks.read();
        check_passes(forth(kSyn, 90000, 0));
        CHECK(worker->counters().walks.read() == walks + 1);
        CHECK(connections() == 1);
        check_passes(back(kSyn | kAck, 70000, 90001));
        check_passes(forth(kAck, 90001, 70001));
        check_passes(forth(kRst, 90001, 70001));
    }
}

TEST_CASE_METHOD(Cloud, "TCP: a reset ends the connection only at the next expected number") {
    establish();  // A has sent up to 1001, B has acknowledged that; B likewise 5000
    const auto lives = [&] {
        const auto walks = worker->counters().walks.read();
        check_passes(forth(kSyn, 1000, 0));  // would open anew, were it over
        CHECK(worker->counters().walks.read() == walks);
        CHECK(connections() == 1);
    };
    SECTION("in the window: passed for the end to challenge, and nothing changes") {
        for (const std::uint32_t sequence : {5001U, 5000U + 65534U}) {
            check_passes(back(kRst | kAck, sequence));
            lives();
        }
        // The challenge acknowledgement, and the reset that answers it.
        check_passes(forth(kAck, 1001, 5000));
        check_passes(back(kRst, 5000));
        check_passes(forth(kSyn, 90000, 0));
        CHECK(worker->counters().walks.read() == 2);
    }
    SECTION("outside: dropped by its reason") {
        for (const std::uint32_t sequence : {4999U, 0U, 5000U + 65535U, 5000U + 900000U})
            check_dropped(kUnderlay, back(kRst, sequence), DropReason::tcp_out_of_window);
        lives();
    }
    SECTION("what passes without changing anything is not noted as progress either") {
        check_passes(back(kSyn, 900000, 0));
        check_passes(back(kRst | kAck, 6000, 777777));
        check_dropped(kUnderlay, forth(kRst, 777777), DropReason::tcp_out_of_window);
        check_dropped(kUnderlay, back(kRst, 900001), DropReason::tcp_out_of_window);
        check_passes(back(kRst, 5000));
        check_passes(forth(kSyn, 90000, 0));
        CHECK(worker->counters().walks.read() == 2);
    }
    SECTION("after all that was sent, unacknowledged: over, unless the receiver goes on") {
        check_passes(back(kAck | kPsh, 5010));
        check_passes(back(kRst, 5010));
        lives();
        check_passes(forth(kAck, 1001, 5010));
        check_passes(back(kRst, 5010));
        check_passes(forth(kSyn, 90000, 0));
        CHECK(worker->counters().walks.read() == 2);
    }
}

TEST_CASE_METHOD(Cloud, "TCP: numbers that wrap to 0 are numbers like any other") {
    check_passes(forth(kSyn, 0xffffffff, 0));
    check_passes(back(kSyn | kAck, 0xffffffff, 0));
    check_passes(forth(kAck, 0, 0));
    for (const std::uint32_t sequence : {0xffffffffU, 65535U, 900000U}) {
        check_dropped(kUnderlay, forth(kRst, sequence), DropReason::tcp_out_of_window);
        check_dropped(kUnderlay, back(kRst, sequence), DropReason::tcp_out_of_window);
    }
    check_passes(back(kRst | kAck, 5, 0));  // in the window: for the end to challenge
    check_passes(back(kRst, 0, 0));
    check_passes(forth(kSyn, 90000, 0));
    CHECK(worker->counters().walks.read() == 2);
}

TEST_CASE_METHOD(Cloud, "TCP: a SYN on a live connection passes and changes nothing") {
    establish();
    for (const std::uint32_t sequence : {1000U, 1001U, 4000000000U}) {
        check_passes(forth(kSyn, sequence, 0));
        check_passes(back(kSyn | kAck, sequence, 5));
    }
    CHECK(worker->counters().walks.read() == 1);
    check_passes(forth(kFin | kAck, 1001));
    check_passes(forth(kSyn, 70000, 0));
    CHECK(worker->counters().walks.read() == 1);
}

TEST_CASE_METHOD(Cloud, "TCP: a FIN out of the window is dropped, again it is a retransmission") {
    establish();
    check_dropped(kUnderlay, forth(kFin | kAck, 1001 + 70000), DropReason::tcp_out_of_window);
    check_dropped(kUnderlay, forth(kFin | kAck, 1001 - 70000), DropReason::tcp_out_of_window);
    for (int i = 0; i < 3; ++i) check_passes(forth(kFin | kAck, 1001));
    check_passes(back(kAck, 5000, 1002));
    check_passes(forth(kFin | kAck, 1001));  // the acknowledgement was lost behind the gateway
    // Half closed: the other end sends on.
    for (int i = 0; i < 3; ++i) check_passes(back(kAck | kPsh, 5000, 1002));
    check_passes(back(kFin | kAck, 5000, 1002));
    check_passes(forth(kAck, 1002, 5001));
    check_passes(forth(kSyn, 90000, 0));
    CHECK(worker->counters().walks.read() == 2);
}

TEST_CASE_METHOD(Cloud, "TCP: segments without ACK, SYN or RST are refused on a live connection") {
    establish();
    for (const std::uint8_t flags : {0, int{kPsh}, int{kUrg}, int{kFin}, kFin | kPsh | kUrg})
        check_dropped(kUnderlay, forth(flags, 1001), DropReason::tcp_invalid);
}

TEST_CASE_METHOD(Cloud, "TCP: both may open at once; refused at the other end it is over") {
    SECTION("at once") {
        check_passes(forth(kSyn, 1000, 0));
        check_passes(back(kSyn, 5000, 0));
        check_passes(forth(kSyn | kAck, 1000, 5001));
        check_passes(back(kSyn | kAck, 5000, 1001));
        check_passes(forth(kAck, 1001, 5001));
        check_passes(back(kAck, 5001, 1001));
        CHECK(sessions.limits.use(policy::zone_of(store.current(), vni_of(a)).value).half_open[0] ==
              0);
    }
    SECTION("refused") {
        check_passes(forth(kSyn, 1000, 0));
        check_dropped(kUnderlay, back(kRst, 0, 0), DropReason::tcp_out_of_window);
        check_dropped(kUnderlay, back(kRst | kAck, 0, 1000), DropReason::tcp_out_of_window);
        check_passes(back(kRst | kAck, 0, 1001));
        check_passes(forth(kSyn, 2000, 0));
        CHECK(worker->counters().walks.read() == 2);
    }
    SECTION("an older connection at the other end is reset first") {
        check_passes(forth(kSyn, 1000, 0));
        check_passes(back(kAck, 300, 100));
        check_passes(forth(kRst, 100, 0));
        check_passes(forth(kSyn, 1000, 0));
        check_passes(back(kSyn | kAck, 5000, 1001));
        check_passes(forth(kAck, 1001, 5001));
        CHECK(worker->counters().walks.read() == 2);
    }
    CHECK(connections() == 1);
}

TEST_CASE_METHOD(Cloud, "SCTP: an INIT or a HEARTBEAT opens, nothing else; replies by ports") {
    const auto chunk = [&](const Machine& from, const Machine& to, std::uint16_t source,
                           std::uint16_t destination, std::uint32_t tag, std::uint8_t type) {
        Bytes sctp(16);
        wire::store(sctp.data(), be16{source});
        wire::store(sctp.data() + 2, be16{destination});
        wire::store(sctp.data() + 4, be32{tag});
        sctp[12] = type;
        return frame_of(
            from,
            {Ipv4{.source = from.address, .destination = to.address, .protocol = std::uint8_t{132}},
             Payload{sctp}},
            to.subnet == from.subnet ? to.mac : kGatewayMac);
    };
    constexpr std::uint8_t kData = 0, kInit = 1, kInitAck = 2, kHeartbeat = 4, kCookie = 10;
    for (const auto& [tag, type] : {std::pair{7U, kData},
                                    {7U, kInit},
                                    {0U, kData},
                                    {7U, kInitAck},
                                    {7U, kCookie},
                                    {0U, kHeartbeat}})
        check_dropped(kUnderlay, chunk(a, b, 1, 2, tag, type), DropReason::sctp_not_init);
    check_passes(chunk(a, b, 1, 2, 0, kInit));
    check_passes(chunk(b, a, 2, 1, 7, kInitAck));
    check_passes(chunk(a, b, 1, 2, 9, kCookie));
    check_passes(chunk(a, b, 1, 2, 9, kData));
    check_dropped(kUnderlay, chunk(a, b, 1, 3, 9, kData), DropReason::sctp_not_init);
    check_passes(chunk(a, c, 1, 2, 9, kHeartbeat));
    CHECK(connections() == 2);
}

TEST_CASE_METHOD(Cloud,
                 "GRE and ESP are known by their addresses: replies pass, of any key or SPI") {
    for (const std::uint8_t protocol : {47, 50}) {
        const auto carried = [&](const Machine& from, const Machine& to, std::uint8_t octet) {
            return frame_of(from,
                            {Ipv4{.source = from.address,
                                  .destination = to.address,
                                  .protocol = std::uint8_t{protocol}},
                             Payload{Bytes(40, octet)}},
                            to.mac);
        };
        check_passes(carried(a, b, 1));
        check_passes(carried(b, a, 2));
        check_passes(carried(a, b, 3));
    }
    CHECK(connections() == 2);
    CHECK(worker->counters().walks.read() == 2);
}

TEST_CASE_METHOD(Cloud, "replies without a request open nothing") {
    check_dropped(
        kUnderlay,
        frame_of(a, {Ipv4{.source = a.address, .destination = b.address}, Icmp{.type = 0}}, b.mac),
        DropReason::icmp_not_request);
    check_passes(
        frame_of(a, {Ipv4{.source = a.address, .destination = b.address}, Icmp{.type = 8}}, b.mac));
    check_passes(
        frame_of(b, {Ipv4{.source = b.address, .destination = a.address}, Icmp{.type = 0}}, a.mac));
}

// Two VPCs without limits.
struct Unlimited : Gateway {
    static WorkerOptions room_for(std::uint16_t waiting) {
        WorkerOptions options;
        options.most_waiting = waiting;
        return options;
    }
    static session::SessionOptions unlimited() {
        session::SessionOptions options = small_tables();
        options.limits = session::LimitDefaults::none();
        return options;
    }
    explicit Unlimited(std::uint16_t waiting = 1024) : Gateway(room_for(waiting), unlimited()) {
        build_vpc(1);
        build_vpc(2);
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        other = add_machine(5, 1, {kOpen}, 2);
        peer = add_machine(6, 1, {kOpen}, 2);
    }
    void arrive_from(const Machine& from, const Machine& to, std::uint16_t count) {
        for (std::uint16_t port = 0; port < count; ++port)
            arrive(kUnderlay, frame_of(from,
                                       {Ipv4{.source = from.address, .destination = to.address},
                                        Udp{.source = port, .destination = 2000}},
                                       to.mac));
    }

    Machine a, b, other, peer;
};

TEST_CASE_METHOD(Unlimited, "a burst of new connections waits for its walks") {
    arrive_from(a, b, 64);
    CHECK(worker->turn() == 32);
    CHECK(connections() == 16);
    run();
    CHECK(sent(kUnderlay).size() == 64);
    CHECK(all_drops() == 0);
    // All known now: none waits.
    arrive_from(a, b, 64);
    run();
    CHECK(sent(kUnderlay).size() == 64);
    CHECK(connections() == 64);
}

struct LittleRoom : Unlimited {
    LittleRoom() : Unlimited(64) {}
};

TEST_CASE_METHOD(LittleRoom, "a VPC that floods waits behind its own packets, others do not") {
    arrive_from(a, b, 5 * 32);
    for (unsigned burst = 0; burst < 5; ++burst) worker->turn();
    CHECK(connections() == 5 * 16);
    CHECK(drops(DropReason::walk_budget) > 0);
    sent(kUnderlay);
    arrive_from(other, peer, 4);
    worker->turn();
    const auto zone = policy::zone_of(store.current(), vni_of(other)).value;
    CHECK(worker->counters().zone[zone].connections_created.read() == 4);
    run();
    CHECK(connections() + all_drops() == 164);
    CHECK(all_drops() == drops(DropReason::walk_budget));
}

TEST_CASE_METHOD(Cloud, "connections are told of when they begin and when they end") {
    establish();
    ConnectionEvent event;
    REQUIRE(worker->events().pop(event));
    CHECK(event.kind == ConnectionEvent::Kind::created);
    CHECK(event.source == a.id);
    CHECK(event.destination == b.id);
    CHECK(event.arrives == Tuple{a.address, b.address, 6, 1025, 80});
    remove(rule(nfv::Direction::ingress, Family::ipv4, 602));
    receive(kUnderlay, forth(kAck, 1001));
    REQUIRE(worker->events().pop(event));
    CHECK(event.kind == ConnectionEvent::Kind::ended);
    CHECK(event.reason == EndReason::policy_changed);
    CHECK(event.drop_reason == DropReason::ingress_no_rule);
    CHECK(event.counts[0].packets == 2);
    CHECK(event.counts[1].packets == 1);
    DropSample sample;
    REQUIRE(worker->samples().pop(sample));
    CHECK(sample.reason == DropReason::policy_changed);
    CHECK(sample.tuple == Tuple{a.address, b.address, 6, 1025, 80});
    CHECK(sample.vtep == vtep_of(a.host));
}

}  // namespace sluice::worker
