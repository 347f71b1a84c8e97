// SPDX-License-Identifier: Apache-2.0
// How a typed table describes itself. One constexpr TableSchema per table is the single
// source of validation, OpenFlow table features, the TTP document and the controller's
// encoder.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "dataplane/openflow/entry.hpp"
#include "dataplane/wire/result.hpp"

namespace sluice::openflow {

enum class MatchKind : std::uint8_t {
    exact,
    prefix,        // the longest wins
    range,         // two 16-bit numbers in one register, both inclusive
    member,        // the register holds a set; the entry matches if it names a member
    union_prefix,  // every matching entry contributes
};

struct FieldSpec {
    Field field;
    MatchKind kind;
    bool required;
    std::string_view meaning;
};

struct SetSpec {
    Field field;
    bool required;
    bool repeated;  // a set: may occur several times
    std::string_view meaning;
};

struct TableSchema {
    std::uint8_t id;
    std::string_view name;
    std::string_view owner;    // the folder
    std::string_view purpose;  // one sentence
    std::span<const FieldSpec> match;
    std::span<const SetSpec> set;
    std::span<const std::uint8_t> next;  // tables an entry may go to; empty: terminal
    bool next_required;                  // false: an entry without `next` drops
    bool has_priority;                   // false: priority must be kDefaultPriority
    bool has_meter;
    bool built_in;  // entries come from the configuration; OpenFlow may only read them
    std::uint32_t capacity;
};

// Whether the entry is one that the table can hold, in the order in which a switch
// checks: match fields, masks, prerequisites, instructions, actions, priority. The
// error's path is "table.field".
Result<void> validate(const TableSchema& schema, const Entry& entry);

}  // namespace sluice::openflow
