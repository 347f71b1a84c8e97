// SPDX-License-Identifier: Apache-2.0
// The questions that travel as OpenFlow experimenter messages: JSON in, JSON out.
//
// `flows`   {"vpc": N?, "endpoint": N?, "limit": 1000}  live connections
// `drops`   {"vpc": N?}                                 drops by VPC and reason, with a sample
// `gateway` {}                                          what the gateway is and how it fares
// Numbers name objects as the controller numbered them; VPC 0 is the outside. Unknown keys of
// a request are ignored, wrong types are an error.
// Threads: the control thread's.
#pragma once

#include <string>
#include <string_view>

#include "dataplane/telemetry/facts.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::telemetry {

Result<std::string> flows(const Facts& facts, std::string_view request);
Result<std::string> drops(const Facts& facts, std::string_view request);
Result<std::string> gateway(const Facts& facts, std::string_view request);

}  // namespace sluice::telemetry
