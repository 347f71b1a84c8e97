// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/connections.hpp"

#include <catch2/catch.hpp>

#include "dataplane/wire/headers.hpp"

using namespace sluice::pktgen;
using namespace sluice::wire::tcp;

TEST_CASE("a connection is six packets, each sent when the one before it has arrived") {
    Connections connections(3);
    connections.open(1);
    Segment on_wire = connections.open(7);
    CHECK(on_wire == Segment{1, Way::forward, 8, 0, kSyn});
    const Segment expected[] = {{1, Way::reverse, 8, 9, kSyn | kAck},
                                {1, Way::forward, 9, 9, kAck},
                                {1, Way::forward, 9, 9, kFin | kAck},
                                {1, Way::reverse, 9, 10, kFin | kAck},
                                {1, Way::forward, 10, 10, kAck}};
    for (const auto& next : expected) {
        const auto answer =
            connections.arrive(on_wire.sequence, on_wire.acknowledgement, on_wire.flags);
        REQUIRE(answer.next);
        CHECK(*answer.next == next);
        CHECK(!answer.opened);
        on_wire = next;
    }
    const auto last = connections.arrive(on_wire.sequence, on_wire.acknowledgement, on_wire.flags);
    CHECK(!last.next);
    CHECK(last.opened == 7);
    CHECK(connections.counts().opened == 2);
    CHECK(connections.counts().answered == 1);
    CHECK(connections.counts().completed == 1);
    CHECK(connections.unfinished() == 1);
    CHECK(connections.counts().unexpected == 0);
}

TEST_CASE("what comes twice, too late or changed is unexpected and answered by nothing") {
    Connections connections(1);
    const Segment syn = connections.open(0);
    CHECK(!connections.arrive(syn.sequence, 5, syn.flags).next);
    CHECK(!connections.arrive(syn.sequence, 0, kSyn | kAck).next);
    CHECK(connections.arrive(syn.sequence, 0, syn.flags).next);
    CHECK(!connections.arrive(syn.sequence, 0, syn.flags).next);
    CHECK(!connections.arrive(4'000, 0, kSyn).next);
    CHECK(connections.counts().unexpected == 4);
    // The flow's next turn: what belongs to the former attempt is over.
    connections.open(1);
    CHECK(connections.counts().abandoned == 1);
    CHECK(!connections.arrive(0, 1, kSyn | kAck).next);
    CHECK(connections.counts().unexpected == 5);
    CHECK(connections.unfinished() == 1);
}
