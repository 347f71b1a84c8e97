// SPDX-License-Identifier: Apache-2.0
// Any text is a profile, whose network can be described, or a list of problems that can be printed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bench/pktgen/network.hpp"
#include "bench/pktgen/profile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice;
    const auto [profile, problems] = pktgen::read({reinterpret_cast<const char*>(data), size});
    for (const auto& problem : problems)
        if (config::to_string(problem, "f").empty()) __builtin_trap();
    if (!problems.empty()) return 0;
    const pktgen::Network network(profile);
    for (const std::uint32_t flow : {0U, profile.flows.count - 1})
        for (const auto way : {pktgen::Way::forward, pktgen::Way::reverse})
            if (network.sent(flow, way).source == network.sent(flow, way).destination)
                __builtin_trap();
    return 0;
}
