// SPDX-License-Identifier: Apache-2.0
// A Backend that keeps what it is given in memory and forwards nothing: a switch without a
// gateway, for tests, fuzzers and benchmarks of the protocol.
//
// Threads: control. Cost: a tree per table. `hold_commits` keeps commits unanswered until
// release(), as a gateway that waits for its workers and its disk does; `fail_next` refuses
// commits.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "dataplane/openflow/backend.hpp"
#include "dataplane/openflow/entry_hash.hpp"

namespace sluice::openflow {

class MemoryBackend : public Backend {
  public:
    MemoryBackend(std::string name, std::vector<const TableSchema*> tables)
        : name_(std::move(name)), tables_(std::move(tables)) {}

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] std::uint64_t datapath_id() const override { return 0x51; }
    [[nodiscard]] std::vector<PortInfo> ports() const override { return ports_; }
    [[nodiscard]] std::span<const TableSchema* const> tables() const override { return tables_; }

    [[nodiscard]] const Entry* find(const EntryKey& key) const override {
        const auto table = entries_.find(key.table);
        if (table == entries_.end()) return nullptr;
        const auto entry = table->second.find(key);
        return entry == table->second.end() ? nullptr : &entry->second;
    }
    void visit(std::uint8_t table, const EntryKey* after,
               const std::function<bool(const Entry&)>& visit) const override {
        const auto at = entries_.find(table);
        if (at == entries_.end()) return;
        auto entry = after != nullptr ? at->second.upper_bound(*after) : at->second.begin();
        for (; entry != at->second.end(); ++entry)
            if (!visit(entry->second)) return;
    }
    [[nodiscard]] EntryStats stats(const Entry& entry) const override {
        return entry.cookie == uncounted ? EntryStats{} : EntryStats{3, 180, age};
    }
    [[nodiscard]] std::uint32_t count(std::uint8_t table) const override {
        const auto at = entries_.find(table);
        return at == entries_.end() ? 0 : static_cast<std::uint32_t>(at->second.size());
    }
    [[nodiscard]] std::vector<Meter> meters() const override {
        std::vector<Meter> result;
        for (const auto& [id, meter] : meters_) result.push_back(meter);
        return result;
    }
    [[nodiscard]] std::vector<TableDigest> digests() const override {
        std::vector<TableDigest> result;
        for (const TableSchema* schema : tables_) {
            TableDigest digest{schema->id, 0, 0};
            visit(schema->id, nullptr, [&](const Entry& entry) {
                ++digest.count;
                digest.sum += entry_hash(entry);
                return true;
            });
            result.push_back(digest);
        }
        TableDigest meters{kMeterDigest, 0, 0};
        for (const auto& [id, meter] : meters_) {
            ++meters.count;
            meters.sum += meter_hash(meter);
        }
        result.push_back(meters);
        return result;
    }

    [[nodiscard]] std::optional<Problem> check(const Entry& entry) const override {
        return wrong ? wrong(entry) : std::nullopt;
    }
    void commit(Changes changes, std::function<void(Result<void>)> done) override {
        ++commits;
        pending_.emplace_back(std::move(changes), std::move(done));
        if (!hold_commits) release();
    }
    void query(std::string_view kind, std::string_view request,
               std::function<void(Result<std::string>)> done) override {
        if (kind == "explain" && request.empty())
            return done(Error{Error::Code::invalid, "an explanation needs a question", {}});
        std::string answer = "{\"kind\":\"" + std::string(kind) +
                             "\",\"request\":" + (request.empty() ? "null" : std::string(request)) +
                             "}";
        if (!hold_queries) return done(std::move(answer));
        held_query = [done = std::move(done), answer] { done(answer); };
    }

    // Applies and answers every commit that is held.
    void release() {
        while (!pending_.empty()) {
            auto [changes, done] = std::move(pending_.front());
            pending_.pop_front();
            if (fail_next > 0) {
                --fail_next;
                done(Error{Error::Code::exhausted, "there is no room", "memory"});
                continue;
            }
            apply(std::move(changes));
            done({});
        }
    }
    void apply(Changes changes) {
        for (const EntryKey& key : changes.remove) entries_[key.table].erase(key);
        for (const MeterId id : changes.remove_meters) meters_.erase(id);
        for (const Meter& meter : changes.put_meters) meters_.insert_or_assign(meter.id, meter);
        for (Entry& entry : changes.put) {
            EntryKey key = entry.key;
            entries_[key.table].insert_or_assign(std::move(key), std::move(entry));
        }
    }
    void add_port(PortInfo port) { ports_.push_back(std::move(port)); }

    std::size_t commits = 0;
    bool hold_commits = false;
    bool hold_queries = false;  // until somebody calls `held_query`
    std::function<void()> held_query;
    std::chrono::nanoseconds age{0};  // of every entry
    Cookie uncounted{~std::uint64_t{0}};
    std::size_t fail_next = 0;
    std::function<std::optional<Problem>(const Entry&)> wrong;  // what `check` says, if there

  private:
    std::string name_;
    std::vector<const TableSchema*> tables_;
    std::vector<PortInfo> ports_;
    std::map<std::uint8_t, std::map<EntryKey, Entry>> entries_;
    std::map<MeterId, Meter> meters_;
    std::deque<std::pair<Changes, std::function<void(Result<void>)>>> pending_;
};

}  // namespace sluice::openflow
