// SPDX-License-Identifier: Apache-2.0
// A gateway for tests of the worker: the small cloud of policy_world.hpp, its reachability, and
// one worker between two ports that are rings. Frames are put in and taken out by hand.
#pragma once

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sched.h>

#include <string>
#include <vector>

#include "dataplane/neighbour/neighbour.hpp"
#include "dataplane/reachability/reachability.hpp"
#include "dataplane/wire/builder.hpp"
#include "dataplane/wire/parser.hpp"
#include "dataplane/worker/nat_ports.hpp"
#include "dataplane/worker/vpc_settings.hpp"
#include "dataplane/worker/worker.hpp"
#include "tests/unit/policy_world.hpp"

namespace sluice::tests {

using namespace wire::build;

using Layers = std::vector<Layer>;
inline Layers operator+(Layers front, const Layers& back) {
    front.insert(front.end(), back.begin(), back.end());
    return front;
}

inline constexpr PortId kUnderlay{1}, kUplink{2};
inline constexpr MacAddress kUnderlayMac = MacAddress::from_value(0x02000000aa01);
inline constexpr MacAddress kUplinkMac = MacAddress::from_value(0x02000000aa02);
inline const IpAddress kVtep = ip("192.0.2.1"), kVtep6 = ip("2001:db8:ff::1");
inline const IpAddress kUplinkAddress = ip("203.0.113.1"), kUplinkAddress6 = ip("2001:db8:ee::1");
inline const IpAddress kNextHop = ip("203.0.113.254"), kNextHop6 = ip("2001:db8:ee::fe");
// The MAC of a VTEP on the underlay, and of the router on the uplink.
inline MacAddress host_mac(const IpAddress& vtep) {
    return MacAddress::from_value(0x02000000bb00 + vtep.bytes[15]);
}
inline constexpr MacAddress kRouterMac = MacAddress::from_value(0x02000000cc01);

// The EAL, a pool and two devices, once for all tests of a program.
struct Devices {
    rte_mempool* pool = nullptr;
    rte_ring* receive[2] = {};
    rte_ring* transmit[2] = {};
    std::uint16_t device[2] = {};

    static Devices& get() {
        static Devices devices;
        return devices;
    }

  private:
    static std::string first_cpu() {
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof set, &set);
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &set)) return std::to_string(cpu);
        return "0";
    }
    Devices() {
        std::vector<std::string> words{
            "test",           "--no-huge", "-m",        "64",          "--no-pci",   "--no-shconf",
            "--no-telemetry", "-l",        first_cpu(), "--log-level", "lib.*:error"};
        std::vector<char*> arguments;
        for (auto& word : words) arguments.push_back(word.data());
        REQUIRE(rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) >= 0);
        pool = rte_pktmbuf_pool_create("packets", 2047, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
        REQUIRE(pool != nullptr);
        for (unsigned i = 0; i < 2; ++i) {
            const std::string number = std::to_string(i);
            receive[i] = rte_ring_create(("receive" + number).c_str(), 1024, 0, 0);
            transmit[i] = rte_ring_create(("transmit" + number).c_str(), 1024, 0, 0);
            const int port =
                rte_eth_from_rings(("test" + number).c_str(), &receive[i], 1, &transmit[i], 1, 0);
            REQUIRE(port >= 0);
            device[i] = static_cast<std::uint16_t>(port);
            const rte_eth_conf configuration{};
            REQUIRE(rte_eth_dev_configure(device[i], 1, 1, &configuration) == 0);
            REQUIRE(rte_eth_rx_queue_setup(device[i], 0, 512, 0, nullptr, pool) == 0);
            REQUIRE(rte_eth_tx_queue_setup(device[i], 0, 512, 0, nullptr) == 0);
            REQUIRE(rte_eth_dev_start(device[i]) == 0);
        }
    }
};

// What left on the underlay, taken apart.
struct Tunnelled {
    Bytes outer;  // up to the inner Ethernet header
    Bytes frame;  // from it on
    Vni vni;
    IpAddress from, to;
    std::uint16_t source_port = 0;
};

class Gateway : public World {
  public:
    explicit Gateway(worker::WorkerOptions options = {},
                     const session::SessionOptions& tables = small_tables())
        : World({}, &nat_ports),
          sessions(tables, qsbr),
          devices_(Devices::get()),
          reachability_(adjacencies, sources, qsbr, routes_) {
        free_before_ = rte_mempool_avail_count(devices_.pool);
        World::install = [this](const policy::Delta& delta) { follow(delta); };
        for (const IpAddress& vtep : {ip("192.0.2.11"), ip("192.0.2.12"), ip("2001:db8:ff::13")})
            neighbours_.pin({kUnderlay, vtep}, host_mac(vtep));
        neighbours_.pin({kUplink, kNextHop}, kRouterMac);
        neighbours_.pin({kUplink, kNextHop6}, kRouterMac);
        reachability_.neighbours_changed();

        shared.root = &store.root();
        shared.walk = policy::walk;
        shared.zone_of = policy::zone_of;
        shared.sender_of = policy::sender_of;
        shared.adjacencies = &adjacencies;
        shared.sources = &sources;
        shared.changed = store.changed();
        shared.sessions = &sessions;
        shared.meters = &meters;
        shared.qsbr = &qsbr;
        shared.ports = {
            {kUnderlay, Side::underlay, kUnderlayMac, {kVtep, kVtep6}, 9000, true},
            {kUplink, Side::uplink, kUplinkMac, {kUplinkAddress, kUplinkAddress6}, 1500, true}};
        shared.vteps = {kVtep, kVtep6};
        options.ports.receive = {{devices_.device[0], 0, kUnderlay, Side::underlay},
                                 {devices_.device[1], 0, kUplink, Side::uplink}};
        options.ports.transmit = {{devices_.device[0], 0, nullptr},
                                  {devices_.device[1], 0, nullptr}};
        options.ports.pool = devices_.pool;
        worker = std::make_unique<worker::Worker>(std::move(options), shared);
        qsbr.online(0);
    }
    ~Gateway() {
        sent(kUnderlay);
        sent(kUplink);
        worker.reset();
        qsbr.offline(0);
        // Every buffer came back: none lost, none freed twice.
        CHECK(rte_mempool_avail_count(devices_.pool) == free_before_);
    }

    // --- frames in ---

    // The frame arrives, in buffers that end at `cuts`, and the worker takes its turns.
    void receive(PortId port, const Bytes& frame, std::vector<std::size_t> cuts = {}) {
        arrive(port, frame, std::move(cuts));
        run();
    }
    // Takes in all that has arrived; what first packets left to send goes with the last turn.
    void run() {
        while (worker->turn() != 0) {
        }
    }
    // The same without the turns.
    void arrive(PortId port, const Bytes& frame, std::vector<std::size_t> cuts = {}) {
        cuts.push_back(frame.size());
        rte_mbuf* whole = nullptr;
        std::size_t from = 0;
        for (const std::size_t to : cuts) {
            rte_mbuf* segment = rte_pktmbuf_alloc(devices_.pool);
            REQUIRE(segment != nullptr);
            char* room = rte_pktmbuf_append(segment, static_cast<std::uint16_t>(to - from));
            REQUIRE(room != nullptr);
            std::copy(frame.begin() + static_cast<std::ptrdiff_t>(from),
                      frame.begin() + static_cast<std::ptrdiff_t>(to), room);
            if (whole == nullptr)
                whole = segment;
            else
                REQUIRE(rte_pktmbuf_chain(whole, segment) == 0);
            from = to;
        }
        REQUIRE(rte_ring_enqueue(devices_.receive[port.value - 1], whole) == 0);
    }
    // In VXLAN, from the machine's host.
    [[nodiscard]] Bytes frame_of(const Machine& machine, const Layers& layers,
                                 MacAddress to = kGatewayMac) const {
        const IpAddress vtep = vtep_of(machine.host);
        return packet(Layers{Ethernet{host_mac(vtep), kUnderlayMac},
                             Ipv4{.source = vtep, .destination = kVtep},
                             Udp{.source = 50000, .destination = 4789, .checksum = 0},
                             Vxlan{.vni = vni_of(machine)}, Ethernet{machine.mac, to}} +
                      layers);
    }
    [[nodiscard]] static Bytes from_internet(const Layers& layers) {
        return packet(Layers{Ethernet{kRouterMac, kUplinkMac}} + layers);
    }
    [[nodiscard]] Vni vni_of(const Machine& machine) const {
        return store.current().core.vpcs.find(machine.vpc)->vni;
    }

    // --- frames out ---

    // All that left by a port since the last call.
    std::vector<Bytes> sent(PortId port) {
        std::vector<Bytes> frames;
        void* item = nullptr;
        while (rte_ring_dequeue(devices_.transmit[port.value - 1], &item) == 0) {
            auto* mbuf = static_cast<rte_mbuf*>(item);
            Bytes frame(mbuf->pkt_len);
            const void* at = rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, frame.data());
            REQUIRE(at != nullptr);
            if (at != frame.data())
                std::copy_n(static_cast<const std::uint8_t*>(at), frame.size(), frame.begin());
            rte_pktmbuf_free(mbuf);
            frames.push_back(std::move(frame));
        }
        return frames;
    }
    // The one frame that left on the underlay, in VXLAN to some host; its outer header is checked.
    Tunnelled tunnelled() {
        const auto frames = sent(kUnderlay);
        REQUIRE(frames.size() == 1);
        return taken_apart(frames[0]);
    }
    // ... and its inner frame.
    Bytes inner() { return tunnelled().frame; }
    Bytes uplinked() {
        const auto frames = sent(kUplink);
        REQUIRE(frames.size() == 1);
        return frames[0];
    }
    [[nodiscard]] bool silent() { return sent(kUnderlay).empty() && sent(kUplink).empty(); }

    static Tunnelled taken_apart(const Bytes& frame) {
        using namespace wire;
        REQUIRE(frame.size() > kOuterIpv4 + ethernet::kSize);
        const bool v6 = load16(&frame[ethernet::kType]) == ethernet::kIpv6;
        const std::size_t l2 = v6 ? kOuterIpv6 : kOuterIpv4;
        const std::span<const std::uint8_t> ip = std::span{frame}.subspan(ethernet::kSize);
        Tunnelled result{{frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(l2)},
                         {frame.begin() + static_cast<std::ptrdiff_t>(l2), frame.end()},
                         {},
                         v6 ? load_v6(&ip[ipv6::kSource]) : load_v4(&ip[ipv4::kSource]),
                         v6 ? load_v6(&ip[ipv6::kDestination]) : load_v4(&ip[ipv4::kDestination]),
                         0};
        CHECK(load_mac(frame.data()) == host_mac(result.to));
        CHECK(load_mac(&frame[ethernet::kSource]) == kUnderlayMac);
        CHECK(result.from == (v6 ? kVtep6 : kVtep));
        if (v6) {
            CHECK(load16(&ip[ipv6::kLength]).host() == ip.size() - ipv6::kSize);
            CHECK(ip[ipv6::kNextHeader] == 17);
        } else {
            CHECK(load16(&ip[ipv4::kLength]).host() == ip.size());
            CHECK(load16(&ip[ipv4::kFragment]).host() == ipv4::kDontFragment);
            CHECK(ipv4_header_checksum_ok(ip.first(ipv4::kSize)));
            CHECK(ip[ipv4::kProtocol] == 17);
        }
        const std::uint8_t* udp = &ip[v6 ? ipv6::kSize : ipv4::kSize];
        result.source_port = load16(udp + udp::kSource).host();
        CHECK(result.source_port >= 49152);
        CHECK(load16(udp + udp::kDestination) == udp::kVxlan);
        CHECK(load16(udp + udp::kLength).host() == frame.size() - l2 + 16);
        CHECK(load16(udp + udp::kChecksum).raw == 0);
        CHECK(load32(udp + udp::kSize).host() == 0x08000000);
        result.vni = Vni{load32(udp + udp::kSize + vxlan::kVni).host() >> 8};
        return result;
    }

    // --- counters ---

    // Packets dropped for a reason, in all zones.
    [[nodiscard]] std::uint64_t drops(DropReason reason) const {
        std::uint64_t sum = 0;
        const auto& counters = worker->counters();
        for (std::uint32_t zone = 0; zone < counters.zones; ++zone)
            sum += counters.zone[zone].drops[static_cast<std::size_t>(reason)].read();
        return sum;
    }
    [[nodiscard]] std::uint64_t all_drops() const {
        std::uint64_t sum = 0;
        for (std::size_t reason = 0; reason < kDropReasons; ++reason)
            sum += drops(static_cast<DropReason>(reason));
        return sum;
    }
    [[nodiscard]] std::uint64_t connections() const {
        std::uint64_t sum = 0;
        const auto& counters = worker->counters();
        for (std::uint32_t zone = 0; zone < counters.zones; ++zone)
            sum += counters.zone[zone].connections_created.read() -
                   counters.zone[zone].connections_ended.read();
        return sum;
    }
    // Nothing leaves, one packet is dropped, and for this reason.
    void check_dropped(PortId port, const Bytes& frame, DropReason reason) {
        const std::uint64_t before = drops(reason), all = all_drops();
        receive(port, frame);
        INFO(label(reason));
        CHECK(silent());
        CHECK(drops(reason) == before + 1);
        CHECK(all_drops() == all + 1);
    }

    static session::SessionOptions small_tables() {
        session::SessionOptions options;
        options.ipv4_capacity = options.ipv6_capacity = 1024;
        return options;
    }

    session::Sessions sessions;
    worker::NatPorts nat_ports{sessions};
    session::MeterTable meters{64, 1};
    worker::Shared shared;
    std::unique_ptr<worker::Worker> worker;

  private:
    static std::vector<port::Port> make_ports() {
        port::Port underlay;
        underlay.id = kUnderlay;
        underlay.mac = kUnderlayMac;
        underlay.mtu = 9000;
        underlay.addresses = {{kVtep, 96 + 24}, {kVtep6, 64}};
        port::Port uplink;
        uplink.id = kUplink;
        uplink.role = Side::uplink;
        uplink.mac = kUplinkMac;
        uplink.addresses = {{kUplinkAddress, 96 + 24}, {kUplinkAddress6, 64}};
        uplink.next_hops = {kNextHop, kNextHop6};
        return {underlay, uplink};
    }
    void follow(const policy::Delta& delta) {
        for (const auto& [before, after] : delta.meters)
            if (after)
                REQUIRE(meters.set(after->id, {std::uint64_t{after->rate_kbps} * 1000,
                                               std::uint64_t{after->burst_kbit} * 1000}));
        for (const auto& [before, after] : delta.vpcs) {
            if (!after) {
                sessions.zones.close(before->slot.value);
                continue;
            }
            reachability_.put_vpc(after->key.number, after->vni, after->slot);
            worker::apply_settings(sessions, after->slot, after->settings);
        }
        for (const auto& [before, after] : delta.subnets)
            if (after)
                reachability_.put_subnet(
                    {after->key.subnet, after->key.family, after->mac, after->mtu});
        for (const auto& [before, after] : delta.hosts) {
            if (!after) continue;
            std::vector<IpAddress> vteps;
            for (const IpAddress& vtep : after->vteps)
                if (!vtep.is_none()) vteps.push_back(vtep);
            reachability_.put_host({after->key.number, vteps, after->cookie}, {});
        }
        for (const auto& [before, after] : delta.endpoints) {
            if (after)
                reachability_.put_place({after->key.vpc, after->key.address, after->subnet,
                                         after->host, after->mac, after->routed, after->bridged});
            else
                reachability_.remove_place(before->key.vpc, before->key.address);
        }
        for (const auto& [before, after] : delta.senders) {
            if (before && (!after || before->source != after->source))
                reachability_.remove_sender(before->source);
            if (after)
                reachability_.put_sender({after->source, after->vpc, after->host, after->key.mac});
        }
        reachability_.build();
        reachability_.neighbours_changed();
        // The cloud of policy_world.hpp has indexes of its own for what lies outside.
        const policy::Outside& here = store.current().outside;
        for (const auto& [from, to] : {std::pair{reachability_.outside().ipv4, here.ipv4},
                                       std::pair{reachability_.outside().ipv6, here.ipv6}})
            adjacencies.replace(to, &adjacencies[from]);
        sources.replace(here.source, &sources[reachability_.outside().source]);
    }

    Devices& devices_;
    std::vector<port::Port> ports_ = make_ports();
    std::vector<IpAddress> vteps_ = {kVtep, kVtep6};
    neighbour::Neighbours neighbours_;
    reachability::Routes routes_{ports_, vteps_, neighbours_, {}};
    reachability::Reachability reachability_;
    unsigned free_before_ = 0;
};

}  // namespace sluice::tests
