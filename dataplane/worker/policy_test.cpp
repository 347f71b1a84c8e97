// SPDX-License-Identifier: Apache-2.0
// Connections under a policy that changes, and under senders that lie.
#include "dataplane/worker/state.hpp"
#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;
using session::kPsh, session::kUrg;
using wire::tcp::kAck, wire::tcp::kFin, wire::tcp::kRst, wire::tcp::kSyn;

struct Cloud : Gateway {
    Cloud() {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        c = add_machine(8, 2);
    }
    // A TCP segment of a's connection to b, or back.
    Bytes forth(std::uint8_t flags, std::uint32_t sequence = 1000, std::uint32_t ack = 5000) const {
        return frame_of(
            a,
            {Ipv4{.source = a.address, .destination = b.address}, Tcp{.source = 1025,
                                                                      .destination = 80,
                                                                      .sequence = sequence,
                                                                      .acknowledgement = ack,
                                                                      .flags = flags}},
            b.mac);
    }
    Bytes back(std::uint8_t flags, std::uint32_t sequence = 5000, std::uint32_t ack = 1001) const {
        return frame_of(
            b,
            {Ipv4{.source = b.address, .destination = a.address}, Tcp{.source = 80,
                                                                      .destination = 1025,
                                                                      .sequence = sequence,
                                                                      .acknowledgement = ack,
                                                                      .flags = flags}},
            a.mac);
    }
    Bytes datagram(const Machine& from, const Machine& to, std::uint16_t port = 1025) const {
        return frame_of(from,
                        {Ipv4{.source = from.address, .destination = to.address},
                         Udp{.source = port, .destination = 2000}},
                        to.mac);
    }
    void check_passes(const Bytes& frame) {
        const std::uint64_t before = all_drops();
        receive(kUnderlay, frame);
        CHECK(sent(kUnderlay).size() == 1);
        CHECK(all_drops() == before);
    }
    void establish() {
        check_passes(forth(kSyn, 1000, 0));
        check_passes(back(kSyn | kAck, 4999, 1001));
        check_passes(forth(kAck, 1001, 5000));
    }
    static nfv::RuleRow rule(nfv::Direction direction, Family family, std::uint64_t cookie) {
        nfv::RuleRow row;
        row.direction = direction;
        row.group = kOpen;
        row.family = family;
        row.cookie = Cookie{cookie};
        return row;
    }
    // Packets and octets that the flow of a's datagrams has counted.
    std::pair<std::uint64_t, std::uint64_t> counted(const Machine& from, const Machine& to) {
        const Tuple tuple{from.address, to.address, 17, 1025, 2000};
        const auto key = session::KeyIpv4::of(vni_of(from), tuple);
        const auto flow = sessions.ipv4.find(key, sessions.ipv4.hash(key));
        REQUIRE(flow != session::kNoFlow);
        const auto count = session::counted(sessions.ipv4.flow(flow).state,
                                            sessions.ipv4.connection(session::connection_of(flow)),
                                            session::is_reverse(flow));
        return {count.packets, count.octets};
    }

    Machine a, b, c;
};

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

TEST_CASE_METHOD(Cloud,
                 "after a restart connections are picked up in their middle, from either end") {
    shared.restarted.store(Clock{}.nanoseconds(rte_rdtsc()));
    SECTION("the initiator speaks first") {
        check_passes(forth(kAck, 1001));
        check_passes(back(kAck));
    }
    SECTION("the responder does") {
        // Only the initiator may open: the group lets nobody into a.
        remove(rule(nfv::Direction::ingress, Family::ipv4, 602));
        nfv::RuleRow web = rule(nfv::Direction::ingress, Family::ipv4, 603);
        web.protocol = 6;
        web.port_min = web.port_max = 80;
        put(web);
        check_passes(back(kAck));
        check_passes(forth(kAck, 1001));
    }
    CHECK(connections() == 1);
    // What was never allowed is not picked up.
    remove(rule(nfv::Direction::egress, Family::ipv4, 601));
    receive(kUnderlay, frame_of(a,
                                {Ipv4{.source = a.address, .destination = b.address},
                                 Tcp{.source = 1, .destination = 2}},
                                b.mac));
    CHECK(silent());
}

TEST_CASE_METHOD(Cloud, "each VPC says for how long after a restart connections are picked up") {
    const auto set = [&](std::uint32_t seconds) {
        put(openflow::VniRow{vni_of(a), a.vpc, Cookie{1},
                             openflow::Settings().put(openflow::Setting::mid_stream, seconds)});
    };
    constexpr std::uint64_t kSecond = 1'000'000'000;
    shared.restarted.store(Clock{}.nanoseconds(rte_rdtsc()) - 70 * kSecond);
    check_dropped(kUnderlay, forth(kAck), DropReason::tcp_not_syn);
    set(100);
    check_passes(forth(kAck));
    set(0);
    shared.restarted.store(Clock{}.nanoseconds(rte_rdtsc()));
    check_dropped(kUnderlay,
                  frame_of(b,
                           {Ipv4{.source = b.address, .destination = a.address},
                            Tcp{.source = 9, .destination = 9, .flags = kAck}},
                           a.mac),
                  DropReason::tcp_not_syn);
}

TEST_CASE_METHOD(Cloud, "persist_established: what a rule admitted survives it, each side alone") {
    const auto set = [&](bool egress, bool ingress) {
        nfv::RuleRow out = rule(nfv::Direction::egress, Family::ipv4, 601);
        nfv::RuleRow in = rule(nfv::Direction::ingress, Family::ipv4, 602);
        out.persists = egress;
        in.persists = ingress;
        put(out, in);
    };
    const nfv::RuleRow out = rule(nfv::Direction::egress, Family::ipv4, 601);
    const nfv::RuleRow in = rule(nfv::Direction::ingress, Family::ipv4, 602);
    set(true, false);
    establish();
    SECTION("the side that persists is not asked again, and new connections are") {
        remove(out);
        check_passes(forth(kAck, 1001));
        check_passes(back(kAck));
        check_dropped(kUnderlay, datagram(a, b), DropReason::egress_no_rule);
        // Nor does a deny cut.
        nfv::RuleRow deny = out;
        deny.allow = false;
        put(deny);
        check_passes(forth(kAck, 1001));
        check_dropped(kUnderlay, datagram(a, b), DropReason::egress_denied);
        // The rule that admitted it is still named.
        ConnectionEvent event;
        REQUIRE(worker->events().pop(event));
        remove(a.row(), a.source());
        receive(kUnderlay, back(kAck));
        CHECK(silent());
        REQUIRE(worker->events().pop(event));
        CHECK(event.path[1] == 601);
    }
    SECTION("the other side cuts") {
        remove(in);
        check_dropped(kUnderlay, forth(kAck, 1001), DropReason::policy_changed);
        CHECK(connections() == 0);
    }
    SECTION("what else the policy says must still hold") {
        remove(b.row(), b.source());
        receive(kUnderlay, forth(kAck, 1001));
        CHECK(silent());
        CHECK(connections() == 0);
    }
    SECTION("a rule that is allowed anew, and does not persist, cuts when it goes") {
        set(false, false);
        check_passes(forth(kAck, 1001));
        remove(out);
        check_dropped(kUnderlay, forth(kAck, 1001), DropReason::policy_changed);
    }
    SECTION("turned on, it holds for what the rule admits from now on, and what it admitted") {
        set(false, true);
        check_passes(forth(kAck, 1001));
        remove(in);
        check_passes(back(kAck));
        remove(out);
        check_dropped(kUnderlay, back(kAck), DropReason::policy_changed);
    }
}

TEST_CASE_METHOD(Cloud, "data outside of the window pass, unless the VPC wants them dropped") {
    const auto set = [&](std::uint32_t check) {
        put(openflow::VniRow{vni_of(a), a.vpc, Cookie{1},
                             openflow::Settings().put(openflow::Setting::tcp_window_check, check)});
    };
    const auto data = [&](std::uint32_t sequence, std::uint32_t ack = 5000) {
        return frame_of(a,
                        {Ipv4{.source = a.address, .destination = b.address},
                         Tcp{.source = 1025,
                             .destination = 80,
                             .sequence = sequence,
                             .acknowledgement = ack,
                             .flags = kAck},
                         Payload{Bytes(100, 1)}},
                        b.mac);
    };
    establish();
    check_passes(data(1001 + 70'000));
    SECTION("of a connection that is there already") {
        set(1);
        // Without scaling the window is 65,535; what b acknowledged is 1001.
        check_dropped(kUnderlay, data(1001 + 65'535), DropReason::tcp_out_of_window);
        check_dropped(kUnderlay, data(1001, 5002), DropReason::tcp_out_of_window);
        check_passes(data(1001));
        check_passes(back(kAck, 5000, 1101));
        check_passes(data(1101 + 65'534));
        set(0);
        check_passes(data(1001 + 200'000));
    }
    SECTION("of those that open from then on") {
        set(1);
        check_passes(back(kRst, 5000));
        establish();
        check_passes(data(1001));
        check_dropped(kUnderlay, data(1101 + 70'000), DropReason::tcp_out_of_window);
        check_passes(forth(kAck, 1101));
    }
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
