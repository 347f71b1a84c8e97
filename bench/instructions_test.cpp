// SPDX-License-Identifier: Apache-2.0
// Packets of connections that are there already, through the worker in bursts: what
// tests/unit/run-6-instructions counts the instructions of, under callgrind. Without it, that each
// kind goes the straight way: nothing is walked, judged anew or dropped.
#include <valgrind/callgrind.h>

#include <list>

#include "tests/unit/worker_gateway.hpp"

namespace sluice::worker {
namespace {

using namespace tests;

// No time passes, so that nothing ages.
std::uint64_t still = 1'000'000'000;

struct HotPath : Gateway {
    static constexpr unsigned kFlows = 32, kBursts = 64;
    HotPath() : Gateway(options()) {
        build_vpc();
        open_group();
        a = add_machine(5);
        b = add_machine(6);
        c = add_machine(8, 2);
        b6 = with(b, "fd00:1::6");
        c6 = with(c, "fd00:2::8");
        put(openflow::RouteRow{RouteTableId{1},
                               Prefix::any(Family::ipv4),
                               openflow::NextHop::internet,
                               {},
                               Cookie{450}});
    }
    Machine with(Machine machine, const char* address) {
        machine.address = ip(address);
        put(machine.row(), machine.source());
        return machine;
    }
    static WorkerOptions options() {
        WorkerOptions result;
        result.clock = &still;
        return result;
    }
    // Each flow's first packet, and those that every burst brings.
    struct Kind {
        const char* name;
        PortId port;
        std::function<std::vector<Bytes>(std::uint16_t flow)> opening;
        std::function<Bytes(std::uint16_t flow)> packet;
    };
    void measure(const Kind& kind) {
        std::vector<Bytes> burst;
        for (std::uint16_t flow = 0; flow < kFlows; ++flow) {
            for (const Bytes& frame : kind.opening(flow)) receive(kind.port, frame);
            burst.push_back(kind.packet(flow));
        }
        for (const Bytes& frame : burst) receive(kind.port, frame);
        sent(kUnderlay);
        sent(kUplink);
        const auto& counters = worker->counters();
        const std::uint64_t walks = counters.walks.read(), rewalks = counters.rewalks.read();
        std::size_t left = 0;
        CALLGRIND_ZERO_STATS;
        for (unsigned i = 0; i < kBursts; ++i) {
            for (const Bytes& frame : burst) arrive(kind.port, frame);
            CALLGRIND_TOGGLE_COLLECT;
            worker->turn();
            CALLGRIND_TOGGLE_COLLECT;
            left += sent(kUnderlay).size() + sent(kUplink).size();
        }
        // The name, and by how many packets to divide. It is read later than it is handed over.
        static std::list<std::string> labels;
        labels.push_back(std::string(kind.name) + " " + std::to_string(left));
        CALLGRIND_DUMP_STATS_AT(labels.back().c_str());
        INFO(kind.name);
        CHECK(left == kFlows * kBursts);
        CHECK(counters.walks.read() == walks);
        CHECK(counters.rewalks.read() == rewalks);
        CHECK(all_drops() == 0);
    }
    static std::uint16_t client_port(std::uint16_t flow) {
        return static_cast<std::uint16_t>(20000 + flow);
    }
    Bytes between(const Machine& from, const Machine& to, const Layer& upper) const {
        const Layers layers{Ipv4{.source = from.address, .destination = to.address}, upper,
                            Payload{filler(18)}};
        return from.subnet == to.subnet ? frame_of(from, layers, to.mac) : frame_of(from, layers);
    }

    Machine a, b, c, b6, c6;
};

}  // namespace

TEST_CASE_METHOD(HotPath, "packets of live connections go the straight way") {
    using namespace wire::tcp;
    const IpAddress elastic = ip("203.0.113.5"), server = ip("198.51.100.1");
    put(nfv::ElasticIpRow{a.vpc, a.address, elastic, {}, Cookie{700}},
        nfv::PublicAddressRow{elastic, a.vpc, a.address, {}, Cookie{701}});
    const auto udp = [](std::uint16_t source, std::uint16_t destination) {
        return Udp{.source = source, .destination = destination};
    };
    const auto none = [](std::uint16_t) { return std::vector<Bytes>{}; };

    measure({"bridged_udp", kUnderlay, none,
             [&](std::uint16_t flow) { return between(a, b, udp(client_port(flow), 53)); }});
    measure({"routed_udp", kUnderlay, none,
             [&](std::uint16_t flow) { return between(b, c, udp(client_port(flow), 53)); }});
    measure(
        {"routed_tcp_data", kUnderlay,
         [&](std::uint16_t flow) {
             const std::uint16_t port = client_port(flow);
             return std::vector<Bytes>{
                 between(b, c,
                         Tcp{.source = port, .destination = 80, .sequence = 999, .flags = kSyn}),
                 between(c, b,
                         Tcp{.source = 80,
                             .destination = port,
                             .sequence = 4999,
                             .acknowledgement = 1000,
                             .flags = kSyn | kAck})};
         },
         [&](std::uint16_t flow) {
             return between(b, c,
                            Tcp{.source = client_port(flow),
                                .destination = 80,
                                .sequence = 1000,
                                .acknowledgement = 5000,
                                .flags = kAck});
         }});
    measure({"elastic_ip_out", kUnderlay, none, [&](std::uint16_t flow) {
                 return frame_of(a, {Ipv4{.source = a.address, .destination = server},
                                     udp(client_port(flow), 54), Payload{filler(18)}});
             }});
    measure({"elastic_ip_in", kUplink, none, [&](std::uint16_t flow) {
                 return from_internet({Ipv4{.source = server, .destination = elastic},
                                       udp(54, client_port(flow)), Payload{filler(18)}});
             }});
    measure({"routed_udp_ipv6", kUnderlay, none, [&](std::uint16_t flow) {
                 return frame_of(b6, {Ipv6{.source = b6.address, .destination = c6.address},
                                      udp(client_port(flow), 53), Payload{filler(18)}});
             }});
}

}  // namespace sluice::worker
