// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/meter.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using namespace sluice;
using namespace sluice::session;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// Bits that pass in `seconds` after the burst is used up, offered at `overload` times the rate
// by so many workers in turns.
double passed(std::uint64_t rate, std::uint32_t octets, unsigned workers, double overload,
              std::uint64_t seconds) {
    MeterTable meters(4, workers);
    REQUIRE(meters.set(MeterId{9}, {rate, rate / 10}).ok());
    const MeterIndex index = meters.find(MeterId{9});
    REQUIRE(index.value != 0);
    const double gap = octets * 8 * 1e9 / (static_cast<double>(rate) * overload);
    std::uint64_t bits = 0;
    double time = 1e9;
    unsigned worker = 0;
    // A second to use up the burst.
    for (; time < 2e9; time += gap)
        meters.admit(worker++ % workers, index, octets, static_cast<std::uint64_t>(time));
    const double end = 2e9 + static_cast<double>(seconds) * 1e9;
    for (; time < end; time += gap)
        if (meters.admit(worker++ % workers, index, octets, static_cast<std::uint64_t>(time)))
            bits += octets * 8;
    return static_cast<double>(bits) / static_cast<double>(seconds * rate);
}

}  // namespace

TEST_CASE("a limit holds within a hundredth, for one worker and for two, slow and fast") {
    for (const std::uint64_t rate : {20'000'000ULL, 1'000'000'000ULL, 100'000'000'000ULL})
        for (const unsigned workers : {1U, 2U})
            for (const std::uint32_t octets : {64U, 1500U, 9000U}) {
                // At 100 Gb/s a few milliseconds are as many packets.
                const std::uint64_t seconds = 1;
                if (rate / octets > 20'000'000) continue;
                const double share = passed(rate, octets, workers, 3, seconds);
                INFO(rate << " " << workers << " " << octets);
                CHECK(share < 1.01);
                CHECK(share > 0.99);
            }
}

TEST_CASE("what is offered below the limit passes whole") {
    CHECK(passed(20'000'000, 1500, 2, 0.95, 5) > 0.949);
}

TEST_CASE("an idle limit saves up its burst and no more") {
    MeterTable meters(1, 1);
    REQUIRE(meters.set(MeterId{1}, {8'000'000, 800'000}).ok());
    const MeterIndex index = meters.find(MeterId{1});
    std::uint64_t octets = 0;
    while (meters.admit(0, index, 1000, 5 * kSecond)) octets += 1000;
    CHECK(octets <= 100'000);
    CHECK(octets >= 99'000);
    CHECK(meters.refused(index) == 1);
    // A hundred milliseconds later it is there again, once.
    octets = 0;
    while (meters.admit(0, index, 1000, 5 * kSecond + kSecond / 10)) octets += 1000;
    CHECK(octets <= 101'000);
    CHECK(octets >= 99'000);
}

TEST_CASE(
    "what exceeds the burst waits its turn, in order and at the rate, and no longer than 50 ms") {
    for (const unsigned workers : {1U, 2U}) {
        MeterTable meters(1, workers);
        REQUIRE(meters.set(MeterId{1}, {20'000'000, 2'000'000}).ok());
        const MeterIndex index = meters.find(MeterId{1});
        std::vector<std::uint64_t> departures;
        std::vector<std::uint64_t> last(workers);
        const std::uint64_t start = 5 * kSecond;
        // 10,000 packets at once: the burst now, then what 50 ms carry, the rest is refused.
        for (unsigned i = 0; i < 10'000; ++i) {
            const auto when =
                meters.departure(i % workers, index, 1250, start, MeterTable::kPatience);
            if (when == MeterTable::kRefused) continue;
            CHECK(when >= last[i % workers]);
            last[i % workers] = when;
            departures.push_back(when);
        }
        CHECK(departures.back() <= start + 50'000'000 + 1);
        const auto later = std::count_if(departures.begin(), departures.end(),
                                         [&](std::uint64_t when) { return when > start; });
        CHECK(departures.size() - static_cast<std::size_t>(later) == 200);  // 2 Mbit
        CHECK(later == 100);                                                // 50 ms of 20 Mbit/s
    }
}

TEST_CASE("who refuses to wait loses nothing of the limit") {
    MeterTable meters(1, 1);
    REQUIRE(meters.set(MeterId{1}, {20'000'000, 2'000'000}).ok());
    const MeterIndex index = meters.find(MeterId{1});
    // Twice the limit for ten seconds, with ever less patience.
    std::uint64_t bits = 0;
    for (std::uint64_t i = 0; i < 40'000; ++i) {
        const std::uint64_t now = kSecond + i * 250'000;
        const std::uint64_t patience = MeterTable::kPatience / (1 + i % 7);
        if (meters.departure(0, index, 1250, now, patience) != MeterTable::kRefused) bits += 10'000;
    }
    CHECK(bits >= 200'000'000);
    CHECK(bits <= 204'000'000);
}

TEST_CASE("a fast limit keeps no more than 3 Mbit waiting") {
    MeterTable meters(1, 1);
    REQUIRE(meters.set(MeterId{1}, {10'000'000'000, 1'000'000}).ok());
    const MeterIndex index = meters.find(MeterId{1});
    std::uint64_t waiting = 0;
    for (;;) {
        const auto when = meters.departure(0, index, 1250, kSecond, MeterTable::kPatience);
        if (when == MeterTable::kRefused) break;
        if (when > kSecond) waiting += 10'000;
    }
    CHECK(waiting <= 3'000'000);
    CHECK(waiting >= 2'700'000);
}

TEST_CASE("a meter that changes its rate keeps its index; one that goes limits nobody") {
    MeterTable meters(2, 1);
    REQUIRE(meters.set(MeterId{7}, {1'000'000, 100'000}).ok());
    const MeterIndex index = meters.find(MeterId{7});
    REQUIRE(meters.set(MeterId{7}, {2'000'000, 200'000}).ok());
    CHECK(meters.find(MeterId{7}) == index);
    CHECK(meters.used() == 1);
    meters.remove(MeterId{7});
    CHECK(meters.find(MeterId{7}).value == 0);
    for (int i = 0; i < 100; ++i) CHECK(meters.admit(0, index, 9000, kSecond));
}

TEST_CASE("a full meter table refuses by reason, and has room again after a removal") {
    MeterTable meters(2, 1);
    CHECK(meters.set(MeterId{1}, {1000, 1000}).ok());
    CHECK(meters.set(MeterId{2}, {1000, 1000}).ok());
    const auto refused = meters.set(MeterId{3}, {1000, 1000});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Error::Code::exhausted);
    // Any number of comings and goings.
    for (std::uint32_t id = 2; id < 1000; ++id) {
        meters.remove(MeterId{id});
        REQUIRE(meters.set(MeterId{id + 1}, {1000, 1000}).ok());
    }
    CHECK(meters.find(MeterId{1}).value != 0);
    CHECK_FALSE(meters.set(MeterId{5}, {0, 1000}).ok());
    CHECK_FALSE(meters.set(MeterId{0}, {1000, 1000}).ok());
}

TEST_CASE("no meter, no limit") {
    MeterTable meters(1, 1);
    CHECK(meters.find(MeterId{}).value == 0);
    CHECK(meters.find(MeterId{4}).value == 0);
    CHECK(meters.admit(0, MeterIndex{}, 9000, 0));
}
