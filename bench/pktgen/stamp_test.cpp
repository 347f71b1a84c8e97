// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/stamp.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "bench/pktgen/histogram.hpp"
#include "bench/pktgen/sequence.hpp"

using namespace sluice::pktgen;

TEST_CASE("a lane's numbers in order are each the next") {
    Sequence sequence;
    for (std::uint32_t number = 0; number < 1000; ++number)
        REQUIRE(sequence.arrive(number) == Order::next);
}

TEST_CASE("what comes twice is a duplicate, what comes late is reordered") {
    Sequence sequence;
    CHECK(sequence.arrive(0) == Order::next);
    CHECK(sequence.arrive(0) == Order::duplicate);
    CHECK(sequence.arrive(3) == Order::next);
    CHECK(sequence.arrive(1) == Order::reordered);
    CHECK(sequence.arrive(1) == Order::duplicate);
    CHECK(sequence.arrive(3) == Order::duplicate);
    CHECK(sequence.arrive(2) == Order::reordered);
    CHECK(sequence.arrive(4) == Order::next);
}

TEST_CASE("a packet 63 behind the newest is known, one 64 behind is too old to tell") {
    Sequence sequence;
    CHECK(sequence.arrive(100) == Order::next);
    CHECK(sequence.arrive(37) == Order::reordered);
    CHECK(sequence.arrive(37) == Order::duplicate);
    CHECK(sequence.arrive(36) == Order::too_old);
    CHECK(sequence.arrive(163) == Order::next);
    CHECK(sequence.arrive(100) == Order::duplicate);
    CHECK(sequence.arrive(164) == Order::next);
    CHECK(sequence.arrive(100) == Order::too_old);
    CHECK(sequence.arrive(10'000) == Order::next);
    CHECK(sequence.arrive(9'999) == Order::reordered);
}

TEST_CASE("small values are exact in a histogram, large ones within 3.2 percent") {
    Histogram histogram;
    CHECK(histogram.quantile(0.5) == 0);
    CHECK(histogram.least() == 0);
    for (std::uint64_t value = 1; value <= 50; ++value) histogram.add(value);
    CHECK(histogram.quantile(0.5) == 25);
    CHECK(histogram.quantile(1) == 50);
    CHECK(histogram.least() == 1);

    Histogram wide;
    for (std::uint64_t value = 1; value < 1'000'000; value += 7) wide.add(value);
    for (const double fraction : {0.5, 0.9, 0.99, 0.999, 0.9999}) {
        const double exact = fraction * 1e6, found = static_cast<double>(wide.quantile(fraction));
        CHECK(found >= exact * 0.9999);
        CHECK(found <= exact * 1.032);
    }
    wide.add(UINT64_MAX);
    CHECK(wide.quantile(1) == UINT64_MAX);
    CHECK(wide.most() == UINT64_MAX);
}

TEST_CASE("each power of two and its neighbours stay within 3.2 percent") {
    for (unsigned bit = 0; bit < 63; ++bit)
        for (const std::uint64_t value : {(1ULL << bit) - 1, 1ULL << bit, (1ULL << bit) + 1}) {
            Histogram histogram;
            histogram.add(value);
            histogram.add(UINT64_MAX);
            const std::uint64_t found = histogram.quantile(0.5);
            REQUIRE(found >= value);
            REQUIRE(found - value <= value / 31);
        }
}
