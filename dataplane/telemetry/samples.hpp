// SPDX-License-Identifier: Apache-2.0
// The latest dropped packet of each kind, beside the exact counters: which entry, whose
// packet, where to.
//
// Threads: the control thread's. Bounded: one sample per (VPC, reason), forgotten when the
// VPC's slot goes to another.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "dataplane/worker/messages.hpp"

namespace sluice::telemetry {

class Samples {
  public:
    void add(const worker::DropSample& sample);
    void forget(policy::ZoneSlot slot);
    [[nodiscard]] const worker::DropSample* latest(policy::ZoneSlot slot, DropReason reason) const;

  private:
    std::map<std::pair<policy::ZoneSlot, DropReason>, worker::DropSample> latest_;
};

}  // namespace sluice::telemetry
