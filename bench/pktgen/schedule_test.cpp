// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/schedule.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "bench/pktgen/responder.hpp"
#include "dataplane/wire/neighbour.hpp"

using namespace sluice;
using namespace sluice::pktgen;

namespace {

Profile profile(const std::string& flows, const std::string& frames = "") {
    const auto reading = read("name = \"x\"\n[flows]\n" + flows + "\n[frames]\n" + frames +
                              "\n[[port]]\nrole = \"underlay\"\ndevice = \"net_null0\"\n"
                              "gateway = \"192.0.2.1\"\n");
    REQUIRE(reading.problems.empty());
    return reading.profile;
}

}  // namespace

TEST_CASE("in turn, every flow sends once before any sends again") {
    Schedule schedule(profile("count = 17"));
    for (std::uint32_t i = 0; i < 40; ++i) REQUIRE(schedule.next().lane == i % 17);
}

TEST_CASE(
    "the direction mix is exact over a hundred packets, and both directions visit all flows") {
    const auto made = profile("count = 7\nreverse_percent = 30");
    const Lanes lanes(made);
    Schedule schedule(made);
    std::vector<int> seen(lanes.count());
    int reverse = 0;
    for (int i = 0; i < 1'000; ++i) {
        const auto lane = schedule.next().lane;
        ++seen[lane];
        reverse += lanes.way(lane) == Way::reverse ? 1 : 0;
    }
    CHECK(reverse == 300);
    for (const int count : seen) CHECK(count >= 42);
}

TEST_CASE("IMIX is 28:16:4 over every 12 packets") {
    Schedule schedule(profile("count = 5", "mix = \"imix\""));
    for (int round = 0; round < 10; ++round) {
        int count[3] = {};
        for (int i = 0; i < 12; ++i) ++count[schedule.next().share];
        CHECK(count[0] == 7);
        CHECK(count[1] == 4);
        CHECK(count[2] == 1);
    }
}

TEST_CASE("flows are drawn with the weights of their distribution") {
    constexpr int kDraws = 400'000;
    for (const bool zipf : {false, true}) {
        Schedule schedule(profile(zipf ? "count = 100\ndistribution = \"zipf\"\nexponent = 1.2"
                                       : "count = 100\ndistribution = \"uniform\""));
        std::vector<int> seen(100);
        for (int i = 0; i < kDraws; ++i) ++seen[schedule.next().lane];
        double sum = 0;
        for (int i = 0; i < 100; ++i) sum += zipf ? std::pow(i + 1, -1.2) : 1;
        for (std::size_t i = 0; i < 100; ++i) {
            const double wanted = kDraws * (zipf ? std::pow(i + 1.0, -1.2) : 1) / sum;
            // Six standard deviations.
            CHECK(std::abs(seen[i] - wanted) < 6 * std::sqrt(wanted));
        }
    }
}

TEST_CASE("packets are due at the asked rate; what comes too late is skipped and counted") {
    Pacer pacer(1e6, 1e9, 0);
    CHECK(pacer.due(0, 32) == 0);
    CHECK(pacer.due(5'500, 32) == 5);
    pacer.sent(5);
    CHECK(pacer.due(5'500, 32) == 0);
    CHECK(pacer.due(100'000, 32) == 32);
    CHECK(pacer.skipped() == 0);
    // A millisecond without a turn: 1,000 more are due.
    pacer.sent(95);
    CHECK(pacer.due(1'100'000, 32) == 32);
    CHECK(pacer.skipped() == 1'000 - Pacer::kCatchUp);
    Pacer unlimited(0, 1e9, 0);
    CHECK(unlimited.due(1, 32) == 32);
    CHECK(unlimited.skipped() == 0);
}

TEST_CASE("the generator answers for its VTEPs, and learns the gateway's address from its answer") {
    const auto made = profile("");
    const MacAddress own = *parse_mac("02:00:00:00:00:02"),
                     gateway = *parse_mac("02:00:00:00:00:01");
    Responder responder(made, made.underlay(), own);
    std::uint8_t out[128], question[128];
    CHECK(!responder.gateway());
    const auto asked = wire::parse_arp({question, responder.question(question)});
    REQUIRE(asked);
    CHECK(asked->target.address == *parse_ip("192.0.2.1"));
    const wire::Neighbour from{*parse_ip("192.0.2.1"), gateway};
    const auto size = wire::write_arp_reply(question, from, asked->sender);
    CHECK(responder.answer({question, size}, out) == 0);
    CHECK(responder.gateway() == gateway);

    for (const auto& [address, plays] : {std::pair{"192.0.2.2", true},
                                         {"192.0.2.3", true},
                                         {"192.0.2.4", false},
                                         {"192.0.2.1", false}}) {
        const auto length = wire::write_arp_request(question, from, *parse_ip(address));
        const auto answer = wire::parse_arp({out, responder.answer({question, length}, out)});
        REQUIRE(answer.has_value() == plays);
        if (plays) CHECK(answer->sender == wire::Neighbour{*parse_ip(address), own});
    }
}
