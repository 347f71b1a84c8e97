// SPDX-License-Identifier: Apache-2.0
// SQLite's statements and their lifetimes. Private to the store.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "dataplane/wire/result.hpp"

namespace sluice::store {

struct CloseDatabase {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

// What the operator does about a result code of SQLite; empty: the code does not tell.
inline const char* remedy(int code) {
    switch (code & 0xff) {
        case SQLITE_FULL:
            return "; free space on the store's file system, then repeat the request";
        case SQLITE_IOERR:
            return "; see to the store's file system (is it full?), then repeat the request";
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return "; move the file away with its -wal and -shm, put a backup in its place, and "
                   "start again (with none, the controller starts empty and so empties the "
                   "gateways)";
        case SQLITE_READONLY:
        case SQLITE_PERM:
        case SQLITE_CANTOPEN:
            return "; let the controller's user write the file and its folder";
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return "; end the other program that has the file open";
        default:
            return "";
    }
}

inline Error database_error(sqlite3* database, const std::string& doing) {
    return Error{
        Error::Code::unavailable,
        doing + ": " + sqlite3_errmsg(database) + remedy(sqlite3_extended_errcode(database)),
        {}};
}

// A prepared statement. Values are bound in order from the first parameter on; after
// run() or the last step() it can be bound again.
class Statement {
  public:
    Statement() = default;
    Statement(sqlite3* database, std::string_view sql) {
        sqlite3_stmt* prepared = nullptr;
        status_ = sqlite3_prepare_v3(database, sql.data(), static_cast<int>(sql.size()),
                                     SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
        statement_.reset(prepared);
    }

    template <class... Values>
    Statement& bind(const Values&... values) {
        if (!statement_) return *this;
        sqlite3_reset(statement_.get());
        sqlite3_clear_bindings(statement_.get());
        int index = 0;
        (bind_one(++index, values), ...);
        return *this;
    }
    Statement& bind_one(int index, std::int64_t value) {
        sqlite3_bind_int64(statement_.get(), index, value);
        return *this;
    }
    Statement& bind_one(int index, const std::string& value) {
        sqlite3_bind_text(statement_.get(), index, value.data(), static_cast<int>(value.size()),
                          SQLITE_TRANSIENT);
        return *this;
    }

    // True with a row. The end and an error answer false; `failed` tells them apart.
    bool step() {
        if (statement_) status_ = sqlite3_step(statement_.get());
        return status_ == SQLITE_ROW;
    }
    [[nodiscard]] bool failed() const {
        return status_ != SQLITE_ROW && status_ != SQLITE_DONE && status_ != SQLITE_OK;
    }
    bool run() {
        step();
        const bool done = status_ == SQLITE_DONE;
        if (statement_) sqlite3_reset(statement_.get());
        return done;
    }

    [[nodiscard]] std::int64_t number(int column) const {
        return sqlite3_column_int64(statement_.get(), column);
    }
    [[nodiscard]] std::string text(int column) const {
        const auto* octets = sqlite3_column_text(statement_.get(), column);
        const auto length = sqlite3_column_bytes(statement_.get(), column);
        return {reinterpret_cast<const char*>(octets), static_cast<std::size_t>(length)};
    }

  private:
    struct Finalise {
        void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    std::unique_ptr<sqlite3_stmt, Finalise> statement_;
    int status_ = SQLITE_MISUSE;
};

}  // namespace sluice::store
