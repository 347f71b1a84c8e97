// SPDX-License-Identifier: Apache-2.0
// Gateways know numbers; people know names. What a gateway answers is named here, and
// what lies on another project's side is taken out. Private to the API.
#pragma once

#include "controller/api/call.hpp"

namespace sluice::api {

// Which object a number belongs to, as {kind, id, name}; a rule or route is named by its
// group or table and its text. Null where nothing has it (any more), or where the caller
// may not see it.
json::value named_resource(const Call& call, std::uint64_t number);

// Whether the object behind a number is the caller's to see. True of numbers that nothing
// has.
bool may_see_number(const Call& call, std::uint64_t number);

// Replaces, at any depth, the numbers of VPCs, endpoints and `groups` by {id, name} and puts
// `resource` beside each `cookie`, in place of it. An object that speaks of another
// project's VPC or endpoint loses what is said of that side.
void name_numbers(const Call& call, json::value& value);

}  // namespace sluice::api
