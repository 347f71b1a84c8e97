// SPDX-License-Identifier: Apache-2.0
// Writes the OpenMetrics 1.0 text format: families in order, samples with labels, "# EOF".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::telemetry {

class OpenMetrics {
  public:
    using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

    // Begins a family; the samples that follow are its own. A counter's name is without
    // "_total", which its samples get.
    void counter(std::string_view name, std::string_view help);
    void gauge(std::string_view name, std::string_view help);

    void sample(Labels labels, std::uint64_t value);
    void sample(Labels labels, double value);

    // The whole text; nothing may be added after it.
    [[nodiscard]] std::string finish();

  private:
    void family(std::string_view name, std::string_view help, std::string_view type);
    void begin(Labels labels);

    std::string text_;
    std::string name_;  // as samples of this family are called
};

}  // namespace sluice::telemetry
