// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/remote_table.hpp"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

using namespace sluice;
using namespace sluice::session;

namespace {
constexpr HashSeed kSeed{{1, 2, 3, 4}};
}

TEST_CASE("a port admits an address while it has a connection with it") {
    RemoteTable table(map_memory, 8, kSeed);
    const be32 one{0xc6336401}, other{0xc6336402};
    CHECK_FALSE(table.has(70, one));
    CHECK(table.add(70, one));
    CHECK(table.add(70, one));
    CHECK(table.has(70, one));
    CHECK_FALSE(table.has(70, other));
    CHECK_FALSE(table.has(71, one));
    table.remove(70, one);
    CHECK(table.has(70, one));
    table.remove(70, one);
    CHECK_FALSE(table.has(70, one));
    table.remove(70, one);
}

TEST_CASE("a full table says so, and room comes back") {
    RemoteTable table(map_memory, 8, kSeed);
    for (std::uint32_t i = 1; i <= 8; ++i) CHECK(table.add(i, be32{i}));
    CHECK_FALSE(table.add(9, be32{9}));
    CHECK(table.add(3, be32{3}));
    table.remove(5, be32{5});
    CHECK(table.add(9, be32{9}));
    CHECK(table.has(9, be32{9}));
}

TEST_CASE("workers at once: what each has added is there until it is removed") {
    // Few buckets, so that chains change under those who search them.
    constexpr std::uint32_t kThreads = 4, kPairs = 12;
    RemoteTable table(map_memory, kThreads * (kPairs + 1), kSeed);
    std::atomic<unsigned> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
            const std::uint32_t port = thread + 1;
            const be32 kept{1000};
            if (!table.add(port, kept)) ++wrong;
            for (std::uint32_t round = 0; round < 50000; ++round) {
                const be32 remote{(round * 7 + thread) % kPairs};
                if (!table.add(port, remote) || !table.has(port, remote)) ++wrong;
                if (!table.has(port, kept)) ++wrong;
                table.remove(port, remote);
                if (table.has(port, remote)) ++wrong;
            }
            table.remove(port, kept);
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    for (std::uint32_t port = 1; port <= kThreads; ++port)
        for (std::uint32_t remote = 0; remote < kPairs; ++remote)
            CHECK_FALSE(table.has(port, be32{remote}));
}
