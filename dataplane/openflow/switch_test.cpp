// SPDX-License-Identifier: Apache-2.0
// The switch over a backend in memory, seen from a connection.
#include "dataplane/openflow/switch.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "dataplane/openflow/controller_codec.hpp"
#include "dataplane/openflow/endpoint.hpp"
#include "dataplane/openflow/memory_backend.hpp"
#include "dataplane/openflow/staging.hpp"
#include "dataplane/openflow/tables.hpp"

using namespace std::chrono_literals;

namespace sluice::openflow {
namespace {

TableSchema small_host_table() {
    TableSchema schema = kHostSchema;
    schema.capacity = 2;
    return schema;
}
const TableSchema kSmallHostSchema = small_host_table();

Entry vni(std::uint32_t number, std::uint32_t vpc = 1) {
    return VniRow{Vni{number}, VpcId{vpc}, Cookie{number}}.encode();
}
Entry host(std::uint32_t number) {
    return HostRow{HostId{number}, {IpAddress::v4(be32{number})}, Cookie{number}}.encode();
}
FlowMod add(const Entry& entry) {
    FlowMod mod;
    mod.entry = entry;
    return mod;
}
FlowMod remove_all(std::uint8_t table) {
    FlowMod mod;
    mod.command = ModCommand::remove;
    mod.entry.key.table = table;
    return mod;
}

// OpenFlow 1.3.5 section 7.3.5.3: OFPMP_AGGREGATE.
void append_aggregate_request(Bytes& out, Xid xid, std::uint8_t table) {
    Bytes request;
    append_flow_request(request, xid, table);
    request[9] = 2;
    out.insert(out.end(), request.begin(), request.end());
}
std::string aggregate_in(MessageView reply) {
    const auto number = [&](std::size_t at, std::size_t octets) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < octets; ++i) value = value << 8 | reply[at + i];
        return std::to_string(value);
    };
    return "aggregate " + number(32, 4) + " of " + number(16, 8) + " packets";
}

// A controller's end that keeps what it hears, as short words.
struct Client : Connection::Handler {
    std::shared_ptr<Connection> connection;
    std::vector<std::string> heard;
    std::vector<RemoteError> errors;
    bool is_open = false;

    void on_open() override { is_open = true; }
    void on_message(MessageView message) override {
        const auto kind = classify(message);
        if (!kind) return heard.push_back("unreadable");
        if (*kind == Kind::barrier_reply) heard.push_back("barrier");
        if (*kind == Kind::error) {
            heard.push_back(to_string(decode_error(message)->code));
            errors.push_back(*decode_error(message));
        }
        if (*kind == Kind::bundle_control)
            heard.push_back("bundle " + std::to_string(decode_bundle_control(message)->bundle));
        if (*kind == Kind::experimenter_reply) heard.push_back("answer");
        if (*kind == Kind::other_reply) heard.push_back(aggregate_in(message));
        if (*kind == Kind::flow_reply)
            heard.push_back("flows " + std::to_string(decode_flow_reply(message)->entries.size()));
    }
    void on_drained() override {}
    void on_closed(const std::string& reason) override { heard.push_back("closed: " + reason); }

    void send(const FlowMod& mod) {
        append_flow_mod(connection->out(), connection->next_xid(), mod);
        connection->flush();
    }
    void barrier() {
        append_barrier_request(connection->out(), connection->next_xid());
        connection->flush();
    }
    void bundle(std::uint32_t id, const std::vector<FlowMod>& mods) {
        for (const FlowMod& mod : mods)
            append_bundled(connection->out(), connection->next_xid(), id, mod);
        append_bundle_control(connection->out(), connection->next_xid(),
                              {id, BundleType::commit_request, kBundleAtomic | kBundleOrdered});
        connection->flush();
    }
};

struct World {
    boost::asio::io_context loop;
    MemoryBackend backend{"gw1", {&kVniSchema, &kRouteSchema, &kSmallHostSchema}};
    Switch gateway;
    Client client;

    explicit World(const SwitchSettings& settings = {})
        : gateway(loop, backend, settings, nullptr) {
        REQUIRE(gateway.start());
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        const boost::asio::generic::stream_protocol protocol(AF_UNIX, 0);
        gateway.serve(Connection::Socket(loop, protocol, ends[0]));
        client.connection = Connection::start(Connection::Socket(loop, protocol, ends[1]), client);
        REQUIRE(run([this] { return client.is_open; }));
    }
    ~World() { client.connection->close(); }

    bool run(const std::function<bool()>& until, std::chrono::milliseconds limit = 5s) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (!until() && std::chrono::steady_clock::now() < end) {
            loop.restart();
            loop.run_one_for(20ms);
        }
        return until();
    }
    bool hears(std::size_t count) {
        return run([&] { return client.heard.size() >= count; });
    }
    void settle() {
        run([] { return false; }, 100ms);
    }
};

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a barrier is answered when the backend has committed what came before it") {
    World world;
    world.backend.hold_commits = true;
    world.client.send(add(vni(1)));
    world.client.barrier();
    world.settle();
    CHECK(world.client.heard.empty());
    CHECK(world.backend.commits == 1);
    world.backend.release();
    REQUIRE(world.hears(1));
    CHECK(world.client.heard == Words{"barrier"});
    CHECK(world.backend.count(kVni) == 1);
}

TEST_CASE("modifications that arrive together are one commit") {
    World world;
    for (std::uint32_t i = 1; i <= 100; ++i) world.client.send(add(vni(i)));
    world.client.barrier();
    REQUIRE(world.hears(1));
    CHECK(world.backend.commits == 1);
    CHECK(world.backend.count(kVni) == 100);
}

TEST_CASE("of modifications that the backend refuses together only the wrong ones are refused") {
    World world;
    world.backend.fail_next = 2;  // all three together, then the first by itself
    for (std::uint32_t i = 1; i <= 3; ++i) world.client.send(add(vni(i)));
    world.client.barrier();
    REQUIRE(world.hears(2));
    CHECK(world.client.heard == Words{"OFPFMFC_TABLE_FULL", "barrier"});
    CHECK(world.backend.count(kVni) == 2);
    CHECK(world.backend.find(vni(1).key) == nullptr);
}

TEST_CASE("bundles are handed over before earlier ones are committed, and answered in order") {
    World world;
    world.backend.hold_commits = true;
    for (std::uint32_t i = 1; i <= 3; ++i) {
        world.client.bundle(i, {add(vni(i))});
        world.client.barrier();
    }
    REQUIRE(world.run([&] { return world.backend.commits == 3; }));
    CHECK(world.client.heard.empty());
    world.backend.release();
    REQUIRE(world.hears(6));
    CHECK(world.client.heard ==
          Words{"bundle 1", "barrier", "bundle 2", "barrier", "bundle 3", "barrier"});
}

TEST_CASE("a non-strict remove waits for the commits before it, so that it sees them") {
    World world;
    world.backend.hold_commits = true;
    world.client.bundle(1, {add(vni(1)), add(vni(2))});
    world.client.send(remove_all(kVni));
    world.client.barrier();
    world.settle();
    CHECK(world.backend.commits == 1);
    world.backend.hold_commits = false;
    world.backend.release();
    REQUIRE(world.hears(2));
    CHECK(world.client.heard == Words{"bundle 1", "barrier"});
    CHECK(world.backend.count(kVni) == 0);
}

TEST_CASE("a dump waits for the commits before it") {
    World world;
    world.backend.hold_commits = true;
    world.client.bundle(1, {add(vni(1)), add(vni(2))});
    append_flow_request(world.client.connection->out(), Xid{900}, kVni);
    world.client.connection->flush();
    world.settle();
    CHECK(world.client.heard.empty());
    world.backend.release();
    REQUIRE(world.hears(2));
    CHECK(world.client.heard == Words{"bundle 1", "flows 2"});
}

TEST_CASE("a bundle that the backend refuses says why and that it failed; nothing is applied") {
    World world;
    world.backend.fail_next = 1;
    world.client.bundle(1, {add(vni(1)), add(vni(2))});
    world.client.barrier();
    REQUIRE(world.hears(3));
    CHECK(world.client.heard == Words{"OFPFMFC_TABLE_FULL", "OFPBFC_MSG_FAILED", "barrier"});
    CHECK(world.backend.count(kVni) == 0);
}

TEST_CASE("an entry that the backend cannot take is refused by itself, in words") {
    World world;
    world.backend.wrong = [](const Entry& entry) -> std::optional<Problem> {
        if (entry.cookie != Cookie{2}) return std::nullopt;
        return Problem{Violation::match_value, {Error::Code::conflict, "2 is taken", "vni"}};
    };
    for (std::uint32_t i = 1; i <= 3; ++i) world.client.send(add(vni(i)));
    world.client.barrier();
    REQUIRE(world.hears(2));
    CHECK(world.client.heard == Words{"OFPBMC_BAD_VALUE", "barrier"});
    CHECK(world.client.errors[0].text == "vni: 2 is taken (OFPBMC_BAD_VALUE)");
    CHECK(world.backend.count(kVni) == 2);
    // In a bundle its error carries the transaction of the message that is wrong.
    const Xid wrong{world.client.connection->next_xid().value + 2};
    world.client.bundle(1, {add(vni(4)), add(vni(2)), add(vni(5))});
    REQUIRE(world.hears(4));
    CHECK(world.client.errors[1].xid == wrong);
    CHECK(world.client.errors[1].text == "vni: 2 is taken (OFPBMC_BAD_VALUE)");
    CHECK(world.client.heard.back() == "OFPBFC_MSG_FAILED");
    CHECK(world.backend.count(kVni) == 2);
}

TEST_CASE("an aggregate of many entries takes several turns, and leaves out what is not counted") {
    World world;
    constexpr std::uint32_t kEntries = 20'000;
    Changes changes;
    for (std::uint32_t i = 1; i <= kEntries; ++i) changes.put.push_back(vni(i));
    world.backend.apply(std::move(changes));
    world.backend.uncounted = Cookie{7};
    auto& connection = *world.client.connection;
    append_aggregate_request(connection.out(), Xid{900}, kVni);
    connection.flush();
    world.client.barrier();
    REQUIRE(world.hears(2));
    CHECK(world.client.heard == Words{"aggregate 20000 of 59997 packets", "barrier"});
}

TEST_CASE("a question that takes long is answered before what came after it") {
    World world;
    world.backend.hold_queries = true;
    append_query(world.client.connection->out(), Xid{900}, Query::flows, "{}");
    world.client.connection->flush();
    world.client.send(add(vni(1)));
    world.client.barrier();
    world.settle();
    CHECK(world.client.heard.empty());
    CHECK(world.backend.count(kVni) == 0);
    REQUIRE(world.backend.held_query);
    world.backend.held_query();
    REQUIRE(world.hears(2));
    CHECK(world.client.heard == Words{"answer", "barrier"});
    CHECK(world.backend.count(kVni) == 1);
}

TEST_CASE("a table takes as many entries as its schema says") {
    World world;
    world.client.bundle(1, {add(host(1)), add(host(2))});
    world.client.bundle(2, {add(host(2))});  // replaces
    world.client.bundle(3, {add(host(3))});
    FlowMod gone;
    gone.command = ModCommand::remove_strict;
    gone.entry.key = host(1).key;
    world.client.bundle(4, {gone, add(host(3))});
    REQUIRE(world.hears(5));
    CHECK(world.client.heard ==
          Words{"bundle 1", "bundle 2", "OFPFMFC_TABLE_FULL", "OFPBFC_MSG_FAILED", "bundle 4"});
    CHECK(world.backend.count(kHost) == 2);
}

TEST_CASE("a bundle that is left open is discarded after a while") {
    SwitchSettings settings;
    settings.bundle_idle = 50ms;
    World world(settings);
    append_bundled(world.client.connection->out(), Xid{5}, 1, add(vni(1)));
    world.client.connection->flush();
    REQUIRE(world.hears(1));
    CHECK(world.client.heard == Words{"OFPBFC_TIMEOUT"});
    CHECK(world.backend.count(kVni) == 0);
}

TEST_CASE("match fields cover what is narrower and overlap where a packet may be in both") {
    const auto route = [](const char* prefix) {
        return RouteRow{RouteTableId{1}, *parse_prefix(prefix), NextHop::local, {}, {}}
            .encode()
            .key.match;
    };
    CHECK(covers(route("10.0.0.0/8"), route("10.1.0.0/16")));
    CHECK_FALSE(covers(route("10.1.0.0/16"), route("10.0.0.0/8")));
    CHECK_FALSE(covers(route("10.0.0.0/8"), route("11.0.0.0/8")));
    CHECK(covers({}, route("10.0.0.0/8")));
    CHECK(overlaps(route("10.0.0.0/8"), route("10.1.0.0/16")));
    CHECK_FALSE(overlaps(route("10.0.0.0/8"), route("11.0.0.0/8")));
    CHECK_FALSE(overlaps(route("10.0.0.0/8"), route("fd00::/8")));
}

TEST_CASE("silent connections make room for another, one that speaks does not") {
    SwitchSettings settings;
    settings.connections = 64;
    std::chrono::steady_clock::time_point now{};
    settings.now = [&now] { return now; };
    World world(settings);  // its client has said HELLO
    const boost::asio::generic::stream_protocol protocol(AF_UNIX, 0);
    const auto connect = [&] {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        world.gateway.serve(Connection::Socket(world.loop, protocol, ends[0]));
        return Connection::Socket(world.loop, protocol, ends[1]);
    };
    world.client.send(add(vni(1)));
    world.client.barrier();
    REQUIRE(world.hears(1));
    std::vector<Connection::Socket> silent;  // not even a HELLO
    for (int i = 0; i < 63; ++i) silent.push_back(connect());
    Client other;
    other.connection = Connection::start(connect(), other);
    REQUIRE(world.run([&] { return other.is_open; }));
    other.barrier();
    REQUIRE(world.run([&] { return !other.heard.empty(); }));
    CHECK(other.heard == Words{"barrier"});
    // The one that spoke first is still served, although it is the oldest.
    world.client.barrier();
    REQUIRE(world.hears(2));
    CHECK(world.client.heard == Words{"barrier", "barrier"});
    // Where all have spoken, only long silence makes room.
    silent.clear();
    world.settle();
    std::vector<std::unique_ptr<Client>> busy;
    for (int i = 0; i < 62; ++i) {
        busy.push_back(std::make_unique<Client>());
        busy.back()->connection = Connection::start(connect(), *busy.back());
        REQUIRE(world.run([&] { return busy.back()->is_open; }));
        busy.back()->barrier();
        REQUIRE(world.run([&] { return busy.back()->heard == Words{"barrier"}; }));
    }
    Client late;
    late.connection = Connection::start(connect(), late);
    REQUIRE(world.run([&] { return !late.heard.empty(); }));
    CHECK(late.heard.front().starts_with("closed"));
    now += settings.silence;
    other.barrier();
    REQUIRE(world.run([&] { return other.heard.size() == 2; }));
    Client later;
    later.connection = Connection::start(connect(), later);
    REQUIRE(world.run([&] { return later.is_open; }));
    CHECK(other.heard == Words{"barrier", "barrier"});
    for (const auto& one : busy) one->connection->close();
    other.connection->close();
    later.connection->close();
}

TEST_CASE("a switch keeps trying to reach its controller") {
    const std::string path = "/tmp/sluice-switch-test." + std::to_string(::getpid());
    boost::asio::io_context loop;
    MemoryBackend backend("gw1", {&kVniSchema});
    SwitchSettings settings;
    settings.controllers = {"unix:" + path};
    settings.first_retry = 10ms;
    Switch gateway(loop, backend, settings, nullptr);
    REQUIRE(gateway.start());
    loop.run_for(50ms);
    std::vector<StreamSocket> accepted;
    const auto listening = listen(
        loop, "unix:" + path, [&](StreamSocket socket) { accepted.push_back(std::move(socket)); });
    REQUIRE(listening.ok());
    for (int turn = 0; turn < 200 && accepted.empty(); ++turn) loop.run_one_for(20ms);
    CHECK(accepted.size() == 1);
}

TEST_CASE("a socket file in use is refused, a dead one replaced") {
    const std::string path = "/tmp/sluice-listen-test." + std::to_string(::getpid());
    boost::asio::io_context loop;
    auto first = listen(loop, "unix:" + path, [](StreamSocket) {});
    REQUIRE(first.ok());
    const auto second = listen(loop, "unix:" + path, [](StreamSocket) {});
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().message == "another process listens on this socket");
    (*first).reset();
    const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const auto at = parse_endpoint("unix:" + path);
    REQUIRE(::bind(dead, at->address.data(), static_cast<socklen_t>(at->address.size())) == 0);
    ::close(dead);
    CHECK(listen(loop, "unix:" + path, [](StreamSocket) {}).ok());
}

TEST_CASE("addresses: plain tcp is for the loopback only") {
    CHECK(check_controller_address("tcp:127.0.0.1:6653").ok());
    CHECK(check_controller_address("tcp:[::1]:6653").ok());
    CHECK(check_controller_address("unix:/run/sluice/controller.of").ok());
    CHECK_FALSE(check_controller_address("tcp:192.0.2.1:6653").ok());
    CHECK_FALSE(check_controller_address("tcp:127.0.0.1:99999").ok());
    CHECK_FALSE(check_controller_address("tls:192.0.2.1:6653").ok());
    CHECK_FALSE(check_controller_address("unix:").ok());
    CHECK_FALSE(check_controller_address("192.0.2.1").ok());
}

}  // namespace sluice::openflow
