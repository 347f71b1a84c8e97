// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/search.hpp"

#include <algorithm>

namespace sluice::pktgen {
namespace {

// The best trial that keeps the goal and lies below every one that does not; the lowest that fails.
struct Bounds {
    const Outcome* lower = nullptr;
    const Outcome* upper = nullptr;
};

Bounds bounds(const std::vector<Outcome>& trials, double loss) {
    Bounds result;
    for (const auto& trial : trials)
        if (trial.kept_up && trial.loss > loss &&
            (result.upper == nullptr || trial.offered < result.upper->offered))
            result.upper = &trial;
    for (const auto& trial : trials)
        if (trial.kept_up && trial.loss <= loss &&
            (result.upper == nullptr || trial.offered < result.upper->offered) &&
            (result.lower == nullptr || trial.offered > result.lower->offered))
            result.lower = &trial;
    return result;
}

}  // namespace

Searched search(const std::vector<Goal>& goals, const SearchLimits& limits, const TryRate& trial) {
    constexpr int kMostTrials = 24;  // of a goal; a bound, for outcomes are not monotonous
    Searched result;
    double ceiling = limits.highest;
    const auto attempt = [&](double rate) {
        const auto last = result.ended ? std::nullopt : trial(rate);
        if (!last) {
            result.ended = true;
            return;
        }
        result.trials.push_back(*last);
        // What the generator cannot send it need not try again.
        if (!last->kept_up) ceiling = std::min({ceiling, last->asked * 0.9, last->offered});
    };
    attempt(ceiling);
    for (const auto& goal : goals) {
        Found found{goal, {}, 0, false};
        for (int i = 0; i < kMostTrials && !result.ended; ++i) {
            const auto [lower, upper] = bounds(result.trials, goal.loss);
            double top = upper != nullptr ? upper->offered : ceiling;
            const double bottom = lower != nullptr ? lower->offered : limits.lowest;
            if (upper == nullptr) {
                // Nothing has failed: the ceiling itself is next, unless it has been tried.
                if (lower != nullptr && lower->offered >= ceiling * (1 - limits.width)) break;
                if (ceiling <= limits.lowest) break;
                attempt(ceiling);
                continue;
            }
            top = std::min(top, ceiling);
            if (top - bottom <= limits.width * top) {
                if (lower != nullptr) break;
                if (upper->asked <= limits.lowest * (1 + limits.width)) break;
                attempt(limits.lowest);
                continue;
            }
            attempt((bottom + top) / 2);
        }
        const auto [lower, upper] = bounds(result.trials, goal.loss);
        if (lower != nullptr) {
            found.rate = lower->offered;
            found.loss = lower->loss;
            found.open = result.ended || upper == nullptr ||
                         upper->offered - lower->offered > 3 * limits.width * upper->offered;
        }
        result.goals.push_back(std::move(found));
    }
    return result;
}

}  // namespace sluice::pktgen
