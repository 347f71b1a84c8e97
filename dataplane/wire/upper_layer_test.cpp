// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wire/upper_layer.hpp"

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"

using namespace sluice;
using namespace sluice::wire;
using namespace sluice::wire::build;

namespace {

// The same for every shorter piece of the packet: never beyond it, never another answer.
std::optional<UpperLayer> upper_layer(const Bytes& bytes) {
    const auto whole = find_upper_layer(bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const Bytes piece(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        const auto found = find_upper_layer(piece);
        if (!found) continue;
        CHECK(found->offset <= size);
        REQUIRE(whole);
        CHECK(found->offset == whole->offset);
        CHECK(found->protocol == whole->protocol);
    }
    return whole;
}

}  // namespace

TEST_CASE("IPv4: behind the header and its options") {
    CHECK(upper_layer(packet({Ipv4{}, Udp{}}))->offset == 20);
    const auto options = upper_layer(packet({Ipv4{.options = {1, 1, 1, 0}}, Tcp{}}));
    REQUIRE(options);
    CHECK(options->offset == 24);
    CHECK(options->protocol == 6);
    CHECK_FALSE(options->is_fragment());
}

TEST_CASE("IPv4: a header of less than five words or beyond the packet is none") {
    CHECK_FALSE(upper_layer(packet({Ipv4{.version_and_words = 0x44}, Udp{}})));
    CHECK_FALSE(upper_layer(packet({Ipv4{.version_and_words = 0x4f}, Udp{}})));
    CHECK_FALSE(upper_layer(packet({Ipv4{.version_and_words = 0x55}, Udp{}})));
    CHECK_FALSE(upper_layer({}));
}

TEST_CASE("IPv4: first, middle and last fragment") {
    const auto first = upper_layer(packet({Ipv4{.flags_and_offset = 0x2000}, Udp{}}));
    CHECK(first->is_fragment());
    CHECK_FALSE(first->is_later_fragment());
    const auto middle = upper_layer(packet({Ipv4{.flags_and_offset = 0x2001}, Udp{}}));
    CHECK(middle->is_later_fragment());
    CHECK(middle->fragment_offset == 8);
    CHECK(middle->more_fragments);
    const auto last = upper_layer(packet({Ipv4{.flags_and_offset = 0x1fff}, Udp{}}));
    CHECK(last->fragment_offset == 65528);
    CHECK_FALSE(last->more_fragments);
    CHECK_FALSE(upper_layer(packet({Ipv4{.flags_and_offset = 0x4000}, Udp{}}))->is_fragment());
}

TEST_CASE("IPv6: behind every extension header") {
    const auto found = upper_layer(
        packet({Ipv6{}, Extension{.kind = ipv6::kHopByHop, .body = Bytes(20)},
                Extension{.kind = ipv6::kRouting, .body = {0, 0}},
                Extension{.kind = ipv6::kAuthentication, .body = Bytes(14)}, Extension{}, Tcp{}}));
    REQUIRE(found);
    CHECK(found->protocol == 6);
    CHECK(found->offset == 40 + 24 + 8 + 16 + 8);
    CHECK(upper_layer(packet({Ipv6{}}))->protocol == ipv6::kNoNextHeader);
}

TEST_CASE("IPv6: what follows in a later fragment is not a header") {
    const auto first =
        upper_layer(packet({Ipv6{}, FragmentHeader{.offset_and_more = 1}, Extension{}, Udp{}}));
    CHECK(first->is_fragment());
    CHECK(first->protocol == 17);
    CHECK(first->offset == 40 + 8 + 8);
    const auto later =
        upper_layer(packet({Ipv6{}, FragmentHeader{.offset_and_more = 1448}, Extension{}, Udp{}}));
    CHECK(later->is_later_fragment());
    CHECK(later->fragment_offset == 1448);
    CHECK(later->protocol == ipv6::kDestinationOptions);
    CHECK(later->offset == 48);
    // An atomic fragment (RFC 6946) is a whole packet.
    CHECK_FALSE(upper_layer(packet({Ipv6{}, FragmentHeader{}, Udp{}}))->is_fragment());
}

TEST_CASE("IPv6: chains that no honest sender makes are refused") {
    const Extension hop_by_hop{.kind = ipv6::kHopByHop};
    CHECK_FALSE(upper_layer(packet({Ipv6{}, Extension{}, hop_by_hop, Udp{}})));
    CHECK_FALSE(upper_layer(packet({Ipv6{}, hop_by_hop, hop_by_hop, Udp{}})));
    // Segments left: addressed to somebody else behind this destination.
    CHECK_FALSE(
        upper_layer(packet({Ipv6{}, Extension{.kind = ipv6::kRouting, .body = {0, 1}}, Udp{}})));
    const FragmentHeader first{.offset_and_more = 1};
    CHECK_FALSE(upper_layer(packet({Ipv6{}, first, first, Udp{}})));
    CHECK_FALSE(upper_layer(packet({Ipv6{}, Extension{.length = 200}, Udp{}})));

    std::vector<Layer> layers{Ipv6{}};
    layers.insert(layers.end(), kMaxExtensionHeaders, Extension{});
    layers.emplace_back(Udp{});
    CHECK(upper_layer(packet(layers)));
    layers.insert(layers.begin() + 1, Extension{});
    CHECK_FALSE(upper_layer(packet(layers)));
}
