// SPDX-License-Identifier: Apache-2.0
// What sluicectl knows of each kind of the API: its command, its flags, its columns.
//
// One table drives parsing, help, completion and the manual. kinds_test.cpp holds it
// against the controller's own field tables, so that no field is forgotten.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sluice::cli {

enum class FieldType : unsigned char {
    text,
    number,
    boolean,
    list,            // of texts; the flag may be repeated
    reference,       // to another kind, by name or id
    reference_list,  // the flag may be repeated
    json,            // a value as the API takes it
    numbers,         // an object's members as NAME=NUMBER; the flag may be repeated
};

// When a field may be given; never: it is shown.
enum class Given : unsigned char { create, create_or_update, never };

struct FieldInfo {
    std::string_view name;  // as in the API
    std::string_view flag;  // without the dashes
    FieldType type = FieldType::text;
    Given given = Given::create_or_update;
    bool required = false;
    std::string_view refers_to = {};  // the command of the kind that a reference names
    std::string_view help = {};
    std::span<const std::string_view> words = {};  // all that it can be, or the usual ones
};

struct KindInfo {
    std::string_view command;  // "security-group"
    std::string_view path;     // "security-groups"
    std::string_view purpose;
    std::span<const FieldInfo> fields;
    std::span<const std::string_view> columns;  // of `list`
    bool creatable = true;
    std::string_view example;  // of `create`
    std::string_view sample;   // a name of one
    std::string_view change;   // what an `update` of it may say
    // Columns that a narrow terminal can do without, the first one first.
    std::span<const std::string_view> dispensable;
};

std::span<const KindInfo> kinds();
const KindInfo* find_kind(std::string_view command);
const FieldInfo* find_field(const KindInfo& kind, std::string_view name);

// The field that leads from an object towards its VPC: vpc_id, a subnet's or an endpoint's.
// Nothing for kinds outside of VPCs, and for the VPC itself.
const FieldInfo* way_to_vpc(const KindInfo& kind);
bool in_vpc(const KindInfo& kind);

// "security group", "VPC": as it is said in a sentence.
std::string title(const KindInfo& kind);

// Protocols by name.
std::span<const std::string_view> protocol_words();

// The fields of a security group's rule, for add-rule.
std::span<const FieldInfo> rule_fields();

}  // namespace sluice::cli
