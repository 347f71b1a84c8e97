// SPDX-License-Identifier: Apache-2.0
// Settings: numbers that an entry may carry beside what its fields say, each optional with a
// default of the gateway's. They travel as set-fields of Field::setting, one each: bits 24-31
// say which setting, bits 0-23 its value.
//
// Purpose: the one list of settings that controller and gateway share. A setting's number is
// part of the protocol: never reuse one. `check` (schema.hpp) refuses what this list does not
// have, a value out of range, a table it is not for, and the same setting twice.
// Threads: values and constants, any.
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "dataplane/openflow/row.hpp"

namespace sluice::openflow {

enum class Setting : std::uint8_t {
    // 1-15 limits, 16-31 time-outs, 32-39 behaviours, 40-47 of groups, 48-63 of NAT gateways
    connections = 1,
    half_open = 2,
    new_per_second = 3,
    fragments = 4,
    endpoint_connections = 5,
    endpoint_half_open = 6,
    endpoint_new_per_second = 7,
    endpoint_fragments = 8,
    tcp_established = 16,
    tcp_transitory = 17,
    tcp_time_wait = 18,
    udp = 19,
    udp_unanswered = 20,
    icmp = 21,
    sctp = 22,
    sctp_unanswered = 23,
    other = 24,
    other_unanswered = 25,
    mid_stream = 32,
    tcp_window_check = 33,
    mss_clamping = 34,
    persist_established = 40,
    nat_ports_per_endpoint = 48,
    nat_mapping = 49,    // nfv/nat_gateway/table.hpp NatMapping
    nat_filtering = 50,  // ... NatFiltering
};

struct SettingSpec {
    Setting id;
    std::string_view name;  // as the API says
    std::string_view unit;  // empty: none
    std::uint32_t minimum, maximum;
    std::uint32_t tables;         // bit per table number
    std::string_view meaning;     // as the API describes it
    std::uint32_t otherwise = 0;  // while it is not set; 0 of a limit: the gateway's own
};

std::span<const SettingSpec> settings();
// nullptr: there is no such setting.
const SettingSpec* find_setting(Setting id);

struct SettingValue {
    Setting id{};
    std::uint32_t value = 0;
};
constexpr std::uint64_t pack_setting(SettingValue setting) {
    return std::uint64_t{static_cast<std::uint8_t>(setting.id)} << 24 | setting.value;
}
constexpr SettingValue unpack_setting(std::uint64_t word) {
    return {static_cast<Setting>(word >> 24), static_cast<std::uint32_t>(word & 0xffffff)};
}

// Those that an entry carries. Its order is by number, so that equal sets are equal entries.
class Settings {
  public:
    [[nodiscard]] std::optional<std::uint32_t> get(Setting id) const {
        const auto found = values_.find(id);
        if (found == values_.end()) return std::nullopt;
        return found->second;
    }
    [[nodiscard]] bool empty() const { return values_.empty(); }
    Settings& put(Setting id, std::uint32_t value) {
        values_[id] = value;
        return *this;
    }
    void encode(EntryBuilder& builder) const {
        for (const auto& [id, value] : values_)
            builder.set(Field::setting, pack_setting({id, value}));
    }
    static Settings decode(const Entry& entry) {
        Settings result;
        for (const SetField& set : entry.set) {
            if (set.field != Field::setting) continue;
            const auto [id, value] = unpack_setting(set.value.low);
            result.put(id, value);
        }
        return result;
    }
    friend bool operator==(const Settings&, const Settings&) = default;

  private:
    std::map<Setting, std::uint32_t> values_;
};

}  // namespace sluice::openflow
