// SPDX-License-Identifier: Apache-2.0
// What one worker carries: the gateway's own packet path on a capture that is received for
// ever (net_pcap with infinite_rx) and dropped at transmit, with a policy that lets everything
// pass, translates the source and spreads the flows over many adjacencies.
//
//   worker_bench -l 1 --in-memory --no-pci --vdev net_pcap0,rx_pcap=FLOWS.pcap,infinite_rx=1
//       -- [SECONDS [ADJACENCIES [CAPACITY [tcp_window_check]]]]
//
// The first turns open the connections; what is printed is the steady state after them.
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/worker/worker.hpp"

namespace sluice::policy {
// Nothing in it: the walk below needs no tables.
class Snapshot {};
}  // namespace sluice::policy

namespace {

using namespace sluice;

constexpr std::uint16_t kMtu = 8950;
std::uint32_t adjacency_count = 1000;

IpAddress v4(std::uint32_t host) {
    return IpAddress::v4(be32{host});
}

policy::Plan pass(const policy::Snapshot&, const Packet& packet, policy::WalkMode,
                  const policy::Established*) {
    policy::Plan plan;
    plan.verdict = policy::Verdict::forward;
    plan.generation = Generation{1};
    plan.zone = policy::ZoneSlot{1};
    plan.source_vpc = plan.destination_vpc = VpcId{1};
    plan.source_vni = plan.destination_vni = packet.vni;
    plan.source = EndpointId{1};
    plan.destination = EndpointId{2};
    plan.arrives = plan.leaves = packet.tuple;
    plan.leaves.source = v4(0xc6336400U | (packet.tuple.source.to_v4().host() & 0xff));
    const std::uint32_t spread =
        (packet.tuple.source_port * 2654435761U ^ packet.vni.value) % (adjacency_count - 1) + 1;
    plan.forward = {SourceIndex{1}, AdjacencyIndex{spread}, {}};
    plan.reverse = {SourceIndex{1}, AdjacencyIndex{spread}, {}};
    return plan;
}

policy::ZoneSlot zone_of(const policy::Snapshot&, Vni) {
    return policy::ZoneSlot{1};
}

policy::Sender sender_of(const policy::Snapshot&, const Packet&) {
    return {policy::ZoneSlot{1}, EndpointId{1}};
}

policy::Adjacency to_vtep(std::uint32_t number) {
    policy::Adjacency record;
    record.kind = policy::Adjacency::Kind::vxlan_ipv4;
    record.mtu = kMtu;
    record.port = PortId{1};
    record.zone = policy::ZoneSlot{1};
    std::uint8_t* header = record.header.data();
    wire::store(header, MacAddress::from_value(0x020000000003));
    wire::store(header + 6, MacAddress::from_value(0x020000000001));
    wire::store(header + 12, be16{0x0800});
    std::uint8_t* ip = header + 14;
    ip[0] = 0x45;
    wire::store(ip + 6, be16{wire::ipv4::kDontFragment});
    ip[8] = 64;
    ip[9] = 17;
    wire::store_v4(ip + 12, v4(0xc0000201));
    wire::store_v4(ip + 16, v4(0xc0000203));
    record.checksum_base = wire::Sum{}.add(std::span{ip, 20}).folded();
    wire::store(header + 36, be16{4789});
    header[42] = 8;
    wire::store(header + 46, be32{(100 + number % 1000) << 8});
    wire::store(header + 50, MacAddress::from_value(0x02cc00000000 + number));
    wire::store(header + 56, MacAddress::from_value(0x02bb00000001));
    wire::store(header + 62, be16{0x0800});
    return record;
}

std::uint64_t total_drops(const worker::WorkerCounters& counters) {
    std::uint64_t sum = 0;
    for (std::uint32_t zone = 0; zone < counters.zones; ++zone)
        for (const auto& reason : counters.zone[zone].drops) sum += reason.read();
    return sum;
}

bool start_port(rte_mempool* pool) {
    rte_eth_conf configuration{};
    return rte_eth_dev_configure(0, 1, 1, &configuration) == 0 &&
           rte_eth_rx_queue_setup(0, 0, 1024, 0, nullptr, pool) == 0 &&
           rte_eth_tx_queue_setup(0, 0, 1024, 0, nullptr) == 0 && rte_eth_dev_start(0) == 0;
}

}  // namespace

int main(int argc, char** argv) {
    const int used = rte_eal_init(argc, argv);
    if (used < 0) return 2;
    argc -= used;
    argv += used;
    const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
    if (argc > 2) adjacency_count = static_cast<std::uint32_t>(std::max(2, std::atoi(argv[2])));

    rte_mempool* pool = rte_pktmbuf_pool_create("packets", 131071, 256, 0, 2176, 0);
    if (pool == nullptr || !start_port(pool)) {
        std::fprintf(stderr, "no packet buffers, or the port does not start\n");
        return 2;
    }
    reclaim::Qsbr qsbr(1);
    session::SessionOptions options;
    if (argc > 3) options.ipv4_capacity = static_cast<std::uint32_t>(std::atoi(argv[3]));
    // All flows are one endpoint's, and nobody answers.
    options.limits = session::LimitDefaults::none();
    session::Sessions sessions(options, qsbr);
    session::ZoneValues values;
    values.tcp_window_check = argc > 4;
    sessions.zones.set(1, values);
    session::MeterTable meters(16, 1);
    policy::AdjacencyTable adjacencies(adjacency_count + 1);
    policy::SourceTable sources(16);
    std::vector<policy::Adjacency> records;
    for (std::uint32_t i = 0; i < adjacency_count; ++i) records.push_back(to_vtep(i));
    for (const auto& record : records) adjacencies.replace(adjacencies.allocate(), &record);
    policy::Source source;
    source.vteps[0] = v4(0xc0000202);
    source.mac = MacAddress::from_value(0x02aa00000001);
    source.zone = policy::ZoneSlot{1};
    sources.replace(sources.allocate(), &source);

    const policy::Snapshot snapshot;
    const std::atomic<const policy::Snapshot*> root{&snapshot};
    std::vector<std::atomic<std::uint32_t>> changed(16);
    worker::Shared shared;
    shared.root = &root;
    shared.walk = pass;
    shared.zone_of = zone_of;
    shared.sender_of = sender_of;
    shared.adjacencies = &adjacencies;
    shared.sources = &sources;
    shared.changed = changed;
    shared.sessions = &sessions;
    shared.meters = &meters;
    shared.qsbr = &qsbr;
    shared.ports = {{PortId{1},
                     Side::underlay,
                     MacAddress::from_value(0x020000000001),
                     {v4(0xc0000201)},
                     9216,
                     true}};
    shared.vteps = {v4(0xc0000201)};
    // TCP of the capture has no beginning.
    shared.restarted = static_cast<std::uint64_t>(static_cast<double>(rte_rdtsc()) /
                                                  static_cast<double>(rte_get_tsc_hz()) * 1e9);
    worker::WorkerOptions mine;
    mine.ports.receive = {{0, 0, PortId{1}, Side::underlay}};
    mine.ports.transmit = {{0, 0, nullptr}};
    mine.ports.pool = pool;
    worker::Worker worker(std::move(mine), shared);

    qsbr.online(0);
    const auto run = [&](double time) {
        const std::uint64_t from = rte_rdtsc();
        const std::uint64_t end =
            from + static_cast<std::uint64_t>(time * static_cast<double>(rte_get_tsc_hz()));
        std::uint64_t packets = 0;
        while (rte_rdtsc() < end)
            for (int i = 0; i < 64; ++i) packets += worker.turn();
        const auto cycles = static_cast<double>(rte_rdtsc() - from);
        const double rate =
            static_cast<double>(packets) / cycles * static_cast<double>(rte_get_tsc_hz());
        return std::pair{rate / 1e6, cycles / static_cast<double>(packets)};
    };
    run(1.0);
    const worker::WorkerCounters& counters = worker.counters();
    const std::uint64_t drops = total_drops(counters);
    const auto [mpps, cycles] = run(seconds);
    std::printf("%.2f Mpps, %.1f cycles a packet, %llu connections, %llu dropped, %llu walks\n",
                mpps, cycles,
                static_cast<unsigned long long>(counters.zone[1].connections_created.read()),
                static_cast<unsigned long long>(total_drops(counters) - drops),
                static_cast<unsigned long long>(counters.walks.read()));
    return 0;
}
