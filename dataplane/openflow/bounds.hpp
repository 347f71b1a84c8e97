// SPDX-License-Identifier: Apache-2.0
// How much a row can hold: what the API admits, tables take and records have room for.
#pragma once

#include <cstddef>

namespace sluice::openflow {

inline constexpr std::size_t kMaximumGroups = 16;  // of an endpoint
inline constexpr std::size_t kMaximumVteps = 3;    // of a host

}  // namespace sluice::openflow
