// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/open_metrics.hpp"

#include <fmt/format.h>

#include <iterator>

namespace sluice::telemetry {
namespace {

// OpenMetrics 1.0, "Label values": backslash, quote and line feed are escaped.
void append_escaped(std::string& out, std::string_view text) {
    for (const char c : text) {
        if (c == '\\' || c == '"') out.push_back('\\');
        if (c == '\n')
            out += "\\n";
        else
            out.push_back(c);
    }
}

}  // namespace

void OpenMetrics::counter(std::string_view name, std::string_view help) {
    family(name, help, "counter");
    name_ += "_total";
}

void OpenMetrics::gauge(std::string_view name, std::string_view help) {
    family(name, help, "gauge");
}

void OpenMetrics::family(std::string_view name, std::string_view help, std::string_view type) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# TYPE {} {}\n# HELP {} {}\n", name, type, name,
                   help);
}

void OpenMetrics::begin(Labels labels) {
    text_ += name_;
    char before = '{';
    for (const auto& [name, value] : labels) {
        text_ += before;
        text_ += name;
        text_ += "=\"";
        append_escaped(text_, value);
        text_ += '"';
        before = ',';
    }
    if (labels.size() > 0) text_ += '}';
}

void OpenMetrics::sample(Labels labels, std::uint64_t value) {
    begin(labels);
    fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

void OpenMetrics::sample(Labels labels, double value) {
    begin(labels);
    fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

std::string OpenMetrics::finish() {
    text_ += "# EOF\n";
    return std::move(text_);
}

}  // namespace sluice::telemetry
