// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/datagram.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <vector>

using namespace sluice::session;

TEST_CASE("a datagram is complete once all of it has come, in whatever order") {
    struct Part {
        std::uint32_t start, end;
        bool last;
    };
    std::vector<Part> parts = {
        {0, 800, false}, {800, 1600, false}, {1600, 2400, false}, {2400, 2405, true}};
    std::vector<std::size_t> order = {0, 1, 2, 3};
    do {
        Datagram datagram;
        for (std::size_t i = 0; i < order.size(); ++i) {
            const Part& part = parts[order[i]];
            CHECK_FALSE(datagram.complete());
            CHECK(datagram.add(part.start, part.end, part.last) == Fit::fresh);
        }
        CHECK(datagram.complete());
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a copy of a fragment is a duplicate, and changes nothing") {
    Datagram datagram;
    CHECK(datagram.add(0, 800, false) == Fit::fresh);
    CHECK(datagram.add(0, 800, false) == Fit::duplicate);
    CHECK(datagram.add(8, 16, false) == Fit::duplicate);
    CHECK(datagram.add(800, 810, true) == Fit::fresh);
    CHECK(datagram.add(800, 810, true) == Fit::duplicate);
    CHECK(datagram.complete());
}

TEST_CASE("fragments that overlap, or disagree about the end, do not fit") {
    Datagram datagram;
    CHECK(datagram.add(800, 1600, false) == Fit::fresh);
    CHECK(datagram.add(0, 808, false) == Fit::overlap);
    CHECK(datagram.add(1592, 1700, true) == Fit::overlap);
    CHECK(datagram.add(0, 2400, false) == Fit::overlap);
    // An end before what has come already.
    CHECK(datagram.add(0, 80, true) == Fit::overlap);
    CHECK(datagram.add(1600, 1605, true) == Fit::fresh);
    // Two different ends, and octets behind the end.
    CHECK(datagram.add(1600, 1610, true) == Fit::overlap);
    CHECK(datagram.add(2400, 2408, false) == Fit::overlap);
    CHECK(datagram.add(0, 800, false) == Fit::fresh);
    CHECK(datagram.complete());
}

TEST_CASE("more gaps than are kept account of are refused") {
    Datagram datagram;
    std::uint32_t at = 16;
    for (unsigned i = 0; i < Datagram::kRanges; ++i, at += 16)
        CHECK(datagram.add(at, at + 8, false) == Fit::fresh);
    CHECK(datagram.add(at, at + 8, false) == Fit::scattered);
    CHECK(datagram.add(24, 32, false) == Fit::fresh);
    CHECK(datagram.add(at, at + 8, false) == Fit::fresh);
}

TEST_CASE("a datagram agrees with a map of its octets, whatever comes") {
    CHECK(rc::check("datagram", [] {
        constexpr std::uint32_t kEights = 40;
        std::array<bool, kEights> there{};
        std::uint32_t length = 0;
        Datagram datagram;
        const auto steps = *rc::gen::inRange(1, 60);
        for (int step = 0; step < steps; ++step) {
            const auto start = *rc::gen::inRange<std::uint32_t>(0, kEights);
            const auto end = std::min(kEights, start + *rc::gen::inRange<std::uint32_t>(1, 8));
            const bool last = *rc::gen::inRange(0, 8) == 0;
            const auto known = static_cast<std::uint32_t>(
                std::count(there.begin() + start, there.begin() + end, true));
            const bool behind = std::find(there.begin() + end, there.end(), true) != there.end();
            const bool contradicts =
                (length != 0 && (last ? end != length : end >= length)) || (last && behind);
            const Fit fit = datagram.add(start * 8, end * 8, last);
            if (contradicts) {
                RC_ASSERT(fit == Fit::overlap);
            } else if (known == 0) {
                RC_ASSERT(fit == Fit::fresh || fit == Fit::scattered);
            } else if (known == end - start) {
                RC_ASSERT(fit == Fit::duplicate);
            } else {
                RC_ASSERT(fit == Fit::overlap);
            }
            if (fit == Fit::fresh) {
                std::fill(there.begin() + start, there.begin() + end, true);
                if (last) length = end;
            }
            const bool whole =
                length != 0 && std::count(there.begin(), there.begin() + length, true) ==
                                   static_cast<std::ptrdiff_t>(length);
            RC_ASSERT(datagram.complete() == whole);
        }
    }));
}
