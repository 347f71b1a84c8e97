// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/open_metrics.hpp"

#include <catch2/catch.hpp>

namespace sluice::telemetry {

TEST_CASE("families, labels and the end are written as OpenMetrics has them", "[telemetry]") {
    OpenMetrics out;
    out.counter("a_packets", "Packets.");
    out.sample({{"port", "u0"}, {"direction", "rx"}}, std::uint64_t{7});
    out.gauge("b_ratio", "Share.");
    out.sample({}, 0.5);
    CHECK(out.finish() ==
          "# TYPE a_packets counter\n# HELP a_packets Packets.\n"
          "a_packets_total{port=\"u0\",direction=\"rx\"} 7\n"
          "# TYPE b_ratio gauge\n# HELP b_ratio Share.\nb_ratio 0.5\n# EOF\n");
}

TEST_CASE("label values are escaped", "[telemetry]") {
    OpenMetrics out;
    out.gauge("a", "A.");
    out.sample({{"name", "x\"y\\z\n"}}, std::uint64_t{1});
    CHECK(out.finish().find("{name=\"x\\\"y\\\\z\\n\"} 1\n") != std::string::npos);
}

}  // namespace sluice::telemetry
