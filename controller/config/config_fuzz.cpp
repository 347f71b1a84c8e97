// SPDX-License-Identifier: Apache-2.0
// Any octets as the configuration or the tokens file: values or problems, never a crash.
#include <cstdint>
#include <string_view>

#include "controller/api/tokens.hpp"
#include "controller/config/config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& problem : sluice::config::parse_controller(text).problems)
        (void)sluice::config::to_string(problem, "controller.toml");
    (void)sluice::api::Tokens::parse(text, "tokens.toml");
    return 0;
}
