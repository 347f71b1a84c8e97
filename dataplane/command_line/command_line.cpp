// SPDX-License-Identifier: Apache-2.0
#include "dataplane/command_line/command_line.hpp"

#include <rte_version.h>

#include <CLI/CLI.hpp>
#include <cstdio>

namespace sluice::command_line {

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        return app.exit(asked);
    } catch (const CLI::ParseError& error) {
        const std::string name = app.get_name();
        std::fprintf(stderr, "%s: %s; see %s --help\n", name.c_str(), error.what(), name.c_str());
        return kRefused;
    }
    return std::nullopt;
}

int refuse(const std::vector<config::Problem>& problems, const std::string& file) {
    for (const auto& problem : problems)
        std::fprintf(stderr, "%s\n", config::to_string(problem, file).c_str());
    return kRefused;
}

int no_problem(const std::string& file) {
    std::printf("%s: no problem found\n", file.c_str());
    return 0;
}

int print_version(const CLI::App& app) {
    std::printf("%s %s (%s)\n", app.get_name().c_str(), SLUICE_VERSION, rte_version());
    return 0;
}

}  // namespace sluice::command_line
