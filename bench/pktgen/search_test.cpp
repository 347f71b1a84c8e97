// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/search.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace sluice::pktgen;

namespace {

const std::vector<Goal> kGoals{{"NDR", 0}, {"1e-5", 1e-5}, {"PDR", 0.005}};
const SearchLimits kLimits{1'000, 10e6, 0.01};

// Carries `capacity` packets a second and loses the rest, and `always` of all.
Outcome carries(double rate, double capacity, double always = 0) {
    return {rate, rate, rate > capacity ? 1 - capacity / rate : always, true};
}

}  // namespace

TEST_CASE("each goal ends within one percent of what the program under test carries") {
    const auto searched = search(kGoals, kLimits, [](double rate) { return carries(rate, 4e6); });
    for (const auto& found : searched.goals) {
        INFO(found.goal.name);
        REQUIRE(found.rate);
        CHECK(!found.open);
        CHECK(*found.rate >= 4e6 * 0.985);
        CHECK(*found.rate <= 4e6 * 1.0051);
        CHECK(found.loss <= found.goal.loss);
    }
    CHECK(searched.trials.size() < 30);
}

TEST_CASE("a little loss at every rate leaves no rate for NDR, and changes nothing for PDR") {
    const auto searched =
        search(kGoals, kLimits, [](double rate) { return carries(rate, 4e6, 1e-6); });
    CHECK(!searched.goals[0].rate);
    CHECK(*searched.goals[1].rate > 3.9e6);
    CHECK(*searched.goals[2].rate > 3.9e6);
}

TEST_CASE("what carries all that the generator may offer is no figure") {
    const auto searched = search(kGoals, kLimits, [](double rate) { return carries(rate, 20e6); });
    for (const auto& found : searched.goals) {
        CHECK(*found.rate == Approx(10e6));
        CHECK(found.open);
    }
    CHECK(searched.trials.size() == 1);
}

TEST_CASE("where the generator falls behind below the program's limit there is no figure") {
    const auto searched = search(kGoals, kLimits, [](double rate) {
        return Outcome{rate, std::min(rate, 3e6), 0, rate <= 3e6};
    });
    for (const auto& found : searched.goals) {
        CHECK(*found.rate <= 3e6);
        CHECK(*found.rate >= 3e6 * 0.89);
        CHECK(found.open);
    }
}

TEST_CASE("nothing is found where even the lowest rate loses") {
    const auto searched =
        search({{"NDR", 0}}, kLimits, [](double rate) { return carries(rate, 10); });
    CHECK(!searched.goals[0].rate);
    CHECK(!searched.goals[0].open);
    CHECK(searched.trials.back().asked < 1'011);
}

TEST_CASE("a search that is ended has no figure, and says what it has seen so far") {
    int left = 4;
    const auto searched = search(kGoals, kLimits, [&](double rate) -> std::optional<Outcome> {
        if (left-- == 0) return std::nullopt;
        return carries(rate, 4e6);
    });
    CHECK(searched.ended);
    CHECK(searched.trials.size() == 4);
    for (const auto& found : searched.goals) CHECK((!found.rate || found.open));
}
