// SPDX-License-Identifier: Apache-2.0
//
// sluice-controller: desired state, REST API, OpenFlow to the gateways. One thread, one
// event loop.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "controller/api/api.hpp"
#include "controller/api/telemetry.hpp"
#include "controller/config/config.hpp"
#include "controller/gateway_link.hpp"

namespace {

using namespace sluice;

constexpr int kBadInput = 2;
constexpr const char* kElsewhere = "; stop what listens there, or choose another address";

int refuse(const std::string& sentence) {
    std::fprintf(stderr, "sluice-controller: %s\n", sentence.c_str());
    return kBadInput;
}

// Why no file can be made there; empty: it can.
std::string folder_problem(const std::filesystem::path& file) {
    const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    std::error_code error;
    const auto status = std::filesystem::status(folder, error);
    if (!std::filesystem::status_known(status))
        return folder.string() + " cannot be reached: " + error.message();
    if (!std::filesystem::exists(status))
        return "there is no folder " + folder.string() + ": create it";
    if (!std::filesystem::is_directory(status)) return folder.string() + " is no folder";
    if (access(folder.c_str(), W_OK | X_OK) != 0)
        return "nothing can be written in " + folder.string() + ": " +
               std::system_category().message(errno);
    return {};
}

// Everything that is wrong with the file and with what it names.
std::vector<std::string> problems_of(const config::Parsed& parsed, const std::string& path) {
    std::vector<std::string> problems;
    for (const auto& problem : parsed.problems)
        problems.push_back(config::to_string(problem, path));
    // A file that cannot be read names nothing: its defaults are not to be judged.
    if (!parsed.problems.empty() && parsed.problems.front().key.empty()) return problems;
    const auto say = [&](const char* key, std::string message) {
        problems.push_back(config::to_string({parsed.line_of(key), key, std::move(message)}, path));
    };
    const auto add = [&](const Result<void>& result, const char* key) {
        if (!result) say(key, result.error().message);
        return result.ok();
    };
    for (const auto& address : parsed.config.openflow) {
        if (!add(southbound::check_listen_address(address), "openflow.listen")) continue;
        if (!address.starts_with("unix:")) continue;
        if (auto why = folder_problem(address.substr(5)); !why.empty())
            say("openflow.listen", std::move(why));
    }
    if (add(store::check_url(parsed.config.store), "store.url"))
        if (auto why =
                folder_problem(parsed.config.store.substr(parsed.config.store.find(':') + 1));
            !why.empty())
            say("store.url", std::move(why));
    if (!parsed.config.tokens.empty())
        if (const auto tokens = api::Tokens::read(parsed.config.tokens); !tokens)
            problems.push_back(tokens.error().message);
    return problems;
}

int run(const config::ControllerConfig& config) {
    boost::asio::io_context context;
    auto store = store::open(config.store);
    if (!store) return refuse(store.error().message);
    auto service = api::Service::start(context, **store);
    if (!service) return refuse(service.error().message);
    auto tokens = config.tokens.empty() ? Result<api::Tokens>(api::Tokens::none())
                                        : api::Tokens::read(config.tokens);
    if (!tokens) return refuse(tokens.error().message);

    southbound::Settings southbound;
    southbound.listen = config.openflow;
    southbound.compare = config.compare;
    GatewayLink link(context, **service, std::move(southbound));
    (*service)->set_link(&link);
    api::Api api(**service, *tokens);
    auto server = http::Server::listen(
        context, config.api, api::Api::limits(),
        [&](http::Request request, http::Respond respond) {
            api.handle(std::move(request), std::move(respond));
        },
        api::Api::refuse, [&](const http::Request& head) { return api.admit(head); });
    if (!server) return refuse("api.listen: " + server.error().message + kElsewhere);
    auto telemetry =
        http::Server::listen(context, config.telemetry, {},
                             [&](const http::Request& request, const http::Respond& respond) {
                                 respond(api::telemetry(**service, request));
                             });
    if (!telemetry) return refuse("telemetry.listen: " + telemetry.error().message + kElsewhere);
    if (auto listening = link.start(); !listening)
        return refuse("openflow.listen: " + listening.error().message);

    boost::asio::signal_set stop(context, SIGINT, SIGTERM);
    stop.async_wait([&](const boost::system::error_code&, int) { context.stop(); });
    boost::asio::signal_set reload(context, SIGHUP);
    std::function<void()> await_reload = [&] {
        reload.async_wait([&](const boost::system::error_code& error, int) {
            if (error) return;
            if (!config.tokens.empty()) {
                if (auto fresh = api::Tokens::read(config.tokens)) {
                    api.set_tokens(*fresh);
                    spdlog::info("tokens read again");
                } else {
                    spdlog::error("tokens kept as they were: {}", fresh.error().message);
                }
            }
            await_reload();
        });
    };
    await_reload();
    spdlog::info("sluice-controller {} serves the API on {}:{}", SLUICE_VERSION, config.api.address,
                 (*server)->port());
    context.run();
    (*service)->set_link(nullptr);
    spdlog::info("stopped");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Desired state, REST API, OpenFlow to the gateways.", "sluice-controller");
    std::string config_path = "/etc/sluice/controller.toml", check_path;
    auto* run_option = app.add_option("-c,--config", config_path, "the configuration (TOML)");
    auto* check_option = app.add_option(
        "--check", check_path, "name every problem of a configuration and what it names, and exit");
    run_option->type_name("FILE")->capture_default_str()->excludes(check_option);
    check_option->type_name("FILE");
    app.set_version_flag("--version", std::string("sluice-controller ") + SLUICE_VERSION);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        return refuse(std::string(error.what()) + "; see sluice-controller --help");
    }
    spdlog::set_default_logger(spdlog::stderr_logger_st("sluice-controller"));
    spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    spdlog::flush_on(spdlog::level::info);

    const bool only_check = !check_path.empty();
    const auto& path = only_check ? check_path : config_path;
    const auto parsed = config::read_controller(path);
    const auto problems = problems_of(parsed, path);
    for (const auto& problem : problems) std::fprintf(stderr, "%s\n", problem.c_str());
    if (!problems.empty()) return kBadInput;
    if (only_check) {
        std::printf("%s: in order\n", path.c_str());
        return 0;
    }
    return run(parsed.config);
}
