// SPDX-License-Identifier: Apache-2.0
// How a typed table describes itself. One constexpr TableSchema per table is the single
// source of validation, OpenFlow table features, the TTP document and the controller's
// encoder.
#pragma once

#include <cstdint>
#include <optional>
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

// What is wrong with an entry, as finely as OpenFlow's error codes tell things apart.
enum class Violation : std::uint8_t {
    wrong_table,
    match_unknown,       // a field that this table does not match
    match_duplicate,     // a field twice, or fields out of order
    match_mask,          // a mask that the field's kind does not take
    match_value,         // a value that the field cannot have, or bits outside of its mask
    match_prerequisite,  // another field's value is missing for this one to mean anything
    match_missing,       // a required field is absent
    next_table,          // goes to a table that this one does not lead to
    next_missing,        // goes nowhere, but must
    meter_unknown,       // draws from a meter in a table that has none
    set_unknown,         // sets a field that this table does not set
    set_duplicate,
    set_value,
    set_missing,
    priority,  // a priority in a table without any
};

struct Problem {
    Violation violation{};
    Error error;
};

// The first thing wrong with an entry, in the order in which a switch checks: match fields,
// masks, prerequisites, instructions, actions, priority. Nothing: the table can hold it.
std::optional<Problem> check(const TableSchema& schema, const Entry& entry);

// The same for those who need no more than the sentence. The error's path is "table.field".
Result<void> validate(const TableSchema& schema, const Entry& entry);

// The field's name in messages and documents.
std::string_view field_name(Field field);
// How many bits of the 128 a value of the field can use.
unsigned field_bits(Field field);

}  // namespace sluice::openflow
