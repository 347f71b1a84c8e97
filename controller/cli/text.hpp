// SPDX-License-Identifier: Apache-2.0
// JSON made readable: cells, key and value, indented JSON. Pure functions.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

namespace json = boost::json;

// "name:   value" lines, the values aligned; a value of several lines is indented.
std::string render_pairs(const std::vector<std::pair<std::string, std::string>>& pairs);

// A value in one cell: lists joined by commas, objects as key=value, null as "-".
std::string cell(const json::value& value);

// Two spaces a level, members in their order.
std::string pretty(const json::value& value);

// "destination_port" as a table's head: "DESTINATION PORT".
std::string heading(std::string_view name);

// One rule, or one route, as a person would say it.
std::string describe_rule(const json::object& rule);
std::string describe_route(const json::object& route);

}  // namespace sluice::cli
