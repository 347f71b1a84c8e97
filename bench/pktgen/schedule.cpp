// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/schedule.hpp"

#include <cmath>
#include <numeric>
#include <utility>

namespace sluice::pktgen {

Schedule::Schedule(const Profile& profile)
    : lanes_(profile),
      distribution_(profile.flows.distribution),
      reverse_percent_(profile.flows.reverse_percent),
      random_(profile.seed) {
    std::uint32_t divisor = 0;
    for (const auto& share : profile.frames) divisor = std::gcd(divisor, share.weight);
    for (std::size_t i = 0; i < profile.frames.size(); ++i)
        shares_.insert(shares_.end(), profile.frames[i].weight / divisor, i);
    for (std::size_t i = shares_.size(); i > 1; --i)
        std::swap(shares_[i - 1], shares_[random_.below(static_cast<std::uint32_t>(i))]);
    if (distribution_ == Distribution::zipf) make_aliases(profile.flows.exponent);
}

void Schedule::make_aliases(double exponent) {
    const std::uint32_t count = lanes_.flows;
    std::vector<double> weight(count);
    for (std::uint32_t i = 0; i < count; ++i) weight[i] = std::pow(i + 1.0, -exponent);
    const double mean = std::accumulate(weight.begin(), weight.end(), 0.0) / count;
    std::vector<std::uint32_t> small, large;
    for (std::uint32_t i = 0; i < count; ++i) {
        weight[i] /= mean;
        (weight[i] < 1 ? small : large).push_back(i);
    }
    aliases_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) aliases_[i].other = i;
    while (!small.empty() && !large.empty()) {
        const std::uint32_t poor = small.back(), rich = large.back();
        small.pop_back();
        aliases_[poor] = {static_cast<std::uint32_t>(weight[poor] * 4294967295.0), rich};
        weight[rich] -= 1 - weight[poor];
        if (weight[rich] < 1) {
            large.pop_back();
            small.push_back(rich);
        }
    }
}

}  // namespace sluice::pktgen
