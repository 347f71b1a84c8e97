// SPDX-License-Identifier: Apache-2.0
// The controller's configuration file: one TOML file, read once at the start.
//
// Plain values; parse() is pure. deploy/controller.example.toml documents every key.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/http/server.hpp"

namespace sluice::config {

struct Problem {
    unsigned line = 0;    // from 1; 0: the file as a whole
    std::string key;      // "api.listen"
    std::string message;  // what was expected
};
// "FILE:LINE: KEY: MESSAGE"
std::string to_string(const Problem& problem, std::string_view file);

struct ControllerConfig {
    http::ListenAddress api{"127.0.0.1", 8080, true};
    std::string tokens;                 // a file; empty: none are asked for
    std::vector<std::string> openflow;  // "unix:PATH", "tcp:ADDRESS:PORT"
    std::chrono::seconds compare{30};   // how often idle gateways are compared; 0: never
    http::ListenAddress telemetry{"127.0.0.1", 9300, true};
    std::string store = "sqlite:/var/lib/sluice/state.db";
};

struct Parsed {
    ControllerConfig config;
    std::vector<Problem> problems;          // empty: the configuration can be used
    std::map<std::string, unsigned> lines;  // of the keys that the file holds

    [[nodiscard]] unsigned line_of(const std::string& key) const {
        const auto at = lines.find(key);
        return at == lines.end() ? 0 : at->second;
    }
};
// Never throws; every problem of the file is named, not only the first.
Parsed parse_controller(std::string_view text);
// The same of a file on disk, which may be missing or unreadable.
Parsed read_controller(const std::string& path);

}  // namespace sluice::config
