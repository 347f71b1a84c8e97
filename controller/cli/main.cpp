// SPDX-License-Identifier: Apache-2.0
//
// sluicectl: the command line for people.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "controller/cli/arguments.hpp"
#include "controller/cli/commands.hpp"
#include "controller/cli/help.hpp"

namespace {

constexpr const char* kFooter =
    R"(Names are accepted wherever an id is. Where several VPCs have the name, say
--vpc NAME or VPC/NAME.

Examples:
  sluicectl vpc create --name prod --cidr 10.0.0.0/16
  sluicectl subnet create --name front --vpc prod --cidr 10.0.1.0/24
  sluicectl endpoint create --name web1 --subnet front --host rack1-7 \
      --wait
  sluicectl security-group add-rule web --direction ingress --protocol tcp \
      --port 443
  sluicectl security-group show prod/default
  sluicectl elastic-ip create --name web --endpoint web1
  sluicectl explain --vpc prod --source 10.0.1.10 --destination 10.0.2.10 \
      --destination-port 22
  sluicectl drops --vpc prod

Exit status: 0 done, 1 refused by the API, 2 wrong usage, 3 the controller does
not answer, 4 still not active on every gateway when --wait ran out.
`sluicectl COMMAND --help` says more.)";

std::string environment(const char* name, const std::string& otherwise) {
    // One thread, which changes no environment.
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value && *value ? value : otherwise;
}

// What was not understood comes first: a mistyped flag is the cause of a missing one.
void complain(const CLI::App& app, const CLI::ParseError& error) {
    using namespace sluice::cli;
    const auto& command = innermost(app);
    const auto name = full_name(command);
    std::string text = error.what();
    if (const auto unknown = app.remaining(true); !unknown.empty()) {
        const auto& word = unknown.front();
        const bool flag = word.starts_with('-');
        const bool group = !command.get_subcommands([](const CLI::App*) { return true; }).empty();
        text = flag    ? "there is no flag " + word
               : group ? "there is no command " + word
                       : "one word too many: " + word;
    }
    fmt::print(stderr, "{}: {}\n`{} --help` says more.\n", name, text, name);
}

int run(int argc, char** argv) {
    using namespace sluice::cli;
    Session session;
    session.url = environment("SLUICE_API", session.url);
    session.token = environment("SLUICE_TOKEN", {});

    CLI::App app{"Talks to the sluice controller's API.", "sluicectl"};
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_help_flag("-h,--help", "print this and exit");
    app.require_subcommand(0, 1)->fallthrough();
    app.footer(kFooter);
    app.set_version_flag("--version", std::string("sluicectl ") + SLUICE_VERSION)
        ->description("print the version and exit");
    app.add_option(
           "--api", session.url,
           "the controller's address; otherwise SLUICE_API, otherwise http://127.0.0.1:8080")
        ->type_name("URL");
    app.add_option("--token", session.token,
                   "who you are; better in SLUICE_TOKEN, since arguments are visible to every user "
                   "of the machine")
        ->type_name("TOKEN");
    app.add_flag("--json", session.as_json, "print JSON as the API answers it");
    add_kind_commands(app, session);
    add_query_commands(app, session);
    add_completion(app, session);

    const std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words.front() == "complete")
        return complete(app, session, {words.begin() + 1, words.end()});
    try {
        app.parse(prepared(words));
    } catch (const CLI::Success& asked) {  // --help, --version
        app.exit(asked);
        return done;
    } catch (const CLI::ParseError& error) {
        complain(app, error);
        return usage;
    }
    if (!session.action) {  // no command, or one of a kind alone: what is there to choose from
        fmt::print(stderr, "{}", innermost(app).help());
        return usage;
    }
    try {
        return session.action();
    } catch (const Failure& failure) {
        fmt::print(stderr, "sluicectl: {}\n", failure.text);
        return failure.status;
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "sluicectl: {}\n", error.what());
        return sluice::cli::refused;
    }
}
