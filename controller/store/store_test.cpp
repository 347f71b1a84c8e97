// SPDX-License-Identifier: Apache-2.0
#include "controller/store/store.hpp"

#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

using namespace sluice;
using namespace sluice::store;

namespace {

struct Folder {
    Folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "sluice-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path = pattern;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] std::string url() const { return "sqlite:" + (path / "state.db").string(); }
    std::filesystem::path path;
};

model::ResourcePtr vpc(std::uint64_t number, std::uint8_t id, const std::string& name) {
    model::Resource resource;
    resource.number = number;
    resource.id.bytes[15] = id;
    resource.name = name;
    resource.project = "blue";
    model::Vpc network;
    network.cidrs = {*parse_prefix("10.0.0.0/16")};
    network.vni = Vni{7};
    network.gateway = "gw1";
    resource.spec = std::move(network);
    return std::make_shared<model::Resource>(resource);
}

// With rules of these numbers, in this order.
model::ResourcePtr group(std::vector<std::uint64_t> numbers) {
    model::Resource resource;
    resource.number = 4;
    resource.id.bytes[15] = 9;
    resource.project = "blue";
    model::SecurityGroup spec;
    spec.vpc_id.id.bytes[0] = 1;
    for (const auto number : numbers) {
        model::Rule rule;
        rule.id.bytes[0] = static_cast<std::uint8_t>(number);
        rule.number = number;
        rule.protocol = model::Protocol{6};
        rule.port_min = rule.port_max = static_cast<std::uint16_t>(number);
        spec.rules.push_back(rule);
    }
    resource.spec = std::move(spec);
    return std::make_shared<model::Resource>(resource);
}

// What another program does to the file.
std::string execute(const Folder& folder, const std::string& sql) {
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open((folder.path / "state.db").c_str(), &database) == SQLITE_OK);
    std::string result;
    const auto keep = [](void* to, int, char** values, char**) {
        *static_cast<std::string*>(to) += values[0] ? std::string(values[0]) + " " : "";
        return 0;
    };
    const int status = sqlite3_exec(database, sql.c_str(), keep, &result, nullptr);
    INFO(sqlite3_errmsg(database));
    CHECK(status == SQLITE_OK);
    sqlite3_close(database);
    return result;
}

}  // namespace

TEST_CASE("of a group that changes only the rules that do are written, and their order is kept") {
    const Folder folder;
    std::vector<model::ResourcePtr> steps = {group({10, 11}), group({10, 11, 12}),
                                             group({12, 10, 13})};
    {
        auto store = open(folder.url());
        REQUIRE(store);
        model::ResourcePtr before;
        for (const auto& after : steps) {
            REQUIRE((*store)->commit({{before, after}}, {}, 20));
            before = after;
        }
    }
    CHECK(execute(folder, "SELECT number FROM parts ORDER BY number") == "10 12 13 ");
    CHECK(execute(folder, "SELECT instr(body, 'port_min') FROM objects") == "0 ");
    auto store = open(folder.url());
    REQUIRE(store);
    const auto loaded = (*store)->load();
    REQUIRE(loaded);
    CHECK(loaded->resources.at(0)->spec == steps.back()->spec);
    REQUIRE((*store)->commit({{steps.back(), nullptr}}, {}, 20));
    CHECK(execute(folder, "SELECT count(*) FROM parts") == "0 ");
}

TEST_CASE("a store of the first schema, with rules inside of their groups, is taken over") {
    const Folder folder;
    const auto there = group({12, 10, 13});
    {
        auto store = open(folder.url());
        REQUIRE(store);
        REQUIRE((*store)->commit({{nullptr, there}, {nullptr, vpc(8, 1, "line\nbreak")}}, {}, 20));
    }
    execute(folder,
            "UPDATE objects SET body = json_set(body, '$.spec.rules', (SELECT json_group_array("
            "json(parts.body)) FROM json_each(objects.body, '$.spec.numbers') AS wanted JOIN parts"
            " ON parts.number = wanted.value)) WHERE number = 4;"
            "DROP TABLE parts; PRAGMA user_version = 1");
    for (int round = 0; round < 2; ++round) {
        auto store = open(folder.url());
        REQUIRE(store);
        const auto loaded = (*store)->load();
        REQUIRE(loaded);
        CHECK(loaded->next_number == 20);
        REQUIRE(loaded->resources.size() == 2);
        CHECK(loaded->resources[0]->spec == there->spec);
        CHECK(loaded->resources[1]->name == "line\nbreak");  // no longer admitted, but there
    }
    CHECK(execute(folder, "PRAGMA user_version") == "3 ");
    CHECK(execute(folder, "SELECT count(*) FROM parts") == "3 ");
}

TEST_CASE("a store of the second schema, whose elastic IPs share no bandwidth, is taken over") {
    const Folder folder;
    model::Resource elastic;
    elastic.number = 4;
    elastic.id.bytes[15] = 9;
    elastic.spec = model::ElasticIp{.address = parse_ip("203.0.113.7"),
                                    .pool_id = {},
                                    .endpoint_id = {},
                                    .bandwidth_mbps = model::Mbps{20},
                                    .bandwidth_id = {}};
    {
        auto store = open(folder.url());
        REQUIRE(store);
        REQUIRE((*store)->commit({{nullptr, std::make_shared<model::Resource>(elastic)}}, {}, 20));
    }
    execute(folder,
            "UPDATE objects SET body = json_remove(body, '$.spec.bandwidth_id');"
            "PRAGMA user_version = 2");
    auto store = open(folder.url());
    REQUIRE(store);
    const auto loaded = (*store)->load();
    REQUIRE(loaded);
    CHECK(loaded->resources.at(0)->spec == elastic.spec);
    store->reset();
    CHECK(execute(folder, "PRAGMA user_version") == "3 ");
}

TEST_CASE("what was committed is there after a restart, with the next number") {
    const Folder folder;
    {
        auto store = open(folder.url());
        REQUIRE(store);
        REQUIRE((*store)->commit({{nullptr, vpc(4, 1, "a")}, {nullptr, vpc(8, 2, "b")}}, {}, 12));
        REQUIRE((*store)->commit({{vpc(4, 1, "a"), nullptr}}, {}, 16));
    }
    auto store = open(folder.url());
    REQUIRE(store);
    const auto loaded = (*store)->load();
    REQUIRE(loaded);
    CHECK(loaded->next_number == 16);
    REQUIRE(loaded->resources.size() == 1);
    CHECK(loaded->resources[0]->name == "b");
    CHECK(loaded->resources[0]->number == 8);
    CHECK(loaded->resources[0]->project == "blue");
    CHECK(loaded->resources[0]->as<model::Vpc>().vni == Vni{7});
    CHECK(loaded->resources[0]->as<model::Vpc>().gateway == "gw1");
}

TEST_CASE("nobody but the owner reads the store's files") {
    const Folder folder;
    const auto before = ::umask(0);
    auto store = open(folder.url());
    REQUIRE(store);
    REQUIRE((*store)->commit({{nullptr, vpc(4, 1, "a")}}, {}, 8));
    ::umask(before);
    std::size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder.path)) {
        INFO(file.path());
        CHECK((file.status().permissions() & std::filesystem::perms(0177)) ==
              std::filesystem::perms::none);
        ++files;
    }
    CHECK(files == 4);  // the database, -wal, -shm, the lock
}

TEST_CASE("a commit that fails changes nothing, its audit records neither") {
    const Folder folder;
    auto store = open(folder.url());
    REQUIRE(store);
    REQUIRE((*store)->commit({{nullptr, vpc(4, 1, "a")}}, {}, 8));
    AuditRecord record;
    record.action = "create";
    // The second of the two has an id that is taken.
    const auto failed =
        (*store)->commit({{nullptr, vpc(8, 2, "b")}, {nullptr, vpc(12, 1, "c")}}, {record}, 16);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == Error::Code::unavailable);
    CHECK((*store)->load()->resources.size() == 1);
    CHECK((*store)->load()->next_number == 8);
    CHECK((*store)->audit({})->empty());
}

TEST_CASE("a file that is damaged or no database is refused with what to do") {
    const Folder folder;
    { REQUIRE(open(folder.url())); }
    const auto file = folder.path / "state.db";
    const auto size = std::filesystem::file_size(file);
    const auto from = GENERATE(0U, 100U);  // with SQLite's own header, and after it
    {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(from);
        stream << std::string(size - from, 'x');
    }
    auto store = open(folder.url());
    const auto error = store ? (*store)->load().error() : store.error();
    INFO(error.message);
    CHECK(error.message.find("; move the file away") != std::string::npos);
}

TEST_CASE("a full disk is answered with what to do, and heals") {
    const Folder folder;
    auto store = open(folder.url());
    REQUIRE(store);
    // What a write beyond it gets is EFBIG instead of ENOSPC.
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit full{4096, before.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &full);
    const auto failed = (*store)->commit({{nullptr, vpc(4, 1, "a")}}, {}, 8);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    REQUIRE_FALSE(failed);
    INFO(failed.error().message);
    CHECK(failed.error().message.find("store's file system") != std::string::npos);
    CHECK(failed.error().message.find("then repeat the request") != std::string::npos);
    CHECK((*store)->commit({{nullptr, vpc(4, 1, "a")}}, {}, 8));
}

TEST_CASE("audit records are found by project, kind, object and action") {
    const Folder folder;
    auto store = open(folder.url());
    REQUIRE(store);
    std::vector<AuditRecord> records(3);
    for (std::size_t i = 0; i < records.size(); ++i) {
        records[i].project = i == 0 ? "blue" : "red";
        records[i].kind = i == 2 ? "hosts" : "vpcs";
        records[i].object_id = std::to_string(i);
    }
    REQUIRE((*store)->commit({}, records, 4));
    AuditFilter filter;
    CHECK((*store)->audit(filter)->size() == 3);
    filter.project = "red";
    CHECK((*store)->audit(filter)->size() == 2);
    filter.kinds = {"hosts", "subnets"};
    REQUIRE((*store)->audit(filter)->size() == 1);
    CHECK((*store)->audit(filter)->front().object_id == "2");
    filter.after_number = 3;
    CHECK((*store)->audit(filter)->empty());
}

TEST_CASE("a file in use, of a newer release, or in no folder is refused with a sentence") {
    const Folder folder;
    {
        auto store = open(folder.url());
        REQUIRE(store);
        const auto second = open(folder.url());
        REQUIRE_FALSE(second);
        CHECK(second.error().message.find("in use by another controller; stop") !=
              std::string::npos);
    }
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open((folder.path / "state.db").c_str(), &database) == SQLITE_OK);
    sqlite3_exec(database, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
    sqlite3_close(database);
    const auto newer = open(folder.url());
    REQUIRE_FALSE(newer);
    CHECK(newer.error().message.find("newer release") != std::string::npos);
    CHECK_FALSE(open("sqlite:/nonexistent/folder/state.db"));
    CHECK_FALSE(check_url("etcd:https://a:2379"));
    CHECK_FALSE(check_url("state.db"));
    CHECK(check_url("sqlite:/a"));
}
