// SPDX-License-Identifier: Apache-2.0
// How a table's `encode` builds an entry, and how its `decode` reads one.
//
// Threads: values, any. Cost: an allocation or two. `EntryBuilder` cannot fail;
// `EntryReader` remembers the first thing that was missing and says so at the end.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "dataplane/openflow/schema.hpp"

namespace sluice::openflow {

inline constexpr std::uint64_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint64_t kEtherTypeIpv6 = 0x86dd;

class EntryBuilder {
  public:
    EntryBuilder(std::uint8_t table, Cookie cookie) {
        entry_.key.table = table;
        entry_.cookie = cookie;
    }
    EntryBuilder& match(Field field, std::uint64_t value) {
        entry_.key.match.push_back({field, U128::of(value), U128::ones()});
        return *this;
    }
    template <class Tag>
    EntryBuilder& match(Field field, Id<Tag> id) {
        return match(field, std::uint64_t{id.value});
    }
    EntryBuilder& family(Family family) {
        return match(Field::ether_type, family == Family::ipv4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
    }
    // Also the family. A block of length 0 is the family alone.
    EntryBuilder& match(Field field, const Prefix& prefix) {
        family(prefix.family());
        if (prefix.family_length() > 0)
            entry_.key.match.push_back(
                {field, U128::of(prefix.address), U128::prefix_mask(prefix.length)});
        return *this;
    }
    EntryBuilder& match(Field field, const IpAddress& address) {
        return match(field, Prefix::host(address));
    }
    EntryBuilder& set(Field field, std::uint64_t value) {
        entry_.set.push_back({field, U128::of(value)});
        return *this;
    }
    template <class Tag>
    EntryBuilder& set(Field field, Id<Tag> id) {
        return set(field, std::uint64_t{id.value});
    }
    EntryBuilder& set(Field field, const IpAddress& address) {
        entry_.set.push_back({field, U128::of(address)});
        return *this;
    }
    EntryBuilder& priority(std::uint16_t priority) {
        entry_.key.priority = priority;
        return *this;
    }
    EntryBuilder& meter(MeterId meter) {
        entry_.meter = meter;
        return *this;
    }
    EntryBuilder& next(std::uint8_t table) {
        entry_.next = table;
        return *this;
    }
    [[nodiscard]] Entry build() {
        std::sort(entry_.key.match.begin(), entry_.key.match.end());
        return std::move(entry_);
    }

  private:
    Entry entry_;
};

class EntryReader {
  public:
    EntryReader(const TableSchema& schema, const Entry& entry) : schema_(schema), entry_(entry) {}

    [[nodiscard]] std::optional<U128> find_match(Field field) const {
        for (const MatchField& match : entry_.key.match)
            if (match.field == field) return match.value;
        return std::nullopt;
    }
    [[nodiscard]] std::optional<U128> find_set(Field field) const {
        for (const SetField& set : entry_.set)
            if (set.field == field) return set.value;
        return std::nullopt;
    }
    std::uint64_t match(Field field) { return need(find_match(field), field).low; }
    std::uint64_t set(Field field) { return need(find_set(field), field).low; }
    // reader.match_id<VpcId>(Field::source_vpc)
    template <class Number>
    Number match_id(Field field) {
        return Number{static_cast<std::uint32_t>(match(field))};
    }
    template <class Number>
    Number set_id(Field field) {
        return Number{static_cast<std::uint32_t>(set(field))};
    }
    Family family() {
        return match(Field::ether_type) == kEtherTypeIpv4 ? Family::ipv4 : Family::ipv6;
    }
    Prefix prefix(Field field) {
        for (const MatchField& match : entry_.key.match) {
            if (match.field != field) continue;
            const int bits =
                __builtin_popcountll(match.mask.high) + __builtin_popcountll(match.mask.low);
            return {match.value.to_ip(), static_cast<std::uint8_t>(bits)};
        }
        return Prefix::any(family());
    }
    IpAddress match_ip(Field field) { return need(find_match(field), field).to_ip(); }
    IpAddress set_ip(Field field) { return need(find_set(field), field).to_ip(); }
    MacAddress match_mac(Field field) { return MacAddress::from_value(match(field)); }
    MacAddress set_mac(Field field) { return MacAddress::from_value(set(field)); }

    void fail(Field field, std::string message) {
        if (!error_)
            error_ = Error{Error::Code::invalid, std::move(message),
                           std::string(schema_.name) + "." + std::string(field_name(field))};
    }
    template <class Row>
    Result<Row> result(Row row) {
        if (error_) return *std::move(error_);
        return row;
    }

  private:
    U128 need(std::optional<U128> value, Field field) {
        if (!value) fail(field, "the field is missing");
        return value.value_or(U128{});
    }

    const TableSchema& schema_;
    const Entry& entry_;
    std::optional<Error> error_;
};

}  // namespace sluice::openflow
