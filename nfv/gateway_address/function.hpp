// SPDX-License-Identifier: Apache-2.0
// What the gateway answers itself: ARP, neighbour discovery, ping.
#pragma once

#include "dataplane/policy/function.hpp"

namespace sluice::nfv {

// Lives for ever.
const policy::NetworkFunction& gateway_address();

}  // namespace sluice::nfv
