// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/report.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <iterator>
#include <utility>

namespace sluice::pktgen {
namespace {

namespace json = boost::json;

constexpr const char* kConnections = "connections/s";
constexpr std::pair<const char*, double> kQuantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};

std::string row(std::string_view name, const std::string& value) {
    return fmt::format("  {:<14} {}\n", name, value);
}

std::string latency_row(std::string_view name, const Histogram& histogram, double hertz) {
    if (histogram.count() == 0) return "";
    const auto text = [&](std::uint64_t cycles) {
        return fmt::format("{:.1f}", static_cast<double>(cycles) * 1e6 / hertz);
    };
    std::string latency = fmt::format("min {}", text(histogram.least()));
    for (const auto& [quantile, fraction] : kQuantiles)
        latency += fmt::format(", {} {}", quantile, text(histogram.quantile(fraction)));
    return row(name, fmt::format("{}, max {} us", latency, text(histogram.most())));
}

json::object latency_json(const Histogram& histogram, double hertz) {
    json::object latency;
    if (histogram.count() == 0) return latency;
    const auto value = [&](std::uint64_t cycles) {
        return static_cast<double>(cycles) * 1e6 / hertz;
    };
    latency["min"] = value(histogram.least());
    for (const auto& [name, fraction] : kQuantiles)
        latency[name] = value(histogram.quantile(fraction));
    latency["max"] = value(histogram.most());
    return latency;
}

}  // namespace

std::string rate_text(double rate, const char* unit) {
    if (rate < 1e5) return fmt::format("{:.0f} {}", rate, unit);
    return fmt::format("{:.3f} {}{}", rate / 1e6, unit[0] == 'p' ? "M" : "million ", unit);
}

namespace {

std::optional<std::string> own_limit_set(double rate, std::optional<double> own_limit,
                                         const char* unit) {
    if (!own_limit || rate <= kTrusted * *own_limit) return std::nullopt;
    return fmt::format("{} is above {:.0f} % of the generator's own limit, {}",
                       rate_text(rate, unit), kTrusted * 100, rate_text(*own_limit, unit));
}

}  // namespace

std::optional<std::string> not_a_figure(const Measured& measured, std::optional<double> own_limit) {
    if (!measured.kept_up())
        return fmt::format("the generator fell behind: it skipped {} of {} packets that were due",
                           measured.counts.skipped, measured.counts.skipped + measured.counts.sent);
    return own_limit_set(measured.offered(), own_limit, "pps");
}

std::optional<std::string> not_a_figure(const ConnectionsMeasured& measured,
                                        std::optional<double> own_limit) {
    if (!measured.kept_up())
        return fmt::format(
            "the generator fell behind: it skipped {} of {} connections that were due",
            measured.skipped, measured.skipped + measured.counts.opened);
    return own_limit_set(measured.rate(), own_limit, kConnections);
}

std::string to_text(const Measured& measured) {
    const auto& counts = measured.counts;
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
    return result + latency_row("latency", measured.latency, measured.hertz);
}

json::object to_json(const Measured& measured) {
    const auto& counts = measured.counts;
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
            {"latency_us", latency_json(measured.latency, measured.hertz)}};
}

std::string to_text(const ConnectionsMeasured& measured) {
    const auto& counts = measured.counts;
    std::string result;
    result +=
        row("completed", fmt::format("{}, for {:.2f} s", rate_text(measured.rate(), kConnections),
                                     measured.seconds));
    result += row("connections",
                  fmt::format("{} opened, {} answered, {} complete, {} failed", counts.opened,
                              counts.answered, counts.completed, measured.failed()));
    result += row("segments", fmt::format("{} sent, of which the device had no room for {}, {} "
                                          "unexpected, {} misdelivered, {} with a bad checksum",
                                          measured.sent, measured.refused, counts.unexpected,
                                          measured.misdelivered, measured.corrupt));
    return result + latency_row("duration", measured.duration, measured.hertz);
}

json::object to_json(const ConnectionsMeasured& measured) {
    const auto& counts = measured.counts;
    return {{"asked_connections_per_second", measured.asked},
            {"connections_per_second", measured.rate()},
            {"seconds", measured.seconds},
            {"opened", counts.opened},
            {"answered", counts.answered},
            {"completed", counts.completed},
            {"failed", measured.failed()},
            {"unexpected", counts.unexpected},
            {"sent", measured.sent},
            {"refused", measured.refused},
            {"skipped", measured.skipped},
            {"misdelivered", measured.misdelivered},
            {"bad_checksum", measured.corrupt},
            {"duration_us", latency_json(measured.duration, measured.hertz)}};
}

std::string to_text(const Searched& searched, const char* unit) {
    std::string result;
    for (const auto& found : searched.goals) {
        std::string value =
            searched.ended ? "not known: ended too early" : "not even at the lowest rate";
        if (found.rate)
            value = fmt::format("{}{}, loss {:.2e}", found.open ? "no figure: at least " : "",
                                rate_text(*found.rate, unit), found.loss);
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
