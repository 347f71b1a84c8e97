// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/modes.hpp"

#include <fmt/format.h>
#include <rte_version.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>

#include "bench/pktgen/report.hpp"
#include "bench/pktgen/rig.hpp"

namespace sluice::pktgen {
namespace {

namespace json = boost::json;

constexpr double kSelfTestSeconds = 1;
constexpr double kOpeningRate = 100'000;
constexpr double kSoakReport = 60;
constexpr double kTrialSeconds = 2;
// The lowest rates that a search tries, a second.
constexpr double kLeastPackets = 1000, kLeastConnections = 100;
constexpr double kConnectionRate = 10'000;
constexpr std::uint64_t kFirstConnections = 10'000;
constexpr const char* kUnit = "connections/s";
// Flows that are named when they never arrive.
constexpr std::size_t kNamed = 5;

Progress& progress() {
    static Progress shared;
    return shared;
}

class Session {
  public:
    Session(const Profile& profile, const Options& options)
        : profile_(profile), options_(options), network_(profile) {
        answer_["profile"] = profile.name;
        answer_["version"] = SLUICE_VERSION;
        answer_["dpdk"] = rte_version();
        answer_["core"] = options.core;
    }
    int execute();

  private:
    // On the generator's core, with a line a second while it lasts longer than two.
    void work(const std::string& what, const std::function<void()>& job);
    Measured trial(const std::string& what, Trial asked);
    int refuse(const Error& error) const;
    int finish(int status);
    void say(const std::string& text) const {
        if (!options_.json) std::printf("%s", text.c_str());
    }
    // Of what its own limit or others' mistakes have set: no figure.
    void judge(const Measured& measured);
    void no_figure(const std::string& why);
    // Prints a search, and says which of its goals have no figure; false if it was interrupted.
    bool sum_up(const Searched& searched, const char* unit);
    [[nodiscard]] SearchLimits search_limits(double lowest) const;
    bool measure_itself();
    bool measure_itself_connecting();
    int execute_connections();
    ConnectionsMeasured connect(const std::string& what, ConnectionTrial asked);
    void run_connections();
    void search_connections();
    bool open_flows();
    void run();
    void soak();
    void search();

    const Profile& profile_;
    const Options& options_;
    Network network_;
    std::unique_ptr<Rig> rig_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<ConnectionEngine> connector_;
    std::optional<double> own_limit_;
    json::object answer_;
    json::array reasons_;
};

void Session::work(const std::string& what, const std::function<void()>& job) {
    using Clock = std::chrono::steady_clock;
    std::atomic<bool> done{false};
    progress().sent = progress().received = 0;
    rig_->launch([&] {
        job();
        done = true;
    });
    const auto begun = Clock::now();
    auto next = begun + std::chrono::seconds(2);
    std::uint64_t sent = 0;
    for (; !done; std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
        if (Clock::now() < next) continue;
        next += std::chrono::seconds(1);
        const std::uint64_t now = progress().sent;
        std::fprintf(stderr, "%s: %.0f s, %s, received %lu of %lu\n", what.c_str(),
                     std::chrono::duration<double>(Clock::now() - begun).count(),
                     rate_text(static_cast<double>(now - std::min(now, sent))).c_str(),
                     static_cast<unsigned long>(progress().received.load()),
                     static_cast<unsigned long>(now));
        sent = now;
    }
    rig_->join();
}

Measured Session::trial(const std::string& what, Trial asked) {
    Measured result;
    work(what, [&] { result = engine_->run(asked); });
    return result;
}

int Session::refuse(const Error& error) const {
    // "port[1].device": the line of that table.
    unsigned line = 0, index = 0;
    if (std::sscanf(error.path.c_str(), "port[%u]", &index) == 1 && index < profile_.ports.size())
        line = profile_.ports[index].line;
    std::fprintf(stderr, "%s\n",
                 config::to_string({line, error.path, error.message}, options_.file).c_str());
    return 2;
}

void Session::no_figure(const std::string& why) {
    reasons_.emplace_back(why);
    say(fmt::format("  no figure: {}\n", why));
}

void Session::judge(const Measured& measured) {
    if (const auto why = not_a_figure(measured, own_limit_)) no_figure(*why);
    const auto& counts = measured.counts;
    if (counts.misdelivered != 0)
        no_figure(
            fmt::format("{} packets arrived elsewhere, or with other addresses, than the "
                        "network says",
                        counts.misdelivered));
    if (counts.corrupt != 0)
        no_figure(fmt::format("{} packets have a bad checksum", counts.corrupt));
}

bool Session::measure_itself() {
    auto loop = Engine::create(profile_, network_, rig_->loops(), progress());
    if (!loop) {
        refuse(loop.error());
        return false;
    }
    engine_ = std::move(*loop);
    Trial asked;
    asked.seconds = options_.mode == Mode::self_test && options_.seconds > 0 ? options_.seconds
                                                                             : kSelfTestSeconds;
    asked.arrivals = false;
    const auto measured = trial("self-test", asked);
    engine_.reset();
    own_limit_ = measured.offered();
    answer_["self_test"] = to_json(measured);
    if (options_.mode == Mode::self_test) {
        say(fmt::format("{}: looped back to itself\n{}", profile_.name, to_text(measured)));
    } else {
        say(fmt::format("{}: the generator's own limit, looped back to itself: {}\n", profile_.name,
                        rate_text(*own_limit_)));
    }
    if (measured.counts.lost() != 0 || measured.counts.duplicates != 0 ||
        measured.counts.reordered != 0 || measured.counts.corrupt != 0)
        no_figure(
            fmt::format("looped back to itself, the generator lost {} packets, doubled {}, "
                        "reordered {} and broke {}",
                        measured.counts.lost(), measured.counts.duplicates,
                        measured.counts.reordered, measured.counts.corrupt));
    return reasons_.empty();
}

bool Session::open_flows() {
    std::vector<std::uint32_t> missing;
    const double rate = options_.rate > 0 ? std::min(options_.rate, kOpeningRate) : kOpeningRate;
    work("opening flows", [&] { missing = engine_->open_flows(rate); });
    answer_["flows"] = {{"asked", network_.flows()},
                        {"arrived", network_.flows() - missing.size()}};
    if (missing.empty()) return true;
    std::string named;
    for (std::size_t i = 0; i < std::min(missing.size(), kNamed); ++i) {
        const Frame sent = network_.sent(missing[i], Way::forward);
        named += fmt::format("\n    flow {}: VNI {}, {} port {} to {} port {}", missing[i],
                             sent.vni.value, to_string(sent.source), sent.source_port,
                             to_string(sent.destination), sent.destination_port);
    }
    no_figure(
        fmt::format("of {} flows {} never arrived:{}", network_.flows(), missing.size(), named));
    return false;
}

void Session::run() {
    Trial asked;
    asked.rate = options_.rate > 0 ? options_.rate : kOpeningRate;
    asked.packets = options_.packets;
    asked.seconds = options_.seconds > 0 ? options_.seconds : options_.packets != 0 ? 3600 : 10;
    const auto measured = trial("sending", asked);
    answer_["run"] = to_json(measured);
    say(to_text(measured));
    judge(measured);
    if (options_.flows_file.empty()) return;
    std::ofstream out(options_.flows_file);
    out << flows_csv(engine_->lanes(), Lanes(profile_));
    if (!out.flush()) no_figure(fmt::format("{} cannot be written", options_.flows_file));
}

void Session::soak() {
    json::array parts;
    const double all = options_.seconds > 0 ? options_.seconds : 3600;
    for (double passed = 0; passed < all && !progress().stop; passed += kSoakReport) {
        Trial asked;
        asked.rate = options_.rate > 0 ? options_.rate : kOpeningRate;
        asked.seconds = std::min(kSoakReport, all - passed);
        const auto measured = trial(fmt::format("soak, from {:.0f} s", passed), asked);
        parts.push_back(to_json(measured));
        say(fmt::format("from {:.0f} s\n{}", passed, to_text(measured)));
        judge(measured);
    }
    answer_["soak"] = std::move(parts);
}

SearchLimits Session::search_limits(double lowest) const {
    SearchLimits limits;
    limits.lowest = lowest;
    limits.highest = kTrusted * *own_limit_;
    if (options_.rate > 0) limits.highest = std::min(limits.highest, options_.rate);
    return limits;
}

bool Session::sum_up(const Searched& searched, const char* unit) {
    answer_["search"] = to_json(searched);
    say(to_text(searched, unit));
    if (searched.ended) {
        no_figure("interrupted");
        return false;
    }
    for (const auto& found : searched.goals)
        if (found.open)
            no_figure(
                fmt::format("{}: no higher rate could be offered and told from the "
                            "generator's own limit",
                            found.goal.name));
    return true;
}

void Session::search() {
    const std::vector<Goal> goals{{"NDR", 0}, {"loss 1e-5", 1e-5}, {"PDR", 0.005}};
    constexpr int kTries = 2;  // when others took the core from the generator
    const auto searched = pktgen::search(
        goals, search_limits(kLeastPackets), [&](double rate) -> std::optional<Outcome> {
            Trial asked;
            asked.rate = rate;
            asked.seconds = options_.seconds > 0 ? options_.seconds : kTrialSeconds;
            Outcome outcome;
            for (int i = 0; i < kTries; ++i) {
                const auto measured = trial(fmt::format("trying {}", rate_text(rate)), asked);
                if (progress().stop) return std::nullopt;
                outcome = {rate, measured.offered(), measured.counts.loss(), measured.kept_up()};
                if (outcome.kept_up) break;
            }
            return outcome;
        });
    if (!sum_up(searched, "pps") || !searched.goals[1].rate) return;
    Trial half;
    half.rate = *searched.goals[1].rate / 2;
    half.seconds = options_.seconds > 0 ? options_.seconds : kTrialSeconds;
    const auto measured = trial("latency at half of the 1e-5 rate", half);
    answer_["half_rate"] = to_json(measured);
    say(fmt::format("at half of the 1e-5 rate\n{}", to_text(measured)));
    judge(measured);
}

ConnectionsMeasured Session::connect(const std::string& what, ConnectionTrial asked) {
    ConnectionsMeasured result;
    work(what, [&] { result = connector_->run(asked); });
    return result;
}

bool Session::measure_itself_connecting() {
    auto loop = ConnectionEngine::create(profile_, network_, rig_->loops(), progress());
    if (!loop) {
        refuse(loop.error());
        return false;
    }
    connector_ = std::move(*loop);
    ConnectionTrial asked;
    asked.seconds = kSelfTestSeconds;
    asked.arrivals = false;
    const auto measured = connect("self-test", asked);
    connector_.reset();
    own_limit_ = measured.rate();
    answer_["self_test"] = to_json(measured);
    say(fmt::format("{}: looped back to itself\n{}", profile_.name, to_text(measured)));
    if (measured.failed() != 0)
        no_figure(fmt::format("looped back to itself, {} of {} connections failed",
                              measured.failed(), measured.counts.opened));
    return reasons_.empty();
}

void Session::run_connections() {
    ConnectionTrial asked;
    asked.rate = options_.rate > 0 ? options_.rate : kConnectionRate;
    asked.connections = options_.packets;
    asked.seconds = options_.seconds > 0 ? options_.seconds : options_.packets != 0 ? 3600 : 10;
    const auto measured = connect("connecting", asked);
    answer_["run"] = to_json(measured);
    say(to_text(measured));
    if (const auto why = not_a_figure(measured, own_limit_)) no_figure(*why);
    if (measured.misdelivered != 0 || measured.corrupt != 0)
        no_figure(fmt::format("{} segments were misdelivered, {} have a bad checksum",
                              measured.misdelivered, measured.corrupt));
}

void Session::search_connections() {
    const std::vector<Goal> goals{
        {"none failed", 0}, {"1e-5 failed", 1e-5}, {"0.5 % failed", 0.005}};
    const auto searched = pktgen::search(
        goals, search_limits(kLeastConnections), [&](double rate) -> std::optional<Outcome> {
            ConnectionTrial asked;
            asked.rate = rate;
            asked.seconds = options_.seconds > 0 ? options_.seconds : kTrialSeconds;
            const auto measured = connect(fmt::format("trying {}", rate_text(rate, kUnit)), asked);
            if (progress().stop) return std::nullopt;
            const auto opened = static_cast<double>(measured.counts.opened);
            return Outcome{rate, opened / measured.seconds,
                           static_cast<double>(measured.failed()) / std::max(1.0, opened),
                           measured.kept_up()};
        });
    sum_up(searched, kUnit);
}

int Session::execute_connections() {
    if (!measure_itself_connecting() || options_.mode == Mode::self_test) return finish(0);
    auto links = rig_->links(options_.wait);
    if (!links) return refuse(links.error());
    auto engine = ConnectionEngine::create(profile_, network_, std::move(*links), progress());
    if (!engine) return refuse(engine.error());
    connector_ = std::move(*engine);
    // One connection of each of the first flows: the gateway's neighbours are known then.
    ConnectionTrial first;
    first.rate = kConnectionRate;
    first.connections = std::min<std::uint64_t>(network_.flows(), kFirstConnections);
    first.seconds = 60;
    connect("opening flows", first);
    if (options_.mode == Mode::search)
        search_connections();
    else
        run_connections();
    return finish(0);
}

int Session::finish(int status) {
    answer_["figure"] = reasons_.empty();
    answer_["why_not"] = reasons_;
    if (options_.json) std::printf("%s\n", json::serialize(answer_).c_str());
    engine_.reset();
    connector_.reset();
    if (status == 0 && !reasons_.empty()) status = 1;
    return status;
}

int Session::execute() {
    const bool self_test = options_.mode == Mode::self_test;
    auto rig =
        Rig::open(profile_, options_.core, self_test ? Devices::loops : Devices::profile_and_loops);
    if (!rig) return refuse(rig.error());
    rig_ = std::move(*rig);
    if (profile_.flows.traffic == Traffic::tcp) return execute_connections();
    if (!measure_itself() || self_test) return finish(0);
    auto links = rig_->links(options_.wait);
    if (!links) return refuse(links.error());
    auto engine = Engine::create(profile_, network_, std::move(*links), progress());
    if (!engine) return refuse(engine.error());
    engine_ = std::move(*engine);
    if (!open_flows()) return finish(0);
    if (options_.mode == Mode::run) run();
    if (options_.mode == Mode::soak) soak();
    if (options_.mode == Mode::search) search();
    return finish(0);
}

}  // namespace

void stop_running() {
    progress().stop = true;
}

int execute(const Profile& profile, const Options& options) {
    return Session(profile, options).execute();
}

}  // namespace sluice::pktgen
