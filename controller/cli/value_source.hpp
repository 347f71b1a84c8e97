// SPDX-License-Identifier: Apache-2.0
// Where the values of an option come from, for completion.
#pragma once

#include <CLI/Option.hpp>
#include <map>
#include <span>
#include <string_view>

#include "controller/cli/kinds.hpp"

namespace sluice::cli {

enum class ValueSource : unsigned char {
    anything,
    words,               // of `words`
    objects,             // names and ids of `kind`
    json_file,           // @FILE, or - for standard input
    next_hops,           // internet, blackhole, endpoint:NAME
    endpoint_addresses,  // what endpoints have
    rule_ids,            // of the group that the command is about
    route_destinations,  // of the table that the command is about
};

struct ValuesOf {
    ValueSource source = ValueSource::anything;
    std::span<const std::string_view> words = {};
    const KindInfo* kind = nullptr;
    bool list = false;  // several, with commas between them
};

using ValueSources = std::map<const CLI::Option*, ValuesOf>;

}  // namespace sluice::cli
