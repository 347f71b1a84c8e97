// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/request.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

namespace sluice::telemetry {

Result<boost::json::object> parse_request(std::string_view text) {
    boost::system::error_code error;
    auto value = boost::json::parse({text.data(), text.size()}, error);
    if (error) return Error{Error::Code::invalid, fmt::format("no JSON: {}", error.message()), ""};
    if (!value.is_object()) return Error{Error::Code::invalid, "expected a JSON object", ""};
    return std::move(value.as_object());
}

Result<std::optional<std::uint64_t>> number(const boost::json::object& request,
                                            std::string_view key, std::uint64_t least,
                                            std::uint64_t most) {
    const auto* value = request.if_contains({key.data(), key.size()});
    if (value == nullptr || value->is_null()) return std::optional<std::uint64_t>{};
    boost::system::error_code error;
    const auto result = value->to_number<std::uint64_t>(error);
    if (error || result < least || result > most)
        return Error{Error::Code::invalid,
                     fmt::format("expected a whole number from {} to {}", least, most),
                     fmt::format("/{}", key)};
    return std::optional{result};
}

}  // namespace sluice::telemetry
