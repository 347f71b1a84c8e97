// SPDX-License-Identifier: Apache-2.0
// Any packet and MTU: the fragments cover the payload without gap or overlap, each fits and has a
// right header.
#include <cstdlib>
#include <vector>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/fragment.hpp"

using namespace sluice;
using namespace sluice::wire;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::size_t mtu = load16(data).host();
    const std::vector<std::uint8_t> packet(data + 2, data + size);
    const auto plan = FragmentPlan::make(packet, mtu);
    if (!plan) return 0;
    const std::size_t header = ipv4::header_length(packet.data());
    const std::size_t length = load16(&packet[ipv4::kLength]).host();
    const std::uint16_t base = load16(&packet[ipv4::kFragment]).host() & ipv4::kOffsetMask;
    require(plan->count() >= 1);
    std::size_t next = header;
    for (std::size_t i = 0; i < plan->count(); ++i) {
        const Fragment fragment = (*plan)[i];
        require(fragment.payload_offset == next);
        require(fragment.payload_length > 0 || length == header);
        next += fragment.payload_length;
        std::vector<std::uint8_t> out(fragment.header_length);
        require(plan->write_header(i, out) == fragment.header_length);
        require(out[0] == (0x40 | fragment.header_length / 4));
        require(fragment.header_length + std::size_t{fragment.payload_length} <= mtu);
        require(load16(&out[ipv4::kLength]).host() ==
                fragment.header_length + fragment.payload_length);
        require((load16(&out[ipv4::kFragment]).host() & ipv4::kOffsetMask) * std::size_t{8} ==
                base * std::size_t{8} + fragment.payload_offset - header);
        require(ipv4_header_checksum_ok(out));
    }
    require(next == length);
    return 0;
}
