// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/bundle.hpp"

#include <catch2/catch.hpp>

namespace sluice::openflow {
namespace {

constexpr std::uint32_t kId = 5;
constexpr std::uint16_t kFlags = kBundleAtomic | kBundleOrdered;
const Bundles::Time kNow = Bundles::Time{} + std::chrono::hours(1);

enum class State { absent, open, closed };
enum class Request { open, add, close, commit, discard };

struct Fixture {
    std::size_t octets = 0;
    Bundles bundles{{.bundles = 2, .messages = 3, .octets = 1000}, octets};
    Bytes message = Bytes(100, 0);

    BundleControl control(std::uint16_t flags = kFlags) const {
        return {kId, BundleType::open_request, flags};
    }
    BundleAdd adding(std::uint16_t flags = kFlags) const {
        return {kId, flags, Kind::flow_mod, {}};
    }
    void reach(State state) {
        if (state == State::absent) return;
        REQUIRE_FALSE(bundles.open(control(), message, kNow));
        if (state == State::closed) REQUIRE_FALSE(bundles.close(control(), kNow));
    }
    std::optional<ErrorCode> request(Request what) {
        switch (what) {
            case Request::open:
                return bundles.open(control(), message, kNow);
            case Request::add:
                return bundles.admit(adding(), message, kNow);
            case Request::close:
                return bundles.close(control(), kNow);
            case Request::commit: {
                const auto wrong = bundles.may_commit(control());
                bundles.commit(kId);
                return wrong;
            }
            case Request::discard:
                return bundles.discard(control());
        }
        return std::nullopt;
    }
    State state() const {
        const Bundle* bundle = bundles.find(kId);
        if (bundle == nullptr) return State::absent;
        return bundle->state == Bundle::State::open ? State::open : State::closed;
    }
};

}  // namespace

TEST_CASE("every request in every state of a bundle does what its table says") {
    using enum Request;
    struct Cell {
        State before;
        Request request;
        std::optional<ErrorCode> answer;
        State after;
    };
    const std::optional<ErrorCode> fine;
    const Cell cells[] = {
        {State::absent, open, fine, State::open},
        {State::absent, add, fine, State::open},
        {State::absent, close, error::kBundleBadId, State::absent},
        {State::absent, commit, error::kBundleBadId, State::absent},
        {State::absent, discard, error::kBundleBadId, State::absent},
        {State::open, open, error::kBundleExists, State::open},
        {State::open, add, fine, State::open},
        {State::open, close, fine, State::closed},
        {State::open, commit, fine, State::absent},
        {State::open, discard, fine, State::absent},
        {State::closed, open, error::kBundleExists, State::closed},
        {State::closed, add, error::kBundleClosed, State::closed},
        {State::closed, close, error::kBundleClosed, State::closed},
        {State::closed, commit, fine, State::absent},
        {State::closed, discard, fine, State::absent},
    };
    for (const Cell& cell : cells) {
        Fixture fixture;
        fixture.reach(cell.before);
        CAPTURE(static_cast<int>(cell.before), static_cast<int>(cell.request));
        CHECK(fixture.request(cell.request) == cell.answer);
        CHECK(fixture.state() == cell.after);
    }
}

TEST_CASE("flags that differ or are unknown are refused") {
    Fixture fixture;
    CHECK(fixture.bundles.open(fixture.control(4), fixture.message, kNow) ==
          error::kBundleBadFlags);
    fixture.reach(State::open);
    CHECK(fixture.bundles.admit(fixture.adding(0), fixture.message, kNow) ==
          error::kBundleBadFlags);
    CHECK(fixture.bundles.close(fixture.control(0), kNow) == error::kBundleBadFlags);
    CHECK(fixture.bundles.may_commit(fixture.control(0)) == error::kBundleBadFlags);
}

TEST_CASE("a bundle of which a message was refused fails at its commit") {
    Fixture fixture;
    fixture.reach(State::open);
    fixture.bundles.refuse(kId);
    CHECK(fixture.request(Request::commit) == error::kBundleFailed);
    CHECK(fixture.state() == State::absent);
}

TEST_CASE("bundles are bounded in number, messages and octets, and give back what they held") {
    Fixture fixture;
    for (std::uint32_t id = 1; id <= 2; ++id)
        REQUIRE_FALSE(
            fixture.bundles.open({id, BundleType::open_request, kFlags}, fixture.message, kNow));
    CHECK(fixture.request(Request::open) == error::kOutOfBundles);
    REQUIRE_FALSE(fixture.bundles.discard({1, BundleType::discard_request, kFlags}));
    for (int i = 0; i < 3; ++i) {
        REQUIRE_FALSE(fixture.request(Request::add));
        fixture.bundles.add(kId, make_modification(FlowMod{}, fixture.message), 300);
    }
    CHECK(fixture.request(Request::add) == error::kBundleTooMany);
    CHECK(fixture.octets == 900);
    const BundleAdd other{2, kFlags, Kind::flow_mod, {}};
    const Bytes large(101, 0);
    CHECK(fixture.bundles.admit(other, large, kNow) == error::kBundleTooMany);
    CHECK(fixture.bundles.commit(kId).messages.size() == 3);
    CHECK(fixture.octets == 0);
}

TEST_CASE("a bundle that nobody uses expires") {
    Fixture fixture;
    fixture.reach(State::open);
    CHECK(fixture.bundles.expire(kNow).empty());
    CHECK(fixture.bundles.expire(kNow + std::chrono::seconds(1)).size() == 1);
    CHECK(fixture.state() == State::absent);
}

}  // namespace sluice::openflow
