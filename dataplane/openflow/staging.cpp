// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/staging.hpp"

#include <algorithm>

namespace sluice::openflow {
namespace {

ErrorCode code_of(Violation violation) {
    switch (violation) {
        case Violation::wrong_table:
            return error::kBadTableId;
        case Violation::match_unknown:
        case Violation::match_missing:
            return error::kBadMatchField;
        case Violation::match_duplicate:
            return error::kDuplicateMatchField;
        case Violation::match_mask:
            return error::kBadMatchMask;
        case Violation::match_value:
            return error::kBadMatchValue;
        case Violation::match_prerequisite:
            return error::kBadMatchPrerequisite;
        case Violation::next_table:
            return error::kBadGotoTable;
        case Violation::next_missing:
        case Violation::meter_unknown:
            return error::kUnsupportedInstruction;
        case Violation::set_unknown:
            return error::kBadSetType;
        case Violation::set_value:
            return error::kBadSetArgument;
        case Violation::set_duplicate:
        case Violation::set_missing:
            return error::kUnsupportedActionOrder;
        case Violation::priority:
            return error::kBadPriority;
    }
    return error::kFlowModUnknown;
}

std::optional<WireError> check_entry(const Backend& backend, const TableSchema& schema,
                                     const Entry& entry) {
    auto problem = check(schema, entry);
    if (!problem) problem = backend.check(entry);
    if (problem)
        return WireError{code_of(problem->violation),
                         problem->error.path + ": " + problem->error.message};
    return std::nullopt;
}

bool cookie_agrees(const FlowMod& mod, const Entry& entry) {
    return ((entry.cookie.value ^ mod.cookie) & mod.cookie_mask) == 0;
}

bool is_strict(const FlowMod& mod) {
    return mod.command == ModCommand::modify_strict || mod.command == ModCommand::remove_strict;
}

U128 both(const U128& a, const U128& b) {
    return {a.high & b.high, a.low & b.low};
}
bool same_under(const U128& mask, const U128& a, const U128& b) {
    return both(mask, a) == both(mask, b);
}

}  // namespace

const TableSchema* find_table(const Backend& backend, std::uint8_t table) {
    for (const TableSchema* schema : backend.tables())
        if (schema->id == table) return schema;
    return nullptr;
}

bool depends_on_state(const FlowMod& mod) {
    return mod.command == ModCommand::add
               ? mod.check_overlap
               : mod.command != ModCommand::remove_strict || mod.cookie_mask != 0 || mod.all_tables;
}

bool covers(const std::vector<MatchField>& wide, const std::vector<MatchField>& narrow) {
    auto at = narrow.begin();
    for (const MatchField& field : wide) {  // both are sorted by field
        while (at != narrow.end() && at->field < field.field) ++at;
        if (at == narrow.end() || at->field != field.field) return false;
        if (both(at->mask, field.mask) != field.mask) return false;
        if (!same_under(field.mask, at->value, field.value)) return false;
    }
    return true;
}

bool overlaps(const std::vector<MatchField>& one, const std::vector<MatchField>& other) {
    auto at = other.begin();
    for (const MatchField& field : one) {
        while (at != other.end() && at->field < field.field) ++at;
        if (at == other.end()) return true;
        if (at->field == field.field &&
            !same_under(both(at->mask, field.mask), at->value, field.value))
            return false;
    }
    return true;
}

WireError to_wire(const Error& error) {
    const std::string message = (error.path.empty() ? "" : error.path + ": ") + error.message;
    switch (error.code) {
        case Error::Code::exhausted:
            return {error::kTableFull, message};
        case Error::Code::read_only:
            return {error::kFlowModPermission, message};
        case Error::Code::invalid:
            return {error::kBadMatchValue, message};
        default:
            return {error::kFlowModUnknown, message};
    }
}

std::optional<WireError> precheck(const Backend& backend, const FlowMod& mod) {
    if (mod.all_tables) return std::nullopt;
    const TableSchema* schema = find_table(backend, mod.entry.key.table);
    if (schema == nullptr)
        return WireError{error::kBadTableId,
                         "there is no table " + std::to_string(mod.entry.key.table)};
    if (schema->built_in)
        return WireError{
            error::kFlowModPermission,
            "the entries of table " + std::string(schema->name) + " come from the configuration"};
    if (mod.command == ModCommand::add) return check_entry(backend, *schema, mod.entry);
    return std::nullopt;
}

std::optional<WireError> Staging::apply(const FlowMod& mod) {
    switch (mod.command) {
        case ModCommand::add:
            return add(mod);
        case ModCommand::modify:
        case ModCommand::modify_strict:
            return modify(mod);
        case ModCommand::remove:
        case ModCommand::remove_strict:
            remove(mod);
            return std::nullopt;
    }
    return WireError{error::kBadCommand, {}};
}

std::optional<WireError> Staging::add(const FlowMod& mod) {
    const Entry& entry = mod.entry;
    const TableSchema& schema = *find_table(backend_, entry.key.table);
    if (entry.meter && find_meter(entry.meter) == nullptr)
        return WireError{error::kUnknownMeter,
                         "there is no meter " + std::to_string(entry.meter.value)};
    if (mod.check_overlap) {
        bool found = false;
        visit(entry.key.table, [&](const Entry& other) {
            found = found || (other.key.priority == entry.key.priority &&
                              overlaps(other.key.match, entry.key.match));
        });
        if (found) return WireError{error::kOverlap, "another entry of its priority overlaps"};
    }
    if (!has_room(schema) && find(entry.key) == nullptr)
        return WireError{error::kTableFull, "table " + std::string(schema.name) + " is full"};
    put(entry);
    return std::nullopt;
}

std::optional<WireError> Staging::modify(const FlowMod& mod) {
    const TableSchema& schema = *find_table(backend_, mod.entry.key.table);
    if (mod.entry.meter && find_meter(mod.entry.meter) == nullptr)
        return WireError{error::kUnknownMeter,
                         "there is no meter " + std::to_string(mod.entry.meter.value)};
    std::vector<Entry> changed = concerned(mod);
    for (Entry& entry : changed) {
        entry.set = mod.entry.set;
        entry.meter = mod.entry.meter;
        entry.next = mod.entry.next;
        if (auto wrong = check_entry(backend_, schema, entry)) return wrong;
    }
    for (Entry& entry : changed) put(std::move(entry));
    return std::nullopt;
}

void Staging::remove(const FlowMod& mod) {
    // What only a strict remove can concern need not be looked for: removing is idempotent.
    if (!depends_on_state(mod)) {
        if (!mod.output_filter) drop(mod.entry.key);
        return;
    }
    for (const Entry& entry : concerned(mod)) drop(entry.key);
}

std::vector<Entry> Staging::concerned(const FlowMod& mod) const {
    std::vector<Entry> result;
    if (mod.output_filter) return result;
    const auto look = [&](const TableSchema& schema) {
        if (schema.built_in) return;
        if (is_strict(mod)) {
            EntryKey key = mod.entry.key;
            key.table = schema.id;
            const Entry* entry = find(key);
            if (entry != nullptr && cookie_agrees(mod, *entry)) result.push_back(*entry);
            return;
        }
        visit(schema.id, [&](const Entry& entry) {
            if (covers(mod.entry.key.match, entry.key.match) && cookie_agrees(mod, entry))
                result.push_back(entry);
        });
    };
    if (!mod.all_tables) {
        look(*find_table(backend_, mod.entry.key.table));
    } else {
        for (const TableSchema* schema : backend_.tables()) look(*schema);
    }
    return result;
}

template <class Visitor>
void Staging::visit(std::uint8_t table, Visitor visitor) const {
    backend_.visit(table, nullptr, [&](const Entry& entry) {
        if (!overlay_.contains(entry.key)) visitor(entry);
        return true;
    });
    for (const auto& [key, entry] : overlay_)
        if (entry && key.table == table) visitor(*entry);
}

const Entry* Staging::find(const EntryKey& key) const {
    const auto staged = overlay_.find(key);
    if (staged != overlay_.end()) return staged->second ? &*staged->second : nullptr;
    return backend_.find(key);
}

void Staging::put(Entry entry) {
    const std::uint8_t table = entry.key.table;
    auto [at, is_new] = overlay_.try_emplace(entry.key);
    // An upper bound: replacing a committed entry counts as growth until has_room() needs
    // to know.
    if (is_new || !at->second) ++growth_[table];
    at->second = std::move(entry);
}

void Staging::drop(const EntryKey& key) {
    auto [at, is_new] = overlay_.try_emplace(key);
    if (!is_new && at->second) --growth_[key.table];
    at->second.reset();
}

bool Staging::has_room(const TableSchema& schema) {
    auto& growth = growth_[schema.id];
    if (backend_.count(schema.id) + growth < std::int64_t{schema.capacity}) return true;
    // Now exactly.
    growth = 0;
    for (const auto& [key, entry] : overlay_)
        if (key.table == schema.id)
            growth += (entry ? 1 : 0) - (backend_.find(key) != nullptr ? 1 : 0);
    return backend_.count(schema.id) + growth < std::int64_t{schema.capacity};
}

const Meter* Staging::find_meter(MeterId id) const {
    const auto staged = meter_overlay_.find(id);
    if (staged != meter_overlay_.end()) return staged->second ? &*staged->second : nullptr;
    if (all_meters_removed_) return nullptr;
    const auto committed = meters_.find(id);
    return committed != meters_.end() ? &committed->second : nullptr;
}

std::optional<WireError> Staging::apply(const MeterMod& mod) {
    const MeterId id = mod.meter.id;
    if (mod.command == MeterCommand::remove) {
        if (mod.all) {
            for (const auto& [meter, value] : meters_) orphaned_.insert(meter);
            for (auto& [meter, value] : meter_overlay_) orphaned_.insert(meter), value.reset();
            all_meters_removed_ = true;
        } else if (find_meter(id) != nullptr) {
            orphaned_.insert(id);
            meter_overlay_[id].reset();
        }
        return std::nullopt;  // section 6.6: removing what is absent is no error
    }
    const bool exists = find_meter(id) != nullptr;
    if (mod.command == MeterCommand::add && exists)
        return WireError{error::kMeterExists, "meter " + std::to_string(id.value) + " exists"};
    if (mod.command == MeterCommand::modify && !exists)
        return WireError{error::kUnknownMeter, "there is no meter " + std::to_string(id.value)};
    if (!exists && meters_.size() + meter_overlay_.size() >= kMeterCapacity)
        return WireError{error::kOutOfMeters, "there is room for no more meters"};
    // A number that comes back: what used the old meter goes before the new one is there.
    if (orphaned_.contains(id)) remove_users_of_meters();
    meter_overlay_[id] = mod.meter;
    return std::nullopt;
}

void Staging::remove_users_of_meters() {
    std::vector<EntryKey> users;
    for (const TableSchema* schema : backend_.tables()) {
        if (!schema->has_meter) continue;
        visit(schema->id, [&](const Entry& entry) {
            if (orphaned_.contains(entry.meter)) users.push_back(entry.key);
        });
    }
    for (const EntryKey& key : users) drop(key);
    orphaned_.clear();
}

Changes Staging::take() {
    if (!orphaned_.empty()) remove_users_of_meters();
    Changes changes;
    changes.put.reserve(overlay_.size());
    for (auto& [key, entry] : overlay_) {
        if (entry)
            changes.put.push_back(*std::move(entry));
        else
            changes.remove.push_back(key);
    }
    if (all_meters_removed_)
        for (const auto& [id, meter] : meters_)
            if (!meter_overlay_.contains(id)) changes.remove_meters.push_back(id);
    for (const auto& [id, meter] : meter_overlay_) {
        if (meter)
            changes.put_meters.push_back(*meter);
        else
            changes.remove_meters.push_back(id);
    }
    return changes;
}

}  // namespace sluice::openflow
