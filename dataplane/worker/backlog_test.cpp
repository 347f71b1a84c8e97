// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/backlog.hpp"

#include <catch2/catch.hpp>
#include <vector>

using sluice::worker::Backlog;

namespace {
std::vector<int> all(Backlog<int>& backlog) {
    std::vector<int> result;
    while (const auto item = backlog.pop()) result.push_back(*item);
    return result;
}
}  // namespace

TEST_CASE("who waits is served in turns, each in its order") {
    Backlog<int> backlog(64);
    for (int i = 0; i < 4; ++i) REQUIRE(backlog.push(1, 10 + i));
    REQUIRE(backlog.push(2, 20));
    for (int i = 0; i < 2; ++i) REQUIRE(backlog.push(3, 30 + i));
    CHECK_FALSE(backlog.empty());
    CHECK(all(backlog) == std::vector<int>{10, 20, 30, 11, 31, 12, 13});
    CHECK(backlog.empty());
}

TEST_CASE("whoever comes while others wait has the turn after theirs") {
    Backlog<int> backlog(64);
    for (int i = 0; i < 3; ++i) REQUIRE(backlog.push(1, 10 + i));
    CHECK(backlog.pop() == 10);
    REQUIRE(backlog.push(2, 20));
    CHECK(all(backlog) == std::vector<int>{11, 20, 12});
}

TEST_CASE("one that floods leaves room for others") {
    Backlog<int> backlog(64);
    int taken = 0;
    while (backlog.push(1, taken)) ++taken;
    CHECK(taken == 32);
    int second = 0;
    while (backlog.push(2, second)) ++second;
    CHECK(second == 16);
    CHECK(backlog.push(3, 0));
}

TEST_CASE("every place is used again") {
    Backlog<int> backlog(8);
    for (int round = 0; round < 1000; ++round) {
        for (unsigned whose = 0; whose < 3; ++whose)
            REQUIRE(backlog.push(whose, static_cast<int>(whose)));
        CHECK(all(backlog).size() == 3);
    }
}
