// SPDX-License-Identifier: Apache-2.0
// The generator over a path that loses, doubles and reorders what the test says: what it reports is
// exactly that.
#include "bench/pktgen/engine.hpp"

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sched.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <thread>

#include "bench/pktgen/find_stamp.hpp"

using namespace sluice;
using namespace sluice::pktgen;

namespace {

// A device whose two directions are rings.
struct Device {
    rte_ring* to_path = nullptr;
    rte_ring* from_path = nullptr;
    std::uint16_t number = 0;

    static Device& get() {
        static Device device;
        return device;
    }

  private:
    Device() {
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof set, &set);
        std::string cpu = "0";
        for (int i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &set)) cpu = std::to_string(i);
        std::vector<std::string> words{"test",        "--no-huge",      "-m", "96", "--no-pci",
                                       "--no-shconf", "--no-telemetry", "-l", cpu,  "--log-level",
                                       "lib.*:error"};
        std::vector<char*> arguments;
        for (auto& word : words) arguments.push_back(word.data());
        REQUIRE(rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) >= 0);
        to_path = rte_ring_create("to_path", 4096, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
        from_path =
            rte_ring_create("from_path", 4096, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
        const int port = rte_eth_from_rings("path", &from_path, 1, &to_path, 1, 0);
        REQUIRE(port >= 0);
        number = static_cast<std::uint16_t>(port);
        auto* pool = rte_pktmbuf_pool_create("receive", 63, 0, 0, 2048, SOCKET_ID_ANY);
        rte_eth_conf conf{};
        REQUIRE(rte_eth_dev_configure(number, 1, 1, &conf) == 0);
        REQUIRE(rte_eth_rx_queue_setup(number, 0, 64, 0, nullptr, pool) == 0);
        REQUIRE(rte_eth_tx_queue_setup(number, 0, 64, 0, nullptr) == 0);
        REQUIRE(rte_eth_dev_start(number) == 0);
    }
};

// What happens to a packet: how often it leaves, and before which one.
enum class Fate { pass, lose, twice, after_next };
using Path = std::function<Fate(const Stamp&)>;

// Between the rings, in a thread of its own, until it is told to stop.
void carry(const Path& path, const std::atomic<bool>& stop) {
    auto& device = Device::get();
    std::vector<rte_mbuf*> held;  // by lane
    const auto forward = [&](rte_mbuf* packet) {
        while (rte_ring_enqueue(device.from_path, packet) != 0 && !stop) std::this_thread::yield();
    };
    while (!stop) {
        void* taken = nullptr;
        if (rte_ring_dequeue(device.to_path, &taken) != 0) {
            std::this_thread::yield();
            continue;
        }
        auto* packet = static_cast<rte_mbuf*>(taken);
        const auto found =
            find_stamp({rte_pktmbuf_mtod(packet, const std::uint8_t*), packet->data_len});
        if (!found) {
            forward(packet);
            continue;
        }
        if (held.size() <= found->stamp.lane) held.resize(found->stamp.lane + 1);
        switch (path(found->stamp)) {
            case Fate::lose:
                rte_pktmbuf_free(packet);
                continue;
            case Fate::after_next:
                held[found->stamp.lane] = packet;
                continue;
            case Fate::twice:
                rte_mbuf_refcnt_update(packet, 1);
                forward(packet);
                forward(packet);
                break;
            case Fate::pass:
                forward(packet);
                break;
        }
        if (auto*& late = held[found->stamp.lane]; late != nullptr) {
            forward(late);
            late = nullptr;
        }
    }
}

const std::string kProfile =
    "name = \"x\"\n[tenants]\nvpcs = 2\nendpoints = 4\n[flows]\ncount = 10\n[[port]]\n"
    "role = \"underlay\"\ndevice = \"net_ring0\"\ngateway = \"192.0.2.1\"\n"
    "gateway_mac = \"02:00:00:00:00:01\"\n";

struct Generator {
    Profile profile;
    Network network;
    Progress progress;
    std::unique_ptr<Engine> engine;

    explicit Generator(const std::string& text) : profile(read(text).profile), network(profile) {
        REQUIRE(read(text).problems.empty());
        const Link link{Device::get().number,
                        Responder(profile, profile.underlay(), *parse_mac("02:00:00:00:00:02"))};
        auto made = Engine::create(profile, network, {link}, progress);
        REQUIRE(made);
        engine = std::move(*made);
    }
    Measured run(const Trial& trial, const Path& path) {
        std::atomic<bool> stop{false};
        std::thread thread([&] { carry(path, stop); });
        const auto measured = engine->run(trial);
        stop = true;
        thread.join();
        return measured;
    }
};

Trial packets(std::uint64_t count) {
    Trial trial;
    trial.rate = 50'000;
    trial.seconds = 30;
    trial.packets = count;
    trial.drain = 0.3;
    // The path gives back what it is given, not what a gateway would make of it.
    trial.arrivals = false;
    return trial;
}

}  // namespace

TEST_CASE("a path that passes everything loses, doubles and reorders nothing") {
    Generator generator(kProfile);
    const auto measured = generator.run(packets(20'000), [](const Stamp&) { return Fate::pass; });
    CHECK(measured.counts.sent == 20'000);
    CHECK(measured.counts.received == 20'000);
    CHECK(measured.counts.lost() == 0);
    CHECK(measured.counts.duplicates == 0);
    CHECK(measured.counts.reordered == 0);
    CHECK(measured.counts.too_old == 0);
    CHECK(measured.counts.corrupt == 0);
    CHECK(measured.lanes_used == 10);
    CHECK(measured.lanes_lossy == 0);
    CHECK(measured.latency.count() == 20'000);
    CHECK(measured.latency.quantile(0.5) > 0);
}

TEST_CASE("what a path loses, doubles and reorders is reported exactly, in sum and by flow") {
    Generator generator(kProfile);
    // Of each flow's 2,000 packets; flow 3 fares worse.
    const auto measured = generator.run(packets(20'000), [](const Stamp& stamp) {
        if (stamp.lane == 3 && stamp.sequence % 10 == 9) return Fate::lose;
        switch (stamp.sequence % 100) {
            case 7:
                return Fate::lose;
            case 23:
                return Fate::twice;
            case 41:
                return Fate::after_next;
            default:
                return Fate::pass;
        }
    });
    CHECK(measured.counts.sent == 20'000);
    CHECK(measured.counts.lost() == 10 * 20 + 200);
    CHECK(measured.counts.duplicates == 10 * 20);
    CHECK(measured.counts.reordered == 10 * 20);
    CHECK(measured.counts.received == 20'000 - 400);
    CHECK(measured.lanes_lossy == 10);
    for (std::uint32_t lane = 0; lane < 10; ++lane) {
        const Lane& one = generator.engine->lanes()[lane];
        CHECK(one.sent == 2'000);
        CHECK(one.lost() == (lane == 3 ? 220 : 20));
        CHECK(one.duplicates == 20);
        CHECK(one.reordered == 20);
    }
}

TEST_CASE("the last packets' loss is seen, and a flow of which nothing arrives") {
    Generator generator(kProfile);
    const auto measured = generator.run(packets(1'000), [](const Stamp& stamp) {
        return stamp.lane == 2 || stamp.sequence >= 90 ? Fate::lose : Fate::pass;
    });
    CHECK(measured.counts.lost() == 100 + 9 * 10);
    CHECK(measured.lanes_silent == 1);
    CHECK(measured.lanes_lossy == 10);
}

TEST_CASE("what arrives elsewhere than the network says is misdelivered") {
    Generator generator(kProfile);
    Trial trial = packets(100);
    trial.arrivals = true;
    const auto measured = generator.run(trial, [](const Stamp&) { return Fate::pass; });
    CHECK(measured.counts.received == 100);
    // They came back to the gateway's VTEP.
    CHECK(measured.counts.misdelivered == 100);
}

TEST_CASE("flows that do not arrive at first are opened again, and named if they never do") {
    Generator generator(kProfile);
    std::atomic<bool> stop{false};
    std::atomic<int> first{0};
    std::thread thread([&] {
        carry(
            [&](const Stamp& stamp) {
                if (stamp.lane == 4) return Fate::lose;
                return stamp.lane == 5 && first++ == 0 ? Fate::lose : Fate::pass;
            },
            stop);
    });
    CHECK(generator.engine->open_flows(10'000) == std::vector<std::uint32_t>{4});
    stop = true;
    thread.join();
}
