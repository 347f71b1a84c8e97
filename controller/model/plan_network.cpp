// SPDX-License-Identifier: Apache-2.0
// What makes a VPC, a subnet or a route table right.
#include <algorithm>

#include "controller/model/address.hpp"
#include "controller/model/draft.hpp"
#include "controller/model/fields.hpp"

namespace sluice::model {
namespace {

constexpr std::size_t kMostCidrs = 16;
constexpr std::size_t kMostRoutes = 1000;

// Blocks that no tenant network can be made of (RFC 6890).
std::string unusable_block(const Prefix& prefix) {
    struct Special {
        const char* block;
        const char* what;
    };
    static constexpr Special kSpecial[] = {
        {"0.0.0.0/8", "\"this network\""}, {"127.0.0.0/8", "loopback"},
        {"169.254.0.0/16", "link-local"},  {"224.0.0.0/4", "multicast"},
        {"240.0.0.0/4", "reserved"},       {"::/8", "reserved"},
        {"fe80::/10", "link-local"},       {"ff00::/8", "multicast"},
    };
    for (const auto& special : kSpecial)
        if (prefix.overlaps(*parse_prefix(special.block)))
            return std::string("overlaps ") + special.block + ", which is " + special.what;
    return {};
}

bool is_inside(const Prefix& inner, const std::vector<Prefix>& blocks) {
    return std::any_of(blocks.begin(), blocks.end(), [&](const Prefix& block) {
        return block.length <= inner.length && block.contains(inner.address);
    });
}

std::string at(const char* list, std::size_t index) {
    return "/" + std::string(list) + "/" + std::to_string(index);
}

}  // namespace

void Planner::check_vpc(Draft& draft) {
    auto& vpc = draft.spec<Vpc>();
    if (vpc.cidrs.empty() || vpc.cidrs.size() > kMostCidrs)
        draft.fail("/cidrs", "must have 1 to " + std::to_string(kMostCidrs) + " blocks");
    for (std::size_t i = 0; i < vpc.cidrs.size(); ++i) {
        if (const auto why = unusable_block(vpc.cidrs[i]); !why.empty())
            draft.fail(at("cidrs", i), why);
        for (std::size_t j = 0; j < i; ++j)
            if (vpc.cidrs[i].overlaps(vpc.cidrs[j]))
                draft.fail(at("cidrs", i), "overlaps " + sluice::to_string(vpc.cidrs[j]));
    }
    if (draft.before) {
        state_.each_referrer(draft.resource.id, Kind::subnet, [&](const ResourcePtr& user) {
            const auto& subnet = user->as<Subnet>();
            for (const auto& block : {subnet.cidr, subnet.ipv6_cidr})
                if (block && !is_inside(*block, vpc.cidrs))
                    draft.conflict("/cidrs", describe(*user) + " would be outside of them");
            return true;
        });
        state_.each_referrer(draft.resource.id, Kind::route_table, [&](const ResourcePtr& user) {
            for (const auto& route : user->as<RouteTable>().routes)
                if (is_inside(route.destination, vpc.cidrs))
                    draft.conflict("/cidrs", describe(*user) + " routes " +
                                                 sluice::to_string(route.destination) +
                                                 " elsewhere");
            return true;
        });
        return;
    }
    if (vpc.vni == Vni{0}) {
        // Numbers are not reused, so neither is a VNI soon: a host that was not told yet
        // does not send into someone else's network.
        constexpr std::uint32_t kVnis = (1U << 24) - 1;
        auto candidate =
            static_cast<std::uint32_t>((draft.resource.number / kNumbersPerObject - 1) % kVnis + 1);
        const auto taken = [&] {
            return state_.holder({Claim::What::vni, {}, number_as_address(candidate)}) != nullptr;
        };
        std::uint32_t tried = 0;
        while (taken() && ++tried < kVnis) candidate = candidate % kVnis + 1;
        vpc.vni = Vni{candidate};
    }
    vpc.gateway = least_loaded_gateway(state_.vpcs_by_gateway());
    add_vpc_companions(draft.resource, draft.companions);
}

// Every VPC starts with a route table and a group: members reach each other and may send
// anywhere.
void Planner::add_vpc_companions(const Resource& vpc, Diff& diff) {
    Resource table = begin(Kind::route_table, vpc.project);
    table.name = "main";
    table.as<RouteTable>() = {.vpc_id = {vpc.id}, .routes = {}, .is_main = true};
    diff.push_back({nullptr, std::make_shared<Resource>(std::move(table))});

    Resource group = begin(Kind::security_group, vpc.project);
    group.name = "default";
    std::vector<Rule> rules = egress_allow_rules(sources_);
    for (const auto family : {Family::ipv4, Family::ipv6}) {
        Rule rule;
        rule.id = sources_.uuid();
        rule.number = sources_.number();
        rule.direction = RuleDirection::ingress;
        rule.family = family;
        rule.remote_group_id = Ref<Kind::security_group>{group.id};
        rules.push_back(rule);
    }
    group.as<SecurityGroup>() = {.vpc_id = {vpc.id}, .rules = std::move(rules), .is_default = true};
    diff.push_back({nullptr, std::make_shared<Resource>(std::move(group))});
}

void Planner::check_subnet(Draft& draft) {
    auto& subnet = draft.spec<Subnet>();
    const auto vpc = state_.find(subnet.vpc_id);
    if (!subnet.route_table_id) {
        const auto main = state_.holder({Claim::What::route_table, subnet.vpc_id.id, {}});
        if (main) subnet.route_table_id = Ref<Kind::route_table>{main->id};
    } else if (state_.find(*subnet.route_table_id)->as<RouteTable>().vpc_id != subnet.vpc_id) {
        draft.fail("/route_table_id", "is a route table of another VPC");
    }
    const auto* old = draft.old<Subnet>();
    if (!old || old->mtu != subnet.mtu)
        if (const auto most = surroundings_.largest_mtu(vpc->as<Vpc>().gateway);
            most && subnet.mtu.value > *most)
            draft.fail("/mtu", "is more than the underlay of its gateway carries, " +
                                   std::to_string(*most) + " octets");
    if (draft.before) return;
    if (!subnet.cidr && !subnet.ipv6_cidr)
        draft.fail("/cidr", "is required (or ipv6_cidr, or both)");

    struct Half {
        std::optional<Prefix>& block;
        std::optional<IpAddress>& gateway;
        Family family;
        unsigned longest;
        const char *block_at, *gateway_at;
    };
    const Half halves[] = {
        {subnet.cidr, subnet.gateway_ip, Family::ipv4, 30, "/cidr", "/gateway_ip"},
        {subnet.ipv6_cidr, subnet.gateway_ipv6, Family::ipv6, 126, "/ipv6_cidr", "/gateway_ipv6"}};
    for (const auto& half : halves) {
        if (!half.block) {
            if (half.gateway) draft.fail(half.gateway_at, "there is no block of this family");
            continue;
        }
        if (half.block->family() != half.family) {
            draft.fail(half.block_at, half.family == Family::ipv4 ? "must be an IPv4 block"
                                                                  : "must be an IPv6 block");
            continue;
        }
        if (half.block->family_length() > half.longest)
            draft.fail(half.block_at, "must be a /" + std::to_string(half.longest) + " or larger");
        if (!is_inside(*half.block, vpc->as<Vpc>().cidrs))
            draft.fail(half.block_at, "is not inside of the VPC's cidrs");
        state_.each_referrer(vpc->id, Kind::subnet, [&](const ResourcePtr& other) {
            const auto& theirs = half.family == Family::ipv4 ? other->as<Subnet>().cidr
                                                             : other->as<Subnet>().ipv6_cidr;
            if (theirs && theirs->overlaps(*half.block))
                draft.conflict(half.block_at, "overlaps " + sluice::to_string(*theirs) + " of " +
                                                  describe(*other));
            return true;
        });
        if (!half.gateway)
            half.gateway = first_usable(*half.block);
        else if (!is_usable(*half.block, *half.gateway))
            draft.fail(half.gateway_at, "is not an address that a station of the subnet can have");
    }
}

void Planner::check_route_table(Draft& draft) {
    auto& table = draft.spec<RouteTable>();
    const auto vpc = state_.find(table.vpc_id);
    if (table.routes.size() > kMostRoutes)
        draft.fail("/routes", "has more than " + std::to_string(kMostRoutes) + " routes");
    std::map<Prefix, std::size_t> seen;
    for (std::size_t i = 0; i < table.routes.size(); ++i) {
        auto& route = table.routes[i];
        const auto here = at("routes", i);
        if (!seen.emplace(route.destination, i).second)
            draft.fail(here + "/destination", "occurs twice");
        if (is_inside(route.destination, vpc->as<Vpc>().cidrs))
            draft.fail(here + "/destination", "the VPC's own cidrs cannot be routed elsewhere");
        if (route.next_hop.internet && route.destination.family() == Family::ipv6)
            draft.fail(here + "/next_hop", "IPv6 to the internet is not enforced by this release",
                       Error::Code::unsupported);
        if (route.next_hop.nat_gateway_id) {
            if (route.destination.family() == Family::ipv6)
                draft.fail(here + "/next_hop/nat_gateway_id",
                           "a NAT gateway translates IPv4 only; IPv6 is routed, never translated");
            const auto nat = state_.find(*route.next_hop.nat_gateway_id);
            if (nat->as<NatGateway>().vpc_id != table.vpc_id)
                draft.fail(here + "/next_hop/nat_gateway_id", "is a NAT gateway of another VPC");
        }
        if (route.next_hop.endpoint_id) {
            const auto endpoint = state_.find(*route.next_hop.endpoint_id);
            if (const auto its = state_.vpc_of(*endpoint); !its || its->id != vpc->id)
                draft.fail(here + "/next_hop/endpoint_id", "is an endpoint of another VPC");
        }
        // A destination keeps its number, whatever it leads to.
        if (const auto* old = draft.old<RouteTable>())
            for (const auto& present : old->routes)
                if (present.destination == route.destination) route.number = present.number;
        if (route.number == 0) route.number = sources_.number();
    }
}

}  // namespace sluice::model
