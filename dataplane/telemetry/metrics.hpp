// SPDX-License-Identifier: Apache-2.0
// The gateway's metrics in OpenMetrics 1.0 text, and its health.
//
// Labels are bounded: VPCs, tables, ports, workers, reasons; nothing per endpoint.
// Threads: the control thread's. Cost: about a microsecond per open VPC.
#pragma once

#include <string>

#include "dataplane/http/message.hpp"
#include "dataplane/telemetry/facts.hpp"
#include "dataplane/telemetry/open_metrics.hpp"

namespace sluice::telemetry {

std::string metrics(const Facts& facts);
// nat.cpp: those of NAT gateways.
void write_nat(OpenMetrics& out, const Facts& facts);
std::string health(const Facts& facts);

// Answers GET /metrics and GET /health, and refuses everything else.
http::Response respond(const Facts& facts, const http::Request& request);

}  // namespace sluice::telemetry
