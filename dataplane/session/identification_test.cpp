// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/identification.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace sluice;
using namespace sluice::session;

TEST_CASE("an identification comes again only after all others, and is never zero") {
    Identifications numbers{HashSeed{}};
    std::set<std::uint16_t> seen;
    for (unsigned i = 0; i < 0xffff; ++i) {
        const std::uint16_t one = numbers.next(be32{0xc6336401}, be32{0xc0000201}, 17);
        if (one == 0 || !seen.insert(one).second) FAIL("again after " << i);
    }
    CHECK(seen.size() == 0xffff);
}

TEST_CASE("sources, destinations and protocols count by themselves") {
    Identifications numbers{HashSeed{}};
    const auto first = numbers.next(be32{0xc6336401}, be32{0xc0000201}, 17);
    for (unsigned i = 0; i < 100; ++i) {
        numbers.next(be32{0xc6336402}, be32{0xc0000201}, 17);
        numbers.next(be32{0xc6336401}, be32{0xc0000202}, 17);
        numbers.next(be32{0xc6336401}, be32{0xc0000201}, 6);
    }
    CHECK(numbers.next(be32{0xc6336401}, be32{0xc0000201}, 17) == first % 0xffff + 1);
}
