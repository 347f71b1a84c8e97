// SPDX-License-Identifier: Apache-2.0
//
// sluiced: the gateway. The one place that names its network functions.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>

#include "dataplane/command_line/command_line.hpp"
#include "dataplane/config/config.hpp"
#include "dataplane/control/gateway.hpp"
#include "dataplane/control/machine.hpp"
#include "dataplane/policy/function.hpp"
#include "nfv/anti_spoof/function.hpp"
#include "nfv/elastic_ip/function.hpp"
#include "nfv/gateway_address/function.hpp"
#include "nfv/nat_gateway/function.hpp"
#include "nfv/policer/function.hpp"
#include "nfv/security_group/function.hpp"

namespace {

using namespace sluice;
using command_line::refuse;

const policy::Pipeline& pipeline() {
    static const policy::Pipeline functions({&nfv::anti_spoof(), &nfv::gateway_address(),
                                             &nfv::security_group(), &nfv::elastic_ip(),
                                             &nfv::nat_gateway(), &nfv::policer()});
    return functions;
}

void start_log(config::LogLevel level) {
    auto logger = spdlog::stderr_logger_st("sluiced");
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    logger->set_level(level == config::LogLevel::debug     ? spdlog::level::debug
                      : level == config::LogLevel::warning ? spdlog::level::warn
                      : level == config::LogLevel::error   ? spdlog::level::err
                                                           : spdlog::level::info);
    logger->flush_on(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
}

int run(const config::Config& config, const std::string& file) {
    auto gateway = control::Gateway::open(config, pipeline());
    if (!gateway)
        return refuse({config::Problem{config.line_of(gateway.error().path), gateway.error().path,
                                       gateway.error().message}},
                      file);
    (*gateway)->run();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Sluice's gateway: tenant networks over VXLAN, security groups, elastic IPs.",
                 "sluiced"};
    std::string file, checked;
    bool version = false;
    auto* run_option = app.add_option("-c,--config", file, "run with this configuration (TOML)");
    auto* check_option =
        app.add_option("--check", checked,
                       "name every problem of this configuration and of the machine, and exit");
    run_option->type_name("FILE")->excludes(check_option);
    check_option->type_name("FILE");
    app.add_flag("--version", version, "print the version");
    if (const auto status = command_line::parse(app, argc, argv)) return *status;
    if (!version && file.empty() && checked.empty()) {
        std::fprintf(stderr, "%s", app.help().c_str());
        return command_line::kRefused;
    }
    if (version) return command_line::print_version(app);
    if (file.empty()) file = checked;
    const bool only_check = !checked.empty();
    auto [config, problems] = config::read_file(file);
    start_log(config.log);
    const auto machine = control::check_machine(
        config, only_check ? control::Depth::drivers : control::Depth::start);
    problems.insert(problems.end(), machine.problems.begin(), machine.problems.end());
    std::stable_sort(problems.begin(), problems.end(),
                     [](const auto& a, const auto& b) { return a.line < b.line; });
    if (only_check && machine.runs)
        std::printf(
            "%s: a gateway runs on %s (process %s): its memory and sockets were not "
            "checked\n",
            file.c_str(), config.state_dir.c_str(), machine.runs->c_str());
    if (!problems.empty()) return refuse(problems, file);
    return only_check ? command_line::no_problem(file) : run(config, file);
}
