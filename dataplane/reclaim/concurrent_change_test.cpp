// SPDX-License-Identifier: Apache-2.0
// Everything at once: workers look up, insert, count, end and age connections, while the
// control thread swaps adjacencies, bumps generations and retires snapshots. What a reader
// reaches must be whole, whatever the others do; ThreadSanitizer watches.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <thread>

#include "dataplane/policy/adjacency.hpp"
#include "dataplane/reclaim/qsbr.hpp"
#include "dataplane/session/session_table.hpp"

using namespace sluice;
using namespace sluice::session;

namespace {

constexpr unsigned kWorkers = 3;
constexpr std::uint32_t kCapacity = 512;
constexpr std::uint32_t kTuples = 1024;  // more than fit: keys are fought over
constexpr std::uint32_t kAdjacencies = 8;

// Stands for a policy: all its words are equal as long as it lives.
struct Snapshot {
    explicit Snapshot(std::uint32_t number) : generation(number), copy(number) {}
    ~Snapshot() { copy = 0; }
    std::uint32_t generation;
    std::uint32_t copy;
};

struct World {
    reclaim::Qsbr qsbr{kWorkers};
    SessionTable<Ipv4> table{{kCapacity, kWorkers, {}, map_memory}, qsbr};
    ZoneSettings zones{map_memory, 1};
    policy::AdjacencyTable adjacencies{kAdjacencies};
    std::atomic<const Snapshot*> root{nullptr};
    std::atomic<std::uint32_t> changed{0};
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> wrong{0};
    std::array<std::uint64_t, kWorkers> hits{}, inserted{}, ended{};
};

Tuple tuple(std::uint32_t number) {
    Tuple result;
    result.source = IpAddress::v4(be32{0x0a000000 + number});
    result.destination = IpAddress::v4(be32{0x0a800001});
    result.protocol = 17;
    result.source_port = static_cast<std::uint16_t>(number);
    result.destination_port = 53;
    return result;
}

void insert(World& world, unsigned worker, std::uint32_t number, std::uint32_t generation) {
    const ConnectionIndex index = world.table.take(worker);
    if (index == kNoConnection) return;
    auto& forward = world.table.flow(forward_of(index));
    auto& reverse = world.table.flow(reverse_of(index));
    forward.key = KeyIpv4::of(Vni{1}, tuple(number));
    reverse.key = KeyIpv4::of(Vni{1}, *reversed(tuple(number)));
    // The rewrite names the key that it belongs to.
    forward.rewrite = {number, number, number, 0, 0};
    reverse.rewrite = forward.rewrite;
    for (auto* flow : {&forward, &reverse}) {
        flow->state.generation = generation;
        flow->state.target = 1 + number % (kAdjacencies - 1);
        flow->state.last_seen = 0;
        flow->state.packets = 0;
    }
    if (world.table.insert(worker, index, TcpState::none) == Insertion::done)
        ++world.inserted[worker];
    else
        world.table.give_back(worker, index);
}

void hit(World& world, unsigned worker, FlowIndex index, std::uint32_t number) {
    auto& flow = world.table.flow(index);
    const auto& rewrite = flow.rewrite;
    const policy::Adjacency& adjacency = world.adjacencies[flow.state.adjacency()];
    if (rewrite.source != number || rewrite.ports != number ||
        adjacency.mtu != adjacency.checksum_base)
        world.wrong.fetch_add(1, std::memory_order_relaxed);
    count(flow.state, world.table.connection(connection_of(index)), is_reverse(index), 100);
    ++world.hits[worker];
}

void work(World& world, unsigned worker) {
    std::uint32_t random = 12345 + worker;
    std::uint32_t cursor = worker * 64;
    world.qsbr.online(worker);
    while (!world.stop.load(std::memory_order_relaxed)) {
        const Snapshot* snapshot = world.root.load(std::memory_order_acquire);
        for (int i = 0; i < 32; ++i) {
            random = random * 1664525 + 1013904223;
            const std::uint32_t number = random >> 8 & (kTuples - 1);
            const bool replies = (random & 1) != 0;
            const auto key =
                KeyIpv4::of(Vni{1}, replies ? *reversed(tuple(number)) : tuple(number));
            const FlowIndex flow = world.table.find(key, world.table.hash(key));
            if (flow == kNoFlow) {
                if (!replies) insert(world, worker, number, snapshot->generation);
                continue;
            }
            if (snapshot->generation != snapshot->copy)
                world.wrong.fetch_add(1, std::memory_order_relaxed);
            auto& words = world.table.flow(flow).state;
            if (words.generation.load(std::memory_order_relaxed) <
                world.changed.load(std::memory_order_acquire)) {
                // Judged anew: every fourth is cut, the others are stamped.
                if (number % 4 == 0) {
                    if (world.table.end(worker, connection_of(flow))) ++world.ended[worker];
                    continue;
                }
                words.set_adjacency(AdjacencyIndex{1 + random % (kAdjacencies - 1)});
                words.generation.store(snapshot->generation, std::memory_order_release);
            }
            hit(world, worker, flow, number);
        }
        // Ageing: everything is old now and then.
        for (int i = 0; i < 4 && cursor < world.table.high_water(); ++i, ++cursor) {
            const ConnectionIndex index{cursor};
            if (world.table.connection(index).life() == Life::live && (random & 7) == 0 &&
                world.table.idle_too_long(index, world.zones, Tick{ticks(100000)}))
                if (world.table.end(worker, index)) ++world.ended[worker];
        }
        if (cursor >= world.table.high_water()) cursor = 0;
        world.table.reclaim(worker, 16);
        world.qsbr.quiescent(worker);
        if ((random & 0x3ff) == 0) {
            world.qsbr.offline(worker);
            std::this_thread::yield();
            world.qsbr.online(worker);
        }
    }
    world.qsbr.offline(worker);
}

}  // namespace

TEST_CASE("lookup, insertion, expiry and policy change at the same time") {
    World world;
    REQUIRE(world.table.ok());
    std::vector<std::unique_ptr<policy::Adjacency>> records;
    const auto record = [&](std::uint16_t number) {
        auto made = std::make_unique<policy::Adjacency>();
        made->mtu = made->checksum_base = number;
        records.push_back(std::move(made));
        return records.back().get();
    };
    for (std::uint32_t i = 1; i < kAdjacencies; ++i)
        world.adjacencies.replace(world.adjacencies.allocate(), record(1));

    auto snapshot = std::make_unique<Snapshot>(1);
    world.root.store(snapshot.get(), std::memory_order_release);

    std::vector<std::thread> workers;
    for (unsigned worker = 0; worker < kWorkers; ++worker)
        workers.emplace_back([&world, worker] { work(world, worker); });

    struct Retired {
        reclaim::Qsbr::Token token;
        std::unique_ptr<Snapshot> snapshot;
        std::unique_ptr<policy::Adjacency> adjacency;
    };
    std::deque<Retired> retired;
    std::uint64_t freed = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    for (std::uint16_t generation = 2; std::chrono::steady_clock::now() < end; ++generation) {
        auto next = std::make_unique<Snapshot>(generation);
        auto made = std::make_unique<policy::Adjacency>();
        made->mtu = made->checksum_base = generation;
        const policy::Adjacency* before = world.adjacencies.replace(
            AdjacencyIndex{1U + generation % (kAdjacencies - 1)}, made.get());
        world.changed.store(generation, std::memory_order_release);
        world.root.store(next.get(), std::memory_order_release);
        std::swap(next, snapshot);
        Retired old{world.qsbr.advance(), std::move(next), nullptr};
        for (auto& owned : records)
            if (owned.get() == before) std::swap(old.adjacency, owned), std::swap(owned, made);
        retired.push_back(std::move(old));
        while (!retired.empty() && world.qsbr.elapsed(retired.front().token)) {
            retired.pop_front();
            ++freed;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    world.stop.store(true);
    for (auto& worker : workers) worker.join();

    CHECK(world.wrong.load() == 0);
    std::uint64_t hits = 0, inserted = 0, ended = 0, live = 0;
    for (unsigned worker = 0; worker < kWorkers; ++worker) {
        hits += world.hits[worker];
        inserted += world.inserted[worker];
        ended += world.ended[worker];
    }
    for (std::uint32_t i = 0; i < world.table.high_water(); ++i)
        live += world.table.connection(ConnectionIndex{i}).life() == Life::live ? 1 : 0;
    CHECK(inserted == ended + live);
    CHECK(hits > 1000);
    CHECK(ended > 10);
    CHECK(freed > 10);
}
