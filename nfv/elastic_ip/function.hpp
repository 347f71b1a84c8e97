// SPDX-License-Identifier: Apache-2.0
// One public address for one endpoint, both ways, and hairpins.
#pragma once

#include "dataplane/policy/function.hpp"

namespace sluice::nfv {

// Lives for ever.
const policy::NetworkFunction& elastic_ip();

}  // namespace sluice::nfv
