// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <system_error>
#include <unordered_map>

#include "controller/model/saved.hpp"
#include "controller/store/statement.hpp"
#include "controller/store/store.hpp"

namespace sluice::store {
namespace {

namespace json = boost::json;

constexpr std::string_view kScheme = "sqlite:";
// 1: rules and routes inside of their objects. 2: in a table of their own. 3: bandwidths and NAT
// gateways, which an older release would take for damage.
constexpr std::int64_t kSchemaVersion = 3;

constexpr const char* kSchema = R"sql(
CREATE TABLE objects (
  number INTEGER PRIMARY KEY,      -- durable, never reused
  kind TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  version INTEGER NOT NULL,
  deleting INTEGER NOT NULL,
  body TEXT NOT NULL               -- JSON
);
CREATE TABLE parts (              -- rules and routes
  number INTEGER PRIMARY KEY,
  object INTEGER NOT NULL,         -- the number of what they belong to
  body TEXT NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE audit (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  project TEXT NOT NULL,
  actor TEXT NOT NULL,
  request_id TEXT NOT NULL,
  action TEXT NOT NULL,
  kind TEXT NOT NULL,
  object_id TEXT NOT NULL,
  object_name TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT NOT NULL
);
CREATE INDEX audit_project ON audit (project, number);
CREATE INDEX audit_object ON audit (object_id, number);
)sql";

// Holds the file for this process: SQLite alone would let two controllers write in turn.
class Lock {
  public:
    explicit Lock(const std::string& path)
        : descriptor_(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        error_ = descriptor_ < 0 ? errno : 0;
        if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) error_ = errno;
    }
    ~Lock() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    [[nodiscard]] int error() const { return error_; }

  private:
    int descriptor_;
    int error_;
};

class Sqlite final : public Store {
  public:
    Sqlite(std::unique_ptr<Lock> lock, Database database, std::string path)
        : lock_(std::move(lock)), database_(std::move(database)), path_(std::move(path)) {}

    // The file's settings and, in an empty one, its tables.
    Result<void> prepare() {
        if (!execute("PRAGMA journal_mode = WAL") || !execute("PRAGMA synchronous = FULL"))
            return failed("cannot use " + path_);
        Statement version(database_.get(), "PRAGMA user_version");
        if (!version.step()) return failed("cannot read " + path_);
        const auto found = version.number(0);
        if (found > kSchemaVersion)
            return Error{Error::Code::unavailable,
                         path_ + " was written by a newer release (schema " +
                             std::to_string(found) + ", this one knows " +
                             std::to_string(kSchemaVersion) +
                             "); run that release, or name another file in store.url",
                         {}};
        if (found == 0) {
            const std::string create =
                std::string("BEGIN IMMEDIATE;") + kSchema + set_version() + ";COMMIT;";
            if (!execute(create.c_str())) return failed("cannot create the tables of " + path_);
        }
        if (found == 1 &&
            !execute("BEGIN IMMEDIATE; CREATE TABLE parts (number INTEGER PRIMARY KEY,"
                     " object INTEGER NOT NULL, body TEXT NOT NULL)"))
            return failed("cannot bring " + path_ + " to the present schema");
        prepare_statements();
        if (found == 1) return take_parts_out();
        if (found == 2 && !execute(set_version().c_str()))
            return failed("cannot bring " + path_ + " to the present schema");
        return {};
    }

    Result<Loaded> load() override {
        Loaded loaded;
        std::unordered_map<std::int64_t, model::Parts> parts;  // by object
        Statement stored(database_.get(), "SELECT object, number, body FROM parts");
        while (stored.step()) {
            json::error_code error;
            auto body = json::parse(stored.text(2), error);
            if (error)
                return Error{Error::Code::invalid,
                             path_ + ": part " + std::to_string(stored.number(1)) + " is malformed",
                             {}};
            parts[stored.number(0)].emplace(static_cast<std::uint64_t>(stored.number(1)),
                                            std::move(body));
        }
        if (stored.failed()) return failed("cannot read " + path_);
        Statement objects(database_.get(),
                          "SELECT number, kind, id, project, version, deleting, body"
                          " FROM objects ORDER BY number");
        while (objects.step()) {
            const auto kind = model::find_kind(objects.text(1));
            const auto id = model::parse_uuid(objects.text(2));
            json::error_code error;
            const auto body = json::parse(objects.text(6), error);
            const std::string which = path_ + ": object " + objects.text(2);
            if (!kind || !id || error || !body.is_object())
                return Error{Error::Code::invalid, which + " is malformed", {}};
            auto resource = model::load(kind->kind, body.get_object(), parts[objects.number(0)]);
            if (!resource)
                return Error{Error::Code::invalid, which + ": " + resource.error().message,
                             resource.error().path};
            resource->number = static_cast<std::uint64_t>(objects.number(0));
            resource->id = *id;
            resource->project = objects.text(3);
            resource->version = static_cast<std::uint64_t>(objects.number(4));
            resource->deleting = objects.number(5) != 0;
            loaded.resources.push_back(std::make_shared<model::Resource>(std::move(*resource)));
        }
        if (objects.failed()) return failed("cannot read " + path_);
        Statement counter(database_.get(), "SELECT value FROM counters WHERE name = 'number'");
        if (counter.step()) loaded.next_number = static_cast<std::uint64_t>(counter.number(0));
        if (counter.failed()) return failed("cannot read " + path_);
        return loaded;
    }

    Result<void> commit(const model::Diff& diff, const std::vector<AuditRecord>& audit,
                        std::uint64_t next_number) override {
        if (!begin_.run()) return failed("cannot begin a transaction");
        auto result = write(diff, audit, next_number);
        if (result && !commit_.run()) result = failed("cannot commit");
        if (!result) rollback_.run();
        return result;
    }

    Result<std::vector<AuditRecord>> audit(const AuditFilter& filter) override {
        std::string sql =
            "SELECT number, time, project, actor, request_id, action, kind, object_id,"
            " object_name, before, after FROM audit WHERE number > ?";
        if (filter.project) sql += " AND project = ?";
        const auto any_of = [&](const char* column, const std::vector<std::string>& values) {
            if (values.empty()) return;
            sql += std::string(" AND ") + column + " IN (?";
            for (std::size_t i = 1; i < values.size(); ++i) sql += ",?";
            sql += ")";
        };
        any_of("kind", filter.kinds);
        any_of("object_id", filter.object_ids);
        any_of("action", filter.actions);
        sql += " ORDER BY number LIMIT ?";

        Statement query(database_.get(), sql);
        if (query.failed()) return failed("cannot read the audit records");
        int index = 0;
        query.bind_one(++index, filter.after_number);
        if (filter.project) query.bind_one(++index, *filter.project);
        for (const auto* values : {&filter.kinds, &filter.object_ids, &filter.actions})
            for (const auto& value : *values) query.bind_one(++index, value);
        query.bind_one(++index, static_cast<std::int64_t>(filter.limit));

        std::vector<AuditRecord> records;
        while (query.step())
            records.push_back({query.number(0), query.number(1), query.text(2), query.text(3),
                               query.text(4), query.text(5), query.text(6), query.text(7),
                               query.text(8), query.text(9), query.text(10)});
        if (query.failed()) return failed("cannot read the audit records");
        return records;
    }

  private:
    // Once the tables are there.
    void prepare_statements() {
        const auto make = [this](std::string_view sql) { return Statement(database_.get(), sql); };
        begin_ = make("BEGIN IMMEDIATE");
        commit_ = make("COMMIT");
        rollback_ = make("ROLLBACK");
        put_ = make(
            "INSERT INTO objects (number, kind, id, project, version, deleting, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET"
            " version = excluded.version, deleting = excluded.deleting, body = excluded.body");
        remove_ = make("DELETE FROM objects WHERE number = ?");
        put_part_ = make("INSERT OR REPLACE INTO parts (number, object, body) VALUES (?, ?, ?)");
        remove_part_ = make("DELETE FROM parts WHERE number = ?");
        record_ = make(
            "INSERT INTO audit (time, project, actor, request_id, action, kind, object_id,"
            " object_name, before, after) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
        count_ = make("INSERT OR REPLACE INTO counters (name, value) VALUES ('number', ?)");
    }

    static std::string set_version() {
        return "PRAGMA user_version = " + std::to_string(kSchemaVersion);
    }
    bool execute(const char* sql) {
        return sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
    }
    Error failed(const std::string& doing) { return database_error(database_.get(), doing); }

    Result<void> write(const model::Diff& diff, const std::vector<AuditRecord>& records,
                       std::uint64_t next_number) {
        for (const auto& change : diff) {
            const auto& resource = change.either();
            const auto number = static_cast<std::int64_t>(resource.number);
            const bool done =
                change.after ? put_.bind(number, std::string(model::info(resource.kind()).path),
                                         model::to_string(resource.id), resource.project,
                                         static_cast<std::int64_t>(resource.version),
                                         static_cast<std::int64_t>(resource.deleting),
                                         json::serialize(model::save(resource)))
                                   .run()
                             : remove_.bind(number).run();
            if (!done || !write_parts(change)) return failed("cannot write an object");
        }
        for (const auto& record : records)
            if (!record_
                     .bind(record.time, record.project, record.actor, record.request_id,
                           record.action, record.kind, record.object_id, record.object_name,
                           record.before, record.after)
                     .run())
                return failed("cannot write an audit record");
        if (!count_.bind(static_cast<std::int64_t>(next_number)).run())
            return failed("cannot write the counter");
        return {};
    }

    bool write_parts(const model::Change& change) {
        const auto object = static_cast<std::int64_t>(change.either().number);
        const auto changes = model::save_parts(change);
        for (const auto number : changes.removed)
            if (!remove_part_.bind(static_cast<std::int64_t>(number)).run()) return false;
        for (const auto& [number, body] : changes.put)
            if (!put_part_.bind(static_cast<std::int64_t>(number), object, json::serialize(body))
                     .run())
                return false;
        return true;
    }

    // From the first schema, in the transaction that has begun: parts were in the bodies.
    Result<void> take_parts_out() {
        auto loaded = load();
        if (!loaded) return loaded.error();
        model::Diff all;
        for (const auto& resource : loaded->resources) all.push_back({nullptr, resource});
        if (auto written = write(all, {}, loaded->next_number); !written) return written;
        if (!execute((set_version() + "; COMMIT").c_str()))
            return failed("cannot bring " + path_ + " to the present schema");
        return {};
    }

    std::unique_ptr<Lock> lock_;
    Database database_;
    std::string path_;
    Statement begin_, commit_, rollback_, put_, remove_, put_part_, remove_part_, record_, count_;
};

}  // namespace

Result<void> check_url(const std::string& url) {
    if (url.starts_with("etcd:"))
        return Error{
            Error::Code::unsupported, "etcd is not supported by this release; use sqlite:", {}};
    if (!url.starts_with(kScheme) || url.size() == kScheme.size())
        return Error{Error::Code::invalid, "expected sqlite:PATH, not \"" + url + "\"", {}};
    return {};
}

Result<std::unique_ptr<Store>> open(const std::string& url) {
    if (auto known = check_url(url); !known) return known.error();
    const std::string path = url.substr(kScheme.size());
    auto lock = std::make_unique<Lock>(path);
    if (lock->error() == EWOULDBLOCK)
        return Error{Error::Code::unavailable,
                     path +
                         " is in use by another controller; stop that one, or name another file in "
                         "store.url",
                     {}};
    if (lock->error() != 0)
        return Error{
            Error::Code::unavailable,
            "cannot open " + path + ".lock: " + std::system_category().message(lock->error()),
            {}};
    // The audit records tell of every tenant. SQLite gives the -wal and the -shm file the
    // permissions of this one; whoever has widened them on purpose keeps that.
    const int created = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (created < 0)
        return Error{Error::Code::unavailable,
                     "cannot open " + path + ": " + std::system_category().message(errno),
                     {}};
    ::close(created);
    sqlite3* opened = nullptr;
    const int status =
        sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    Database database(opened);
    if (status != SQLITE_OK) return database_error(opened, "cannot open " + path);
    auto store = std::make_unique<Sqlite>(std::move(lock), std::move(database), path);
    if (auto ready = store->prepare(); !ready) return ready.error();
    return std::unique_ptr<Store>(std::move(store));
}

}  // namespace sluice::store
