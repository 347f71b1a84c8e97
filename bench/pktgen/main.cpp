// SPDX-License-Identifier: Apache-2.0
//
// sluice-pktgen: generates a profile's traffic, receives it again, and measures what is between.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>

#include "bench/pktgen/modes.hpp"
#include "bench/pktgen/network.hpp"
#include "bench/pktgen/pcap_file.hpp"
#include "bench/pktgen/rig.hpp"
#include "dataplane/command_line/command_line.hpp"

namespace {

using namespace sluice;
using command_line::kRefused;
using command_line::refuse;

constexpr std::uint64_t kPcapPackets = 1000;
constexpr double kPcapRate = 1e5;

constexpr const char* kLesson = R"(
A first measurement, of a gateway with one underlay port on a memif socket:
  sluice-pktgen --check bench/profiles/elastic.toml       what is wrong with profile or machine
  sluice-pktgen --self-test bench/profiles/elastic.toml   what the generator can do by itself
  sluice-pktgen --network bench/profiles/elastic.toml | program_tables /run/sluice/gw1.of
                                                          the gateway knows the profile's network
  sluice-pktgen --run bench/profiles/elastic.toml --rate 100k --seconds 10
  sluice-pktgen --search bench/profiles/elastic.toml      NDR, rate at a loss of 1e-5, PDR

Before it measures anything, the generator measures itself looped back, and opens every flow with one
packet. It gives no figure that its own limit may have set. Exit status: 0; 1 without a figure; 2 if
it cannot start.)";

// "1.5M", "200k", "1000": a number above zero.
std::string parse_rate(const std::string& text, double& rate) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, rate);
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    if (unit == "k") rate *= 1e3;
    if (unit == "M") rate *= 1e6;
    const bool known = unit.empty() || unit == "k" || unit == "M";
    return error == std::errc{} && known && rate >= 1 && rate <= 1e9
               ? ""
               : "expected packets a second, as 200k or 1.5M";
}

int check(const pktgen::Profile& profile, const pktgen::Options& options) {
    const auto config =
        pktgen::device_config(profile, options.core, pktgen::Devices::profile_and_loops);
    const auto unknown = port::unknown_devices(config);
    if (!unknown) return refuse({{0, unknown.error().path, unknown.error().message}}, options.file);
    std::vector<config::Problem> problems;
    for (const std::size_t index : *unknown)
        problems.push_back(
            {config.ports[index].line, fmt::format("port[{}].device", index),
             fmt::format("DPDK has no driver for \"{}\"", config.ports[index].device)});
    if (!problems.empty()) return refuse(problems, options.file);
    return command_line::no_problem(options.file);
}

int write_packets(const pktgen::Profile& profile, const pktgen::Options& options,
                  const std::string& pcap) {
    const auto written =
        pktgen::write_pcap(profile, pcap, options.packets != 0 ? options.packets : kPcapPackets,
                           options.rate > 0 ? options.rate : kPcapRate);
    if (written) return 0;
    const auto& error = written.error();
    return refuse({{0, error.path, error.message}}, error.path.empty() ? pcap : options.file);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Generates a profile's traffic, receives it again, and measures what is between.",
                 "sluice-pktgen"};
    app.footer(kLesson);
    pktgen::Options options;
    std::string run, search, soak, self_test, network, checked, pcap, rate;
    bool version = false;
    auto* what = app.add_option_group("what to do with a profile, one of");
    what->add_option("--run", run, "send at a fixed rate; loss, order and latency");
    what->add_option("--search", search,
                     "the highest rates without loss (NDR), with 1e-5 and with 0.5 % (PDR) of it");
    what->add_option("--soak", soak, "send at a fixed rate, a report a minute, until --seconds");
    what->add_option("--self-test", self_test,
                     "the generator looped back to itself, without ports");
    what->add_option("--network", network, "print its network as JSON, for program_tables");
    what->add_option("--check", checked,
                     "name every problem of the profile and of the machine, and exit");
    for (auto* option : what->get_options()) option->type_name("PROFILE");
    what->require_option(0, 1);
    options.core = static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)) - 1);
    app.add_option("--core", options.core,
                   "the CPU core to send and receive on (default: the last)")
        ->type_name("N");
    app.add_option("--rate", rate,
                   "packets (profiles of TCP: connections) a second, as 200k or 1.5M (default: "
                   "--run and --soak "
                   "100k; the highest that --search tries: what the generator can)")
        ->type_name("RATE");
    app.add_option("--seconds", options.seconds,
                   "how long to send (default: --run 10, --soak 3600, a trial of --search 2)")
        ->type_name("S")
        ->check(CLI::Range(0.01, 1e7));
    app.add_option("--packets", options.packets, "end after so many packets (--run)")
        ->type_name("N");
    app.add_option("--wait", options.wait,
                   "seconds to wait for links, and for the gateway's answer (default: 10)")
        ->type_name("S")
        ->check(CLI::Range(0.1, 3600.0));
    app.add_option("--flows", options.flows_file,
                   "write each flow's counts to this file (--run), comma-separated")
        ->type_name("FILE");
    app.add_option("--pcap", pcap,
                   "with --run: write --packets (1000) packets to this file instead "
                   "of sending them; the uplink's to FILE.uplink")
        ->type_name("FILE");
    app.add_flag("--json", options.json, "print what was measured as JSON");
    app.add_flag("--version", version, "print the version");
    if (const auto status = command_line::parse(app, argc, argv)) return *status;
    if (version) return command_line::print_version(app);
    using pktgen::Mode;
    for (const auto& [file, mode] : {std::pair{&run, Mode::run},
                                     {&search, Mode::search},
                                     {&soak, Mode::soak},
                                     {&self_test, Mode::self_test},
                                     {&network, Mode::run},
                                     {&checked, Mode::run}})
        if (!file->empty()) {
            options.file = *file;
            options.mode = mode;
        }
    if (options.file.empty()) {
        std::fprintf(stderr, "%s", app.help().c_str());
        return kRefused;
    }
    if (!rate.empty())
        if (const auto why = parse_rate(rate, options.rate); !why.empty()) {
            std::fprintf(stderr, "sluice-pktgen: --rate: %s\n", why.c_str());
            return kRefused;
        }
    if ((!pcap.empty() || !options.flows_file.empty()) && run.empty()) {
        std::fprintf(stderr, "sluice-pktgen: --pcap and --flows go with --run\n");
        return kRefused;
    }
    const auto [profile, problems] = pktgen::read_file(options.file);
    if (!problems.empty()) return refuse(problems, options.file);
    if (!checked.empty()) return check(profile, options);
    if (!network.empty()) {
        std::printf("%s\n", boost::json::serialize(pktgen::Network(profile).json()).c_str());
        return 0;
    }
    const bool tcp = profile.flows.traffic == pktgen::Traffic::tcp;
    if (tcp && (!pcap.empty() || !soak.empty() || !options.flows_file.empty())) {
        std::fprintf(stderr,
                     "sluice-pktgen: --soak, --pcap and --flows are not for profiles of TCP\n");
        return kRefused;
    }
    if (!pcap.empty()) return write_packets(profile, options, pcap);
    const auto stop = [](int) { pktgen::stop_running(); };
    std::signal(SIGINT, stop);
    std::signal(SIGTERM, stop);
    return pktgen::execute(profile, options);
}
