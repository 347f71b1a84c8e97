// SPDX-License-Identifier: Apache-2.0
#include "dataplane/neighbour/announcements.hpp"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::neighbour;
using namespace std::chrono_literals;

namespace {

const PortId kUplink{2}, kOther{3};
const Time kStart{};

IpAddress address(unsigned last) {
    return *parse_ip("203.0." + std::to_string(last / 250) + "." + std::to_string(last % 250 + 1));
}

}  // namespace

TEST_CASE("an address is announced at once and twice more, a second apart") {
    Announcements announcements;
    announcements.put({kUplink, address(1)}, kStart);
    for (const auto at : {0ms, 1000ms, 2000ms}) {
        if (at > 0ms) CHECK(announcements.take(kStart + at - 1ms, 10).empty());
        const auto said = announcements.take(kStart + at, 10);
        REQUIRE(said.size() == 1);
        CHECK(said[0] == Key{kUplink, address(1)});
    }
    CHECK(announcements.take(kStart + 1h, 10).empty());
    // It comes anew.
    announcements.put({kUplink, address(1)}, kStart + 2h);
    CHECK(announcements.take(kStart + 2h, 10).size() == 1);
}

TEST_CASE("an address that has gone is not announced any more") {
    Announcements announcements;
    announcements.put({kUplink, address(1)}, kStart);
    CHECK(announcements.take(kStart, 10).size() == 1);
    announcements.remove(address(1));
    announcements.remove(address(2));
    CHECK(announcements.take(kStart + 1h, 10).empty());
    CHECK(announcements.size() == 0);
}

TEST_CASE("thousands of addresses are announced in turns, a new one before their repetitions") {
    Announcements announcements;
    constexpr unsigned kMany = 5000;
    for (unsigned i = 0; i < kMany; ++i) announcements.put({kUplink, address(i)}, kStart);
    std::size_t said = 0;
    Time now = kStart;
    while (said < kMany) {
        const auto turn = announcements.take(now, 32);
        REQUIRE(turn.size() == 32 - (said + 32 > kMany ? said + 32 - kMany : 0));
        said += turn.size();
    }
    now += Announcements::kPause;
    announcements.put({kUplink, address(kMany)}, now);
    CHECK(announcements.take(now, 1) == std::vector<Key>{{kUplink, address(kMany)}});
    CHECK(announcements.take(now, kMany * 2).size() == kMany);
}

TEST_CASE("a link that comes back hears its addresses again, and no other link's") {
    Announcements announcements;
    announcements.put({kUplink, address(1)}, kStart);
    announcements.put({kOther, address(2)}, kStart);
    for (const auto at : {0s, 1s, 2s}) CHECK(announcements.take(kStart + at, 10).size() == 2);
    announcements.link_up(kUplink, kStart + 10s);
    for (const auto at : {10s, 11s})
        CHECK(announcements.take(kStart + at, 10) == std::vector<Key>{{kUplink, address(1)}});
    CHECK(announcements.take(kStart + 1h, 10).empty());
}
