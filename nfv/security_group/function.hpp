// SPDX-License-Identifier: Apache-2.0
// Who may talk to whom: the rules of both endpoints' groups.
#pragma once

#include "dataplane/policy/function.hpp"

namespace sluice::nfv {

// Lives for ever.
const policy::NetworkFunction& security_group();

}  // namespace sluice::nfv
