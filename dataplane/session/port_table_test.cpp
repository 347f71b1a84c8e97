// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/port_table.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <thread>
#include <vector>

using namespace sluice;
using namespace sluice::session;

namespace {

constexpr be32 kFirst{0xcb007101}, kSecond{0xcb007102};
constexpr NatGatewayId kGateway{3};
constexpr Tick kNow{100'000};

Tick after(std::uint64_t seconds) {
    return {kNow.value + ticks(seconds)};
}

// A table and somebody who asks it.
struct World {
    PortTable table{PortTableOptions{.blocks = 4096, .addresses = 64}};
    std::vector<be32> addresses{kFirst};
    bool independent = true;
    std::uint32_t cap = 1024, zone = 0;
    std::uint64_t random = 1;
    std::vector<BlockEvent> events;

    PortRequest request(std::uint32_t endpoint, std::uint16_t port,
                        PortSpace space = PortSpace::tcp) const {
        return {.owner = {kGateway, EndpointId{endpoint}},
                .space = space,
                .inside = {be32{0x0a000000 + endpoint}, port},
                .endpoint_independent = independent,
                .ports_per_endpoint = cap,
                .addresses = addresses,
                .zone = zone};
    }
    // As a worker does: choose, then take.
    PortTable::Taken open(std::uint32_t endpoint, std::uint16_t port, Tick now = kNow,
                          PortSpace space = PortSpace::tcp,
                          PortTable::Want want = PortTable::Want::any) {
        const auto asked = request(endpoint, port, space);
        const auto choice = table.choose(asked, now);
        if (choice.reason != DropReason::none) return {.reason = choice.reason, .port = 0};
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        const auto taken = table.take(asked, choice.address, want, random, now);
        if (taken.assigned) events.push_back(*taken.assigned);
        last = choice.address;
        return taken;
    }
    void close(std::uint16_t port, Tick seen, Tick now, PortSpace space = PortSpace::tcp) {
        table.release({space, {last, port}}, seen, now);
    }
    void expire(Tick now) {
        std::array<BlockEvent, 16> released;
        for (int round = 0; round < 3; ++round) {
            std::uint32_t cursor = 0;
            while (const std::size_t count = table.expire(cursor, 1, 1 << 20, now, released))
                events.insert(events.end(), released.begin(),
                              released.begin() + static_cast<std::ptrdiff_t>(count));
        }
    }
    std::array<std::uint32_t, kPortSpaces> live() const {
        std::array<std::uint32_t, kPortSpaces> sum{};
        table.visit([&](const PortTable::Use& use) {
            for (std::size_t i = 0; i < kPortSpaces; ++i) sum[i] += use.live[i];
        });
        return sum;
    }
    be32 last;
};

}  // namespace

TEST_CASE("a private port has the same public port for every destination while it is mapped") {
    World world;
    const auto first = world.open(1, 4000);
    REQUIRE(first.reason == DropReason::none);
    CHECK(first.port >= 1024);
    CHECK(world.open(1, 4000).port == first.port);
    CHECK(world.table.choose(world.request(1, 4000), kNow).port == first.port);
    CHECK(world.open(1, 4001).port != first.port);
    CHECK(world.live()[0] == 2);
    // Two connections: the mapping lives until the second is gone, and rests as itself.
    world.close(first.port, kNow, kNow);
    CHECK(world.live()[0] == 2);
    world.close(first.port, kNow, kNow);
    CHECK(world.live()[0] == 1);
    CHECK(world.open(1, 4000, after(1)).port == first.port);
}

TEST_CASE("protocols have ports of their own, of the same address") {
    World world;
    for (const auto space : {PortSpace::tcp, PortSpace::udp, PortSpace::icmp})
        CHECK(world.open(1, 4000, kNow, space).reason == DropReason::none);
    CHECK(world.events.size() == 3);
    CHECK(world.live() == std::array<std::uint32_t, 3>{1, 1, 1});
}

TEST_CASE("blocks of 64 ports are one endpoint's, and told of when they come and go") {
    World world;
    std::map<std::uint32_t, std::set<unsigned>> blocks;
    std::set<std::uint16_t> ports;
    for (std::uint16_t i = 0; i < 65; ++i)
        for (const std::uint32_t endpoint : {1U, 2U}) {
            const auto taken = world.open(endpoint, static_cast<std::uint16_t>(5000 + i));
            REQUIRE(taken.reason == DropReason::none);
            CHECK(ports.insert(taken.port).second);
            blocks[endpoint].insert((taken.port - 1024U) / 64);
        }
    CHECK(blocks[1].size() == 2);
    CHECK(blocks[2].size() == 2);
    for (const unsigned block : blocks[1]) CHECK(blocks[2].count(block) == 0);
    CHECK(world.events.size() == 4);
    for (const auto& event : world.events) CHECK(event.assigned);
    for (const std::uint16_t port : ports) world.close(port, kNow, kNow);
    world.expire(after(239));
    CHECK(world.events.size() == 4);
    world.expire(after(241));
    REQUIRE(world.events.size() == 8);
    CHECK_FALSE(world.events.back().assigned);
    CHECK(world.live()[0] == 0);
}

TEST_CASE("a freed port rests 4 minutes after its last packet for TCP, 2 for others") {
    World world;
    world.cap = 64;
    using Case = std::pair<PortSpace, std::uint64_t>;
    for (const auto& [space, seconds] :
         {Case{PortSpace::tcp, 240}, {PortSpace::udp, 120}, {PortSpace::icmp, 120}}) {
        std::vector<std::uint16_t> ports;
        for (std::uint16_t i = 0; i < 64; ++i)
            ports.push_back(world.open(1, static_cast<std::uint16_t>(6000 + i), kNow, space).port);
        CHECK(world.open(1, 7000, kNow, space).reason == DropReason::nat_endpoint_ports);
        world.close(ports[5], kNow, kNow, space);
        const auto rested = after(seconds + 2);
        CHECK(world.open(1, 7000, after(seconds - 2), space).reason ==
              DropReason::nat_endpoint_ports);
        CHECK(world.open(1, 7000, rested, space).port == ports[5]);
        // What was idle for so long has rested already.
        world.close(ports[6], kNow, rested, space);
        CHECK(world.open(1, 7001, rested, space).port == ports[6]);
    }
}

TEST_CASE("an endpoint keeps one public address while it has ports of it") {
    World world;
    world.addresses = {kFirst, kSecond};
    std::set<std::uint32_t> used;
    for (std::uint32_t endpoint = 1; endpoint <= 40; ++endpoint) {
        world.open(endpoint, 4000);
        const be32 paired = world.last;
        used.insert(paired.raw);
        for (std::uint16_t port = 1; port < 100; ++port) {
            world.open(endpoint, static_cast<std::uint16_t>(4000 + port));
            CHECK(world.last == paired);
        }
        world.open(endpoint, 4000, kNow, PortSpace::udp);
        CHECK(world.last == paired);
    }
    CHECK(used.size() == 2);
}

TEST_CASE("an address that the NAT gateway has no more is not used for new ports") {
    World world;
    const auto old = world.open(1, 4000);
    world.addresses = {kSecond};
    const auto taken = world.open(1, 4001);
    REQUIRE(taken.reason == DropReason::none);
    CHECK(world.last == kSecond);
    // ... nor for the mapping that was there.
    world.open(1, 4000);
    CHECK(world.last == kSecond);
    CHECK(world.table.owns({kGateway, EndpointId{1}}, {PortSpace::tcp, {kFirst, old.port}}));
    world.last = kFirst;
    world.close(old.port, kNow, kNow);
    CHECK_FALSE(world.table.owns({kGateway, EndpointId{1}}, {PortSpace::tcp, {kFirst, old.port}}));
}

TEST_CASE("exhaustion refuses who has no port, not who has") {
    World world;
    std::uint32_t endpoint = 0;
    DropReason why = DropReason::none;
    while ((why = world.open(++endpoint, 4000).reason) == DropReason::none)
        REQUIRE(endpoint < 2000);
    CHECK(endpoint - 1 == kBlocksPerSpace);
    CHECK(why == DropReason::nat_ports_exhausted);
    CHECK(world.open(5, 4000).reason == DropReason::none);
    CHECK(world.open(5, 4001).reason == DropReason::none);
    CHECK(world.open(endpoint, 4000, kNow, PortSpace::udp).reason == DropReason::none);
    CHECK(world.live()[0] == kBlocksPerSpace + 1);
    // An endpoint of nobody else's ports goes to another address.
    world.addresses = {kFirst, kSecond};
    CHECK(world.open(endpoint + 1, 4000).reason == DropReason::none);
    CHECK(world.last == kSecond);
}

TEST_CASE("blocks: a VPC has as many as are free, and the next one finds some") {
    World world;
    world.addresses = {kFirst, kSecond};
    const auto take_all = [&](std::uint32_t zone) {
        world.zone = zone;
        std::uint32_t count = 0;
        DropReason why = DropReason::none;
        for (const auto space : {PortSpace::tcp, PortSpace::udp, PortSpace::icmp})
            for (std::uint32_t endpoint = 1; endpoint <= kBlocksPerSpace; ++endpoint) {
                why = world.open(zone * 10000 + endpoint, 4000, kNow, space).reason;
                if (why == DropReason::nat_blocks_exhausted) return count;
                count += why == DropReason::none ? 1U : 0U;
            }
        return count;
    };
    CHECK(world.table.free() == 4096);
    CHECK(take_all(1) == 2048);
    CHECK(take_all(2) == 1024);
    CHECK(take_all(3) == 512);
    CHECK(world.table.free() == 512);
    CHECK(world.table.held(2) == 1024);
    // Neither by another endpoint of its own, nor by what a walk saw before, does it get more.
    const auto asked = world.request(39999, 4000, PortSpace::icmp);
    CHECK(world.table.take(asked, kFirst, PortTable::Want::any, 0, kNow).reason ==
          DropReason::nat_blocks_exhausted);
    // What it has goes on, and within its blocks more.
    CHECK(world.open(30001, 4000, kNow, PortSpace::udp).reason == DropReason::none);
    CHECK(world.open(30001, 4001, kNow, PortSpace::udp).reason == DropReason::none);
    // What is given back is free for all.
    for (const BlockEvent& event : std::vector(world.events))
        for (unsigned i = 0; i < kBlockPorts; ++i) {
            const NatPort port{event.space,
                               {event.address, static_cast<std::uint16_t>(event.first_port + i)}};
            while (world.table.find(port)) world.table.undo(port, kNow);
        }
    world.expire(kNow);
    CHECK(world.table.free() == 4096);
    for (const std::uint32_t zone : {1U, 2U, 3U}) CHECK(world.table.held(zone) == 0);
    CHECK(take_all(3) == 2048);
}

TEST_CASE("an address- and port-dependent port serves many connections; one that ended rests") {
    World world;
    world.independent = false;
    world.cap = 64;
    std::set<std::uint16_t> ports;
    for (std::uint16_t i = 0; i < 1000; ++i) {
        const auto taken = world.open(1, static_cast<std::uint16_t>(2000 + i));
        REQUIRE(taken.reason == DropReason::none);
        ports.insert(taken.port);
    }
    CHECK(ports.size() == 64);
    CHECK(world.live()[0] == 64);
    CHECK(world.open(1, 1, kNow, PortSpace::tcp, PortTable::Want::fresh).reason ==
          DropReason::nat_endpoint_ports);
    // One of its connections ended just now: it gets no other until that is forgotten.
    const std::uint16_t ended = *ports.begin();
    world.close(ended, kNow, kNow);
    for (int i = 0; i < 500; ++i) CHECK(world.open(1, 9, after(1)).port != ended);
    const auto used = [&](Tick now) {
        return world.table.used(world.request(1, 9), kFirst, 0, now);
    };
    const auto is_used = [&](const PortTable::Used& of) {
        return (of.bits >> (ended - of.first) & 1) != 0;
    };
    CHECK(__builtin_popcountll(used(after(1)).bits) == 63);
    CHECK_FALSE(is_used(used(after(1))));
    const Ipv4Port port{kFirst, ended};
    CHECK(world.table.take_used(world.request(1, 9), port, after(1)).reason ==
          DropReason::nat_endpoint_ports);
    CHECK(world.table.take_used(world.request(2, 9), port, after(241)).reason ==
          DropReason::nat_endpoint_ports);
    CHECK(is_used(used(after(241))));
    CHECK(world.table.take_used(world.request(1, 9), port, after(241)).port == ended);
    bool again = false;
    for (int i = 0; i < 500; ++i) again = again || world.open(1, 9, after(241)).port == ended;
    CHECK(again);
}

TEST_CASE("a cap that is lowered holds at once; what there is lives on") {
    World world;
    world.cap = 128;
    std::vector<std::uint16_t> ports;
    for (std::uint16_t i = 0; i < 70; ++i)
        ports.push_back(world.open(1, static_cast<std::uint16_t>(4000 + i)).port);
    world.cap = 64;
    CHECK(world.open(1, 5000).reason == DropReason::nat_endpoint_ports);
    CHECK(world.table.take(world.request(1, 5000), kFirst, PortTable::Want::any, 7, kNow).reason ==
          DropReason::nat_endpoint_ports);
    CHECK(world.open(1, 4069).port == ports[69]);  // its mapping is there
    for (std::size_t i = 0; i < 7; ++i) world.close(ports[i], kNow, after(241));
    CHECK(world.open(1, 5000, after(241)).reason == DropReason::none);
    CHECK(world.open(1, 5001, after(241)).reason == DropReason::nat_endpoint_ports);
}

TEST_CASE("the port of RoCEv2 is nobody's, of UDP") {
    World world;
    world.cap = 4096;
    std::array<bool, 2> seen{};
    for (const bool udp : {false, true})
        for (std::uint32_t endpoint = 1; endpoint <= kBlocksPerSpace; ++endpoint)
            for (std::uint16_t i = 0; i < 64; ++i) {
                const auto taken = world.open(endpoint, static_cast<std::uint16_t>(4000 + i), kNow,
                                              udp ? PortSpace::udp : PortSpace::tcp);
                seen[udp] = seen[udp] || taken.port == 4791;
            }
    CHECK(seen == std::array<bool, 2>{true, false});
}

TEST_CASE("a port that was taken in vain rests as before") {
    World world;
    const auto taken = world.open(1, 4000);
    world.close(taken.port, kNow, kNow);
    // Its mapping is remembered while it rests.
    CHECK(world.open(1, 4000, after(1)).port == taken.port);
    world.table.undo({PortSpace::tcp, {kFirst, taken.port}}, after(1));
    world.expire(after(239));
    CHECK(world.events.size() == 1);
    world.expire(after(241));
    CHECK(world.events.size() == 2);
}

TEST_CASE("a mapping is held where it is, not where its block has gone") {
    World world;
    const auto taken = world.open(1, 4000);
    const NatPort port{PortSpace::tcp, {kFirst, taken.port}};
    const auto mapping = *world.table.find(port);
    CHECK_FALSE(world.table.hold({PortSpace::udp, port.at}, mapping));
    // The same block, of the same owner, serves another address by now.
    world.close(taken.port, kNow, after(241));
    world.expire(after(241));
    world.addresses = {kSecond};
    const auto next = world.open(1, 4000, after(241));
    REQUIRE(next.reason == DropReason::none);
    CHECK_FALSE(world.table.hold(port, mapping));
    CHECK(world.table.hold({PortSpace::tcp, {kSecond, next.port}}, mapping));
}

TEST_CASE("a connection from outside holds the mapping that it goes to, if that still lives") {
    World world;
    const auto taken = world.open(1, 4000);
    const NatPort port{PortSpace::tcp, {kFirst, taken.port}};
    const auto mapping = world.table.find(port);
    REQUIRE(mapping);
    CHECK(mapping->owner == NatOwner{kGateway, EndpointId{1}});
    CHECK(mapping->inside == Ipv4Port{be32{0x0a000001}, 4000});
    CHECK(world.table.hold(port, *mapping));
    world.close(taken.port, kNow, kNow);
    CHECK(world.table.find(port));
    world.close(taken.port, kNow, kNow);
    CHECK_FALSE(world.table.find(port));
    CHECK_FALSE(world.table.hold(port, *mapping));
    CHECK_FALSE(world.table.find({PortSpace::udp, {kFirst, taken.port}}));
    CHECK_FALSE(world.table.find({PortSpace::tcp, {kSecond, taken.port}}));
    CHECK_FALSE(world.table.find({PortSpace::tcp, {kFirst, 80}}));
}

TEST_CASE("an address whose blocks are all free makes room for another in the table") {
    World world;
    for (std::uint32_t i = 0; i < 500; ++i) {
        world.addresses = {be32{0xc6336400 + i}};
        const auto taken = world.open(i + 1, 4000);
        REQUIRE(taken.reason == DropReason::none);
        world.close(taken.port, kNow, after(300));
        world.expire(after(300));
    }
    CHECK(world.table.high_water() == 2);
}

TEST_CASE("workers at once: no port is two endpoints', and none is lost") {
    constexpr unsigned kThreads = 4, kEndpoints = 6, kRounds = 1500;
    PortTable table{PortTableOptions{.blocks = 256, .addresses = 64}};
    const std::vector<be32> addresses{kFirst, kSecond};
    // Who has a port, by address and port; 0: nobody.
    std::vector<std::atomic<std::uint32_t>> holder(2 * 65536);
    std::vector<std::atomic<std::uint32_t>> holds(2 * 65536);
    std::atomic<unsigned> wrong{0}, opened{0};
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
            std::uint64_t random = 0x9e3779b97f4a7c15ULL * (thread + 1);
            std::vector<std::pair<NatPort, std::uint32_t>> mine;
            std::uint32_t cursor = 0, now = kNow.value;
            std::array<BlockEvent, 8> released;
            const auto close = [&](std::size_t i) {
                const auto [port, endpoint] = mine[i];
                const std::size_t cell = (port.at.address == kFirst ? 0U : 65536U) + port.at.port;
                // Given back before it can be another's.
                if (holds[cell].fetch_sub(1) == 1) holder[cell].store(0);
                table.release(port, Tick{now - ticks(600)}, Tick{now});
                mine[i] = mine.back();
                mine.pop_back();
            };
            for (unsigned round = 0; round < kRounds; ++round) {
                random = random * 6364136223846793005ULL + 1442695040888963407ULL;
                const auto endpoint = static_cast<std::uint32_t>(1 + (random >> 33) % kEndpoints);
                const bool independent = endpoint % 2 == 0;
                const PortRequest request{
                    .owner = {kGateway, EndpointId{endpoint}},
                    .space = PortSpace::tcp,
                    .inside = {be32{endpoint}, static_cast<std::uint16_t>(
                                                   thread * 10000 + (random >> 50) % 200 + 1)},
                    .endpoint_independent = independent,
                    .ports_per_endpoint = 512,
                    .addresses = addresses};
                const auto choice = table.choose(request, Tick{now});
                if (choice.reason == DropReason::none) {
                    const auto taken = table.take(request, choice.address, PortTable::Want::any,
                                                  random, Tick{now});
                    if (taken.reason == DropReason::none) {
                        const NatPort port{PortSpace::tcp, {choice.address, taken.port}};
                        if (!table.owns(request.owner, port)) ++wrong;
                        const auto mapping = table.find(port);
                        if (independent && (!mapping || mapping->inside != request.inside)) ++wrong;
                        mine.emplace_back(port, endpoint);
                        const std::size_t cell =
                            (port.at.address == kFirst ? 0U : 65536U) + port.at.port;
                        holds[cell].fetch_add(1);
                        const std::uint32_t before = holder[cell].exchange(endpoint);
                        if (before != 0 && before != endpoint) ++wrong;
                        ++opened;
                    }
                }
                if (mine.size() > 100 || (random >> 20) % 3 == 0)
                    if (!mine.empty()) close((random >> 7) % mine.size());
                table.expire(cursor, 1, 16, Tick{now}, released);
                table.visit([](const PortTable::Use&) {});
            }
            while (!mine.empty()) close(0);
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(opened > kThreads * kRounds / 2);
    std::array<BlockEvent, 256> released;
    std::uint32_t cursor = 0;
    table.expire(cursor, 1, 1024, kNow, released);
    unsigned left = 0;
    table.visit([&](const PortTable::Use&) { ++left; });
    CHECK(left == 0);
    for (const be32 address : addresses)
        for (unsigned port = 1024; port < 65536; ++port)
            if (table.find({PortSpace::tcp, {address, static_cast<std::uint16_t>(port)}})) ++left;
    CHECK(left == 0);
}

TEST_CASE("whom a walk finds paired stays found while others come and go") {
    constexpr std::uint32_t kPaired = 8, kThreads = 2, kRounds = 2000000;
    PortTable table{PortTableOptions{.blocks = 64, .addresses = 64}};
    const std::vector<be32> addresses{kFirst, kSecond};
    const auto request = [&](std::uint32_t endpoint, std::span<const be32> of) {
        return PortRequest{.owner = {kGateway, EndpointId{endpoint}},
                           .inside = {be32{endpoint}, 4000},
                           .addresses = of};
    };
    // Each at the address that it would not get anew.
    std::array<be32, kPaired> paired{};
    for (std::uint32_t i = 0; i < kPaired; ++i) {
        const be32 fresh = table.choose(request(i + 1, addresses), kNow).address;
        paired[i] = fresh == kFirst ? kSecond : kFirst;
        REQUIRE(
            table.take(request(i + 1, {&paired[i], 1}), paired[i], PortTable::Want::any, i, kNow)
                .reason == DropReason::none);
    }
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
            std::array<BlockEvent, 8> released;
            std::uint32_t endpoint = 100 * (thread + 1);
            while (!over) {
                endpoint = 100 * (thread + 1) + (endpoint + 1) % 100;
                const auto asked = request(endpoint, addresses);
                const be32 address = table.choose(asked, kNow).address;
                const auto taken = table.take(asked, address, PortTable::Want::any, 0, kNow);
                if (taken.reason == DropReason::none)
                    table.undo({PortSpace::tcp, {address, taken.port}}, kNow);
                std::uint32_t cursor = 0;
                table.expire(cursor, 1, 64, kNow, released);
            }
        });
    unsigned wrong = 0;
    for (std::uint32_t i = 0; i < kRounds; ++i) {
        const auto choice = table.choose(request(i % kPaired + 1, addresses), kNow);
        if (choice.reason != DropReason::none || choice.address != paired[i % kPaired]) ++wrong;
    }
    over = true;
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
}
