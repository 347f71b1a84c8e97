// SPDX-License-Identifier: Apache-2.0
// Who may send: the walk's first question, and who may answer.
#pragma once

#include "dataplane/policy/function.hpp"

namespace sluice::nfv {

// Lives for ever.
const policy::NetworkFunction& anti_spoof();

}  // namespace sluice::nfv
