// SPDX-License-Identifier: Apache-2.0
// What makes a host or an endpoint right.
#include <algorithm>

#include "controller/model/address.hpp"
#include "controller/model/draft.hpp"
#include "controller/model/mac.hpp"
#include "dataplane/openflow/bounds.hpp"

namespace sluice::model {
namespace {

using openflow::kMaximumGroups, openflow::kMaximumVteps;

constexpr std::size_t kMostMembers = 10'000;  // of a group
constexpr std::size_t kMostAllowed = 64;

std::string at(const char* list, std::size_t index) {
    return "/" + std::string(list) + "/" + std::to_string(index);
}

bool is_station(const IpAddress& address) {
    return !address.is_none() && !address.is_multicast() &&
           !(address.is_v4() &&
             (address.bytes[12] == 0 || address.bytes[12] == 127 || address.bytes[12] >= 240)) &&
           address != *parse_ip("::1");
}

bool is_member(const Endpoint* endpoint, const Ref<Kind::security_group>& group) {
    if (!endpoint || !endpoint->security_group_ids) return false;
    const auto& groups = *endpoint->security_group_ids;
    return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

void Planner::check_host(Draft& draft) {
    const auto& vteps = draft.spec<Host>().vteps;
    if (vteps.empty() || vteps.size() > kMaximumVteps)
        draft.fail("/vteps", "must have 1 to " + std::to_string(kMaximumVteps) + " addresses");
    for (std::size_t i = 0; i < vteps.size(); ++i) {
        if (!is_station(vteps[i]))
            draft.fail(at("vteps", i), "is not an address that a host can have");
        if (const auto whose = surroundings_.own(vteps[i]); !whose.empty())
            draft.fail(at("vteps", i), "is " + whose);
        if (std::find(vteps.begin(), vteps.begin() + static_cast<std::ptrdiff_t>(i), vteps[i]) !=
            vteps.begin() + static_cast<std::ptrdiff_t>(i))
            draft.fail(at("vteps", i), "occurs twice");
    }
}

void Planner::check_endpoint(Draft& draft) {
    auto& endpoint = draft.spec<Endpoint>();
    const auto subnet_of = state_.find(endpoint.subnet_id);
    const auto& subnet = subnet_of->as<Subnet>();
    const Uuid& vpc = subnet.vpc_id.id;

    if (endpoint.host_id && endpoint.vtep)
        draft.fail("/vtep", "names the host a second time, beside host_id");
    if (!endpoint.host_id && !endpoint.vtep) draft.fail("/host_id", "is required (or vtep)");
    if (endpoint.vtep && !is_station(*endpoint.vtep))
        draft.fail("/vtep", "is not an address that a host can have");
    if (endpoint.vtep)
        if (const auto whose = surroundings_.own(*endpoint.vtep); !whose.empty())
            draft.fail("/vtep", "is " + whose);

    if (!endpoint.security_group_ids) {
        endpoint.security_group_ids.emplace();
        if (const auto group = state_.holder({Claim::What::default_group, vpc, {}}))
            endpoint.security_group_ids->push_back({group->id});
    }
    auto& groups = *endpoint.security_group_ids;
    if (groups.size() > kMaximumGroups)
        draft.fail("/security_group_ids",
                   "has more than " + std::to_string(kMaximumGroups) + " groups");
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto here = at("security_group_ids", i);
        if (state_.find(groups[i])->as<SecurityGroup>().vpc_id.id != vpc)
            draft.fail(here, "is a group of another VPC");
        for (std::size_t j = 0; j < i; ++j)
            if (groups[i] == groups[j]) draft.fail(here, "occurs twice");
        if (!is_member(draft.old<Endpoint>(), groups[i]) &&
            state_.count_referrers(groups[i].id, Kind::endpoint) >= kMostMembers)
            draft.conflict(here, describe(*state_.find(groups[i])) + " has " +
                                     std::to_string(kMostMembers) + " members, which is the most");
    }
    if (endpoint.allowed_addresses.size() > kMostAllowed)
        draft.fail("/allowed_addresses", "has more than " + std::to_string(kMostAllowed));
    for (std::size_t i = 0; i < endpoint.allowed_addresses.size(); ++i) {
        const auto& allowed = endpoint.allowed_addresses[i];
        if (allowed.mac && is_gateway_mac(*allowed.mac))
            draft.fail(at("allowed_addresses", i) + "/mac", "is of the range of gateway MACs");
    }

    if (draft.before) return;
    if (endpoint.mac && is_gateway_mac(*endpoint.mac))
        draft.fail("/mac", "is of the range of gateway MACs");
    if (!endpoint.mac) {
        std::uint32_t number = draft.resource.register_number();
        do endpoint.mac = endpoint_mac(number++);
        while (state_.holder({Claim::What::mac, vpc, number_as_address(endpoint.mac->value())}));
    }
    assign_addresses(draft, subnet, vpc);
}

void Planner::assign_addresses(Draft& draft, const Subnet& subnet, const Uuid& vpc) {
    auto& endpoint = draft.spec<Endpoint>();
    struct Half {
        const std::optional<Prefix>& block;
        std::optional<IpAddress>& address;
        const char* at;
        const char* family;
    };
    const Half halves[] = {{subnet.cidr, endpoint.ip, "/ip", "IPv4"},
                           {subnet.ipv6_cidr, endpoint.ipv6, "/ipv6", "IPv6"}};
    for (const auto& half : halves) {
        if (!half.block) {
            if (half.address)
                draft.fail(half.at, std::string("the subnet has no ") + half.family + " block");
            continue;
        }
        if (half.address) {
            if (!is_usable(*half.block, *half.address))
                draft.fail(half.at,
                           half.block->contains(*half.address)
                               ? "is the subnet's network or broadcast address"
                               : "is outside of the subnet's " + sluice::to_string(*half.block));
            continue;
        }
        IpAddress candidate =
            std::max(first_usable(*half.block),
                     state_.first_candidate(endpoint.subnet_id.id, half.block->family()));
        state_.each_claim({Claim::What::address, vpc, candidate}, [&](const Claim& taken) {
            if (taken.value != candidate) return false;
            candidate = next(candidate);
            return true;
        });
        if (is_usable(*half.block, candidate))
            half.address = candidate;
        else
            draft.fail(half.at, "no address of the subnet is free", Error::Code::exhausted);
    }
}

}  // namespace sluice::model
