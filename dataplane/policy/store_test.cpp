// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/store.hpp"

#include <atomic>
#include <thread>

#include "tests/unit/policy_world.hpp"

namespace sluice::policy {
namespace {

using namespace tests;
using openflow::Changes;

struct Small : World {
    Small() {
        build_vpc();
        open_group();
        a = add_machine(5);
    }
    [[nodiscard]] ZoneSlot slot(std::uint32_t vpc = 1) const {
        return store.current().core.vpcs.find(VpcId{vpc})->slot;
    }
    [[nodiscard]] bool concerned(std::uint32_t vpc = 1) const {
        return store.changed()[slot(vpc).value].load() == store.current().generation.value;
    }
    Machine a;
};

TEST_CASE("an entry is as old as its last addition; a modification leaves its age") {
    World world;
    const auto at = [](int seconds) { return Store::Time{} + std::chrono::seconds(seconds); };
    const auto put = [&](const openflow::RouteRow& row, int seconds) {
        openflow::Changes changes;
        changes.put = {row.encode()};
        auto prepared = world.store.prepare(changes, at(seconds));
        REQUIRE(prepared.ok());
        world.store.publish(*std::move(prepared), [](const Delta&) {});
        return world.store.current().record(row.encode().key)->added;
    };
    openflow::RouteRow row{
        RouteTableId{1}, block("10.0.0.0/16"), openflow::NextHop::local, {}, Cookie{4}};
    CHECK(put(row, 10) == at(10));
    CHECK(put(row, 20) == at(10));  // the same again
    row.next_hop = openflow::NextHop::blackhole;
    CHECK(put(row, 30) == at(10));
    row.cookie = Cookie{5};  // another entry in its place
    CHECK(put(row, 40) == at(40));
}

TEST_CASE_METHOD(Small, "a bundle that is refused changes nothing and takes nothing") {
    const auto generation = store.current().generation;
    const auto digests = store.current().digests();
    const auto used = adjacencies.used();
    const Machine b{VpcId{1},  EndpointId{9},  SubnetId{11},
                    HostId{1}, ip("10.0.1.9"), mac("02:00:00:00:00:09"),
                    {}};
    Changes changes;
    changes.put = {
        b.row().encode(), b.source().encode(),
        nfv::ElasticIpRow{b.vpc, b.address, ip("203.0.113.9"), MeterId{77}, {}}.encode()};
    CHECK(refused(changes).code == Error::Code::not_found);  // the meter
    CHECK(store.current().generation == generation);
    CHECK(store.current().digests() == digests);
    CHECK(adjacencies.used() == used);
}

TEST_CASE_METHOD(Small, "a bundle that is prepared and then dropped changes nothing either") {
    const auto used = adjacencies.used();
    Changes changes;
    changes.put = {Machine{VpcId{1},
                           EndpointId{9},
                           SubnetId{11},
                           HostId{1},
                           ip("10.0.1.9"),
                           mac("02:00:00:00:00:09"),
                           {}}
                       .row()
                       .encode()};
    {
        const auto prepared = store.prepare(changes);
        REQUIRE(prepared.ok());
        CHECK(adjacencies.used() == used + 2);
        CHECK(store.current().core.endpoints.find({VpcId{1}, ip("10.0.1.9")}) == nullptr);
    }
    CHECK(adjacencies.used() == used);
}

TEST_CASE_METHOD(Small, "entries of unknown and of built-in tables are refused") {
    Changes changes;
    auto entry = a.row().encode();
    entry.key.table = 7;
    changes.put = {entry};
    CHECK(refused(changes).code == Error::Code::not_found);
    changes.put = {openflow::PortRow{PortId{9}, Side::uplink}.encode()};
    CHECK(refused(changes).code == Error::Code::read_only);
    changes.put.clear();
    changes.remove = {openflow::PortRow{PortId{1}, Side::uplink}.encode().key};
    CHECK(refused(changes).code == Error::Code::read_only);
}

TEST_CASE_METHOD(Small, "applying a bundle twice is applying it once") {
    const auto digests = store.current().digests();
    put(a.row(), a.source());
    CHECK(store.current().digests() == digests);
    CHECK(last.endpoints.empty());
    CHECK_FALSE(concerned());  // nothing differed
    remove(openflow::VniRow{Vni{777}, VpcId{7}, {}});
    CHECK(store.current().digests() == digests);
}

TEST_CASE_METHOD(Small, "the digest of a table depends on its entries, not on their history") {
    const auto digests = store.current().digests();
    const Machine b = add_machine(6);
    CHECK(store.current().digests() != digests);
    remove(b.row(), b.source());
    CHECK(store.current().digests() == digests);
    put_meter(MeterId{3}, 1000);
    CHECK(store.current().digests() != digests);
    Changes changes;
    changes.remove_meters = {MeterId{3}};
    commit(changes);
    CHECK(store.current().digests() == digests);
}

TEST_CASE_METHOD(Small, "every entry is found by its key and visited once") {
    unsigned count = 0;
    for (const auto* schema : store.current().pipeline->tables())
        store.current().tables[schema->id].entries.visit([&](const EntryRecord& record) {
            CHECK(store.current().find(record.entry.key) == &record.entry);
            ++count;
            return true;
        });
    CHECK(count == 2 + 1 + 4 + 2 + 2 + 4 + 2);
}

TEST_CASE_METHOD(Small, "a meter that entries draw from may change, but not go") {
    put_meter(MeterId{5}, 1000);
    put(nfv::ElasticIpRow{a.vpc, a.address, ip("203.0.113.9"), MeterId{5}, {}});
    Changes changes;
    changes.remove_meters = {MeterId{5}};
    CHECK(refused(changes).code == Error::Code::not_found);
    put_meter(MeterId{5}, 2000);
    REQUIRE(last.meters.size() == 1);
    CHECK(last.meters[0].before->rate_kbps == 1000);
    CHECK(last.meters[0].after->rate_kbps == 2000);
    // Entry and meter in one bundle.
    changes.remove = {nfv::ElasticIpRow{a.vpc, a.address, ip("203.0.113.9"), {}, {}}.encode().key};
    commit(changes);
    CHECK(store.current().meters().empty());
}

TEST_CASE_METHOD(Small, "an endpoint that changes in place keeps its indexes") {
    const auto before = *store.current().core.endpoints.find({a.vpc, a.address});
    a.host = HostId{1};
    a.groups = {kOpen, GroupId{4}};
    put(a.row());
    const auto after = *store.current().core.endpoints.find({a.vpc, a.address});
    CHECK(after.routed == before.routed);
    CHECK(after.bridged == before.bridged);
    REQUIRE(last.endpoints.size() == 1);
    CHECK(last.endpoints[0].before->host == before.host);
    CHECK(last.endpoints[0].after->host == HostId{1});
}

TEST_CASE_METHOD(Small, "a recycled address inherits nothing from its last owner") {
    const auto before = *store.current().core.endpoints.find({a.vpc, a.address});
    Machine heir = a;
    heir.id = EndpointId{999};
    Changes changes;
    changes.put = {heir.row().encode(), heir.source().encode()};
    commit(changes);
    const auto after = *store.current().core.endpoints.find({a.vpc, a.address});
    CHECK(after.routed != before.routed);
    CHECK(after.endpoint == heir.id);
    CHECK(store.current().core.senders.find({a.id, a.mac}) == nullptr);
}

TEST_CASE_METHOD(Small, "an endpoint has one address of a family") {
    Machine second = a;
    second.address = ip("10.0.1.55");
    Changes changes;
    changes.put = {second.row().encode()};
    CHECK(refused(changes).code == Error::Code::conflict);
    changes.remove = {a.row().encode().key};  // unless the other goes
    commit(changes);
    CHECK(store.current().core.endpoint(a.id, Family::ipv4)->key.address == second.address);
}

TEST_CASE_METHOD(Small, "freed indexes and zones rest until every reader has moved on") {
    qsbr.online(0);
    const auto used = adjacencies.used();
    const SourceIndex source = store.current().core.senders.find({a.id, a.mac})->source;
    const ZoneSlot zone = slot();
    remove(a.row(), a.source(), openflow::VniRow{Vni{5001}, VpcId{1}, {}});
    store.reclaim();
    CHECK(adjacencies.used() == used);
    put(openflow::VniRow{Vni{5002}, VpcId{2}, {}});
    CHECK(slot(2) != zone);
    qsbr.quiescent(0);
    store.reclaim();
    CHECK(adjacencies.used() == used - 2);
    CHECK(sources.allocate() == source);
    qsbr.offline(0);
}

TEST_CASE("a zone is taken over only when nothing is counted under it any more") {
    reclaim::Qsbr qsbr(1);
    AdjacencyTable adjacencies(64);
    SourceTable sources(64);
    const Pipeline pipeline{{}};
    bool vacant = false;
    Store store({.adjacencies = adjacencies,
                 .sources = sources,
                 .qsbr = qsbr,
                 .pipeline = pipeline,
                 .outside = {},
                 .ports = {},
                 .zone_capacity = 3,  // one VPC, besides the outside and nobody
                 .vacant = [&](ZoneSlot) { return vacant; }});
    const auto open = [&](std::uint32_t number) {
        Changes changes;
        changes.put = {openflow::VniRow{Vni{number}, VpcId{number}, {}}.encode()};
        auto prepared = store.prepare(changes);
        if (!prepared) return false;
        store.publish(std::move(*prepared), [](const Delta&) {});
        return true;
    };
    REQUIRE(open(1));
    Changes closing;
    closing.remove = {openflow::VniRow{Vni{1}, VpcId{1}, {}}.encode().key};
    auto prepared = store.prepare(closing);
    REQUIRE(prepared.ok());
    store.publish(std::move(*prepared), [](const Delta&) {});
    store.reclaim();
    CHECK_FALSE(open(2));
    vacant = true;
    store.reclaim();
    CHECK(open(2));
}

TEST_CASE_METHOD(Small, "a VPC whose settings change keeps its slot, and nobody is judged again") {
    const ZoneSlot zone = slot();
    Changes changes;
    openflow::Settings settings;
    settings.put(openflow::Setting::connections, 7);
    changes.put = {openflow::VniRow{Vni{5001}, VpcId{1}, Cookie{1}, settings}.encode()};
    const auto prepared = store.prepare(changes);
    REQUIRE(prepared.ok());
    CHECK(prepared->zones().empty());
    REQUIRE(prepared->delta().vpcs.size() == 1);
    CHECK(prepared->delta().vpcs[0].before->slot == zone);
    CHECK(prepared->delta().vpcs[0].after->slot == zone);
    CHECK(prepared->delta().vpcs[0].after->settings == settings);
}

TEST_CASE_METHOD(Small, "a zone that is taken over is marked before anybody sees it") {
    remove(openflow::VniRow{Vni{5001}, VpcId{1}, {}});
    Changes changes;
    changes.put = {openflow::VniRow{Vni{5003}, VpcId{3}, {}}.encode()};
    auto prepared = store.prepare(changes);
    REQUIRE(prepared.ok());
    REQUIRE(prepared->zones().size() == 1);
    const ZoneSlot zone = prepared->zones()[0];
    const Generation generation = prepared->next().generation;
    store.publish(*std::move(prepared), [&](const Delta& delta) {
        CHECK(store.changed()[zone.value].load() == generation.value);
        CHECK(store.root().load()->generation != generation);
        REQUIRE(delta.vpcs.size() == 1);
        CHECK(delta.vpcs[0].after->slot == zone);
    });
    CHECK(store.root().load()->generation == generation);
}

TEST_CASE_METHOD(Small, "a commit concerns the VPCs of its rows, and no other") {
    build_vpc(2);
    put(a.source());  // nothing differs
    const auto cases = [&](auto&& change) {
        change();
        return std::pair(concerned(1), concerned(2));
    };
    const auto first = std::pair(true, false);
    const auto none = std::pair(false, false);
    CHECK(cases([&] { add_machine(7); }) == first);
    CHECK(cases([&] {
              put(nfv::LocalRow{VpcId{1},
                                ip("10.0.1.1"),
                                kGatewayMac,
                                SubnetId{11},
                                120,
                                RouteTableId{1},
                                9000,
                                {}});
          }) == first);
    CHECK(cases([&] {
              put(openflow::RouteRow{
                  RouteTableId{1}, block("172.16.0.0/12"), openflow::NextHop::blackhole, {}, {}});
          }) == first);
    CHECK(cases([&] {
              put(openflow::RouteRow{
                  RouteTableId{99}, block("172.16.0.0/12"), openflow::NextHop::blackhole, {}, {}});
          }) == none);
    CHECK(cases([&] {
              put(nfv::PublicAddressRow{ip("203.0.113.1"), VpcId{1}, a.address, {}, {}});
          }) == first);
    CHECK(cases([&] {  // from VPC 1 to VPC 2
              put(nfv::PublicAddressRow{ip("203.0.113.1"), VpcId{2}, a.address, {}, {}});
          }) == std::pair(true, true));
    // A host that moves is reachability: its flows follow without being judged again.
    CHECK(cases([&] { put(openflow::HostRow{HostId{1}, {ip("192.0.2.77")}, {}}); }) == none);
    CHECK(last.hosts.size() == 1);
}

TEST_CASE_METHOD(Small, "hosts may share a VTEP, which is known until the last of them goes") {
    const openflow::HostRow twin{HostId{30}, {ip("192.0.2.12")}, {}};
    const Machine b = add_machine(6);
    put(twin);
    remove(twin);
    CHECK(fate(from(a, b.address)) == "forward");  // host 2 still has it
    remove(openflow::HostRow{HostId{2}, {ip("192.0.2.12")}, {}});
    CHECK(fate(from(a, b.address)) == "unknown_vtep");
}

TEST_CASE("a full table refuses the bundle as exhausted") {
    reclaim::Qsbr qsbr(1);
    AdjacencyTable adjacencies(4);
    SourceTable sources(4);
    Pipeline pipeline({&nfv::anti_spoof()});
    Store store({.adjacencies = adjacencies,
                 .sources = sources,
                 .qsbr = qsbr,
                 .pipeline = pipeline,
                 .outside = {},
                 .ports = {},
                 .zone_capacity = 2,
                 .meter_capacity = 1});
    Changes changes;
    changes.put = {openflow::VniRow{Vni{1}, VpcId{1}, {}}.encode(),
                   openflow::VniRow{Vni{2}, VpcId{2}, {}}.encode()};
    CHECK(store.prepare(changes).error().code == Error::Code::exhausted);
    changes.put.clear();
    for (std::uint32_t i = 1; i <= 2; ++i)
        changes.put.push_back(Machine{VpcId{1},
                                      EndpointId{i},
                                      SubnetId{1},
                                      HostId{1},
                                      IpAddress::v4(be32{i}),
                                      MacAddress::from_value(i),
                                      {}}
                                  .row()
                                  .encode());
    CHECK(store.prepare(changes).error().code == Error::Code::exhausted);
    changes.put.pop_back();
    CHECK(store.prepare(changes).ok());
    changes.put_meters = {{MeterId{1}, 1, 1}, {MeterId{2}, 1, 1}};
    CHECK(store.prepare(changes).error().code == Error::Code::exhausted);
}

// Under ThreadSanitizer: readers walk while the writer commits, publishes and reclaims.
TEST_CASE("workers walk while policy changes under them") {
    World world;
    world.build_vpc();
    world.open_group();
    const Machine a = world.add_machine(5);
    const Machine b = world.add_machine(6, 2);
    const Packet packet = world.from(a, b.address);
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> walks{0};
    bool consistent = true;
    std::thread reader([&] {
        world.qsbr.online(0);
        while (!stop.load()) {
            world.qsbr.quiescent(0);
            const Snapshot* snapshot = world.store.root().load(std::memory_order_acquire);
            const Plan plan = walk(*snapshot, packet, WalkMode::packet);
            // Rule and endpoint go together, in one bundle: never one without the other.
            const bool fits = plan.verdict == Verdict::forward
                                  ? plan.destination == b.id
                                  : plan.reason == DropReason::unknown_destination;
            consistent = consistent && fits;
            walks.fetch_add(1, std::memory_order_relaxed);
        }
        world.qsbr.offline(0);
    });
    Changes gone, back;
    nfv::RuleRow ingress;
    ingress.group = World::kOpen;
    ingress.cookie = Cookie{602};
    gone.remove = {b.row().encode().key, ingress.encode().key};
    back.put = {b.row().encode(), ingress.encode()};
    for (int i = 0; i < 200 || walks.load() < 1000; ++i) {
        world.commit(gone);
        world.commit(back);
    }
    stop.store(true);
    reader.join();
    CHECK(consistent);
}

}  // namespace
}  // namespace sluice::policy
