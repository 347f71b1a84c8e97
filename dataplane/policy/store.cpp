// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/store.hpp"

#include <string>
#include <unordered_map>

namespace sluice::policy {
namespace {

using openflow::Changes;
using openflow::Entry;
using openflow::EntryKey;
using openflow::TableSchema;

// Keys where they lie in the bundle: copying each would cost an allocation.
struct KeyHash {
    std::size_t operator()(const EntryKey* key) const {
        return static_cast<std::size_t>(openflow::key_hash(*key));
    }
};
struct SameKey {
    bool operator()(const EntryKey* a, const EntryKey* b) const { return *a == *b; }
};

struct TableChanges {
    std::vector<EntryChange> of[kTables];
};

Result<void> writable(const Pipeline& pipeline, std::uint8_t table) {
    const TableSchema* schema = pipeline.table(table);
    if (schema == nullptr)
        return Error{Error::Code::not_found, "there is no table " + std::to_string(table), "table"};
    if (schema->built_in)
        return Error{Error::Code::read_only,
                     "the entries of this table come from the configuration",
                     std::string(schema->name)};
    return {};
}

// Checks every entry, and boils the bundle down to what differs from what is there.
Result<TableChanges> differences(const Store& store, const Pipeline& pipeline,
                                 const Changes& changes) {
    const Snapshot& current = store.current();
    std::unordered_map<const EntryKey*, const Entry*, KeyHash, SameKey> wanted;
    wanted.reserve(changes.put.size() + changes.remove.size());
    for (const EntryKey& key : changes.remove) {
        if (const auto ok = writable(pipeline, key.table); !ok) return ok.error();
        wanted[&key] = nullptr;
    }
    for (const Entry& entry : changes.put) {
        if (const auto ok = writable(pipeline, entry.key.table); !ok) return ok.error();
        if (const auto wrong = store.check(entry)) return wrong->error;
        wanted[&entry.key] = &entry;
    }
    TableChanges result;
    for (const auto& [key, after] : wanted) {
        const Entry* before = current.find(*key);
        if (before == after) continue;  // neither is there
        if (before != nullptr && after != nullptr && *before == *after) continue;
        result.of[key->table].push_back({before, after});
    }
    return result;
}

// What is sent to the gateway's own address would come back to it.
std::optional<openflow::Problem> check_host(const Entry& entry, const OwnAddresses& own) {
    const auto row = openflow::HostRow::decode(entry);
    if (!row) return std::nullopt;  // told when it is applied
    for (const IpAddress& vtep : row->vteps) {
        const OwnAddresses::Owner* owner = own.find(vtep);
        if (owner != nullptr && owner->whose == OwnAddresses::Whose::gateway)
            return openflow::Problem{
                openflow::Violation::set_value,
                {Error::Code::conflict,
                 to_string(vtep) + " cannot be a host's VTEP: it is " + owner->what, "host"}};
    }
    return std::nullopt;
}

void apply_entry(TableEntries& table, const EntryChange& change, Store::Time now, Commit& commit) {
    if (change.before != nullptr) {
        table.digest -= openflow::entry_hash(*change.before);
        commit.draws(change.before->meter, -1);
        if (change.after == nullptr) table.entries.remove(change.before->key);
    }
    if (change.after != nullptr) {
        table.digest += openflow::entry_hash(*change.after);
        commit.draws(change.after->meter, 1);
        const bool modified =
            change.before != nullptr && change.before->cookie == change.after->cookie;
        const auto* before = modified ? table.entries.find(change.after->key) : nullptr;
        const auto added = before != nullptr ? before->added : now;
        table.entries.put({*change.after, added});
    }
}

Result<void> build(const Pipeline& pipeline, const Changes& changes, const TableChanges& differing,
                   Store::Time now, Snapshot& next, Commit& commit) {
    if (const auto ok = commit.apply_meters(changes); !ok) return ok.error();
    for (const TableSchema* schema : pipeline.tables()) {
        const auto& of_table = differing.of[schema->id];
        TableEntries& table = next.tables[schema->id];
        for (const EntryChange& change : of_table) apply_entry(table, change, now, commit);
        if (table.entries.size() > schema->capacity)
            return Error{Error::Code::exhausted,
                         "the table holds at most " + std::to_string(schema->capacity) + " entries",
                         std::string(schema->name)};
        if (pipeline.owner(schema->id) != nullptr || of_table.empty()) continue;
        if (const auto ok = commit.apply_core(schema->id, of_table); !ok) return ok.error();
    }
    const auto functions = pipeline.functions();
    for (std::size_t i = 0; i < functions.size(); ++i) {
        std::vector<EntryChange> own;
        for (const TableSchema* schema : functions[i]->tables())
            own.insert(own.end(), differing.of[schema->id].begin(), differing.of[schema->id].end());
        if (own.empty()) continue;
        auto state = functions[i]->apply(*next.functions[i], own, commit);
        if (!state) return state.error();
        next.functions[i] = *std::move(state);
    }
    return commit.settle_meters();
}

}  // namespace

Prepared::~Prepared() {
    if (store_ != nullptr) store_->give_back(taken_);
}

Store::Store(const Options& options)
    : adjacencies_(options.adjacencies),
      sources_(options.sources),
      qsbr_(options.qsbr),
      pipeline_(options.pipeline),
      own_(options.own),
      zone_capacity_(options.zone_capacity),
      meter_capacity_(options.meter_capacity),
      vacant_(options.vacant),
      zones_(options.zone_capacity),
      changed_(std::make_unique<std::atomic<std::uint32_t>[]>(options.zone_capacity)) {
    changed_[kNobody.value].store(~0U, std::memory_order_relaxed);
    auto first = std::make_unique<Snapshot>();
    first->pipeline = &pipeline_;
    first->outside = options.outside;
    first->nat_ports = options.nat_ports;
    for (const NetworkFunction* function : pipeline_.functions())
        first->functions.push_back(function->initial());
    TableEntries& ports = first->tables[openflow::kPort];
    for (const openflow::PortRow& port : options.ports) {
        Entry entry = port.encode();
        ports.digest += openflow::entry_hash(entry);
        ports.entries.put({std::move(entry), options.now});
    }
    current_ = std::move(first);
}

Store::~Store() = default;

std::optional<openflow::Problem> Store::check(const Entry& entry) const {
    const std::uint8_t table = entry.key.table;
    if (auto wrong = openflow::check(*pipeline_.table(table), entry)) return wrong;
    if (const NetworkFunction* owner = pipeline_.owner(table)) return owner->check(entry, own_);
    if (table == openflow::kHost) return check_host(entry, own_);
    return std::nullopt;
}

Result<Prepared> Store::prepare(const Changes& changes, Time now) {
    const auto differing = differences(*this, pipeline_, changes);
    if (!differing) return differing.error();

    Prepared prepared(*this);
    prepared.next_ = std::make_unique<Snapshot>(*current_);
    prepared.next_->generation = Generation{current_->generation.value + 1};
    Commit commit(*current_, prepared.next_->core, indexes());
    auto built = build(pipeline_, changes, *differing, now, *prepared.next_, commit);
    if (built.ok() && prepared.next_->core.meters.size() > meter_capacity_)
        built = Error{Error::Code::exhausted,
                      "there are at most " + std::to_string(meter_capacity_) + " meters", "meters"};
    prepared.taken_ = std::move(commit.taken());
    if (!built) return built.error();
    prepared.released_ = std::move(commit.released());
    prepared.delta_ = std::move(commit.delta());
    prepared.delta_.generation = prepared.next_->generation;
    prepared.zones_ = commit.zones();
    return prepared;
}

void Store::mark(const Prepared& prepared) {
    for (const ZoneSlot zone : prepared.zones_)
        changed_[zone.value].store(prepared.next_->generation.value, std::memory_order_release);
}

reclaim::Qsbr::Token Store::swap(Prepared prepared) {
    prepared.store_ = nullptr;  // what it took stays taken
    std::unique_ptr<const Snapshot> before = std::move(current_);
    current_ = std::move(prepared.next_);
    root_.store(current_.get(), std::memory_order_release);
    const auto token = qsbr_.advance();
    retired_.push_back({token, std::move(before), std::move(prepared.released_)});
    return token;
}

void Store::reclaim() {
    while (!retired_.empty() && qsbr_.elapsed(retired_.front().token)) {
        IndexLists& indexes = retired_.front().indexes;
        if (vacant_) {
            resting_.insert(resting_.end(), indexes.zones.begin(), indexes.zones.end());
            indexes.zones.clear();
        }
        give_back(indexes);
        retired_.pop_front();
    }
    std::erase_if(resting_, [&](ZoneSlot slot) {
        if (!vacant_(slot)) return false;
        zones_.free(slot);
        return true;
    });
}

void Store::give_back(const IndexLists& indexes) {
    for (const AdjacencyIndex index : indexes.adjacencies) adjacencies_.free(index);
    for (const SourceIndex index : indexes.sources) sources_.free(index);
    for (const ZoneSlot slot : indexes.zones) zones_.free(slot);
}

}  // namespace sluice::policy
