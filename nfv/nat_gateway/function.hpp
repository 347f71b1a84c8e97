// SPDX-License-Identifier: Apache-2.0
// The network function that lets many endpoints share public IPv4 addresses: address and port
// translation at a NAT gateway (README.md).
#pragma once

#include "dataplane/policy/function.hpp"

namespace sluice::nfv {

// After elastic_ip in the pipeline: an endpoint's own elastic IP wins.
const policy::NetworkFunction& nat_gateway();

}  // namespace sluice::nfv
