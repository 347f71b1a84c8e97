// SPDX-License-Identifier: Apache-2.0
// What a VPC's and a group's settings do to connections.
#include "tests/unit/worker_cloud.hpp"

namespace sluice::worker {

using namespace tests;
using wire::tcp::kAck, wire::tcp::kRst;

TEST_CASE("each time-out that is set is that of its connections, the others stay") {
    using openflow::Setting;
    using session::Timeout;
    constexpr std::pair<Setting, Timeout> kAll[] = {
        {Setting::tcp_established, Timeout::tcp_established},
        {Setting::tcp_transitory, Timeout::tcp_transitory},
        {Setting::tcp_time_wait, Timeout::tcp_time_wait},
        {Setting::udp, Timeout::udp},
        {Setting::udp_unanswered, Timeout::udp_unanswered},
        {Setting::icmp, Timeout::icmp},
        {Setting::sctp, Timeout::sctp},
        {Setting::sctp_unanswered, Timeout::sctp_unanswered},
        {Setting::other, Timeout::other},
        {Setting::other_unanswered, Timeout::other_unanswered},
    };
    for (const auto& [setting, timeout] : kAll) {
        // What nobody sets is as documented.
        CHECK(session::Timeouts{}[timeout] ==
              session::ticks(openflow::find_setting(setting)->otherwise));
        session::Timeouts wanted;
        wanted[timeout] = session::ticks(9000);
        CHECK(values_of(openflow::Settings().put(setting, 9000)).timeouts == wanted);
    }
    CHECK(values_of({}) == session::ZoneValues{});
    CHECK_FALSE(values_of(openflow::Settings().put(Setting::mss_clamping, 0)).mss_clamping);
}

TEST_CASE_METHOD(Cloud, "each limit that is set is the VPC's or its endpoints', the others stay") {
    using enum openflow::Setting;
    CHECK(limits_of({}) == VpcLimits{});
    openflow::Settings settings;
    settings.put(connections, 1).put(half_open, 2).put(new_per_second, 3).put(fragments, 4);
    settings.put(endpoint_connections, 5).put(endpoint_half_open, 6);
    settings.put(endpoint_new_per_second, 7).put(endpoint_fragments, 8);
    CHECK(limits_of(settings) == VpcLimits{{1, 2, 3}, {5, 6, 7}});
    put(openflow::VniRow{vni_of(a), a.vpc, Cookie{1}, settings});
    const auto slot = policy::zone_of(store.current(), vni_of(a)).value;
    CHECK(sessions.limits.own(slot) == limits_of(settings));
    CHECK(sessions.fragments.vpc_bound(slot) == 4);
    put(openflow::VniRow{vni_of(a), a.vpc, Cookie{1}});
    CHECK(sessions.limits.own(slot) == VpcLimits{});
    CHECK(sessions.fragments.vpc_bound(slot) == 256);
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

TEST_CASE_METHOD(Cloud, "what was picked up lets nobody open from its other end who may not") {
    // b may open to a, from any port; a opens to nobody.
    using namespace wire::tcp;
    remove(rule(nfv::Direction::egress, Family::ipv4, 601));
    nfv::RuleRow outwards = rule(nfv::Direction::egress, Family::ipv4, 604);
    outwards.remote_prefix = Prefix::host(a.address);
    put(outwards);
    check_dropped(kUnderlay, forth(kSyn), DropReason::egress_no_rule);
    shared.restarted.store(Clock{}.nanoseconds(rte_rdtsc()));
    // Taken for a reply of b's; whether b knows of it the gateway cannot tell.
    check_passes(forth(kAck, 1));
    CHECK(connections() == 1);
    check_dropped(kUnderlay, forth(kSyn, 5), DropReason::egress_no_rule);
    check_passes(forth(kAck, 1));  // it is there still
    check_passes(back(kAck));
    check_passes(back(kSyn, 7));  // who may open may do so again
    // Once a may, too, it may on this connection.
    put(rule(nfv::Direction::egress, Family::ipv4, 601));
    check_passes(forth(kSyn, 5));
    CHECK(connections() == 1);
}

TEST_CASE_METHOD(Cloud, "SCTP is picked up by whom policy lets open only") {
    const auto packet = [&](const Machine& from, const Machine& to, std::uint16_t source,
                            std::uint16_t destination, std::uint8_t chunk) {
        Bytes header(16);
        wire::store(&header[0], be16{source});
        wire::store(&header[2], be16{destination});
        header[7] = chunk == 1 ? 0 : 9;  // verification tag
        header[12] = chunk;
        return frame_of(from,
                        {Ipv4{.source = from.address, .destination = to.address, .protocol = 132},
                         Payload{header}},
                        to.mac);
    };
    remove(rule(nfv::Direction::egress, Family::ipv4, 601));
    nfv::RuleRow outwards = rule(nfv::Direction::egress, Family::ipv4, 604);
    outwards.remote_prefix = Prefix::host(a.address);
    put(outwards);
    shared.restarted.store(Clock{}.nanoseconds(rte_rdtsc()));
    check_dropped(kUnderlay, packet(a, b, 5, 6, 0), DropReason::egress_no_rule);
    check_passes(packet(b, a, 6, 5, 0));
    check_passes(packet(a, b, 5, 6, 0));
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
    const nfv::RuleRow out = rule(nfv::Direction::egress, Family::ipv4, 601);
    const nfv::RuleRow in = rule(nfv::Direction::ingress, Family::ipv4, 602);
    const nfv::PersistingRow keeps_out{nfv::Direction::egress, kOpen, a.vpc, Cookie{600}};
    const nfv::PersistingRow keeps_in{nfv::Direction::ingress, kOpen, a.vpc, Cookie{600}};
    put(out, in, keeps_out);
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
        remove(keeps_out);
        check_passes(forth(kAck, 1001));
        remove(out);
        check_dropped(kUnderlay, forth(kAck, 1001), DropReason::policy_changed);
    }
    SECTION("turned off, it cuts what has only that left") {
        remove(out);
        check_passes(forth(kAck, 1001));
        remove(keeps_out);
        check_dropped(kUnderlay, back(kAck), DropReason::policy_changed);
        CHECK(connections() == 0);
    }
    SECTION("turned off together with its rules, it cuts") {
        remove(out, keeps_out);
        check_dropped(kUnderlay, forth(kAck, 1001), DropReason::policy_changed);
    }
    SECTION("turned off and on again, it does not bring back what it no longer admits") {
        remove(keeps_out);
        check_passes(forth(kAck, 1001));
        remove(out);
        put(keeps_out);
        check_dropped(kUnderlay, forth(kAck, 1001), DropReason::policy_changed);
    }
    SECTION("another group that persists is no reason to go on") {
        remove(out);
        put(nfv::PersistingRow{nfv::Direction::egress, GroupId{77}, a.vpc, Cookie{700}});
        remove(keeps_out);
        check_dropped(kUnderlay, forth(kAck, 1001), DropReason::policy_changed);
    }
    SECTION("who leaves the group keeps what it admitted, until that persists no more") {
        auto row = a.row();
        row.groups = {GroupId{77}};
        put(row);
        check_passes(forth(kAck, 1001));
        check_passes(back(kAck));
        remove(keeps_out);
        check_dropped(kUnderlay, forth(kAck, 1001), DropReason::policy_changed);
    }
    SECTION("turned on, it holds for what the rule admits from now on, and what it admitted") {
        put(keeps_in);
        remove(keeps_out);
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

}  // namespace sluice::worker
