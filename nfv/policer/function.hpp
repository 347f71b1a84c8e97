// SPDX-License-Identifier: Apache-2.0
// Which limits a connection's packets draw from.
#pragma once

#include "dataplane/policy/function.hpp"

namespace sluice::nfv {

// Lives for ever.
const policy::NetworkFunction& policer();

}  // namespace sluice::nfv
