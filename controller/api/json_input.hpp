// SPDX-License-Identifier: Apache-2.0
// A request's body as JSON, stricter than the library: a name occurs once in an object
// (RFC 8259 section 4 leaves it open which one of two counts), nesting is bounded.
//
// Values, any thread. Cost: the body is read twice. Errors: a sentence for the client.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "dataplane/wire/result.hpp"

namespace sluice::api {

Result<boost::json::value> parse_body(std::string_view body);

}  // namespace sluice::api
