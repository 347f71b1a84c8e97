// SPDX-License-Identifier: Apache-2.0
// Any text is a configuration or a list of problems, each of which can be printed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/config/config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice::config;
    const auto parsed = parse({reinterpret_cast<const char*>(data), size});
    const auto* problems = std::get_if<std::vector<Problem>>(&parsed);
    if (problems == nullptr) return 0;
    if (problems->empty()) __builtin_trap();
    for (const auto& problem : *problems)
        if (to_string(problem, "f").empty()) __builtin_trap();
    return 0;
}
