// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/gateway.hpp"

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <cstring>
#include <stdexcept>

#include "dataplane/session/tracker.hpp"
#include "dataplane/wire/parser.hpp"

namespace sluice::oracle {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kStart = 1'000'000 * kSecond;
constexpr std::uint32_t kCapacity = 4096;

constexpr MacAddress kUnderlayMac = MacAddress::from_value(0x02000000aa01);
constexpr MacAddress kUplinkMac = MacAddress::from_value(0x02000000aa02);
constexpr MacAddress kRouterMac = MacAddress::from_value(0x02000000cc01);

void must(bool done, const char* what) {
    if (!done) throw std::runtime_error(what);
}
IpAddress ip(std::string_view text) {
    return parse_ip(text).value();
}

// Once for the process: the EAL cannot be taken down and up again.
struct Devices {
    rte_mempool* pool = nullptr;
    std::array<rte_ring*, 2> receive{}, transmit{};
    std::array<std::uint16_t, 2> device{};

    static Devices& get() {
        static Devices devices;
        return devices;
    }

  private:
    Devices() {
        std::vector<std::string> words{"oracle",      "--no-huge",   "-m",
                                       "64",          "--no-pci",    "--no-telemetry",
                                       "--no-shconf", "--log-level", "lib.*:error"};
        std::vector<char*> arguments;
        for (auto& word : words) arguments.push_back(word.data());
        must(rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) >= 0, "no EAL");
        pool = rte_pktmbuf_pool_create("packets", 8191, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
        must(pool != nullptr, "no packet buffers");
        for (unsigned i = 0; i < 2; ++i) {
            const std::string number = std::to_string(i);
            receive[i] = rte_ring_create(("receive" + number).c_str(), 1024, 0, 0);
            transmit[i] = rte_ring_create(("transmit" + number).c_str(), 1024, 0, 0);
            const int port =
                rte_eth_from_rings(("oracle" + number).c_str(), &receive[i], 1, &transmit[i], 1, 0);
            must(port >= 0, "no device");
            device[i] = static_cast<std::uint16_t>(port);
            const rte_eth_conf configuration{};
            must(rte_eth_dev_configure(device[i], 1, 1, &configuration) == 0 &&
                     rte_eth_rx_queue_setup(device[i], 0, 512, 0, nullptr, pool) == 0 &&
                     rte_eth_tx_queue_setup(device[i], 0, 512, 0, nullptr) == 0 &&
                     rte_eth_dev_start(device[i]) == 0,
                 "the device does not start");
        }
    }
};

// As tests/oracle/octets.py knows them.
config::Config configuration() {
    config::Config config;
    config.name = "oracle";
    config.workers = {0};
    config.vteps = {ip("192.0.2.250"), ip("2001:db8:ff::fa")};
    config.sessions.capacity = config.sessions.ipv6_capacity = kCapacity;
    config.ports.resize(2);
    for (unsigned host = 1; host < 100; ++host) {
        const auto mac = MacAddress::from_value(0x02000000bb00 + host);
        config.ports[0].neighbours.push_back({IpAddress::v4(be32{0xc0000200U + host}), mac});
    }
    config.ports[1].neighbours = {{ip("198.18.7.254"), kRouterMac}, {ip("fe80::7"), kRouterMac}};
    return config;
}

std::vector<port::Port> make_ports() {
    port::Port underlay;
    underlay.id = kUnderlay;
    underlay.mac = kUnderlayMac;
    underlay.mtu = 9000;
    underlay.addresses = {{ip("192.0.2.250"), 96 + 24}, {ip("2001:db8:ff::fa"), 64}};
    port::Port uplink;
    uplink.id = kUplink;
    uplink.role = Side::uplink;
    uplink.mac = kUplinkMac;
    uplink.addresses = {{ip("198.18.7.1"), 96 + 24}, {ip("fe80::1"), 64}};
    uplink.next_hops = {ip("198.18.7.254"), ip("fe80::7")};
    return {underlay, uplink};
}

Gateway::Cells& counted_cells() {
    static Gateway::Cells cells{};
    return cells;
}

template <class Family>
void visit(const session::SessionTable<Family>& table, Gateway::Flows& flows) {
    for (std::uint32_t i = 0; i < table.high_water(); ++i) {
        const session::ConnectionIndex number{i};
        if (table.connection(number).life() != session::Life::live) continue;
        const auto forward = session::forward_of(number), reverse = session::reverse_of(number);
        const auto& there = table.flow(forward).key;
        const auto& back = table.flow(reverse).key;
        if (table.find(there, table.hash(there)) != forward)
            flows.wrong.push_back("a live connection's own direction is not found");
        if (table.find(back, table.hash(back)) != reverse)
            flows.wrong.push_back("a live connection's replies are not found");
        flows.live.push_back({there.zone(), back.zone(), there.tuple(), back.tuple()});
    }
}

}  // namespace

Gateway::Gateway() : now_(kStart), ports_(make_ports()), pipeline_(network_functions()) {
    Devices& devices = Devices::get();
    free_before_ = rte_mempool_avail_count(devices.pool);
    auto tables = control::Tables::create(configuration(), ports_, pipeline_, {});
    if (!tables) throw std::runtime_error(text_of(tables.error()));
    tables_ = *std::move(tables);

    tables_->share(shared_);
    shared_.vteps = {ip("192.0.2.250"), ip("2001:db8:ff::fa")};
    for (const port::Port& port : ports_) {
        worker::PortFacts facts;
        facts.id = port.id;
        facts.side = port.role;
        facts.mac = port.mac;
        facts.mtu = port.mtu;
        for (const auto& own : port.addresses) facts.addresses.push_back(own.address);
        shared_.ports.push_back(facts);
    }
    worker::WorkerOptions options;
    options.clock = &now_;
    options.ports.receive = {{devices.device[0], 0, kUnderlay, Side::underlay},
                             {devices.device[1], 0, kUplink, Side::uplink}};
    options.ports.transmit = {{devices.device[0], 0, nullptr}, {devices.device[1], 0, nullptr}};
    options.ports.pool = devices.pool;
    worker_ = std::make_unique<worker::Worker>(std::move(options), shared_);
    tables_->qsbr.online(0);
    counted_.resize(worker_->counters().zones);
}

Gateway::~Gateway() {
    worker_.reset();
    tables_->qsbr.offline(0);
}

std::vector<policy::ZoneSlot> Gateway::commit(const openflow::Changes& changes) {
    const auto committed = tables_->commit(changes, nullptr, {});
    if (!committed) throw std::runtime_error(text_of(committed.error()));
    for (const control::Opened& opened : tables_->take_opened()) {
        zones_ = std::max(zones_, opened.slot.value + 1);
        must(zones_ <= counted_.size(), "more VPCs than counters");
    }
    turn();
    tables_->reclaim();
    return {};
}

void Gateway::turn() {
    while (worker_->turn() != 0) {
    }
}

Gateway::Fate Gateway::advance(std::uint64_t nanoseconds) {
    // Ports that have rested are looked at a part in each tick: some ticks come one after another.
    // Connections age in rounds: the last step is a whole one, and has all the turns that it wants,
    // also for several datagrams in one bucket of fragments.
    constexpr unsigned kTurns = 1024;
    constexpr std::uint64_t kTick = session::nanoseconds(1), kRound = 32, kSingle = 40;
    const std::uint64_t all = nanoseconds / kTick;
    const std::uint64_t single = all > kRound ? std::min(kSingle, all - kRound) : 0;
    const std::uint64_t end = now_ + nanoseconds;
    now_ = end - (single + std::min(all, kRound)) * kTick;
    for (std::uint64_t i = 0; i < single; ++i) {
        worker_->turn();
        now_ += kTick;
    }
    now_ = end;
    for (unsigned i = 0; i < kTurns; ++i) worker_->turn();
    worker::DropSample sample;
    while (worker_->samples().pop(sample)) {
    }
    tables_->reclaim();
    Fate fate;
    collect(fate);
    return fate;
}

void Gateway::note_cell(PortId port, std::span<const std::uint8_t> frame) const {
    const wire::Receiver receiver{ports_[port.value - 1].mac, shared_.vteps,
                                  shared_.ports[port.value - 1].addresses};
    const auto parse = port == kUnderlay ? wire::parse_underlay : wire::parse_uplink;
    const auto headers = parse(frame, static_cast<std::uint32_t>(frame.size()), receiver);
    if (headers.kind != wire::FrameKind::connection || headers.protocol != 6 ||
        headers.has(wire::kFragment))
        return;
    const Tuple tuple = wire::tuple_of(frame, headers);
    const auto note = [&](const auto& table, const auto& key) {
        const session::FlowIndex flow = table.find(key, table.hash(key));
        if (flow == session::kNoFlow) return;
        const auto& connection = table.connection(session::connection_of(flow));
        ++counted_cells()[static_cast<std::size_t>(connection.tcp_state())][session::is_reverse(
            flow)][static_cast<std::size_t>(session::classify_tcp(headers.tcp_flags))];
    };
    if (tuple.source.is_v4())
        note(tables_->sessions.ipv4, session::KeyIpv4::of(Vni{headers.zone}, tuple));
    else
        note(tables_->sessions.ipv6, session::KeyIpv6::of(Vni{headers.zone}, tuple));
}

void Gateway::enqueue(PortId port, std::span<const std::uint8_t> frame) {
    Devices& devices = Devices::get();
    rte_mbuf* mbuf = rte_pktmbuf_alloc(devices.pool);
    must(mbuf != nullptr, "no buffer");
    char* room = rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame.size()));
    must(room != nullptr, "the frame does not fit");
    std::memcpy(room, frame.data(), frame.size());
    must(rte_ring_enqueue(devices.receive[port.value - 1], mbuf) == 0, "the ring is full");
}

Gateway::Fate Gateway::receive(PortId port, std::span<const std::uint8_t> frame) {
    note_cell(port, frame);
    enqueue(port, frame);
    turn();
    Fate fate;
    collect(fate);
    return fate;
}

Gateway::Fate Gateway::receive_burst(PortId port, std::span<const Octets> frames) {
    for (const Octets& frame : frames) enqueue(port, frame);
    turn();
    Fate fate;
    collect(fate);
    return fate;
}

void Gateway::collect(Fate& fate) {
    Devices& devices = Devices::get();
    for (const PortId port : {kUnderlay, kUplink}) {
        void* item = nullptr;
        while (rte_ring_dequeue(devices.transmit[port.value - 1], &item) == 0) {
            auto* mbuf = static_cast<rte_mbuf*>(item);
            Octets octets(mbuf->pkt_len);
            const void* at = rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, octets.data());
            if (at != octets.data()) std::memcpy(octets.data(), at, octets.size());
            rte_pktmbuf_free(mbuf);
            fate.sent.push_back({port, std::move(octets)});
        }
    }
    worker::ConnectionEvent event;
    using Kind = worker::ConnectionEvent::Kind;
    while (worker_->events().pop(event)) {
        if (event.kind == Kind::created)
            fate.opened.push_back(
                {event.source_vni, event.arrives, event.leaves, fate.opened.size()});
        if (event.kind == Kind::ended && event.reason == worker::EndReason::evicted)
            fate.evicted.push_back(
                {event.source_vni, event.arrives, event.leaves, fate.opened.size()});
    }
    const worker::WorkerCounters& counters = worker_->counters();
    for (std::uint32_t zone = 0; zone < zones_; ++zone)
        for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
            const std::uint64_t count = counters.zone[zone].drops[reason].read();
            std::uint64_t& before = counted_[zone][reason];
            if (count == before) continue;
            fate.dropped.push_back(
                {static_cast<DropReason>(reason), policy::ZoneSlot{zone}, count - before});
            before = count;
        }
    fate.walked = counters.walks.read() != walks_;
    walks_ = counters.walks.read();
}

Gateway::Flows Gateway::flows() const {
    Flows flows;
    visit(tables_->sessions.ipv4, flows);
    visit(tables_->sessions.ipv6, flows);
    std::uint64_t counted = 0;
    for (std::uint32_t zone = 0; zone < zones_; ++zone) {
        const auto& counters = worker_->counters().zone[zone];
        counted += counters.connections_created.read() - counters.connections_ended.read();
    }
    if (counted != flows.live.size())
        flows.wrong.push_back(std::to_string(flows.live.size()) + " connections live, " +
                              std::to_string(counted) + " counted");
    std::uint64_t used = 0;
    for (std::uint32_t zone = 0; zone < zones_; ++zone) {
        const auto use = tables_->sessions.limits.use(zone);
        used += use.connections[0] + use.connections[1];
        flows.unanswered += use.half_open[0] + use.half_open[1];
    }
    tables_->sessions.ports.visit([&](const session::PortTable::Use& use) {
        for (const auto live : use.live) flows.ports += live;
    });
    if (used != flows.live.size())
        flows.wrong.push_back(std::to_string(used) + " connections held against limits, " +
                              std::to_string(flows.live.size()) + " live");
    return flows;
}

std::vector<std::string> Gateway::leftovers() const {
    std::vector<std::string> wrong = flows().wrong;
    if (const auto live = flows().live.size(); live != 0)
        wrong.push_back(std::to_string(live) + " connections");
    for (std::uint32_t zone = 0; zone < zones_; ++zone) {
        const auto use = tables_->sessions.limits.use(zone);
        if (use.half_open[0] + use.half_open[1] != 0)
            wrong.push_back("unanswered connections held against a limit");
    }
    tables_->sessions.ports.visit([&](const session::PortTable::Use& use) {
        for (const auto blocks : use.blocks)
            if (blocks != 0) wrong.push_back(std::to_string(blocks) + " blocks of ports");
    });
    const auto& fragments = tables_->sessions.fragments;
    if (fragments.held() != 0) wrong.push_back(std::to_string(fragments.held()) + " fragments");
    if (fragments.datagrams() != 0)
        wrong.push_back(std::to_string(fragments.datagrams()) + " datagrams");
    const unsigned free = rte_mempool_avail_count(Devices::get().pool);
    if (free != free_before_)
        wrong.push_back(std::to_string(free_before_ - free) + " packet buffers");
    return wrong;
}

const Gateway::Cells& Gateway::cells() {
    return counted_cells();
}

}  // namespace sluice::oracle
