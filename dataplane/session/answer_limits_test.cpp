// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/answer_limits.hpp"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::session;

namespace {

constexpr std::uint64_t kStart = 5'000'000'000, kMillisecond = 1'000'000;

template <class To>
unsigned allowed(AnswerLimits& limits, const To& to, unsigned attempts, std::uint64_t now) {
    unsigned count = 0;
    for (unsigned i = 0; i < attempts; ++i) count += limits.allow(to, now) ? 1 : 0;
    return count;
}

}  // namespace

TEST_CASE("an endpoint gets a burst of errors, then so many a second") {
    AnswerLimits limits{HashSeed{}};
    CHECK(allowed(limits, EndpointId{7}, 1000, kStart) == AnswerLimits::kBurst);
    CHECK(allowed(limits, EndpointId{7}, 1000, kStart + 10 * kMillisecond) == 1);
    unsigned second = 0;
    for (unsigned i = 2; i < 102; ++i)
        second += allowed(limits, EndpointId{7}, 1000, kStart + i * 10 * kMillisecond);
    CHECK(second == AnswerLimits::kPerSecond);
}

TEST_CASE("one endpoint's flood takes no errors away from another") {
    AnswerLimits limits{HashSeed{}};
    CHECK(allowed(limits, EndpointId{7}, 100'000, kStart) == AnswerLimits::kBurst);
    CHECK(allowed(limits, EndpointId{8}, 1000, kStart) == AnswerLimits::kBurst);
}

TEST_CASE("all together have a bound, and the internet one of its own") {
    AnswerLimits limits{HashSeed{}};
    unsigned inside = 0, outside = 0;
    for (std::uint32_t i = 0; i < 2000; ++i)
        inside += allowed(limits, EndpointId{i + 1}, 2, kStart);
    CHECK(inside == AnswerLimits::kAllBurst);
    for (std::uint32_t i = 0; i < 2000; ++i)
        outside += allowed(limits, IpAddress::v4(be32{0xc0000200 + i}), 2, kStart);
    CHECK(outside == AnswerLimits::kAllBurst);
}
