// SPDX-License-Identifier: Apache-2.0
// Any packet: a quote that is found lies inside it, and translating leaves every checksum as right
// or wrong as it was.
#include <cstdlib>
#include <vector>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/quote.hpp"

using namespace sluice;
using namespace sluice::wire;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

// What the checksums of the outer header and of the ICMP message cover, with both zeros of ones'
// complement taken for one.
struct Sums {
    std::uint16_t outer, message;
    bool operator==(const Sums&) const = default;
};

std::uint16_t one_zero(std::uint16_t sum) {
    return sum == 0xffff ? std::uint16_t{0} : sum;
}

Sums sums(std::span<const std::uint8_t> packet, const Quote& quote) {
    const auto message = packet.subspan(quote.icmp_offset);
    if (packet[0] >> 4 == 4)
        return {one_zero(Sum{}.add(packet.first(quote.icmp_offset)).folded()),
                one_zero(Sum{}.add(message).folded())};
    return {0, one_zero(pseudo_header(load_v6(&packet[ipv6::kSource]),
                                      load_v6(&packet[ipv6::kDestination]), 58, 0)
                            .add(message)
                            .folded())};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::uint8_t> packet(data, data + size);
    const auto quote = parse_quote(packet);
    if (!quote) return 0;
    require(quote->icmp_offset < quote->quoted_offset);
    require(quote->quoted_offset < quote->quoted_l4_offset);
    require(quote->quoted_l4_offset <= quote->quoted_end && quote->quoted_end <= size);

    // Somewhere else, but different for different packets.
    const auto moved = [&](IpAddress address) {
        address.bytes[13] ^= 0x5a;
        address.bytes[15] = static_cast<std::uint8_t>(address.bytes[15] + size);
        return address;
    };
    const IpAddress to = moved(quote->destination);
    Tuple tuple = quote->tuple;
    tuple.source = to;
    tuple.destination = moved(tuple.destination);
    if (checksum_offset(tuple.protocol)) {
        tuple.source_port = static_cast<std::uint16_t>(tuple.source_port * 31 + size);
        if (tuple.protocol != 1 && tuple.protocol != 58) tuple.destination_port ^= 0x1100;
    }
    const Sums before = sums(packet, *quote);
    require(translate_quote(packet, *quote, {moved(quote->source), to, tuple}));
    require(sums(packet, *quote) == before);
    const auto again = parse_quote(packet);
    require(again && again->tuple == tuple && again->destination == to);
    return 0;
}
