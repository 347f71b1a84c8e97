// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/limits.hpp"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

using namespace sluice;
using namespace sluice::session;

namespace {

constexpr std::uint32_t kZone = 3, kOther = 4;
constexpr EndpointId kOne{7}, kTwo{8};
constexpr std::uint64_t kSecond = 1'000'000'000;

Limits make(const LimitDefaults& defaults = {}) {
    return Limits(map_memory, defaults, 16, 1024);
}

// Opens connections in a table of `capacity` until one is refused; nobody answers unless
// `answered`. How many, and what is free in the end.
struct Table {
    std::uint32_t free;
    std::uint32_t fill(Limits& limits, Limits::Claim claim, DropReason& why) {
        for (std::uint32_t opened = 0;; ++opened) {
            why = limits.check(claim, free);
            if (why != DropReason::none) return opened;
            limits.take(claim);
            --free;
        }
    }
};

Limits::Claim answered(std::uint32_t zone, EndpointId endpoint = {}) {
    return {0, zone, endpoint, false};
}
Limits::Claim unanswered(std::uint32_t zone, EndpointId endpoint = {}) {
    return {0, zone, endpoint, true};
}

}  // namespace

TEST_CASE("a lone VPC may have four fifths of the table; what is left is another's to share") {
    Limits limits = make();
    Table table{100'000};
    DropReason why{};
    const auto first = table.fill(limits, answered(kZone), why);
    CHECK(why == DropReason::vpc_connections);
    CHECK(first == Approx(80'000).margin(2));
    const auto second = table.fill(limits, answered(kOther), why);
    CHECK(why == DropReason::vpc_connections);
    CHECK(second == Approx(16'000).margin(2));
    CHECK(table.free > 3'000);
    // What the first gives up the second may have, until both have the same.
    for (int i = 0; i < 40'000; ++i) {
        limits.release(answered(kZone), false);
        ++table.free;
    }
    table.fill(limits, answered(kOther), why);
    CHECK(limits.use(kOther).connections[0] > 35'000);
}

TEST_CASE("what nobody answers gets a fifth of the table, one endpoint's a ninth") {
    Limits limits = make();
    Table table{90'000};
    DropReason why{};
    CHECK(table.fill(limits, unanswered(kZone, kOne), why) == Approx(10'000).margin(2));
    CHECK(why == DropReason::endpoint_half_open);
    for (std::uint32_t i = 0; why != DropReason::vpc_half_open; ++i)
        table.fill(limits, unanswered(kZone, EndpointId{100 + i}), why);
    CHECK(limits.use(kZone).half_open[0] == Approx(18'000).margin(2));
    // Connections that are answered are not concerned, nor are other VPCs.
    CHECK(limits.check(answered(kZone, kTwo), table.free) == DropReason::none);
    CHECK(limits.check(unanswered(kOther, kTwo), table.free) == DropReason::none);
}

TEST_CASE("an endpoint alone does not use up what its VPC may have") {
    Limits limits = make();
    Table table{100'000};
    DropReason why{};
    CHECK(table.fill(limits, answered(kZone, kOne), why) == Approx(50'000).margin(2));
    CHECK(why == DropReason::endpoint_connections);
    CHECK(table.fill(limits, answered(kZone, kTwo), why) > 20'000);
}

TEST_CASE("limits that are set hold over both families") {
    Limits limits = make();
    limits.set(kZone, {{5, 3, 0}, {}});
    Limits::Claim six = unanswered(kZone);
    six.family = 1;
    limits.take(unanswered(kZone));
    limits.take(six);
    CHECK(limits.check(six, 1000) == DropReason::none);
    limits.take(six);
    CHECK(limits.check(unanswered(kZone), 1000) == DropReason::vpc_half_open);
    CHECK(limits.check(answered(kZone), 1000) == DropReason::none);
    limits.take(answered(kZone));
    limits.take(answered(kZone));
    CHECK(limits.check(answered(kZone), 1000) == DropReason::vpc_connections);
    limits.set(kZone, {});
    CHECK(limits.check(answered(kZone), 1000) == DropReason::none);

    CHECK(limits.take(unanswered(kOther, kOne)));
    limits.set(kOther, {{}, {1, 0, 0}});
    CHECK(limits.check(unanswered(kOther, kOne), 1000) == DropReason::endpoint_connections);
    limits.set(kOther, {{}, {0, 1, 0}});
    CHECK(limits.check(unanswered(kOther, kOne), 1000) == DropReason::endpoint_half_open);
    CHECK(limits.check(answered(kOther, kOne), 1000) == DropReason::none);
    limits.set(kOther, {{}, {1, 1, 0}});
    CHECK(limits.check(unanswered(kOther, kTwo), 1000) == DropReason::none);
}

TEST_CASE("an answer and an end give back what they took") {
    Limits limits = make();
    for (int i = 0; i < 3; ++i) CHECK(limits.take(unanswered(kZone, kOne)));
    limits.answered(unanswered(kZone, kOne), true);
    CHECK(limits.use(kOne).connections[0] == 3);
    CHECK(limits.use(kOne).half_open[0] == 2);
    limits.release(answered(kZone, kOne), true);
    limits.release(unanswered(kZone, kOne), true);
    limits.release(unanswered(kZone, kOne), true);
    CHECK(limits.use(kOne).connections[0] == 0);
    CHECK(limits.use(kOne).half_open[0] == 0);
    CHECK(limits.use(kZone).connections[0] == 0);
    CHECK(limits.use(kZone).half_open[0] == 0);
}

TEST_CASE("what an endpoint has of one family takes nothing of its share of the other's table") {
    Limits limits = make();
    Table large{100'000}, small{20'000};
    DropReason why{};
    large.fill(limits, unanswered(kZone, kOne), why);
    CHECK(why == DropReason::endpoint_half_open);
    large.fill(limits, answered(kZone, kOne), why);
    CHECK(why == DropReason::endpoint_connections);
    const Limits::Claim ipv6{1, kZone, kOne, true};
    CHECK(small.fill(limits, ipv6, why) == Approx(20'000 / 9).margin(2));
    CHECK(limits.use(kOne).half_open[1] == limits.use(kOne).connections[1]);
    const auto before = limits.use(kOne);
    limits.release(ipv6, true);
    limits.release(answered(kZone, kOne), true);
    CHECK(limits.use(kOne).connections[0] == before.connections[0] - 1);
    CHECK(limits.use(kOne).connections[1] == before.connections[1] - 1);
    CHECK(limits.use(kOne).half_open[1] == before.half_open[1] - 1);
    // A limit that somebody has set is of both together.
    limits.set(kZone, {{}, {before.connections[0], 0, 0}});
    CHECK(limits.check(ipv6, 20'000) == DropReason::endpoint_connections);
}

TEST_CASE("more endpoints than there are places: the rest count towards their VPC alone") {
    Limits limits(map_memory, {}, 16, 8);
    std::vector<bool> counted;
    for (std::uint32_t i = 1; i <= 9; ++i)
        counted.push_back(limits.take(unanswered(kZone, EndpointId{i})));
    CHECK(std::count(counted.begin(), counted.end(), true) == 8);
    limits.set(kZone, {{}, {1, 1, 0}});
    CHECK(limits.check(unanswered(kZone, EndpointId{9}), 1000) == DropReason::none);
    for (std::uint32_t i = 1; i <= 9; ++i)
        limits.release(unanswered(kZone, EndpointId{i}), counted[i - 1]);
    CHECK(limits.use(kZone).connections[0] == 0);
    // A place that was left is another's.
    CHECK(limits.take(unanswered(kZone, EndpointId{10})));
}

TEST_CASE("an endpoint opens so many a second, and an eighth of that at once") {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.endpoint.per_second = 800;
    defaults.vpc.per_second = 1600;
    Limits limits = make(defaults);
    std::uint64_t now = kSecond;
    const auto attempts = [&](EndpointId endpoint, std::uint64_t until, DropReason reason) {
        int admitted = 0;
        for (; now < until; now += kSecond / 10'000) {
            const DropReason result = limits.charge(kZone, endpoint, now);
            if (result == DropReason::none)
                ++admitted;
            else
                CHECK(result == reason);
        }
        return admitted;
    };
    CHECK(attempts(kOne, 2 * kSecond, DropReason::endpoint_connection_rate) ==
          Approx(900).margin(2));
    CHECK(attempts(kTwo, 3 * kSecond, DropReason::endpoint_connection_rate) ==
          Approx(900).margin(2));
    CHECK(limits.charge(kZone, kTwo, now + kSecond) == DropReason::none);
    // An own limit replaces the default.
    now += kSecond;
    int admitted = 0;
    limits.set(kZone, {{}, {0, 0, 10}});
    for (int i = 0; i < 100; ++i)
        admitted += limits.charge(kZone, kOne, now) == DropReason::none ? 1 : 0;
    CHECK(admitted == 16);
}

TEST_CASE("how much is used of what may be, and what was refused, can be read") {
    Limits limits = make(LimitDefaults::none());
    limits.set(kZone, {{100, 50, 1000}, {10, 5, 40}});
    CHECK(limits.own(kZone) == VpcLimits{{100, 50, 1000}, {10, 5, 40}});
    CHECK(limits.vpc_limits(kZone, 1000).connections == 100);
    CHECK(limits.endpoint_limits(kZone, 1000).half_open == 5);
    CHECK(limits.endpoint_limits(kOther, 1000).per_second == 0);

    for (int i = 0; i < 30; ++i) (void)limits.charge(kZone, kOne, 5 * kSecond + i);
    CHECK(limits.refused(kOne).per_second == 14);
    CHECK(limits.use(kOne, 5 * kSecond).per_second == 0);  // the second is not over
    CHECK(limits.use(kOne, 6 * kSecond).per_second == 30);
    CHECK(limits.use(kZone, 6 * kSecond).per_second == 30);
    CHECK(limits.use(kZone, 7 * kSecond).per_second == 0);

    limits.take(unanswered(kZone, kOne));
    limits.refuse(kOne, DropReason::endpoint_half_open);
    limits.refuse(kOne, DropReason::vpc_half_open);  // not the endpoint's
    CHECK(limits.refused(kOne).half_open == 1);
    CHECK(limits.refused(kOne).connections == 0);
    std::vector<EndpointId> seen;
    limits.visit([&](EndpointId endpoint) { seen.push_back(endpoint); });
    CHECK(seen == std::vector{kOne});
}

TEST_CASE("a rate is that of the last whole second") {
    RecentRate rate;
    for (int i = 0; i < 7; ++i) rate.note(10 * kSecond + i);
    rate.note(11 * kSecond);
    rate.note(11 * kSecond);
    CHECK(rate.per_second(11 * kSecond) == 7);
    CHECK(rate.per_second(12 * kSecond) == 2);
    rate.note(20 * kSecond);
    CHECK(rate.per_second(20 * kSecond) == 0);
    CHECK(rate.per_second(21 * kSecond) == 1);
}

TEST_CASE("who is no endpoint, and who is outside, uses up nothing of the endpoints' rate") {
    LimitDefaults defaults = LimitDefaults::none();
    defaults.endpoint.per_second = 100;
    defaults.vpc.per_second = 400;
    Limits limits = make(defaults);
    DropReason unknown{}, outside{};
    constexpr std::uint64_t kAsked = 0x1234'0000'0000'0042, kNot = 0x9999'0000'0000'0042;
    for (int i = 0; i < 1000; ++i) {
        unknown = limits.charge(kZone, {}, kSecond);
        outside = limits.charge_outside(kAsked, kZone, kSecond);
    }
    CHECK(unknown == DropReason::vpc_connection_rate);
    CHECK(outside == DropReason::endpoint_connection_rate);
    CHECK(limits.charge(kZone, kOne, kSecond) == DropReason::none);
    // Another address outside, which nobody has asked for.
    CHECK(limits.charge_outside(kNot + 1, 0, kSecond) == DropReason::none);
    // Whose an address is, and since when.
    CHECK(limits.outside_owner(kAsked).zone == 0);
    limits.learn(kAsked, {kZone, Generation{0xfffffff0}});
    CHECK(limits.outside_owner(kAsked).zone == kZone);
    CHECK(limits.outside_owner(kAsked).generation == Generation{0xfffffff0});
    CHECK(limits.outside_owner(kNot).zone == 0);
    limits.learn(kNot, {kZone + 1, Generation{7}});
    CHECK(limits.outside_owner(kNot).zone == kZone + 1);
    CHECK(limits.outside_owner(kAsked).zone == 0);
}

TEST_CASE("workers count together without losing one") {
    Limits limits = make();
    constexpr int kRounds = 20'000;
    const auto work = [&](std::uint32_t first) {
        for (std::uint32_t i = 0; i < kRounds; ++i) {
            const auto claim = unanswered(kZone, EndpointId{1 + (first + i) % 5});
            const bool counts = limits.take(claim);
            (void)limits.check(claim, 1000);
            (void)limits.charge(kZone, claim.endpoint, i);
            if (i % 2 == 0) {
                limits.answered(claim, counts);
                limits.release(answered(kZone, claim.endpoint), counts);
            } else {
                limits.release(claim, counts);
            }
        }
    };
    std::vector<std::thread> workers;
    for (std::uint32_t i = 0; i < 3; ++i) workers.emplace_back(work, i);
    for (auto& worker : workers) worker.join();
    CHECK(limits.use(kZone).connections[0] == 0);
    CHECK(limits.use(kZone).half_open[0] == 0);
    for (std::uint32_t i = 1; i <= 5; ++i) {
        CHECK(limits.use(EndpointId{i}).connections[0] == 0);
        CHECK(limits.use(EndpointId{i}).half_open[0] == 0);
    }
}
