// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/samples.hpp"

namespace sluice::telemetry {

void Samples::add(const worker::DropSample& sample) {
    latest_[{sample.zone, sample.reason}] = sample;
}

void Samples::forget(policy::ZoneSlot slot) {
    std::erase_if(latest_, [&](const auto& entry) { return entry.first.first == slot; });
}

const worker::DropSample* Samples::latest(policy::ZoneSlot slot, DropReason reason) const {
    const auto at = latest_.find({slot, reason});
    return at == latest_.end() ? nullptr : &at->second;
}

}  // namespace sluice::telemetry
