// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/counters.hpp"

#include <catch2/catch.hpp>

namespace sluice::telemetry {
namespace {

constexpr auto kReason = static_cast<std::size_t>(DropReason::spoofed_mac);

}  // namespace

TEST_CASE("the workers' counters are summed", "[telemetry]") {
    worker::WorkerCounters one(4, 2), other(4, 2);
    Counters counters({&one, &other});
    one.zone[3].drops[kReason].add(5);
    other.zone[3].drops[kReason].add(6);
    other.zone[3].connections_created.add(9);
    one.zone[3].connections_ended.add(2);
    one.port[2].sent.add(3);
    other.port[2].sent.add(4);
    CHECK(counters.zone(policy::ZoneSlot{3}).drops[kReason] == 11);
    CHECK(counters.zone(policy::ZoneSlot{3}).connections() == 7);
    CHECK(counters.port(PortId{2}).sent == 7);
    CHECK(counters.zone(policy::ZoneSlot{99}).drops[kReason] == 0);
}

TEST_CASE("a VPC that takes a slot starts from zero", "[telemetry]") {
    worker::WorkerCounters one(4, 1);
    Counters counters({&one});
    one.zone[1].drops[kReason].add(5);
    counters.opened(policy::ZoneSlot{1});
    CHECK(counters.zone(policy::ZoneSlot{1}).drops[kReason] == 0);
    one.zone[1].drops[kReason].add(1);
    CHECK(counters.zone(policy::ZoneSlot{1}).drops[kReason] == 1);
}

TEST_CASE("the busy ratio is that of the time since it was last asked for", "[telemetry]") {
    worker::WorkerCounters one(1, 1);
    Counters counters({&one});
    CHECK(counters.busy_ratio(0) == 0.0);
    one.busy_cycles.add(30);
    one.idle_cycles.add(10);
    CHECK(counters.busy_ratio(0) == 0.75);
    one.idle_cycles.add(10);
    CHECK(counters.busy_ratio(0) == 0.0);
}

}  // namespace sluice::telemetry
