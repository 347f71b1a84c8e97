// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/nat_log.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <vector>

#include "tests/unit/policy_world.hpp"

namespace sluice::control {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

session::BlockEvent event(bool assigned) {
    return {assigned,
            {NatGatewayId{7}, EndpointId{105}},
            be32{0xcb007109},
            session::PortSpace::udp,
            2048,
            90 * kSecond};
}

}  // namespace

TEST_CASE("a block's line says who has which ports since when") {
    tests::World world;
    world.build_vpc();
    world.add_machine(5);
    // It happened ten seconds ago.
    CHECK(
        nat_log_line(event(true), world.store.current(), 100 * kSecond, 1'700'000'010 * kSecond) ==
        R"({"time":"2023-11-14T22:13:20.000Z","event":"assigned","nat_gateway":7,"endpoint":105,)"
        R"("vpc":1,"private_address":"10.0.1.5","endpoint_cookie":1105,)"
        R"("public_address":"203.0.113.9","protocol":"udp","first_port":2048,"last_port":2111})");
}

TEST_CASE("a block of an endpoint that is gone is still told of") {
    tests::World world;
    CHECK(nat_log_line(event(false), world.store.current(), 0, 1'700'000'000 * kSecond) ==
          R"({"time":"2023-11-14T22:13:20.000Z","event":"released","nat_gateway":7,"endpoint":105,)"
          R"("public_address":"203.0.113.9","protocol":"udp","first_port":2048,"last_port":2111})");
}

TEST_CASE("the log begins with the start, and says what was lost") {
    tests::World world;
    const auto folder =
        std::filesystem::temp_directory_path() / ("sluice-nat-log-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    {
        auto log = NatLog::open(folder);
        REQUIRE(log.ok());
        (*log)->write(event(true), world.store.current(), 0);
        (*log)->lost(3);
        CHECK((*log)->lost() == 3);
        (*log)->flush();
    }
    std::ifstream file(folder / "nat.log");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0].find(R"("event":"started")") != std::string::npos);
    CHECK(lines[1].find(R"("event":"assigned")") != std::string::npos);
    CHECK(lines[2].find(R"("event":"lost","count":3)") != std::string::npos);
    std::filesystem::remove_all(folder);
    CHECK_FALSE(NatLog::open("/proc/no/such/folder").ok());
}

TEST_CASE("a log that was moved away or removed is begun anew, and nothing is lost") {
    tests::World world;
    const auto folder =
        std::filesystem::temp_directory_path() / ("sluice-nat-moved-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    const auto lines = [&](const char* name) {
        std::ifstream file(folder / name);
        unsigned count = 0;
        for (std::string line; std::getline(file, line);) ++count;
        return count;
    };
    auto log = NatLog::open(folder);
    REQUIRE(log.ok());
    const auto write = [&](unsigned times) {
        for (unsigned i = 0; i < times; ++i) (*log)->write(event(true), world.store.current(), 0);
        (*log)->flush();
    };
    write(1);
    std::filesystem::rename(folder / "nat.log", folder / "kept");
    write(2);
    CHECK(lines("kept") == 2);
    CHECK(lines("nat.log") == 2);
    std::filesystem::remove(folder / "nat.log");
    write(3);
    CHECK(lines("nat.log") == 3);
    CHECK((*log)->lost() == 0);
    std::filesystem::remove_all(folder);
    write(1);
    CHECK((*log)->lost() + lines("nat.log") == 1);
    std::filesystem::remove_all(folder);
}

}  // namespace sluice::control
