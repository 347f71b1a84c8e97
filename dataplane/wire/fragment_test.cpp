// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/fragment.hpp"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

// The fragments as they would be sent.
std::vector<Bytes> fragments(const Bytes& packet, std::size_t mtu) {
    std::vector<Bytes> result;
    const auto plan = FragmentPlan::make(packet, mtu);
    for (std::size_t i = 0; plan && i < plan->count(); ++i) {
        const Fragment fragment = (*plan)[i];
        Bytes bytes(ipv4::kMaxHeader);
        bytes.resize(plan->write_header(i, bytes));
        CHECK(bytes.size() == fragment.header_length);
        const auto payload = packet.begin() + fragment.payload_offset;
        bytes.insert(bytes.end(), payload, payload + fragment.payload_length);
        result.push_back(std::move(bytes));
    }
    return result;
}

Bytes header(const Bytes& fragment) {
    return {fragment.begin(),
            fragment.begin() + static_cast<std::ptrdiff_t>(ipv4::header_length(fragment.data()))};
}

std::uint16_t flags_and_offset(const Bytes& fragment) {
    return load16(&fragment[ipv4::kFragment]).host();
}

}  // namespace

TEST_CASE("The example of RFC 791 section 3.2: 472 octets through an MTU of 280") {
    const auto pieces = fragments(packet({Ipv4{}, Payload{filler(452)}}), 280);
    REQUIRE(pieces.size() == 2);
    CHECK(pieces[0].size() == 276);
    CHECK(flags_and_offset(pieces[0]) == 0x2000);
    CHECK(pieces[1].size() == 216);
    CHECK(flags_and_offset(pieces[1]) == 32);
}

TEST_CASE("A packet that fits is one fragment, the packet itself") {
    const Bytes whole = packet({Ipv4{.flags_and_offset = ipv4::kDontFragment, .options = {1, 1}},
                                Udp{}, Payload{filler(100)}});
    CHECK(fragments(whole, whole.size()) == std::vector<Bytes>{whole});
    CHECK(fragments(whole, 9000) == std::vector<Bytes>{whole});
    CHECK(fragments(whole, whole.size() - 1).empty());
}

TEST_CASE("All options in the first fragment, only the copied ones behind it") {
    // No operation, record route (not copied), router alert (copied), stream id (copied).
    const Bytes options{1, 7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0, 136, 4, 0, 1};
    const auto pieces = fragments(packet({Ipv4{.options = options}, Payload{filler(300)}}), 100);
    REQUIRE(pieces.size() > 2);
    CHECK(header(pieces[0]).size() == 36);
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        const Bytes later = header(pieces[i]);
        REQUIRE(later.size() == 28);
        CHECK(Bytes(later.begin() + 20, later.end()) == Bytes{148, 4, 0, 0, 136, 4, 0, 1});
    }
}

TEST_CASE("Nothing behind the end of the options counts as one") {
    // End of options, then what looks like an option of no length.
    const Bytes options{148, 4, 0, 0, 0, 130, 0, 0};
    const auto pieces = fragments(packet({Ipv4{.options = options}, Payload{filler(300)}}), 100);
    REQUIRE(pieces.size() > 1);
    CHECK(header(pieces[1]).size() == 24);
}

TEST_CASE("A fragment is cut further: offsets go on from its own, 'more' stays") {
    const auto pieces = fragments(
        packet({Ipv4{.flags_and_offset = ipv4::kMoreFragments | 100}, Payload{filler(160)}}), 84);
    REQUIRE(pieces.size() == 3);
    CHECK(flags_and_offset(pieces[0]) == (0x2000 | 100));
    CHECK(flags_and_offset(pieces[1]) == (0x2000 | 108));
    CHECK(flags_and_offset(pieces[2]) == (0x2000 | 116));
    const auto last = fragments(packet({Ipv4{.flags_and_offset = 100}, Payload{filler(100)}}), 84);
    REQUIRE(last.size() == 2);
    CHECK(flags_and_offset(last[1]) == 108);
}

TEST_CASE("What cannot be cut is refused") {
    const Payload payload{filler(200)};
    CHECK(fragments(packet({Ipv4{.flags_and_offset = ipv4::kDontFragment}, payload}), 100).empty());
    CHECK(fragments(packet({Ipv4{}, payload}), 67).empty());
    CHECK_FALSE(fragments(packet({Ipv4{}, payload}), 68).empty());
    CHECK(fragments(packet({Ipv6{}, payload}), 100).empty());
    CHECK(fragments(packet({Ipv4{.version_and_words = 0x44}, payload}), 100).empty());
    CHECK(fragments(packet({Ipv4{.length = 19}, payload}), 100).empty());
    // A middle fragment of odd size; the datagram's end beyond 65,535 ("ping of death").
    CHECK(fragments(packet({Ipv4{.flags_and_offset = 0x2000}, Payload{filler(201)}}), 100).empty());
    CHECK(fragments(packet({Ipv4{.flags_and_offset = 0x1fff}, payload}), 100).empty());
    // Options of no length, of length one, and beyond the header.
    for (const Bytes& options :
         {Bytes{130, 0}, Bytes{130, 1}, Bytes{130, 5, 0, 0}, Bytes{1, 1, 1, 130}})
        CHECK(fragments(packet({Ipv4{.options = options}, payload}), 100).empty());
}

TEST_CASE("The header is enough to plan") {
    const Bytes whole = packet({Ipv4{}, Payload{filler(3000)}});
    const auto plan = FragmentPlan::make(std::span{whole}.first(20), 1450);
    REQUIRE(plan);
    CHECK(plan->count() == 3);
}

TEST_CASE("Put together again, fragments are the packet; none is beyond the MTU or cut in vain") {
    CHECK(rc::check([] {
        Ipv4 ip;
        ip.tos = *rc::gen::arbitrary<std::uint8_t>();
        ip.identification = *rc::gen::arbitrary<std::uint16_t>();
        const auto copied = *rc::gen::inRange<std::size_t>(0, 5);
        for (std::size_t i = 0; i < copied; ++i)
            ip.options.insert(ip.options.end(), {148, 4, 0, 0});
        const auto dropped = *rc::gen::inRange<std::size_t>(0, 5);
        for (std::size_t i = 0; i < dropped; ++i) ip.options.insert(ip.options.end(), {7, 4, 4, 0});
        const bool more = *rc::gen::arbitrary<bool>();
        const auto base = *rc::gen::inRange<std::size_t>(0, 400);
        ip.flags_and_offset = static_cast<std::uint16_t>(base | (more ? 0x2000U : 0U));
        auto size = *rc::gen::inRange<std::size_t>(0, 4000);
        if (more) size = size / 8 * 8;
        const auto mtu = *rc::gen::inRange<std::size_t>(68, 1600);
        const Bytes whole = packet({ip, Payload{filler(size)}});
        const std::size_t header_size = whole.size() - size;

        const auto pieces = fragments(whole, mtu);
        RC_ASSERT(!pieces.empty());
        Bytes payload;
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            const Bytes& piece = pieces[i];
            const Bytes head = header(piece);
            RC_ASSERT(piece.size() <= mtu);
            RC_ASSERT(ipv4_header_checksum_ok(head));
            RC_ASSERT(load16(&piece[ipv4::kLength]).host() == piece.size());
            RC_ASSERT(load16(&piece[ipv4::kIdentification]).host() == ip.identification);
            RC_ASSERT(piece[ipv4::kTos] == ip.tos);
            RC_ASSERT((flags_and_offset(piece) & 0x1fff) == base + payload.size() / 8);
            RC_ASSERT(payload.size() % 8 == 0);
            const bool last = i + 1 == pieces.size();
            RC_ASSERT(((flags_and_offset(piece) & 0x2000) != 0) == (more || !last));
            RC_ASSERT(head.size() == (i == 0 ? header_size : 20 + 4 * copied));
            // Each but the last is as full as multiples of eight allow.
            RC_ASSERT(last || piece.size() + 8 > mtu);
            payload.insert(payload.end(), piece.begin() + static_cast<std::ptrdiff_t>(head.size()),
                           piece.end());
        }
        RC_ASSERT(payload == filler(size));
    }));
}
