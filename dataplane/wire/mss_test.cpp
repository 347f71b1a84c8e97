// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/mss.hpp"

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

Bytes syn(const Bytes& options, const Bytes& data = {}) {
    const Bytes whole =
        packet({Ipv4{}, Tcp{.flags = tcp::kSyn, .options = options}, Payload{data}});
    return {whole.begin() + ipv4::kSize, whole.end()};
}

// What becomes of a SYN with these options; its checksum is right before and after.
Bytes clamped(const Bytes& options, std::uint16_t most) {
    Bytes segment = syn(options, {1, 2, 3});
    const bool changed = clamp_mss(segment, most);
    CHECK(transport_checksum_ok(Ipv4{}.source, Ipv4{}.destination, Protocol::tcp, segment));
    CHECK(changed == (segment != syn(options, {1, 2, 3})));
    return segment;
}
bool untouched(const Bytes& options, std::uint16_t most) {
    return clamped(options, most) == syn(options, {1, 2, 3});
}

}  // namespace

TEST_CASE("the largest segment is the MTU less IP's and TCP's fixed headers") {
    CHECK(largest_segment(1500, false) == 1460);
    CHECK(largest_segment(1500, true) == 1440);
    CHECK(largest_segment(1280, true) == 1220);
    CHECK(largest_segment(68, false) == 28);
    CHECK(largest_segment(40, false) == 0);
    CHECK(largest_segment(0, true) == 0);
}

TEST_CASE("an MSS is lowered to what passes, at any place, and never raised") {
    CHECK(clamped({2, 4, 0x05, 0xb4}, 1360) == syn({2, 4, 0x05, 0x50}, {1, 2, 3}));
    CHECK(clamped({2, 4, 0xff, 0xff}, 1360) == syn({2, 4, 0x05, 0x50}, {1, 2, 3}));
    CHECK(untouched({2, 4, 0x05, 0x50}, 1360));
    CHECK(untouched({2, 4, 0x02, 0x18}, 1360));
    CHECK(untouched({2, 4, 0, 0}, 1360));
    // As Linux has it, and behind padding that leaves it at an odd octet.
    CHECK(clamped({4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 3, 3, 7, 2, 4, 0x05, 0xb4}, 1360) ==
          syn({4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 3, 3, 7, 2, 4, 0x05, 0x50}, {1, 2, 3}));
    CHECK(clamped({1, 2, 4, 0x05, 0xb4}, 1360) == syn({1, 2, 4, 0x05, 0x50}, {1, 2, 3}));
    CHECK(clamped({1, 1, 1, 2, 4, 0x05, 0xb4}, 700) == syn({1, 1, 1, 2, 4, 0x02, 0xbc}, {1, 2, 3}));
}

TEST_CASE("of several MSS options each is lowered: ends differ in which they believe") {
    CHECK(clamped({2, 4, 0x05, 0xb4, 1, 2, 4, 0x10, 0}, 1360) ==
          syn({2, 4, 0x05, 0x50, 1, 2, 4, 0x05, 0x50}, {1, 2, 3}));
}

TEST_CASE("options that are malformed, absent or over stay as they are") {
    CHECK(untouched({}, 1360));
    CHECK(untouched({0, 2, 4, 0x05, 0xb4}, 1360));        // behind the end of the options
    CHECK(untouched({8, 0, 2, 4, 0x05, 0xb4}, 1360));     // a length of zero
    CHECK(untouched({8, 1, 2, 4, 0x05, 0xb4}, 1360));     // of one
    CHECK(untouched({8, 40, 2, 4, 0x05, 0xb4}, 1360));    // beyond the header
    CHECK(untouched({2, 3, 0x05, 1, 1, 1, 1, 1}, 1360));  // not an MSS option's length
    CHECK(untouched({2, 6, 0x05, 0xb4, 0, 0}, 1360));
    CHECK(untouched({1, 1, 1, 2}, 1360));  // the header ends behind its kind
    CHECK(untouched({1, 1, 2, 4}, 1360));  // ... its length
}

TEST_CASE("a wrong checksum stays as wrong as it was") {
    Bytes segment = syn({2, 4, 0x05, 0xb4});
    segment[tcp::kChecksum] ^= 0x10;
    Bytes right = syn({2, 4, 0x05, 0xb4});
    CHECK(clamp_mss(segment, 1000));
    CHECK(clamp_mss(right, 1000));
    CHECK_FALSE(transport_checksum_ok(Ipv4{}.source, Ipv4{}.destination, Protocol::tcp, segment));
    CHECK(transport_checksum_ok(Ipv4{}.source, Ipv4{}.destination, Protocol::tcp, right));
}

TEST_CASE("of a segment that is cut off behind only what is there is read") {
    const Bytes whole = syn({1, 1, 1, 1, 2, 4, 0x05, 0xb4});
    for (std::size_t size = tcp::kSize; size < whole.size(); ++size) {
        Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        CHECK_FALSE(clamp_mss(part, 1000));
    }
}
