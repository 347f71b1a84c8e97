// SPDX-License-Identifier: Apache-2.0
// The command line's table of kinds against the controller's own.
#include "controller/cli/kinds.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "controller/model/fields.hpp"

namespace sluice::cli {
namespace {

std::set<std::string> properties_of(const boost::json::object& schema) {
    std::set<std::string> names;
    for (const auto& member : schema.at("properties").as_object()) names.emplace(member.key());
    return names;
}

// Flags of their own, the same for every kind.
const std::set<std::string> kCommon = {"id", "name", "description", "tags", "project_id"};

TEST_CASE("every kind that the API writes has a command") {
    for (const auto& info : model::all_kinds()) {
        INFO(info.path);
        const auto found = std::find_if(kinds().begin(), kinds().end(), [&](const KindInfo& kind) {
            return kind.path == info.path;
        });
        REQUIRE(found != kinds().end());
        CHECK(found->creatable == info.created_by_api);
    }
}

TEST_CASE("every field that the API accepts has a flag, and no other") {
    for (const auto& info : model::all_kinds()) {
        const auto kind = std::find_if(kinds().begin(), kinds().end(),
                                       [&](const KindInfo& one) { return one.path == info.path; });
        REQUIRE(kind != kinds().end());
        const auto compare = [&](model::Operation operation, bool creating) {
            auto expected = properties_of(model::request_schema(info.kind, operation));
            for (const auto& name : kCommon) expected.erase(name);
            std::set<std::string> offered;
            for (const auto& field : kind->fields)
                if (creating ? field.given != Given::never : field.given == Given::create_or_update)
                    offered.emplace(field.name);
            INFO(info.path << (creating ? " create" : " update"));
            CHECK(offered == expected);
        };
        if (info.created_by_api) compare(model::Operation::create, true);
        compare(model::Operation::patch, false);
    }
}

// The words of an enumeration's schema, also where a number may stand instead.
std::set<std::string> words_of(const boost::json::value& schema) {
    std::set<std::string> words;
    const auto& object = schema.as_object();
    if (const auto* any = object.if_contains("anyOf")) return words_of(any->as_array().at(0));
    if (const auto* all = object.if_contains("enum"))
        for (const auto& word : all->as_array())
            if (word.is_string()) words.emplace(word.as_string());
    return words;
}

void compare_words(std::span<const FieldInfo> fields, const boost::json::object& properties) {
    for (const auto& field : fields) {
        if (field.given == Given::never) continue;
        INFO(field.name);
        const auto& schema = properties.at(field.name);
        std::set<std::string> offered(field.words.begin(), field.words.end());
        if (field.type == FieldType::boolean)
            CHECK(offered == std::set<std::string>{"true", "false"});
        else if (field.type == FieldType::numbers)
            CHECK(offered == properties_of(schema.as_object()));
        else if (!schema.as_object().contains("anyOf") || !words_of(schema).empty())
            CHECK(offered == words_of(schema));
    }
}

TEST_CASE("enumerations are offered with the very words that the API takes") {
    for (const auto& info : model::all_kinds()) {
        INFO(info.path);
        const auto kind = std::find_if(kinds().begin(), kinds().end(),
                                       [&](const KindInfo& one) { return one.path == info.path; });
        REQUIRE(kind != kinds().end());
        const auto schema = model::request_schema(
            info.kind, info.created_by_api ? model::Operation::create : model::Operation::patch);
        const auto& properties = schema.at("properties").as_object();
        compare_words(kind->fields, properties);
        if (info.kind == model::Kind::security_group)
            compare_words(rule_fields(),
                          properties.at("rules").at("items").at("properties").as_object());
    }
}

TEST_CASE("references name kinds that exist") {
    for (const auto& kind : kinds())
        for (const auto& field : kind.fields)
            if (!field.refers_to.empty()) CHECK(find_kind(field.refers_to) != nullptr);
    for (const auto& field : rule_fields())
        if (!field.refers_to.empty()) CHECK(find_kind(field.refers_to) != nullptr);
}

}  // namespace
}  // namespace sluice::cli
