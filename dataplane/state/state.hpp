// SPDX-License-Identifier: Apache-2.0
// The committed tables on disk, so that a restarted gateway forwards before any controller
// has spoken to it.
//
// Ownership: one SQLite file, `tables.db`, in the gateway's state_dir, and a lock file that
// keeps a second gateway of the same name out. Threads: the control thread's.
// Durability: `write` returns when the change survives the death of the process (kill -9). A
// power failure may lose the last commits, never half of one; the controller compares digests
// when it connects and sends what is missing, so a sync of the disk is not waited for on
// every rule change.
// Failure: a damaged file is an error with a sentence; it is never repaired or emptied silently.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "dataplane/openflow/entry.hpp"
#include "dataplane/wire/result.hpp"

struct sqlite3;

namespace sluice::state {

// Holds the folder for this process: a second holder is refused after a second, which is
// for a killed one to be gone.
class Lock {
  public:
    static Result<Lock> take(const std::filesystem::path& folder, const std::string& name);
    // The number of the process that holds it, in text; none: nobody. Changes nothing.
    static std::optional<std::string> holder(const std::filesystem::path& folder);
    ~Lock();
    Lock(Lock&& other) noexcept;
    Lock& operator=(Lock&&) = delete;

  private:
    explicit Lock(int handle) : handle_(handle) {}
    int handle_;
};

class State {
  public:
    // Creates the folder and the file if they are not there.
    static Result<std::unique_ptr<State>> open(const std::filesystem::path& folder);
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    struct Stored {
        openflow::Changes tables;  // as one set of changes to an empty gateway
        Generation generation;     // of the last commit in it; 0: nothing was ever committed
    };
    [[nodiscard]] Result<Stored> load();

    // All of it or nothing.
    Result<void> write(const openflow::Changes& changes, Generation generation);

  private:
    struct Statements;
    explicit State(std::filesystem::path file);
    Result<void> prepare();
    [[nodiscard]] Error failure(const char* doing) const;
    bool apply(const openflow::Changes& changes, Generation generation);

    std::filesystem::path file_;
    sqlite3* database_ = nullptr;
    std::unique_ptr<Statements> statements_;
};

}  // namespace sluice::state
