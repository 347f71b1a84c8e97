// SPDX-License-Identifier: Apache-2.0
// What a walk did, step by step, for those who ask why (explain.hpp). Typed: the walk itself
// writes no text.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/wire/drop_reason.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::policy {

enum class Outcome : std::uint8_t {
    match,      // the entry applies
    no_match,   // no entry of the table applies
    allow,      // a rule allows it
    deny,       // a rule denies it, or none allows it
    translate,  // an address is replaced, by `address`
    answer,     // the gateway replies itself
    drop,       // it ends here
};

struct TraceStep {
    std::uint8_t table = 0;
    Outcome outcome = Outcome::match;
    DropReason reason = DropReason::none;
    Cookie cookie;      // 0: no entry
    IpAddress address;  // translate: to what
    std::uint32_t number =
        0;  // vni: the VNI; route: the NextHop; translate: the port, if it changes
};

class Trace {
  public:
    void add(const TraceStep& step) { steps_.push_back(step); }
    [[nodiscard]] const std::vector<TraceStep>& steps() const { return steps_; }

  private:
    std::vector<TraceStep> steps_;
};

}  // namespace sluice::policy
