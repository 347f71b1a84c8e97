// SPDX-License-Identifier: Apache-2.0
#include "dataplane/neighbour/neighbour.hpp"

#include <catch2/catch.hpp>

namespace sluice::neighbour {
namespace {

using namespace std::chrono_literals;

const Key kHop{PortId{1}, IpAddress::v4(be32{0xc0000201})};
const MacAddress kMac = MacAddress::from_value(0x020000000001);
const MacAddress kOtherMac = MacAddress::from_value(0x020000000002);

struct Fixture {
    Neighbours neighbours;
    Time now{};

    void pass(std::chrono::milliseconds time) {
        for (const auto end = now + time; now < end;) {
            now += 100ms;
            neighbours.tick(now);
        }
    }
    // Brings the neighbour into a state, with nothing left to take.
    void reach(State state) {
        switch (state) {
            case State::incomplete:
                neighbours.want(kHop, now);
                break;
            case State::reachable:
                reach(State::incomplete);
                neighbours.heard(kHop, kMac, now);
                break;
            case State::probing:
                reach(State::reachable);
                pass(5s);
                break;
            case State::unreachable:
                reach(State::probing);
                pass(2s);
                break;
            case State::pinned:
                neighbours.pin(kHop, kMac);
                break;
        }
        REQUIRE(neighbours.state(kHop) == state);
        (void)neighbours.take_requests();
        (void)neighbours.take_changes();
    }
};

}  // namespace

TEST_CASE("a wanted neighbour is asked for at once, by broadcast", "[neighbour]") {
    Fixture f;
    f.neighbours.want(kHop, f.now);
    CHECK(f.neighbours.take_requests() == std::vector<Request>{{kHop, std::nullopt}});
    CHECK_FALSE(f.neighbours.mac(kHop));
}

TEST_CASE("an answer makes it reachable and is reported once", "[neighbour]") {
    Fixture f;
    f.reach(State::incomplete);
    f.neighbours.heard(kHop, kMac, f.now);
    f.neighbours.heard(kHop, kMac, f.now);
    CHECK(f.neighbours.take_changes() == std::vector<Change>{{kHop, kMac}});
    CHECK(f.neighbours.mac(kHop) == kMac);
}

TEST_CASE("a silent neighbour is probed by unicast, last by broadcast, then given up",
          "[neighbour]") {
    Fixture f;
    f.reach(State::reachable);
    f.pass(4900ms);
    CHECK(f.neighbours.take_requests().empty());
    f.pass(1200ms);
    CHECK(f.neighbours.take_requests() ==
          std::vector<Request>{{kHop, kMac}, {kHop, kMac}, {kHop, std::nullopt}});
    CHECK(f.neighbours.mac(kHop) == kMac);
    f.pass(500ms);
    CHECK(f.neighbours.take_changes() == std::vector<Change>{{kHop, std::nullopt}});
    CHECK(f.neighbours.state(kHop) == State::unreachable);
}

TEST_CASE("one that is gone is asked for slowly, for ever", "[neighbour]") {
    Fixture f;
    f.reach(State::unreachable);
    f.pass(20s);
    CHECK(f.neighbours.take_requests().size() == 10);
}

TEST_CASE("a failover is followed at once, whatever the state", "[neighbour]") {
    const auto state =
        GENERATE(State::incomplete, State::reachable, State::probing, State::unreachable);
    Fixture f;
    f.reach(state);
    f.neighbours.heard(kHop, kOtherMac, f.now);
    CHECK(f.neighbours.state(kHop) == State::reachable);
    CHECK(f.neighbours.take_changes() == std::vector<Change>{{kHop, kOtherMac}});
}

TEST_CASE("a pinned neighbour never changes and is never asked for", "[neighbour]") {
    Fixture f;
    f.reach(State::pinned);
    f.neighbours.heard(kHop, kOtherMac, f.now);
    f.neighbours.want(kHop, f.now);
    f.neighbours.release(kHop);
    f.neighbours.link_changed(kHop.port, f.now);
    f.pass(60s);
    CHECK(f.neighbours.mac(kHop) == kMac);
    CHECK(f.neighbours.take_requests().empty());
    CHECK(f.neighbours.take_changes().empty());
}

TEST_CASE("a link that changed asks its reachable neighbours without forgetting them",
          "[neighbour]") {
    const auto state = GENERATE(State::incomplete, State::reachable, State::unreachable);
    Fixture f;
    f.reach(state);
    f.neighbours.link_changed(kHop.port, f.now);
    f.neighbours.tick(f.now);
    CHECK(f.neighbours.take_requests().size() == 1);
    CHECK(f.neighbours.take_changes().empty());
}

TEST_CASE("another port's link changes nothing", "[neighbour]") {
    Fixture f;
    f.reach(State::reachable);
    f.neighbours.link_changed(PortId{2}, f.now);
    f.neighbours.tick(f.now);
    CHECK(f.neighbours.take_requests().empty());
}

TEST_CASE("each want needs its release", "[neighbour]") {
    Fixture f;
    f.neighbours.want(kHop, f.now);
    f.neighbours.want(kHop, f.now);
    f.neighbours.release(kHop);
    CHECK(f.neighbours.size() == 1);
    f.neighbours.release(kHop);
    f.neighbours.release(kHop);
    CHECK(f.neighbours.size() == 0);
}

TEST_CASE("nobody is learnt who is not wanted, nor a multicast MAC", "[neighbour]") {
    Fixture f;
    f.neighbours.heard(kHop, kMac, f.now);
    CHECK(f.neighbours.size() == 0);
    f.neighbours.want(kHop, f.now);
    f.neighbours.heard(kHop, MacAddress::from_value(0xffffffffffff), f.now);
    f.neighbours.heard(kHop, MacAddress{}, f.now);
    CHECK(f.neighbours.state(kHop) == State::incomplete);
}

}  // namespace sluice::neighbour
