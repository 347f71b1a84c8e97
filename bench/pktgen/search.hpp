// SPDX-License-Identifier: Apache-2.0
// The throughput search of RFC 2544: the highest rate whose loss stays within a goal, for several
// goals at once, by halving between a rate that keeps the goal and one that does not.
//
// A figure is the program's under test only if a rate above it was tried and failed while the
// generator kept up; else the goal is `open`: at least this much, and no more is known.
// Pure but for the trials. Cost: some ten trials a goal, of which goals share what they can.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::pktgen {

struct Goal {
    std::string name;
    double loss = 0;  // at most this part of what was offered
};

// What one trial has shown.
struct Outcome {
    double asked = 0;     // packets a second
    double offered = 0;   // ... that were sent
    double loss = 0;      // part of them
    bool kept_up = true;  // the generator sent what was asked
};

struct Found {
    Goal goal;
    std::optional<double> rate;  // offered, packets a second; nothing: not even the lowest rate
    double loss = 0;             // at that rate
    bool open = false;           // no higher rate could be tried: no figure
};

struct SearchLimits {
    double lowest = 1000;  // packets a second
    double highest = 0;
    double width = 0.01;  // ends when both bounds are this close, as a part of the upper
};

struct Searched {
    std::vector<Found> goals;
    std::vector<Outcome> trials;  // in their order
    bool ended = false;           // by the trial, before the bounds had met
};

// Returns nothing to end the search: then no goal has a figure.
using TryRate = std::function<std::optional<Outcome>(double rate)>;

Searched search(const std::vector<Goal>& goals, const SearchLimits& limits, const TryRate& trial);

}  // namespace sluice::pktgen
