// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/report.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <iterator>
#include <utility>

namespace sluice::pktgen {
namespace {

namespace json = boost::json;

constexpr std::pair<const char*, double> kQuantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};

std::string row(std::string_view name, const std::string& value) {
    return fmt::format("  {:<14} {}\n", name, value);
}

}  // namespace

std::string rate_text(double rate) {
    return rate >= 1e5 ? fmt::format("{:.3f} Mpps", rate / 1e6) : fmt::format("{:.0f} pps", rate);
}

std::optional<std::string> not_a_figure(const Measured& measured, std::optional<double> own_limit) {
    if (!measured.kept_up())
        return fmt::format("the generator fell behind: it skipped {} of {} packets that were due",
                           measured.counts.skipped, measured.counts.skipped + measured.counts.sent);
    if (own_limit && measured.offered() > kTrusted * *own_limit)
        return fmt::format("{} is above {:.0f} % of the generator's own limit, {}",
                           rate_text(measured.offered()), kTrusted * 100, rate_text(*own_limit));
    return std::nullopt;
}

std::string to_text(const Measured& measured) {
    const auto& counts = measured.counts;
    const auto cycles = [&](std::uint64_t value) {
        return fmt::format("{:.1f}", measured.microseconds(value));
    };
    std::string result;
    result += row("offered",
                  fmt::format("{} for {:.2f} s, {:.3f} Gbit/s of frames",
                              rate_text(measured.offered()), measured.seconds,
                              measured.seconds > 0
                                  ? 8e-9 * static_cast<double>(counts.octets) / measured.seconds
                                  : 0.0));
    result += row("sent", fmt::format("{}, of which the device had no room for {}", counts.sent,
                                      counts.refused));
    result += row("received", fmt::format("{}", counts.received));
    result += row("lost", fmt::format("{} ({:.6f} %)", counts.lost(), counts.loss() * 100));
    result += row("duplicates", fmt::format("{}", counts.duplicates));
    result += row("reordered",
                  fmt::format("{}, and {} too old to say", counts.reordered, counts.too_old));
    result += row("misdelivered", fmt::format("{}", counts.misdelivered));
    result += row("bad checksum", fmt::format("{}", counts.corrupt));
    result +=
        row("flows", fmt::format("{} directions sent, {} with loss, of {} nothing arrived",
                                 measured.lanes_used, measured.lanes_lossy, measured.lanes_silent));
    if (measured.latency.count() == 0) return result;
    std::string latency = fmt::format("min {}", cycles(measured.latency.least()));
    for (const auto& [name, fraction] : kQuantiles)
        latency += fmt::format(", {} {}", name, cycles(measured.latency.quantile(fraction)));
    latency += fmt::format(", max {} us", cycles(measured.latency.most()));
    return result + row("latency", latency);
}

json::object to_json(const Measured& measured) {
    const auto& counts = measured.counts;
    json::object latency;
    if (measured.latency.count() != 0) {
        latency["min"] = measured.microseconds(measured.latency.least());
        for (const auto& [name, fraction] : kQuantiles)
            latency[name] = measured.microseconds(measured.latency.quantile(fraction));
        latency["max"] = measured.microseconds(measured.latency.most());
    }
    return {{"asked_pps", measured.asked.rate},
            {"offered_pps", measured.offered()},
            {"seconds", measured.seconds},
            {"sent", counts.sent},
            {"refused", counts.refused},
            {"skipped", counts.skipped},
            {"received", counts.received},
            {"lost", counts.lost()},
            {"loss", counts.loss()},
            {"duplicates", counts.duplicates},
            {"reordered", counts.reordered},
            {"too_old", counts.too_old},
            {"misdelivered", counts.misdelivered},
            {"bad_checksum", counts.corrupt},
            {"foreign", counts.foreign},
            {"octets", counts.octets},
            {"flow_directions",
             {{"sent", measured.lanes_used},
              {"with_loss", measured.lanes_lossy},
              {"silent", measured.lanes_silent}}},
            {"latency_us", std::move(latency)}};
}

std::string to_text(const Searched& searched) {
    std::string result;
    for (const auto& found : searched.goals) {
        std::string value = "not even at the lowest rate";
        if (found.rate)
            value = fmt::format("{}{}, loss {:.2e}", found.open ? "no figure: at least " : "",
                                rate_text(*found.rate), found.loss);
        result += row(found.goal.name, value);
    }
    return result;
}

json::object to_json(const Searched& searched) {
    json::array goals, trials;
    for (const auto& found : searched.goals) {
        json::object one{{"name", found.goal.name},
                         {"allowed_loss", found.goal.loss},
                         {"figure", found.rate.has_value() && !found.open}};
        if (found.rate) {
            one["pps"] = *found.rate;
            one["loss"] = found.loss;
        }
        goals.push_back(std::move(one));
    }
    for (const auto& trial : searched.trials)
        trials.push_back({{"asked_pps", trial.asked},
                          {"offered_pps", trial.offered},
                          {"loss", trial.loss},
                          {"kept_up", trial.kept_up}});
    return {{"goals", std::move(goals)}, {"trials", std::move(trials)}};
}

std::string flows_csv(std::span<const Lane> lanes, const Lanes& numbering) {
    std::string result = "flow,direction,sent,received,lost,duplicates,reordered,too_old\n";
    for (std::uint32_t i = 0; i < lanes.size(); ++i) {
        const Lane& lane = lanes[i];
        fmt::format_to(std::back_inserter(result), "{},{},{},{},{},{},{},{}\n", numbering.flow(i),
                       numbering.way(i) == Way::forward ? "forward" : "reverse", lane.sent,
                       lane.received, lane.lost(), lane.duplicates, lane.reordered, lane.too_old);
    }
    return result;
}

}  // namespace sluice::pktgen
