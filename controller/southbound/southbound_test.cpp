// SPDX-License-Identifier: Apache-2.0
// The controller's and the gateway's end of OpenFlow in one process, over socketpairs.
#include "controller/southbound/southbound.hpp"

#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "controller/compiler/gateway_tables.hpp"
#include "controller/southbound/difference.hpp"
#include "dataplane/openflow/memory_backend.hpp"
#include "dataplane/openflow/switch.hpp"
#include "dataplane/openflow/tables.hpp"

using namespace sluice;
using namespace sluice::openflow;
using namespace std::chrono_literals;
using southbound::GatewayState;
using southbound::Southbound;

namespace {

std::vector<const TableSchema*> core() {
    const auto tables = core_tables();
    return {tables.begin(), tables.end()};
}

Entry vni(std::uint32_t number, std::uint32_t vpc) {
    return VniRow{Vni{number}, VpcId{vpc}, Cookie{number}}.encode();
}
Entry host(std::uint32_t number) {
    return HostRow{HostId{number}, {IpAddress::v4(be32{0xc0000200 + number})}, Cookie{number}}
        .encode();
}

// What no switch accepts.
Entry wrong(std::uint32_t number) {
    Entry entry = vni(number, number);
    entry.next = kHost;  // a table that vni does not lead to
    return entry;
}

struct Recorder : southbound::Listener {
    std::map<Cookie, std::string> withheld;
    std::vector<std::uint64_t> confirmed;
    std::vector<std::string> errors;
    std::vector<GatewayState> states;
    void on_confirmed(const std::string&, std::uint64_t revision) override {
        confirmed.push_back(revision);
    }
    void on_error(const std::string&, std::uint64_t, const std::string& sentence) override {
        errors.push_back(sentence);
    }
    void on_withheld(const southbound::GatewayInfo& gateway) override {
        withheld = gateway.withheld;
    }
    void on_gateway(const southbound::GatewayInfo& gateway) override {
        states.push_back(gateway.state);
    }
};

southbound::Settings quick(const std::chrono::milliseconds& ahead) {
    southbound::Settings settings;
    settings.answer = 400ms;
    settings.retry = 100ms;
    settings.connections = 8;
    settings.now = [&ahead] { return std::chrono::steady_clock::now() + ahead; };
    return settings;
}

struct Pair {
    boost::asio::io_context loop;
    MemoryBackend backend{"gw1", core()};
    compiler::GatewayTables desired;
    Recorder recorder;
    std::vector<std::string> log;
    std::unique_ptr<Switch> gateway = std::make_unique<Switch>(
        loop, backend, SwitchSettings{}, [this](const std::string& line) { log.push_back(line); });
    std::chrono::milliseconds ahead{0};  // of the real time
    Southbound controller{loop, quick(ahead),
                          [this](const std::string& name) -> const compiler::DesiredState* {
                              return known && name == "gw1" ? &desired : nullptr;
                          },
                          recorder, [this](const std::string& line) { log.push_back(line); }};
    bool known = true;

    Pair() { REQUIRE(gateway->start()); }
    ~Pair() { INFO(log.size()); }

    void connect() { controller.serve(ends()); }
    // The gateway's end is served; the other one is answered.
    Connection::Socket ends() {
        const boost::asio::generic::stream_protocol protocol(AF_UNIX, 0);
        int both[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
        gateway->serve(Connection::Socket(loop, protocol, both[0]));
        return {loop, protocol, both[1]};
    }
    void disconnect() {
        gateway = std::make_unique<Switch>(loop, backend, SwitchSettings{}, nullptr);
        REQUIRE(gateway->start());
        REQUIRE(run([this] { return info().state == GatewayState::disconnected; }));
    }
    bool run(const std::function<bool()>& until, std::chrono::milliseconds limit = 5s) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (!until() && std::chrono::steady_clock::now() < end) {
            loop.restart();  // it stops whenever it has nothing to do
            loop.run_one_for(20ms);
        }
        return until();
    }
    southbound::GatewayInfo info() const {
        const auto all = controller.gateways();
        return all.empty() ? southbound::GatewayInfo{} : all.front();
    }
    bool run_active() {
        return run([this] { return info().state == GatewayState::active; });
    }
    bool run_confirmed(std::uint64_t revision) {
        return run([this, revision] {
            return !recorder.confirmed.empty() && recorder.confirmed.back() >= revision;
        });
    }
    static void apply(compiler::GatewayTables& tables, const Changes& changes) {
        for (const EntryKey& key : changes.remove) tables.remove(key);
        for (const Entry& entry : changes.put) tables.put(entry);
        for (const MeterId id : changes.remove_meters) tables.remove(id);
        for (const Meter& meter : changes.put_meters) tables.put(meter);
    }
    // One step of the desired state, published.
    void change(std::uint64_t revision, const Changes& changes) {
        apply(desired, changes);
        desired.set_revision(revision);
        controller.publish("gw1", revision, changes);
    }
    // Another controller, or a person with ovs-ofctl, who wants it otherwise; and goes.
    void meddle(const Changes& changes) {
        compiler::GatewayTables wanted = desired;
        apply(wanted, changes);
        Recorder events;
        Southbound rival(
            loop, quick(ahead), [&](const std::string&) { return &wanted; }, events, nullptr);
        rival.serve(ends());
        REQUIRE(run([&] { return !events.confirmed.empty(); }));
    }
    bool same() const { return differing_tables().empty(); }
    std::vector<std::uint8_t> differing_tables() const {
        std::vector<std::uint8_t> result;
        const auto actual = backend.digests();
        for (const TableDigest& digest : desired.digests())
            for (const TableDigest& other : actual)
                if (other.table == digest.table && other != digest) result.push_back(digest.table);
        return result;
    }
};

}  // namespace

TEST_CASE("a new gateway is given everything in one bundle, and confirms its revision") {
    Pair pair;
    for (std::uint32_t i = 1; i <= 3000; ++i) pair.desired.put(host(i));
    for (std::uint32_t i = 1; i <= 50; ++i) pair.desired.put(vni(i, i));
    pair.desired.put(Meter{MeterId{7}, 20'000, 2'000});
    pair.desired.set_revision(12);
    pair.connect();
    REQUIRE(pair.run_active());
    CHECK(pair.same());
    CHECK(pair.backend.commits == 1);
    CHECK(pair.recorder.confirmed == std::vector<std::uint64_t>{12});
    CHECK(pair.info().entries_put == 3050);
    CHECK(pair.recorder.states == std::vector{GatewayState::synchronising, GatewayState::active});
}

TEST_CASE("a gateway that reconnects is sent nothing that it has") {
    Pair pair;
    for (std::uint32_t i = 1; i <= 500; ++i) pair.desired.put(host(i));
    pair.connect();
    REQUIRE(pair.run_active());
    pair.disconnect();
    pair.connect();
    REQUIRE(pair.run_active());
    CHECK(pair.backend.commits == 1);
    CHECK(pair.gateway->counters().modifications == 0);
    CHECK(pair.info().entries_put == 500);
}

TEST_CASE("a gateway that missed changes is sent the difference only") {
    Pair pair;
    for (std::uint32_t i = 1; i <= 500; ++i) pair.desired.put(host(i));
    pair.desired.put(Meter{MeterId{1}, 10, 10});
    pair.connect();
    REQUIRE(pair.run_active());
    pair.disconnect();
    Changes missed;
    missed.put = {host(501), vni(1, 1)};
    missed.remove = {host(3).key};
    missed.put_meters = {{MeterId{2}, 20, 20}};
    missed.remove_meters = {MeterId{1}};
    pair.change(2, missed);
    pair.connect();
    REQUIRE(pair.run_active());
    CHECK(pair.same());
    CHECK(pair.gateway->counters().modifications == 5);
    CHECK(pair.info().confirmed_revision == 2);
}

TEST_CASE("changes are sent at once and confirmed in order, several under way") {
    Pair pair;
    pair.connect();
    REQUIRE(pair.run_active());
    pair.backend.hold_commits = true;
    for (std::uint32_t i = 1; i <= 20; ++i) {
        Changes changes;
        if (i % 5 != 0) changes.put = {vni(i, i)};
        pair.change(i, changes);
    }
    REQUIRE(pair.run([&] { return pair.backend.commits == 16; }));
    CHECK(pair.recorder.confirmed == std::vector<std::uint64_t>{0});
    pair.backend.hold_commits = false;
    pair.backend.release();
    REQUIRE(pair.run_confirmed(20));
    std::vector<std::uint64_t> expected;
    for (std::uint64_t i = 0; i <= 20; ++i) expected.push_back(i);
    CHECK(pair.recorder.confirmed == expected);
    CHECK(pair.same());
}

TEST_CASE("an empty change to an idle gateway is confirmed without a message") {
    Pair pair;
    pair.connect();
    REQUIRE(pair.run_active());
    pair.change(5, {});
    CHECK(pair.recorder.confirmed.back() == 5);
    CHECK(pair.backend.commits == 0);
}

TEST_CASE("meters are added, changed and removed with the entries that use them") {
    Pair pair;
    pair.connect();
    REQUIRE(pair.run_active());
    Changes changes;
    changes.put_meters = {{MeterId{4}, 1000, 100}};
    pair.change(1, changes);
    changes.put_meters = {{MeterId{4}, 2000, 100}, {MeterId{5}, 1, 1}};
    pair.change(2, changes);
    Changes last;
    last.remove_meters = {MeterId{4}};
    pair.change(3, last);
    REQUIRE(pair.run_confirmed(3));
    CHECK(pair.recorder.errors.empty());
    CHECK(pair.backend.meters() == std::vector<Meter>{{MeterId{5}, 1, 1}});
}

TEST_CASE("what a gateway refuses is left out with its object, and everything else is there") {
    Pair pair;
    pair.connect();
    REQUIRE(pair.run_active());
    Changes changes;
    changes.put = {vni(1, 1), wrong(9), host(9), vni(2, 2)};  // two entries of one cookie
    changes.put_meters = {{MeterId{4}, 1000, 100}};
    pair.change(1, changes);
    REQUIRE(pair.run_confirmed(1));
    CHECK(pair.recorder.errors.empty());
    CHECK(pair.info().state == GatewayState::active);
    CHECK(pair.backend.count(kVni) == 2);
    CHECK(pair.backend.count(kHost) == 0);
    CHECK(pair.backend.meters().size() == 1);
    REQUIRE(pair.recorder.withheld.size() == 1);
    CHECK(pair.recorder.withheld.at(Cookie{9}) ==
          "vni.next: this table does not lead to that one (OFPBIC_BAD_TABLE_ID)");

    SECTION("later changes of others are sent") {
        Changes later;
        later.put = {vni(3, 3), host(3)};
        pair.change(2, later);
        REQUIRE(pair.run_confirmed(2));
        CHECK(pair.backend.count(kVni) == 3);
        CHECK(pair.recorder.withheld.size() == 1);
    }
    SECTION("a change that mends it brings all of it") {
        Changes mended;
        mended.put = {vni(9, 9)};
        pair.change(2, mended);
        CHECK(pair.recorder.withheld.empty());
        REQUIRE(pair.run_confirmed(2));
        REQUIRE(pair.run([&] { return pair.same(); }));
        CHECK(pair.backend.count(kHost) == 1);
    }
    SECTION("its removal ends it") {
        Changes removed;
        removed.remove = {vni(9, 9).key, host(9).key};
        pair.change(2, removed);
        REQUIRE(pair.run_confirmed(2));
        CHECK(pair.recorder.withheld.empty());
        CHECK(pair.same());
    }
    SECTION("it is tried again, each time after twice as long") {
        const auto refused = [&] {
            return std::count_if(pair.log.begin(), pair.log.end(), [](const std::string& line) {
                return line.find("refused an entry of table 1 with cookie 9") != std::string::npos;
            });
        };
        REQUIRE(refused() == 1);
        pair.ahead = 100ms;
        REQUIRE(pair.run([&] { return refused() == 2; }));
        pair.ahead = 250ms;
        CHECK_FALSE(pair.run([&] { return refused() > 2; }, 30ms));
        CHECK(pair.recorder.withheld.size() == 1);
        CHECK(pair.info().state == GatewayState::active);
    }
    SECTION("it is not taken for another writer's change") {
        pair.ahead = 30s;
        CHECK_FALSE(pair.run([&] { return pair.info().foreign_changes > 0; }, 500ms));
    }
    SECTION("a gateway that connects again is asked again") {
        pair.disconnect();
        pair.connect();
        REQUIRE(pair.run_active());
        CHECK(pair.recorder.withheld.size() == 1);
        CHECK(pair.backend.count(kVni) == 2);
    }
}

TEST_CASE("what overwrites an entry and is refused takes that entry away") {
    Pair pair;
    pair.desired.put(vni(9, 1));
    pair.connect();
    REQUIRE(pair.run_active());
    Changes changes;
    changes.put = {wrong(9)};
    pair.change(1, changes);
    REQUIRE(pair.run_confirmed(1));
    CHECK(pair.backend.count(kVni) == 0);
    CHECK(pair.recorder.withheld.size() == 1);
}

TEST_CASE("refusals among many changes under way end with everything there but what is refused") {
    Pair pair;
    for (std::uint32_t i = 1; i <= 100; ++i) pair.desired.put(host(i));
    pair.desired.put(wrong(1001));
    pair.connect();
    std::uint32_t number = 0;
    std::uint64_t revision = 0;
    const auto change = [&] {
        Changes changes;
        ++number;
        changes.put = {vni(number, number), host(number)};
        if (number % 7 == 0) changes.put.push_back(wrong(1000 + number));
        if (number % 5 == 0) changes.put_meters = {{MeterId{number}, 1000, 100}};
        if (number % 10 == 0) changes.remove_meters = {MeterId{number - 5}};
        if (number > 4) changes.remove = {vni(number - 4, number - 4).key};
        if (number % 14 == 0) changes.remove.push_back(wrong(1000 + number - 7).key);
        pair.change(++revision, changes);
    };
    REQUIRE(pair.run([&] {
        if (number < 210) change();
        return number >= 210;
    }));
    REQUIRE(pair.run_confirmed(revision));
    REQUIRE(pair.run([&] { return pair.backend.count(kHost) == 210; }));
    CHECK(pair.recorder.errors.empty());
    CHECK(pair.recorder.withheld.size() == 16);  // 1001, and every second of 30
    CHECK(pair.backend.count(kVni) == 4);
    CHECK(pair.backend.meters().size() == 21);
    for (std::uint32_t i = 7; i <= 210; i += 7) pair.desired.remove(wrong(1000 + i).key);
    pair.desired.remove(wrong(1001).key);
    CHECK(pair.same());
}

TEST_CASE("a gateway that refuses too much is in error") {
    Pair pair;
    pair.connect();
    REQUIRE(pair.run_active());
    Changes changes;
    for (std::uint32_t i = 1; i <= 101; ++i) changes.put.push_back(wrong(i));
    pair.change(1, changes);
    REQUIRE(pair.run([&] { return !pair.recorder.errors.empty(); }));
    CHECK(pair.info().state == GatewayState::error);
}

TEST_CASE("a gateway that cannot apply a bundle is tried again after a while") {
    Pair pair;
    pair.connect();
    REQUIRE(pair.run_active());
    pair.backend.fail_next = 1;
    Changes changes;
    changes.put = {vni(1, 1)};
    pair.change(1, changes);
    REQUIRE(pair.run_confirmed(1));
    CHECK(pair.recorder.errors.size() == 1);
    CHECK(pair.recorder.errors.front().find("OFPFMFC_TABLE_FULL") != std::string::npos);
    CHECK(pair.same());
}

TEST_CASE("a commit that is not confirmed in time is unknown, and what is there is compared") {
    Pair pair;
    pair.connect();
    REQUIRE(pair.run_active());
    pair.backend.hold_commits = true;
    Changes changes;
    changes.put = {vni(1, 1)};
    pair.change(1, changes);
    REQUIRE(pair.run([&] { return pair.info().state == GatewayState::synchronising; }, 2s));
    pair.backend.hold_commits = false;
    pair.backend.release();
    REQUIRE(pair.run_confirmed(1));
    CHECK(pair.backend.commits == 1);  // it had been applied: nothing was sent again
    CHECK(pair.same());
}

TEST_CASE("a gateway of which nothing is known waits until something is published") {
    Pair pair;
    pair.known = false;
    pair.desired.put(vni(1, 1));
    pair.connect();
    REQUIRE(pair.run([&] { return !pair.recorder.states.empty(); }));
    CHECK_FALSE(pair.run([&] { return !pair.recorder.confirmed.empty(); }, 300ms));
    pair.known = true;
    pair.change(3, {});
    REQUIRE(pair.run_confirmed(3));
    CHECK(pair.same());
}

TEST_CASE("what is published while a gateway is compared reaches it") {
    Pair pair;
    for (std::uint32_t i = 1; i <= 2000; ++i) pair.desired.put(host(i));
    pair.connect();
    std::uint64_t revision = 0;
    REQUIRE(pair.run([&] {
        Changes changes;
        const auto number = static_cast<std::uint32_t>(++revision);
        changes.put = {vni(number, number), host(number)};
        if (number > 2) changes.remove = {vni(number - 2, number - 2).key};
        pair.change(revision, changes);
        return revision >= 30 && pair.info().state == GatewayState::active;
    }));
    REQUIRE(pair.run_confirmed(revision));
    CHECK(pair.same());
    CHECK(pair.recorder.errors.empty());
}

TEST_CASE("what another writer changes is put right within the time between two comparisons") {
    Pair pair;
    for (std::uint32_t i = 1; i <= 500; ++i) pair.desired.put(host(i));
    for (std::uint32_t i = 1; i <= 10; ++i) pair.desired.put(vni(i, i));
    pair.desired.put(Meter{MeterId{7}, 20'000, 2'000});
    pair.connect();
    REQUIRE(pair.run_active());
    Changes foreign;
    SECTION("an entry is added") {
        foreign.put = {vni(99, 1)};
    }
    SECTION("an entry is changed") {
        foreign.put = {vni(3, 9)};
    }
    SECTION("an entry is removed") {
        foreign.remove = {vni(3, 3).key};
    }
    SECTION("a meter is changed") {
        foreign.put_meters = {{MeterId{7}, 1, 1}};
    }
    SECTION("a meter is removed") {
        foreign.remove_meters = {MeterId{7}};
    }
    pair.meddle(foreign);
    const auto sent = pair.gateway->counters().modifications;
    CHECK_FALSE(pair.run([&] { return pair.same(); }, 300ms));  // it is not due yet
    pair.ahead = 30s;
    REQUIRE(pair.run([&] { return pair.same(); }, 2s));
    REQUIRE(pair.run_active());
    CHECK(pair.gateway->counters().modifications == sent + 1);
    CHECK(pair.info().foreign_changes == 1);
    CHECK(std::any_of(pair.log.begin(), pair.log.end(), [](const std::string& line) {
        return line.find("another writer has changed") != std::string::npos;
    }));
    // And not found again.
    pair.ahead += 30s;
    CHECK_FALSE(pair.run([&] { return pair.info().foreign_changes > 1; }, 300ms));
}

TEST_CASE("a change under way is not taken for another writer's") {
    Pair pair;
    for (std::uint32_t i = 1; i <= 500; ++i) pair.desired.put(host(i));
    pair.connect();
    REQUIRE(pair.run_active());
    std::uint64_t revision = 0;
    const auto change = [&] {
        Changes changes;
        const auto number = static_cast<std::uint32_t>(++revision);
        changes.put = {vni(number, number)};
        if (number > 3) changes.remove = {vni(number - 3, number - 3).key};
        pair.change(revision, changes);
    };
    SECTION("one that is not confirmed when a comparison is due") {
        pair.backend.hold_commits = true;
        change();
        pair.ahead = 300ms;  // its answer is still in time
        pair.run([] { return false; }, 50ms);
        pair.backend.hold_commits = false;
        pair.backend.release();
    }
    SECTION("many, at every moment of the comparisons") {
        for (int round = 0; round < 200; ++round) {
            pair.ahead += 40s;
            const auto stop = revision + 1 + static_cast<std::uint64_t>(round % 3);
            pair.run([&] { return change(), revision >= stop; });
            pair.run([&] { return pair.recorder.confirmed.back() == revision; });
            pair.loop.poll();
        }
    }
    REQUIRE(pair.run_confirmed(revision));
    pair.ahead += 30s;
    CHECK_FALSE(pair.run([&] { return pair.info().foreign_changes > 0; }, 400ms));
    CHECK(pair.same());
    CHECK(pair.recorder.errors.empty());
}

TEST_CASE("a change published while another writer's is put right reaches the gateway") {
    Pair pair;
    for (std::uint32_t i = 1; i <= 2000; ++i) pair.desired.put(host(i));
    pair.connect();
    REQUIRE(pair.run_active());
    Changes foreign;
    foreign.remove = {host(1003).key, host(1004).key};
    pair.meddle(foreign);
    pair.ahead = 30s;
    std::uint64_t revision = 0;
    REQUIRE(pair.run([&] {
        Changes changes;
        const auto number = static_cast<std::uint32_t>(++revision);
        changes.put = {vni(number, number), host(number)};
        if (revision < 200) pair.change(revision, changes);
        return revision >= 200 && pair.info().foreign_changes == 1;
    }));
    REQUIRE(pair.run_confirmed(199));
    REQUIRE(pair.run([&] { return pair.same(); }));
    CHECK(pair.recorder.errors.empty());
}

TEST_CASE("a gateway that has lost everything is given it again when it connects") {
    Pair pair;
    for (std::uint32_t i = 1; i <= 500; ++i) pair.desired.put(host(i));
    pair.desired.put(Meter{MeterId{7}, 20'000, 2'000});
    pair.desired.set_revision(4);
    pair.connect();
    REQUIRE(pair.run_active());
    MemoryBackend empty("gw1", core());
    pair.gateway = std::make_unique<Switch>(pair.loop, empty, SwitchSettings{}, nullptr);
    REQUIRE(pair.gateway->start());
    pair.connect();
    REQUIRE(pair.run(
        [&] { return southbound::differing(pair.desired.digests(), empty.digests()).empty(); }));
    REQUIRE(pair.run_active());
    CHECK(pair.info().foreign_changes == 0);
}

TEST_CASE("connections that say no name do not keep a gateway away") {
    Pair pair;
    const auto silent = [&] {
        const boost::asio::generic::stream_protocol protocol(AF_UNIX, 0);
        int both[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
        pair.controller.serve(Connection::Socket(pair.loop, protocol, both[0]));
        return Connection::Socket(pair.loop, protocol, both[1]);
    };
    std::vector<Connection::Socket> crowd;
    for (int i = 0; i < 20; ++i) crowd.push_back(silent());
    pair.connect();
    REQUIRE(pair.run_active());
    for (int i = 0; i < 20; ++i) crowd.push_back(silent());
    pair.run([] { return false; }, 50ms);
    CHECK(pair.info().state == GatewayState::active);
}

TEST_CASE("a question is answered, refused, or told that nobody is there") {
    Pair pair;
    std::optional<Result<std::string>> answer;
    const auto keep = [&](Result<std::string> result) { answer = std::move(result); };
    pair.controller.query("gw1", Query::flows, "{}", keep);
    REQUIRE(pair.run([&] { return answer.has_value(); }));
    CHECK(answer->error().message == "the gateway is not connected");
    pair.connect();
    REQUIRE(pair.run_active());
    answer.reset();
    const std::string question(59'980, 'x');  // whose answer takes two segments
    pair.controller.query("gw1", Query::flows, question, keep);
    REQUIRE(pair.run([&] { return answer.has_value(); }));
    CHECK(**answer == R"({"kind":"flows","request":)" + question + "}");
    answer.reset();
    pair.controller.query("gw1", Query::explain, "", keep);
    REQUIRE(pair.run([&] { return answer.has_value(); }));
    CHECK(answer->error().message == "an explanation needs a question");
}
