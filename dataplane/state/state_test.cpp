// SPDX-License-Identifier: Apache-2.0
#include "dataplane/state/state.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "dataplane/state/entry_blob.hpp"

namespace sluice::state {
namespace {

using openflow::Changes;
using openflow::Entry;
using openflow::Field;
using openflow::U128;

struct Folder {
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "state_XXXXXX").string();
        path = mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
};

Entry entry(std::uint64_t number) {
    Entry result;
    result.key.table = 12;
    result.key.match = {{Field::destination_vpc, U128::of(number), U128::ones()},
                        {Field::destination_ip, {7, number}, U128::prefix_mask(120)}};
    result.cookie = Cookie{number << 40};
    result.set = {{Field::group, U128::of(1)}, {Field::group, U128::of(2)}};
    result.meter = MeterId{9};
    result.next = 13;
    return result;
}

std::unique_ptr<State> opened(const Folder& folder) {
    auto state = State::open(folder.path);
    REQUIRE(state.ok());
    return std::move(*state);
}

void write(State& state, const Changes& changes, std::uint32_t generation) {
    REQUIRE(state.write(changes, Generation{generation}).ok());
}

State::Stored loaded(State& state) {
    auto stored = state.load();
    REQUIRE(stored.ok());
    std::sort(stored->tables.put.begin(), stored->tables.put.end());
    return *stored;
}

}  // namespace

TEST_CASE("an entry survives its octets, and cut octets are no entry", "[state]") {
    auto of = GENERATE(1, 2);
    auto before = entry(77);
    if (of == 2) before.next.reset();
    const auto key = encode_key(before.key), body = encode_body(before);
    CHECK(decode(key, body) == before);
    for (std::size_t size = 0; size < key.size(); ++size)
        CHECK_FALSE(decode(std::span(key).first(size), body));
    for (std::size_t size = 0; size < body.size(); ++size)
        CHECK_FALSE(decode(key, std::span(body).first(size)));
    CHECK_FALSE(decode(key, body + "x"));
}

TEST_CASE("a new folder has no tables", "[state]") {
    Folder folder;
    auto state = opened(folder);
    const auto stored = loaded(*state);
    CHECK(stored.tables.empty());
    CHECK(stored.generation == Generation{0});
}

TEST_CASE("what was written is there for the next process", "[state]") {
    Folder folder;
    {
        auto state = opened(folder);
        write(*state, {{entry(1), entry(2)}, {}, {{MeterId{5}, 20000, 2000}}, {}}, 1);
        auto changed = entry(2);
        changed.cookie = Cookie{99};
        write(*state, {{changed, entry(3)}, {entry(1).key}, {{MeterId{6}, 1, 2}}, {MeterId{5}}}, 2);
    }
    auto state = opened(folder);
    const auto stored = loaded(*state);
    REQUIRE(stored.tables.put.size() == 2);
    CHECK(stored.tables.put[0].cookie == Cookie{99});
    CHECK(stored.tables.put[1] == entry(3));
    CHECK(stored.tables.put_meters == std::vector<openflow::Meter>{{MeterId{6}, 1, 2}});
    CHECK(stored.generation == Generation{2});
}

TEST_CASE("nobody else may read the tables, nor what SQLite keeps beside them", "[state]") {
    Folder folder;
    const auto mode = [&](const char* name) {
        return std::filesystem::status(folder.path / name).permissions();
    };
    constexpr auto kOwner =
        std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
    const auto before = umask(0022);
    for (int start = 0; start < 2; ++start) {
        const auto state = opened(folder);
        write(*state, {{entry(1)}, {}, {}, {}}, 1);
        for (const char* name : {"tables.db", "tables.db-wal", "tables.db-shm"}) {
            CHECK(mode(name) == kOwner);
            // As an earlier release left them.
            std::filesystem::permissions(folder.path / name, std::filesystem::perms(0644));
        }
    }
    umask(before);
    // What is left of a killed process, too.
    { std::ofstream(folder.path / "tables.db-wal"); }
    const auto state = opened(folder);
    CHECK(mode("tables.db-wal") == kOwner);
}

TEST_CASE("what another handle sees is whole commits, while the writer lives", "[state]") {
    Folder folder;
    auto writer = opened(folder);
    write(*writer, {{entry(1), entry(2)}, {}, {}, {}}, 1);
    auto reader = opened(folder);
    CHECK(loaded(*reader).tables.put.size() == 2);
}

TEST_CASE("a damaged file is refused with what to do, and left as it is", "[state]") {
    Folder folder;
    {
        auto state = opened(folder);
        for (std::uint32_t i = 0; i < 50; ++i) {
            Changes changes;
            for (std::uint32_t k = 0; k < 20; ++k) changes.put.push_back(entry(i * 20 + k));
            write(*state, changes, i);
        }
    }
    const auto file = folder.path / "tables.db";
    const auto size = std::filesystem::file_size(file);
    const auto from = GENERATE(0, 1);
    {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(static_cast<std::streamoff>(from * size / 4));
        stream << std::string(size / 2, 'x');
    }
    auto state = State::open(folder.path);
    const auto error = state.ok() ? (*state)->load().error() : state.error();
    CHECK(error.path == "state_dir");
    CHECK(error.message.find("move") != std::string::npos);
    CHECK(error.message.find('\n') == std::string::npos);
    CHECK(std::filesystem::file_size(file) == size);
}

TEST_CASE("a file of another release is refused", "[state]") {
    Folder folder;
    opened(folder);
    {
        // SQLite's file format, section 1.3: the user version, big-endian.
        std::fstream stream(folder.path / "tables.db",
                            std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(60);
        stream.write("\0\0\0\x63", 4);
    }
    const auto state = State::open(folder.path);
    REQUIRE_FALSE(state.ok());
    CHECK(state.error().message.find("another release (format 99") != std::string::npos);
}

TEST_CASE("one gateway at a time holds a folder", "[state]") {
    Folder folder;
    {
        auto first = Lock::take(folder.path, "gw1");
        REQUIRE(first.ok());
        const auto second = Lock::take(folder.path, "gw1");
        REQUIRE_FALSE(second.ok());
        CHECK(second.error().message.find("another gateway \"gw1\" runs") == 0);
    }
    CHECK(Lock::take(folder.path, "gw1").ok());
}

TEST_CASE("a folder that cannot be made is said", "[state]") {
    const auto lock = Lock::take("/proc/nowhere", "gw1");
    REQUIRE_FALSE(lock.ok());
    CHECK(lock.error().message.find("the folder /proc/nowhere cannot be made: ") == 0);
}

}  // namespace sluice::state
