// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/fragment_table.hpp"

#include <array>
#include <barrier>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

using namespace sluice;
using namespace sluice::session;
using sluice::wire::Piece;

namespace {

FragmentKey key(std::uint32_t identification, std::uint32_t vni = 100, std::uint8_t host = 11) {
    FragmentKey result;
    result.zone = Vni{vni};
    result.slot = vni == 0 ? 0 : vni % 7 + 1;
    result.identification = identification;
    result.protocol = 17;
    result.mac = MacAddress::from_value(0x02000000aa01);
    if (vni != 0) {
        result.vtep = IpAddress::v4(be32{0xc0000200U + host});
        result.sender = EndpointId{host};
    }
    result.source = IpAddress::v4(be32{0x0a000001});
    result.destination = IpAddress::v4(be32{0x0a000002});
    return result;
}

Piece piece(std::uint16_t offset, std::uint16_t length, bool last = false) {
    return {0, 17, offset, length, last};
}

// Packets are opaque to the table.
void* packet(std::uintptr_t number) {
    return reinterpret_cast<void*>(number);
}

struct Fixture {
    explicit Fixture(FragmentLimits limits = {}) : table(limits, HashSeed{}, 8) {}
    FragmentTable table;
    FragmentTable::Released released;
    Tick now{1000};

    FragmentVerdict first(const FragmentKey& which, const Piece& what) {
        return table.first(which, what, now, released);
    }
    FragmentVerdict later(const FragmentKey& which, const Piece& what, std::uintptr_t number = 1) {
        return table.later(which, what, packet(number), now, released).verdict;
    }
    void carry(const FragmentKey& which, std::uint32_t ports = 7) {
        table.decide(which, Transport{ports, 17}, released);
    }
};

}  // namespace

TEST_CASE("later fragments go by the ports of the first") {
    Fixture it;
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::pass);
    it.carry(key(1), 0x12345678);
    const auto answer = it.table.later(key(1), piece(800, 800), packet(1), it.now, it.released);
    CHECK(answer.verdict == FragmentVerdict::pass);
    CHECK(answer.transport.ports == 0x12345678);
    CHECK(answer.transport.protocol == 17);
    CHECK(it.table.datagrams() == 1);
    CHECK(it.later(key(1), piece(1600, 5, true)) == FragmentVerdict::pass);
    // All of it has come: nothing is kept.
    CHECK(it.table.datagrams() == 0);
}

TEST_CASE("fragments that come before the first are held for it, in their order") {
    Fixture it;
    CHECK(it.later(key(1), piece(1600, 5, true), 3) == FragmentVerdict::held);
    CHECK(it.later(key(1), piece(800, 800), 2) == FragmentVerdict::held);
    CHECK(it.table.held() == 2);
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::pass);
    it.carry(key(1));
    REQUIRE(it.released.count == 2);
    CHECK(it.released.packets[0] == packet(3));
    CHECK(it.released.packets[1] == packet(2));
    CHECK(it.table.held() == 0);
    CHECK(it.table.datagrams() == 0);
}

TEST_CASE("what follows a first fragment that was not carried is refused") {
    Fixture it;
    CHECK(it.later(key(1), piece(800, 800)) == FragmentVerdict::held);
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::pass);
    it.table.decide(key(1), std::nullopt, it.released);
    CHECK(it.released.count == 1);
    CHECK(it.later(key(1), piece(1600, 800)) == FragmentVerdict::refused);
}

TEST_CASE("a datagram with an overlap is refused whole, held fragments too") {
    Fixture it;
    CHECK(it.later(key(1), piece(800, 800)) == FragmentVerdict::held);
    CHECK(it.later(key(1), piece(808, 800)) == FragmentVerdict::overlap);
    CHECK(it.released.count == 1);
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::overlap);
    CHECK(it.later(key(1), piece(1600, 800)) == FragmentVerdict::overlap);
    CHECK(it.table.held() == 0);
}

TEST_CASE("an overlap while the first is judged lets nothing through afterwards") {
    Fixture it;
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::pass);
    CHECK(it.later(key(1), piece(792, 800)) == FragmentVerdict::overlap);
    it.carry(key(1));
    CHECK(it.later(key(1), piece(800, 800)) == FragmentVerdict::overlap);
}

TEST_CASE("copies of fragments are known") {
    Fixture it;
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::pass);
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::duplicate);
    it.carry(key(1));
    CHECK(it.later(key(1), piece(800, 800)) == FragmentVerdict::pass);
    CHECK(it.later(key(1), piece(800, 800)) == FragmentVerdict::duplicate);
}

TEST_CASE("every part of the identity tells datagrams apart") {
    Fixture it;
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::pass);
    it.carry(key(1));
    std::array<FragmentKey, 6> others;
    others.fill(key(1));
    others[0].zone = Vni{101};
    others[1].identification = 2;
    others[2].protocol = 6;
    others[3].mac = MacAddress::from_value(0x02000000aa02);
    others[4].vtep = IpAddress::v4(be32{0xc000020c});
    others[5].source = IpAddress::v4(be32{0x0a000003});
    for (const FragmentKey& other : others)
        CHECK(it.later(other, piece(800, 800)) == FragmentVerdict::held);
    CHECK(it.later(key(1), piece(800, 800)) == FragmentVerdict::pass);
}

TEST_CASE("a datagram whose first fragment never comes is given up after a second") {
    Fixture it;
    CHECK(it.later(key(1), piece(800, 800), 5) == FragmentVerdict::held);
    it.now.value += FragmentTable::kWait;
    CHECK_FALSE(it.table.expire(it.now, 4096, it.released));
    ++it.now.value;
    CHECK(it.table.expire(it.now, 4096, it.released));
    REQUIRE(it.released.count == 1);
    CHECK(it.released.packets[0] == packet(5));
    CHECK(it.table.datagrams() == 0);
    CHECK_FALSE(it.table.expire(it.now, 4096, it.released));
}

TEST_CASE("an identification that comes again later is another datagram") {
    Fixture it;
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::pass);
    it.carry(key(1));
    it.now.value += FragmentTable::kLife + 1;
    CHECK(it.later(key(1), piece(800, 800), 5) == FragmentVerdict::held);
    CHECK(it.first(key(1), piece(0, 800)) == FragmentVerdict::pass);
}

TEST_CASE("a sender, a VPC and all together hold no more than their part") {
    const FragmentLimits limits{4096, 160, 4, 8};
    Fixture it(limits);
    const auto fill = [&](std::uint32_t vni, std::uint8_t host) {
        unsigned held = 0;
        for (std::uint32_t id = 0; id < 400; ++id)
            held += it.later(key(id, vni, host), piece(800, 800)) == FragmentVerdict::held ? 1 : 0;
        return held;
    };
    CHECK(fill(100, 11) == 20);
    CHECK(fill(100, 12) == 20);
    // The VPC has had its quarter.
    CHECK(fill(100, 13) == 0);
    CHECK(fill(200, 14) == 20);
    CHECK(fill(200, 15) == 20);
    CHECK(it.table.held() == 80);
    // One destination from the outside.
    CHECK(fill(0, 0) == 20);
}

TEST_CASE("a sender's datagrams are bounded, and a full table refuses without harm to others") {
    const FragmentLimits limits{64, 1024, 4, 8};
    Fixture it(limits);
    unsigned begun = 0;
    for (std::uint32_t id = 0; id < 100; ++id) {
        const auto verdict = it.first(key(id), piece(0, 800));
        if (verdict != FragmentVerdict::pass) continue;
        it.carry(key(id));
        ++begun;
    }
    CHECK(begun == 8);
    CHECK(it.later(key(0), piece(800, 800)) == FragmentVerdict::pass);
}

TEST_CASE("a VPC, and each of its senders, holds as many as was set for it") {
    Fixture it;
    const auto slot = key(1).slot;
    CHECK(it.table.vpc_bound(slot) == 256);
    it.table.set(slot, 5, 3);
    CHECK(it.table.vpc_bound(slot) == 5);
    const auto hold = [&](std::uint8_t host, std::uint32_t most = 20) {
        std::uint32_t held = 0;
        while (held < most &&
               it.later(key(held + 1, 100, host), piece(800, 800)) == FragmentVerdict::held)
            ++held;
        return held;
    };
    CHECK(hold(11) == 3);
    CHECK(hold(12) == 2);
    CHECK(it.table.held(slot) == 5);
    it.table.set(slot, 0, 0);
    CHECK(hold(13) == 20);
    // Not more than its share, whatever it sets for itself: the rest is the others'.
    it.table.set(slot, 1024, 1024);
    CHECK(it.table.vpc_bound(slot) == 256);
    CHECK(hold(14, 200) == 128);
    // Another VPC's are its own.
    CHECK(it.later(key(1, 101), piece(800, 800)) == FragmentVerdict::held);
    CHECK(it.table.held(key(1, 101).slot) == 1);
}

TEST_CASE("one datagram holds a bounded number of fragments") {
    Fixture it;
    for (std::uint16_t i = 1; i <= FragmentTable::kHeld; ++i)
        CHECK(it.later(key(1), piece(static_cast<std::uint16_t>(i * 800), 800)) ==
              FragmentVerdict::held);
    CHECK(it.later(key(1), piece(60000, 800)) == FragmentVerdict::full);
}

TEST_CASE("workers share a datagram: each fragment comes out once") {
    FragmentTable table({4096, 4096, 1, 1}, HashSeed{}, 8);
    constexpr std::uint32_t kDatagrams = 2000;
    std::atomic<unsigned> out{0}, wrong{0};  // Catch's assertions are one thread's
    // Neither runs far ahead: a bucket has room for four.
    std::barrier rounds(2);
    const auto work = [&](unsigned worker) {
        FragmentTable::Released released;
        for (std::uint32_t id = 0; id < kDatagrams; ++id) {
            if (id % 100 == 0) rounds.arrive_and_wait();
            if (worker == id % 2) {
                if (table.first(key(id), piece(0, 800), Tick{1}, released) != FragmentVerdict::pass)
                    continue;
                table.decide(key(id), Transport{id, 17}, released);
                out += 1 + released.count;
            } else {
                for (const std::uint16_t offset : {std::uint16_t{1600}, std::uint16_t{800}}) {
                    const auto answer = table.later(key(id), piece(offset, 800, offset == 1600),
                                                    packet(offset), Tick{1}, released);
                    if (answer.verdict == FragmentVerdict::pass)
                        ++(answer.transport.ports == id ? out : wrong);
                    else if (answer.verdict != FragmentVerdict::held)
                        ++wrong;
                }
            }
        }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    CHECK(wrong == 0);
    CHECK(out == 3 * kDatagrams);
    CHECK(table.held() == 0);
    CHECK(table.datagrams() == 0);
}
