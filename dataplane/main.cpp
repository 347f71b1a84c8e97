// SPDX-License-Identifier: Apache-2.0
//
// sluiced: the gateway.
#include <netinet/in.h>
#include <openvswitch/ofp-errors.h>
#include <rte_version.h>

#include <CLI/CLI.hpp>
#include <boost/version.hpp>
#include <cstdio>
#include <string>

#include "dataplane/config/config.hpp"
#include "dataplane/port/eal.hpp"
#include "dataplane/port/port.hpp"

namespace {

using namespace sluice;

// Every way in which the start can fail ends here: one sentence on standard error, status 2.
int refuse(const Error& error) {
    if (error.path.empty())
        std::fprintf(stderr, "sluiced: %s\n", error.message.c_str());
    else
        std::fprintf(stderr, "sluiced: %s: %s\n", error.path.c_str(), error.message.c_str());
    return 2;
}

int run(const config::Config& config) {
    auto eal = port::Eal::start(config);
    if (!eal) return refuse(eal.error());
    auto ports = port::Ports::open(config);
    if (!ports) return refuse(ports.error());
    for (const auto& p : (*ports)->all())
        std::printf("%s %s mtu %u rxq %u txq %u multi %d\n", p.name.c_str(), p.driver.c_str(),
                    p.mtu, p.rx_queues, p.tx_queues, p.offloads.tx_multi_segment);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Sluice's gateway: tenant VPC overlays over VXLAN, security groups, elastic IPs."};
    std::string file;
    bool check = false, version = false;
    app.add_option("--config,-c", file, "the configuration (TOML)");
    app.add_flag("--version", version, "print the version");
    (void)check;
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (version) {
        std::printf("sluiced %s (%s, Boost %s, %s)\n", SLUICE_VERSION, rte_version(),
                    BOOST_LIB_VERSION, ofperr_get_description(OFPERR_OFPBRC_BAD_TYPE));
        return 0;
    }
    auto parsed = config::load(file);
    if (const auto* problems = std::get_if<std::vector<config::Problem>>(&parsed)) {
        for (const auto& problem : *problems)
            std::fprintf(stderr, "%s\n", config::to_string(problem, file).c_str());
        return 2;
    }
    return run(std::get<config::Config>(parsed));
}
