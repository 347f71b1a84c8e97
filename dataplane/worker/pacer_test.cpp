// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/pacer.hpp"

#include <catch2/catch.hpp>
#include <cstdint>

using namespace sluice;
using sluice::worker::Pacer;

namespace {
rte_mbuf* packet(std::uintptr_t number) {
    return reinterpret_cast<rte_mbuf*>(number << 6);  // never followed
}
}  // namespace

TEST_CASE("packets leave at their time, and those of one time in their order") {
    Pacer pacer(8);
    pacer.hold(300, PortId{1}, packet(1));
    pacer.hold(100, PortId{1}, packet(2));
    pacer.hold(100, PortId{2}, packet(3));
    pacer.hold(200, PortId{1}, packet(4));
    CHECK_FALSE(pacer.next(99));
    CHECK(pacer.next(250)->mbuf == packet(2));
    const auto second = pacer.next(250);
    CHECK(second->mbuf == packet(3));
    CHECK(second->port == PortId{2});
    CHECK(pacer.next(250)->mbuf == packet(4));
    CHECK_FALSE(pacer.next(250));
    CHECK(pacer.next(300)->mbuf == packet(1));
    CHECK_FALSE(pacer.next(~0ULL));
}

TEST_CASE("a pacer holds what it was made for and no more") {
    Pacer pacer(2);
    CHECK_FALSE(pacer.full());
    pacer.hold(1, PortId{1}, packet(1));
    pacer.hold(1, PortId{1}, packet(2));
    CHECK(pacer.full());
    CHECK(pacer.next(1));
    CHECK_FALSE(pacer.full());
}

TEST_CASE("the fuller it is, the shorter a packet may wait") {
    Pacer pacer(4);
    CHECK(pacer.patience(100) == 100);
    pacer.hold(1, PortId{1}, packet(1));
    CHECK(pacer.patience(100) == 75);
    for (std::uintptr_t i = 2; i <= 4; ++i) pacer.hold(1, PortId{1}, packet(i));
    CHECK(pacer.patience(100) == 0);
}
