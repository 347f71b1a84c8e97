// SPDX-License-Identifier: Apache-2.0
// Resources as the store keeps them: with what the API does not show, and the rules and
// routes apart from what they belong to, so that writing one does not write all of them.
//
// Values, any thread. Errors: what is malformed in a stored object.
#pragma once

#include <map>

#include "controller/model/fields.hpp"

namespace sluice::model {

// Rules or routes by their numbers; the object's body has the numbers in their order.
using Parts = std::map<std::uint64_t, json::value>;
struct PartChanges {
    Parts put;
    std::vector<std::uint64_t> removed;
};

json::object save(const Resource& resource);
// What a change does to the parts of a resource.
PartChanges save_parts(const Change& change);

// The other way round; a body of the first schema holds its parts itself.
Result<Resource> load(Kind kind, const json::object& body, const Parts& parts);

}  // namespace sluice::model
