// SPDX-License-Identifier: Apache-2.0
// Where the desired state is kept, and the record of who changed it.
//
// Threads: one. Calls block until the data is on disk; a failed commit has changed
// nothing. Errors: code unavailable with the database's own sentence.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/model/resource.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::store {

// Who did what, kept in the transaction that did it.
struct AuditRecord {
    std::int64_t number = 0;  // ascending; given by the store
    std::int64_t time = 0;    // milliseconds since 1970
    std::string project;      // of the object; empty for those that belong to none
    std::string actor;        // the token's name and role, or "controller"
    std::string request_id;
    std::string action;  // create, update, delete, removed
    std::string kind;    // "vpcs"
    std::string object_id;
    std::string object_name;
    std::string before, after;  // JSON, as the API shows the object; empty where there is none
};

struct AuditFilter {
    std::optional<std::string> project;                   // only this one's records
    std::vector<std::string> kinds, object_ids, actions;  // any of them; empty: all
    std::int64_t after_number = 0;
    std::size_t limit = 100;
};

// What was stored when the program started.
struct Loaded {
    std::vector<model::ResourcePtr> resources;  // those that others refer to come first
    std::uint64_t next_number = model::kNumbersPerObject;
};

class Store {
  public:
    virtual ~Store() = default;
    virtual Result<Loaded> load() = 0;
    // One transaction: the diff, its audit records, and that numbers below `next_number`
    // are used.
    virtual Result<void> commit(const model::Diff& diff, const std::vector<AuditRecord>& audit,
                                std::uint64_t next_number) = 0;
    virtual Result<std::vector<AuditRecord>> audit(const AuditFilter& filter) = 0;
};

// "sqlite:PATH". Creates the file, not its folder. A second program on the same file is
// refused.
Result<std::unique_ptr<Store>> open(const std::string& url);
// Whether `open` would know what to do, without touching anything.
Result<void> check_url(const std::string& url);

}  // namespace sluice::store
