// SPDX-License-Identifier: Apache-2.0
// /metrics (OpenMetrics 1.0) and /health of the controller.
#pragma once

#include "controller/api/service.hpp"
#include "dataplane/http/message.hpp"

namespace sluice::api {

http::Response telemetry(const Service& service, const http::Request& request);

}  // namespace sluice::api
