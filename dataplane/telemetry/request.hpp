// SPDX-License-Identifier: Apache-2.0
// Reads the JSON object of a query: every value checked, the first wrong one named.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dataplane/wire/result.hpp"

namespace sluice::telemetry {

Result<boost::json::object> parse_request(std::string_view text);

// A whole number from `least` to `most`; nothing if the key is absent or null.
Result<std::optional<std::uint64_t>> number(const boost::json::object& request,
                                            std::string_view key, std::uint64_t least,
                                            std::uint64_t most);

}  // namespace sluice::telemetry
