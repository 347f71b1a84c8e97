// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/schema.hpp"

#include <string>

#include "dataplane/openflow/settings.hpp"

namespace sluice::openflow {
namespace {

struct FieldText {
    std::string_view name;
    unsigned bits;
};

constexpr FieldText kFields[] = {
    {"in_port", 32},
    {"tunnel_id", 24},
    {"ether_type", 16},
    {"source_mac", 48},
    {"destination_mac", 48},
    {"source_ip", 128},
    {"destination_ip", 128},
    {"ip_protocol", 8},
    {"icmp_type", 8},
    {"icmp_code", 8},
    {"source_vpc", 32},
    {"destination_vpc", 32},
    {"source_endpoint", 32},
    {"destination_endpoint", 32},
    {"group", 32},
    {"remote_group", 32},
    {"destination_ports", 32},
    {"route_table", 32},
    {"subnet", 32},
    {"host", 32},
    {"next_hop", 32},
    {"mtu", 32},
    {"address", 128},
    {"side", 64},
    {"nat_gateway", 32},
    {"setting", 32},
};
static_assert(std::size(kFields) == static_cast<std::size_t>(Field::count));

constexpr std::uint64_t kEtherIpv4 = 0x0800;
constexpr std::uint64_t kEtherIpv6 = 0x86dd;

constexpr bool is_ip(Field field) {
    return field == Field::source_ip || field == Field::destination_ip;
}

std::optional<U128> value_of(const Entry& entry, Field field) {
    for (const MatchField& match : entry.key.match)
        if (match.field == field) return match.value;
    return std::nullopt;
}

bool fits(Field field, const U128& value) {
    const U128 width = U128::prefix_mask(128 - field_bits(field));
    return (value.high & width.high) == 0 && (value.low & width.low) == 0;
}

// Values that the field's width allows and its meaning does not.
bool meaningful(Field field, const U128& value) {
    switch (field) {
        case Field::ether_type:
            return value.low == kEtherIpv4 || value.low == kEtherIpv6;
        case Field::side:
            return value.low <= 1;
        case Field::next_hop:
            return value.low >= 1 && value.low <= 5;
        // All ports is the field's absence, so that each entry has one spelling.
        case Field::destination_ports:
            return (value.low & 0xffff) <= value.low >> 16 && value.low != 0xffff0000;
        case Field::mtu:
            return (value.low & 0xffff) >= 576 && value.low >> 16 <= 128;
        case Field::source_mac:
        case Field::destination_mac: {
            const auto mac = MacAddress::from_value(value.low);
            return !mac.is_zero() && !mac.is_multicast();
        }
        // 0 is "the outside" or "none" for all that is numbered.
        case Field::in_port:
        case Field::tunnel_id:
        case Field::source_vpc:
        case Field::destination_vpc:
        case Field::source_endpoint:
        case Field::destination_endpoint:
        case Field::group:
        case Field::remote_group:
        case Field::route_table:
        case Field::subnet:
        case Field::host:
        case Field::nat_gateway:
            return value.low != 0;
        case Field::address:
            return value != U128{};
        default:
            return true;
    }
}

bool is_prefix_mask(const U128& mask, unsigned shortest) {
    for (unsigned length = shortest; length <= 128; ++length)
        if (mask == U128::prefix_mask(length)) return true;
    return false;
}

bool mask_allowed(const FieldSpec& spec, const MatchField& match) {
    if (spec.kind != MatchKind::prefix && spec.kind != MatchKind::union_prefix)
        return match.mask == U128::ones();
    // A block of length 0 is the field's absence, so that each entry has one spelling.
    return is_prefix_mask(match.mask, match.value.to_ip().is_v4() ? 97 : 1);
}

bool value_allowed(const MatchField& match) {
    if ((match.value.high & ~match.mask.high) != 0 || (match.value.low & ~match.mask.low) != 0)
        return false;
    return fits(match.field, match.value) && meaningful(match.field, match.value);
}

// OpenFlow 1.3.5 section 7.2.3.8.
bool prerequisites_met(const Entry& entry, const MatchField& match) {
    const auto ether_type = value_of(entry, Field::ether_type);
    const auto protocol = value_of(entry, Field::ip_protocol);
    if (is_ip(match.field)) {
        const bool v4 = match.value.to_ip().is_v4();
        return ether_type && ether_type->low == (v4 ? kEtherIpv4 : kEtherIpv6);
    }
    switch (match.field) {
        case Field::ip_protocol:
            return ether_type.has_value();
        case Field::icmp_type:
        case Field::icmp_code:
            return ether_type && protocol &&
                   protocol->low == (ether_type->low == kEtherIpv4 ? 1 : 58);
        case Field::destination_ports:
            return protocol && (protocol->low == 6 || protocol->low == 17 || protocol->low == 132);
        default:
            return true;
    }
}

const FieldSpec* spec_of(const TableSchema& schema, Field field) {
    for (const FieldSpec& spec : schema.match)
        if (spec.field == field) return &spec;
    return nullptr;
}

const SetSpec* set_spec_of(const TableSchema& schema, Field field) {
    for (const SetSpec& spec : schema.set)
        if (spec.field == field) return &spec;
    return nullptr;
}

class Checker {
  public:
    Checker(const TableSchema& schema, const Entry& entry) : schema_(schema), entry_(entry) {}

    std::optional<Problem> run() {
        if (entry_.key.table != schema_.id)
            return problem(Violation::wrong_table, Error::Code::invalid, "table",
                           "the entry belongs to another table");
        if (auto found = match_fields()) return found;
        if (auto found = instructions()) return found;
        if (auto found = sets()) return found;
        if (!schema_.has_priority && entry_.key.priority != kDefaultPriority)
            return problem(Violation::priority, Error::Code::unsupported, "priority",
                           "this table has no priorities; use 32768");
        return std::nullopt;
    }

  private:
    [[nodiscard]] Problem problem(Violation violation, Error::Code code, std::string_view where,
                                  std::string message) const {
        return {violation,
                {code, std::move(message), std::string(schema_.name) + "." + std::string(where)}};
    }
    [[nodiscard]] Problem problem(Violation violation, Error::Code code, Field field,
                                  std::string message) const {
        return problem(violation, code, field_name(field), std::move(message));
    }

    std::optional<Problem> match_fields() {
        const auto& match = entry_.key.match;
        for (std::size_t i = 0; i < match.size(); ++i) {
            if (spec_of(schema_, match[i].field) == nullptr)
                return problem(Violation::match_unknown, Error::Code::unsupported, match[i].field,
                               "this table does not match this field");
            if (i > 0 && match[i - 1].field >= match[i].field)
                return problem(Violation::match_duplicate, Error::Code::invalid, match[i].field,
                               "the field occurs twice or out of order");
        }
        for (const MatchField& field : match)
            if (!mask_allowed(*spec_of(schema_, field.field), field))
                return problem(Violation::match_mask, Error::Code::unsupported, field.field,
                               "the field does not take this mask");
        for (const MatchField& field : match)
            if (!value_allowed(field))
                return problem(Violation::match_value, Error::Code::invalid, field.field,
                               "the field cannot have this value");
        for (const MatchField& field : match)
            if (!prerequisites_met(entry_, field))
                return problem(Violation::match_prerequisite, Error::Code::invalid, field.field,
                               "the field means nothing without the right ether_type, ip_protocol");
        for (const FieldSpec& spec : schema_.match)
            if (spec.required && !value_of(entry_, spec.field))
                return problem(Violation::match_missing, Error::Code::unsupported, spec.field,
                               "this table needs a match on this field");
        return std::nullopt;
    }

    std::optional<Problem> instructions() {
        if (entry_.next) {
            bool leads = false;
            for (const auto table : schema_.next) leads = leads || table == *entry_.next;
            if (!leads)
                return problem(Violation::next_table, Error::Code::unsupported, "next",
                               "this table does not lead to that one");
        } else if (schema_.next_required) {
            return problem(Violation::next_missing, Error::Code::unsupported, "next",
                           "an entry of this table must go on to another table");
        }
        if (entry_.meter && !schema_.has_meter)
            return problem(Violation::meter_unknown, Error::Code::unsupported, "meter",
                           "entries of this table draw from no meter");
        return std::nullopt;
    }

    std::optional<Problem> sets() {
        const auto& set = entry_.set;
        for (std::size_t i = 0; i < set.size(); ++i) {
            const SetSpec* spec = set_spec_of(schema_, set[i].field);
            if (spec == nullptr)
                return problem(Violation::set_unknown, Error::Code::unsupported, set[i].field,
                               "this table does not set this field");
            for (std::size_t j = 0; j < i; ++j)
                if (set[j].field == set[i].field && (!spec->repeated || set[j] == set[i]))
                    return problem(Violation::set_duplicate, Error::Code::invalid, set[i].field,
                                   "the field is set twice");
            if (!fits(set[i].field, set[i].value) || !meaningful(set[i].field, set[i].value))
                return problem(Violation::set_value, Error::Code::invalid, set[i].field,
                               "the field cannot be set to this value");
            if (set[i].field == Field::setting)
                if (auto found = setting(set, i)) return found;
            if (is_ip(set[i].field) && !family_fits(set[i].value))
                return problem(Violation::set_value, Error::Code::invalid, set[i].field,
                               "the address is not of the family that the entry matches");
        }
        for (const SetSpec& spec : schema_.set) {
            if (!spec.required) continue;
            bool found = false;
            for (const SetField& field : set) found = found || field.field == spec.field;
            if (!found)
                return problem(Violation::set_missing, Error::Code::unsupported, spec.field,
                               "an entry of this table must set this field");
        }
        return std::nullopt;
    }

    // The value at `place` says which setting it is: known, of this table, in range, said once.
    [[nodiscard]] std::optional<Problem> setting(const std::vector<SetField>& set,
                                                 std::size_t place) const {
        const auto [id, value] = unpack_setting(set[place].value.low);
        const SettingSpec* spec = find_setting(id);
        if (spec == nullptr)
            return problem(Violation::set_value, Error::Code::unsupported, Field::setting,
                           "there is no setting " + std::to_string(static_cast<unsigned>(id)));
        if ((spec->tables >> schema_.id & 1) == 0)
            return problem(Violation::set_value, Error::Code::unsupported, Field::setting,
                           "the setting " + std::string(spec->name) + " is none of this table's");
        if (value < spec->minimum || value > spec->maximum)
            return problem(Violation::set_value, Error::Code::invalid, Field::setting,
                           std::string(spec->name) + " is " + std::to_string(spec->minimum) +
                               " to " + std::to_string(spec->maximum) +
                               (spec->unit.empty() ? "" : " " + std::string(spec->unit)));
        for (std::size_t i = 0; i < place; ++i)
            if (set[i].field == Field::setting && unpack_setting(set[i].value.low).id == id)
                return problem(Violation::set_duplicate, Error::Code::invalid, Field::setting,
                               std::string(spec->name) + " is set twice");
        return std::nullopt;
    }

    [[nodiscard]] bool family_fits(const U128& address) const {
        const auto ether_type = value_of(entry_, Field::ether_type);
        return ether_type && (ether_type->low == kEtherIpv4) == address.to_ip().is_v4();
    }

    const TableSchema& schema_;
    const Entry& entry_;
};

}  // namespace

std::string_view field_name(Field field) {
    return kFields[static_cast<std::size_t>(field)].name;
}

unsigned field_bits(Field field) {
    return kFields[static_cast<std::size_t>(field)].bits;
}

std::optional<Problem> check(const TableSchema& schema, const Entry& entry) {
    return Checker(schema, entry).run();
}

Result<void> validate(const TableSchema& schema, const Entry& entry) {
    if (auto problem = check(schema, entry)) return std::move(problem->error);
    return {};
}

}  // namespace sluice::openflow
