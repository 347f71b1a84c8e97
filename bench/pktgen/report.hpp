// SPDX-License-Identifier: Apache-2.0
// What was measured, as a table for people and as JSON. Pure.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <span>
#include <string>

#include "bench/pktgen/connection_engine.hpp"
#include "bench/pktgen/search.hpp"
#include "bench/pktgen/templates.hpp"
#include "bench/pktgen/trial.hpp"

namespace sluice::pktgen {

// Why a trial's rate is no figure of the program under test; nothing if it is one. `own_limit`:
// packets a second of the generator looped back to itself, nothing if that was not measured.
std::optional<std::string> not_a_figure(const Measured& measured, std::optional<double> own_limit);
// The part of its own limit up to which the generator lets its figures count.
inline constexpr double kTrusted = 0.9;

std::string to_text(const Measured& measured);
boost::json::object to_json(const Measured& measured);
std::optional<std::string> not_a_figure(const ConnectionsMeasured& measured,
                                        std::optional<double> own_limit);
std::string to_text(const ConnectionsMeasured& measured);
boost::json::object to_json(const ConnectionsMeasured& measured);
std::string to_text(const Searched& searched, const char* unit);
boost::json::object to_json(const Searched& searched);
// Comma-separated: flow, direction, sent, received, lost, duplicates, reordered, too_old.
std::string flows_csv(std::span<const Lane> lanes, const Lanes& numbering);

// "1.234 Mpps"; `unit`: "pps" or "connections/s".
std::string rate_text(double a_second, const char* unit = "pps");

}  // namespace sluice::pktgen
