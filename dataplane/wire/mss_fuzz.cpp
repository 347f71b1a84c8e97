// SPDX-License-Identifier: Apache-2.0
// Any TCP segment: clamping keeps its length, raises nothing, is done after one pass, and leaves
// the checksum as right or wrong as it was.
#include <cstdlib>
#include <vector>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/mss.hpp"

using namespace sluice;
using namespace sluice::wire;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

std::uint16_t sum(std::span<const std::uint8_t> segment) {
    const std::uint16_t folded = Sum{}.add(segment).folded();
    return folded == 0xffff ? std::uint16_t{0} : folded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2 + tcp::kSize) return 0;
    const std::uint16_t most = load16(data).host();
    const std::vector<std::uint8_t> before(data + 2, data + size);
    std::vector<std::uint8_t> after = before;
    const bool changed = clamp_mss(after, most);
    require(changed == (after != before) || sum(after) == sum(before));
    require(sum(after) == sum(before));
    for (std::size_t i = 0; i < tcp::kSize; ++i)
        require(after[i] == before[i] || i == tcp::kChecksum || i == tcp::kChecksum + 1);
    std::vector<std::uint8_t> again = after;
    require(!clamp_mss(again, most) && again == after);
    return 0;
}
