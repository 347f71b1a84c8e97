// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/tables.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>

#include "dataplane/wire/builder.hpp"

namespace sluice::control {
namespace {

using namespace wire::build;

constexpr VpcId kVpc{4};

struct Fixture {
    std::filesystem::path folder;
    config::Config config;
    std::vector<port::Port> ports;
    policy::Pipeline pipeline{{}};
    neighbour::Time now{};
    std::unique_ptr<state::State> file;
    std::unique_ptr<Tables> tables;

    Fixture() {
        std::string name = (std::filesystem::temp_directory_path() / "tables_XXXXXX").string();
        folder = mkdtemp(name.data());
        config.workers = {0};
        config.vteps = {"192.0.2.1"_ip};
        config.sessions.capacity = config.sessions.ipv6_capacity = 1024;
        config.ports.resize(1);
        config.ports[0].neighbours = {{"192.0.2.9"_ip, "02:00:00:00:00:09"_mac}};
        ports.resize(1);
        ports[0].id = PortId{1};
        ports[0].mtu = 1600;
        ports[0].addresses = {{"192.0.2.1"_ip, 96 + 24}, {"192.0.2.129"_ip, 96 + 24}};
        ports[0].next_hops = {"192.0.2.254"_ip};
        open();
    }
    ~Fixture() { std::filesystem::remove_all(folder); }
    Fixture(const Fixture&) = delete;
    Fixture& operator=(const Fixture&) = delete;

    void open() {
        tables.reset();
        file.reset();
        auto opened = state::State::open(folder);
        REQUIRE(opened.ok());
        file = std::move(*opened);
        auto created = Tables::create(config, ports, pipeline, now);
        REQUIRE(created.ok());
        tables = std::move(*created);
    }
    [[nodiscard]] std::size_t entries(std::uint8_t table) const {
        return tables->store.current().tables[table].entries.size();
    }
};

openflow::Changes one_endpoint() {
    openflow::EndpointRow endpoint{kVpc,        "10.0.0.5"_ip, EndpointId{21},
                                   SubnetId{8}, HostId{9},     "02:aa:00:00:00:01"_mac,
                                   {},          Cookie{21}};
    return {{openflow::VniRow{Vni{100}, kVpc, Cookie{4}}.encode(), endpoint.encode(),
             openflow::HostRow{HostId{9}, {"192.0.2.9"_ip}, Cookie{9}}.encode()},
            {},
            {},
            {}};
}

}  // namespace

TEST_CASE("the gateway's own addresses are no host's VTEP", "[tables]") {
    Fixture f;
    const auto refusal = [&](IpAddress vtep) {
        const auto wrong =
            f.tables->store.check(openflow::HostRow{HostId{9}, {vtep}, Cookie{9}}.encode());
        return wrong ? wrong->error.message : "taken";
    };
    CHECK(refusal("192.0.2.1"_ip) ==
          "192.0.2.1 cannot be a host's VTEP: it is the gateway's own VTEP");
    CHECK(refusal("192.0.2.129"_ip) ==
          "192.0.2.129 cannot be a host's VTEP: it is the gateway's own address on port 1 "
          "(underlay)");
    // A next hop may well be a switch with a VTEP; so may a static neighbour.
    CHECK(refusal("192.0.2.254"_ip) == "taken");
    CHECK(refusal("192.0.2.9"_ip) == "taken");
}

TEST_CASE("a commit is visible, on disk, and settled once the workers were quiescent", "[tables]") {
    Fixture f;
    f.tables->qsbr.online(0);
    const auto token = f.tables->commit(one_endpoint(), f.file.get(), f.now);
    REQUIRE(token.ok());
    CHECK(f.entries(openflow::kEndpoint) == 1);
    CHECK_FALSE(f.tables->qsbr.elapsed(*token));
    f.tables->qsbr.quiescent(0);
    CHECK(f.tables->qsbr.elapsed(*token));
    const auto stored = f.file->load();
    REQUIRE(stored.ok());
    CHECK(stored->tables.put.size() == 3);
    CHECK(stored->generation == f.tables->store.current().generation);
    const auto opened = f.tables->take_opened();
    REQUIRE(opened.size() == 1);
    CHECK(opened[0].vpc == kVpc);
}

TEST_CASE("what is refused is neither visible nor on disk", "[tables]") {
    Fixture f;
    auto changes = one_endpoint();
    changes.put[1].set.clear();
    const auto generation = f.tables->store.current().generation;
    CHECK_FALSE(f.tables->commit(changes, f.file.get(), f.now).ok());
    CHECK(f.entries(openflow::kVni) == 0);
    CHECK(f.tables->store.current().generation == generation);
    const auto stored = f.file->load();
    REQUIRE(stored.ok());
    CHECK(stored->tables.empty());
}

TEST_CASE("the next process starts with what the last one committed", "[tables]") {
    Fixture f;
    REQUIRE(f.tables->commit(one_endpoint(), f.file.get(), f.now).ok());
    f.open();
    CHECK(f.entries(openflow::kEndpoint) == 0);
    const auto stored = f.file->load();
    REQUIRE(stored.ok());
    REQUIRE(f.tables->commit(stored->tables, nullptr, f.now).ok());
    CHECK(f.entries(openflow::kEndpoint) == 1);
    CHECK(f.tables->reachability.counts().hosts == 1);
    CHECK(f.tables->reachability.counts().unreachable_hosts == 0);
}

TEST_CASE("a removed endpoint leaves no record behind", "[tables]") {
    Fixture f;
    const auto changes = one_endpoint();
    REQUIRE(f.tables->commit(changes, nullptr, f.now).ok());
    openflow::Changes removal;
    for (const auto& entry : changes.put) removal.remove.push_back(entry.key);
    const auto used = f.tables->adjacencies.used();
    REQUIRE(f.tables->commit(removal, nullptr, f.now).ok());
    f.tables->reclaim();
    CHECK(f.tables->adjacencies.used() == used - 2);
    CHECK(f.tables->reachability.counts().places == 0);
    CHECK(f.tables->reachability.counts().hosts == 0);
}

}  // namespace sluice::control
