// SPDX-License-Identifier: Apache-2.0
#include "controller/southbound/difference.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "controller/compiler/gateway_tables.hpp"
#include "dataplane/openflow/memory_backend.hpp"

namespace sluice::southbound {
namespace {

using namespace openflow;

Entry host(std::uint32_t number, std::uint64_t cookie) {
    return HostRow{HostId{number}, {IpAddress::v4(be32{number})}, Cookie{cookie}}.encode();
}
Entry vni(std::uint32_t number) {
    return VniRow{Vni{number}, VpcId{1}, Cookie{1}}.encode();
}

// Some of twenty hosts, each with one of two cookies; some of ten meters.
struct Some {
    std::map<std::uint32_t, std::uint64_t> hosts, meters;
};
Some some() {
    const auto numbers = [](int below) {
        const auto pairs = *rc::gen::arbitrary<std::vector<std::pair<std::uint8_t, bool>>>();
        std::map<std::uint32_t, std::uint64_t> result;
        for (const auto& [number, other] : pairs)
            result[1 + number % static_cast<std::uint32_t>(below)] = other ? 2 : 1;
        return result;
    };
    return {numbers(20), numbers(10)};
}

}  // namespace

TEST_CASE("the difference leads from any state to any other, and is no larger than it must be") {
    rc::prop("hosts and meters", [] {
        const Some from = some(), to = some();
        MemoryBackend backend("memory", {&kHostSchema});
        compiler::GatewayTables desired;
        Actual actual;
        Changes start;
        for (const auto& [number, cookie] : from.hosts) start.put.push_back(host(number, cookie));
        for (const auto& [number, rate] : from.meters)
            start.put_meters.push_back({MeterId{number}, static_cast<std::uint32_t>(rate), 1});
        for (const Entry& entry : start.put) actual.entries[entry.key] = entry;
        for (const Meter& meter : start.put_meters) actual.meters[meter.id] = meter;
        backend.apply(start);
        for (const auto& [number, cookie] : to.hosts) desired.put(host(number, cookie));
        for (const auto& [number, rate] : to.meters)
            desired.put(Meter{MeterId{number}, static_cast<std::uint32_t>(rate), 1});

        const auto digests = backend.digests();
        actual.tables = differing(desired.digests(), digests);
        RC_ASSERT(actual.tables.contains(kHost) == (from.hosts != to.hosts));
        RC_ASSERT(actual.tables.contains(kMeterDigest) == (from.meters != to.meters));
        if (!actual.tables.contains(kHost)) actual.entries.clear();  // not read
        if (!actual.tables.contains(kMeterDigest)) actual.meters.clear();
        const Changes changes = difference(desired, actual);
        std::size_t needed = 0;
        for (const auto& [number, cookie] : to.hosts)
            needed += from.hosts.contains(number) && from.hosts.at(number) == cookie ? 0 : 1;
        RC_ASSERT(changes.put.size() == needed);
        backend.apply(changes);
        const auto after = backend.digests();
        RC_ASSERT(differing(desired.digests(), after).empty());
    });
}

TEST_CASE("a table that the switch does not name counts as empty") {
    const std::vector<TableDigest> none;
    const std::vector<TableDigest> desired = {{kVni, 0, 0}, {kHost, 1, 7}};
    CHECK(differing(desired, none) == std::set<std::uint8_t>{kHost});
}

TEST_CASE("what was published while tables were read is added for those that were not") {
    Changes changes, first, second;
    first.put = {vni(1), vni(2), host(1, 1)};
    first.put_meters = {{MeterId{1}, 1, 1}};
    second.remove = {vni(1).key};
    second.put_meters = {{MeterId{1}, 2, 2}};
    const std::vector<Changes> later = {first, second};
    append_unread(changes, later, {kHost});
    CHECK(changes.put == std::vector<Entry>{vni(2)});
    CHECK(changes.remove == std::vector<EntryKey>{vni(1).key});
    CHECK(changes.put_meters == std::vector<Meter>{{MeterId{1}, 2, 2}});
}

}  // namespace sluice::southbound
