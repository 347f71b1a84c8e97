// SPDX-License-Identifier: Apache-2.0
#include "dataplane/state/state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "dataplane/state/entry_blob.hpp"

namespace sluice::state {
namespace {

// Grows with every change of entry_blob.hpp or of the enumerators it stores.
constexpr int kFormat = 1;

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS meters (id INTEGER PRIMARY KEY, rate_kbps INTEGER NOT NULL,"
    " burst_kbit INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS generation (only INTEGER PRIMARY KEY CHECK (only = 1),"
    " value INTEGER NOT NULL);";

class Statement {
  public:
    bool prepare(sqlite3* database, const char* text) {
        return sqlite3_prepare_v3(database, text, -1, SQLITE_PREPARE_PERSISTENT, &handle_,
                                  nullptr) == SQLITE_OK;
    }
    ~Statement() { sqlite3_finalize(handle_); }
    Statement() = default;
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    Statement& bind(int at, const Octets& octets) {
        sqlite3_bind_blob64(handle_, at, octets.data(), octets.size(), SQLITE_TRANSIENT);
        return *this;
    }
    Statement& bind(int at, std::int64_t number) {
        sqlite3_bind_int64(handle_, at, number);
        return *this;
    }
    // SQLITE_ROW, SQLITE_DONE or an error.
    int step() { return sqlite3_step(handle_); }
    bool run() {
        const int result = sqlite3_step(handle_);
        sqlite3_reset(handle_);
        return result == SQLITE_DONE;
    }
    void reset() { sqlite3_reset(handle_); }
    [[nodiscard]] std::span<const char> octets(int column) const {
        const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
        return {data, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
    }
    [[nodiscard]] std::int64_t number(int column) const {
        return sqlite3_column_int64(handle_, column);
    }

  private:
    sqlite3_stmt* handle_ = nullptr;
};

// Tables tell of every tenant. SQLite gives what it makes beside the file the file's own mode. What
// cannot be changed here cannot be opened either, or is not this process's.
void keep_private(const std::filesystem::path& file) {
    const int handle = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (handle >= 0) close(handle);
    for (const char* suffix : {"", "-wal", "-shm"}) {
        const auto path = file.string() + suffix;
        struct stat status {};
        if (lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
            chmod(path.c_str(), S_IRUSR | S_IWUSR);
    }
}

}  // namespace

struct State::Statements {
    Statement put, remove, put_meter, remove_meter, put_generation;
    Statement begin, commit, rollback;
};

State::State(std::filesystem::path file) : file_(std::move(file)) {}

State::~State() {
    statements_.reset();
    sqlite3_close(database_);
}

Error State::failure(const char* doing) const {
    return {
        Error::Code::unavailable,
        fmt::format("{} cannot be {}: {}; repair its file system, or move the file away to start "
                    "without tables (the controller sends them anew)",
                    file_.string(), doing,
                    database_ != nullptr ? sqlite3_errmsg(database_) : "out of memory"),
        "state_dir"};
}

Result<std::unique_ptr<State>> State::open(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    auto state = std::unique_ptr<State>(new State(folder / "tables.db"));
    keep_private(state->file_);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(state->file_.c_str(), &state->database_, flags, nullptr) != SQLITE_OK)
        return state->failure("opened");
    if (auto prepared = state->prepare(); !prepared) return prepared.error();
    return state;
}

Result<void> State::prepare() {
    const auto run = [&](const char* text) {
        return sqlite3_exec(database_, text, nullptr, nullptr, nullptr) == SQLITE_OK;
    };
    int format = 0;
    {
        Statement version;
        if (!version.prepare(database_, "PRAGMA user_version") || version.step() != SQLITE_ROW)
            return failure("read");
        format = static_cast<int>(version.number(0));
    }
    if (format != 0 && format != kFormat)
        return Error{
            Error::Code::unsupported,
            fmt::format("{} was written by another release (format {}, this one has {}); move "
                        "it away to start without tables (the controller sends them anew)",
                        file_.string(), format, kFormat),
            "state_dir"};
    if (!run("PRAGMA journal_mode = WAL") || !run("PRAGMA synchronous = NORMAL") || !run(kSchema) ||
        !run(fmt::format("PRAGMA user_version = {}", kFormat).c_str()))
        return failure("written");
    statements_ = std::make_unique<Statements>();
    const bool ready =
        statements_->put.prepare(database_, "INSERT OR REPLACE INTO entries VALUES (?, ?)") &&
        statements_->remove.prepare(database_, "DELETE FROM entries WHERE key = ?") &&
        statements_->put_meter.prepare(database_,
                                       "INSERT OR REPLACE INTO meters VALUES (?, ?, ?)") &&
        statements_->remove_meter.prepare(database_, "DELETE FROM meters WHERE id = ?") &&
        statements_->put_generation.prepare(database_,
                                            "INSERT OR REPLACE INTO generation VALUES (1, ?)") &&
        statements_->begin.prepare(database_, "BEGIN") &&
        statements_->commit.prepare(database_, "COMMIT") &&
        statements_->rollback.prepare(database_, "ROLLBACK");
    if (!ready) return failure("read");
    return {};
}

Result<State::Stored> State::load() {
    Stored stored;
    Statement check, entries, meters, generation;
    if (!check.prepare(database_, "PRAGMA quick_check(1)") || check.step() != SQLITE_ROW)
        return failure("read");
    const auto octets = check.octets(0);
    if (std::string verdict(octets.data(), octets.size()); verdict != "ok") {
        // SQLite heads its finding with a line of its own.
        verdict.erase(0, verdict.find('\n') + 1);
        std::replace(verdict.begin(), verdict.end(), '\n', ' ');
        return Error{Error::Code::unavailable,
                     fmt::format("{} is damaged ({}); move it away to start without tables (the "
                                 "controller sends them anew)",
                                 file_.string(), verdict),
                     "state_dir"};
    }
    if (!entries.prepare(database_, "SELECT key, body FROM entries") ||
        !meters.prepare(database_, "SELECT id, rate_kbps, burst_kbit FROM meters") ||
        !generation.prepare(database_, "SELECT value FROM generation"))
        return failure("read");
    int step = 0;
    while ((step = entries.step()) == SQLITE_ROW) {
        auto entry = decode(entries.octets(0), entries.octets(1));
        if (!entry)
            return Error{
                Error::Code::unavailable,
                fmt::format("{} is damaged: it holds octets that are no table entry; move it "
                            "away to start without tables (the controller sends them anew)",
                            file_.string()),
                "state_dir"};
        stored.tables.put.push_back(std::move(*entry));
    }
    if (step != SQLITE_DONE) return failure("read");
    while ((step = meters.step()) == SQLITE_ROW)
        stored.tables.put_meters.push_back({MeterId{static_cast<std::uint32_t>(meters.number(0))},
                                            static_cast<std::uint32_t>(meters.number(1)),
                                            static_cast<std::uint32_t>(meters.number(2))});
    if (step != SQLITE_DONE) return failure("read");
    if (generation.step() == SQLITE_ROW)
        stored.generation = Generation{static_cast<std::uint32_t>(generation.number(0))};
    return stored;
}

Result<void> State::write(const openflow::Changes& changes, Generation generation) {
    if (!statements_->begin.run()) return failure("written");
    if (apply(changes, generation) && statements_->commit.run()) return {};
    auto error = failure("written");
    statements_->rollback.run();
    return error;
}

bool State::apply(const openflow::Changes& changes, Generation generation) {
    auto& s = *statements_;
    for (const auto& key : changes.remove)
        if (!s.remove.bind(1, encode_key(key)).run()) return false;
    for (const auto& entry : changes.put)
        if (!s.put.bind(1, encode_key(entry.key)).bind(2, encode_body(entry)).run()) return false;
    for (const auto id : changes.remove_meters)
        if (!s.remove_meter.bind(1, id.value).run()) return false;
    for (const auto& meter : changes.put_meters)
        if (!s.put_meter.bind(1, meter.id.value)
                 .bind(2, meter.rate_kbps)
                 .bind(3, meter.burst_kbit)
                 .run())
            return false;
    return s.put_generation.bind(1, generation.value).run();
}

}  // namespace sluice::state
