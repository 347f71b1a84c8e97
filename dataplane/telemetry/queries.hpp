// SPDX-License-Identifier: Apache-2.0
// The questions that travel as OpenFlow experimenter messages: JSON in, JSON out.
//
// `flows`   {"vpc": N?, "endpoint": N?, "limit": 1000}  live connections
// `drops`   {"vpc": N?}                                 drops by VPC and reason, with a sample
// `limits`  {"vpc": N?, "endpoint": N?, "limit": 1000}  connections, half-open ones, new ones a
//           second: how many of how many, and how often refused. Of a VPC also its endpoints that
//           have connections, the busiest first; of none: of all VPCs
// `gateway` {}                                          what the gateway is and how it fares
// Numbers name objects as the controller numbered them; VPC 0 is the outside. Unknown keys of
// a request are ignored, wrong types are an error.
// Threads: the control thread's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "dataplane/telemetry/connections.hpp"
#include "dataplane/telemetry/facts.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::telemetry {

// `flows` in steps: a million connections would hold the control thread for a tenth of a second.
class FlowList {
  public:
    static Result<FlowList> ask(const Facts& facts, std::string_view request);
    // Looks at some thousands of connections. True: call it again.
    bool step(const Facts& facts);
    // Once, after the last step.
    std::string take() { return std::move(text_) + "]}"; }

  private:
    FlowList() = default;
    std::optional<Vni> vni_;
    std::optional<std::uint64_t> endpoint_;
    std::uint64_t left_ = 0;  // that may still be listed
    ConnectionCursor cursor_;
    std::string text_ = "{\"items\":[";
    bool first_ = true;
};

Result<std::string> drops(const Facts& facts, std::string_view request);
Result<std::string> limits(const Facts& facts, std::string_view request);
Result<std::string> gateway(const Facts& facts, std::string_view request);

}  // namespace sluice::telemetry
