// SPDX-License-Identifier: Apache-2.0
// How --help and errors of the command line read: within 80 columns.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>
#include <string>

namespace sluice::cli {

class HelpFormatter : public CLI::Formatter {
  public:
    std::string make_option(const CLI::Option* option, bool is_positional) const override;
    std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_description(const CLI::App* command) const override;
    std::string make_usage(const CLI::App* command, std::string name) const override;
    std::string make_subcommand(const CLI::App* command) const override;
};

// The command that the line had come to when it ended or failed.
const CLI::App& innermost(const CLI::App& app);

// "sluicectl vpc create", as it is typed.
std::string full_name(const CLI::App& command);

}  // namespace sluice::cli
