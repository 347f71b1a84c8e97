// SPDX-License-Identifier: Apache-2.0
// Any octets as a received frame: a stamp inside of it, or nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "bench/pktgen/find_stamp.hpp"
#include "bench/pktgen/roce.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice;
    // On the heap and of the exact size: every octet too far is seen.
    const auto frame = std::make_unique<std::uint8_t[]>(size);
    std::copy_n(data, size, frame.get());
    const std::span<const std::uint8_t> octets(frame.get(), size);
    if (const auto located = pktgen::locate(octets)) (void)pktgen::checksums_ok(octets, *located);
    const auto found = pktgen::find_stamp(octets);
    if (!found) return 0;
    const std::size_t more = found->roce ? pktgen::bth::kSize : 0;
    if (found->l4 + wire::udp::kSize + more + pktgen::stamp::kSize > size) __builtin_trap();
    (void)pktgen::checksums_ok(octets, *found);
    return 0;
}
