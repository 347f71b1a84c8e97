// SPDX-License-Identifier: Apache-2.0
// How far who may raise the limits of a VPC.
#include "controller/model/draft.hpp"
#include "controller/model/field_table.hpp"

namespace sluice::model {
namespace {

std::optional<std::uint64_t> as_number(const json::value& value) {
    boost::system::error_code error;
    const auto number = value.to_number<std::uint64_t>(error);
    return error ? std::nullopt : std::optional(number);
}

// A VPC's own may only lower its share of them, whatever it is.
bool is_fragments(std::string_view limit) {
    return limit == "fragments" || limit == "endpoint_fragments";
}

}  // namespace

Ceiling ceiling_of(const Vpc& vpc, std::string_view limit, const Surroundings& surroundings) {
    if (const auto* field = find_field(fields_of<VpcLimits>(), limit))
        if (const auto set = as_number(field->write(vpc.limit_ceilings))) return {set, true};
    if (is_fragments(limit)) return {};
    const auto gateway = surroundings.gateways.find(vpc.gateway);
    if (gateway == surroundings.gateways.end()) return {{}, false};
    const auto said = gateway->second.limits.find(limit);
    if (said == gateway->second.limits.end()) return {{}, false};
    const auto* setting = &openflow::settings().front();
    for (const auto& one : openflow::settings())
        if (one.name == limit) setting = &one;
    if (said->second > setting->maximum) return {};
    return {said->second, true};
}

// What an admin sets is what a tenant may set from then on; before, it is the gateway's default.
void Planner::check_limits(Draft& draft) {
    auto& vpc = draft.spec<Vpc>();
    const auto* old = draft.old<Vpc>();
    const auto* given = draft.limits_given.if_object();
    for (const auto& field : fields_of<VpcLimits>()) {
        const auto at = member_pointer("/limits", field.name);
        const auto wanted = field.write(vpc.limits);
        if (draft.is_admin) {
            if (!given || given->contains(field.name))
                field.read(vpc.limit_ceilings, wanted, at, draft.problems);
            continue;
        }
        const auto present = old ? field.write(old->limits) : json::value();
        if (wanted == present) continue;
        const auto number = as_number(wanted), was = as_number(present);
        if (!number) {
            // The default may be more than what an admin has set.
            field.read(vpc.limits, field.write(vpc.limit_ceilings), at, draft.problems);
            continue;
        }
        if (was && *number < *was) continue;
        const auto ceiling = ceiling_of(vpc, field.name, surroundings_);
        if (!ceiling.is_known)
            draft.fail(at,
                       "may be set once the VPC's gateway has connected and said its default; an "
                       "admin may set it now",
                       Error::Code::read_only);
        else if (ceiling.value && *number > *ceiling.value)
            draft.fail(at,
                       "may be at most " + std::to_string(*ceiling.value) +
                           "; only an admin may raise it above that",
                       Error::Code::read_only);
    }
}

}  // namespace sluice::model
