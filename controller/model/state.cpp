// SPDX-License-Identifier: Apache-2.0
#include "controller/model/state.hpp"

#include <algorithm>

#include "controller/model/address.hpp"
#include "controller/model/fields.hpp"

namespace sluice::model {
namespace {

using What = Claim::What;

// The numbers of what is inside a resource.
template <class F>
void each_part(const Resource& resource, F visit) {
    if (const auto* group = std::get_if<SecurityGroup>(&resource.spec))
        for (const auto& rule : group->rules) visit(rule.number);
    if (const auto* table = std::get_if<RouteTable>(&resource.spec))
        for (const auto& route : table->routes) visit(route.number);
}

}  // namespace

std::vector<Source> sources_of(const Endpoint& endpoint) {
    std::vector<Source> sources;
    const MacAddress own = endpoint.mac.value_or(MacAddress{});
    if (endpoint.source_check) {
        for (const auto& address : {endpoint.ip, endpoint.ipv6})
            if (address) sources.push_back({own, Prefix::host(*address)});
    } else {
        sources.push_back({own, Prefix::any(Family::ipv4)});
        sources.push_back({own, Prefix::any(Family::ipv6)});
    }
    for (const auto& allowed : endpoint.allowed_addresses) {
        const Source source{allowed.mac.value_or(own), allowed.cidr};
        if (std::find(sources.begin(), sources.end(), source) == sources.end())
            sources.push_back(source);
    }
    return sources;
}

std::vector<Claim> claims_of(const State& state, const Resource& resource) {
    std::vector<Claim> claims;
    const auto claim = [&](What what, const Uuid& scope, const IpAddress& value) {
        claims.push_back({what, scope, value});
    };
    if (const auto* vpc = std::get_if<Vpc>(&resource.spec)) {
        claim(What::vni, {}, number_as_address(vpc->vni.value));
    } else if (const auto* subnet = std::get_if<Subnet>(&resource.spec)) {
        for (const auto& gateway : {subnet->gateway_ip, subnet->gateway_ipv6})
            if (gateway) claim(What::address, subnet->vpc_id.id, *gateway);
    } else if (const auto* host = std::get_if<Host>(&resource.spec)) {
        for (const auto& vtep : host->vteps) claim(What::vtep, {}, vtep);
    } else if (const auto* endpoint = std::get_if<Endpoint>(&resource.spec)) {
        const auto subnet_of = state.find(endpoint->subnet_id);
        if (!subnet_of) return claims;
        const Uuid& vpc_id = subnet_of->as<Subnet>().vpc_id.id;
        for (const auto& address : {endpoint->ip, endpoint->ipv6})
            if (address) claim(What::address, vpc_id, *address);
        if (endpoint->mac) {
            claim(What::mac, vpc_id, number_as_address(endpoint->mac->value()));
            for (const auto& source : sources_of(*endpoint))
                claims.push_back({What::source, vpc_id, source.block.address,
                                  source.mac.value() << 8 | source.block.length});
        }
    } else if (const auto* elastic = std::get_if<ElasticIp>(&resource.spec)) {
        if (elastic->address) claim(What::public_address, {}, *elastic->address);
    } else if (const auto* table = std::get_if<RouteTable>(&resource.spec)) {
        if (table->is_main) claim(What::route_table, table->vpc_id.id, {});
    } else if (const auto* group = std::get_if<SecurityGroup>(&resource.spec)) {
        if (group->is_default) claim(What::default_group, group->vpc_id.id, {});
    }
    return claims;
}

// What the indexes hold of a resource, in order.
struct State::Indexed {
    std::vector<std::uint64_t> parts;
    std::vector<std::tuple<Uuid, Kind, Uuid>> references;
};

State::Indexed State::indexed(const ResourcePtr& resource) {
    Indexed result;
    if (!resource) return result;
    each_part(*resource, [&](std::uint64_t number) { result.parts.push_back(number); });
    each_reference(*resource, [&](Kind, const Uuid& target, const std::string&) {
        result.references.emplace_back(target, resource->kind(), resource->id);
    });
    const auto put_in_order = [](auto& list) {
        if (!std::is_sorted(list.begin(), list.end())) std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    };
    put_in_order(result.parts);
    put_in_order(result.references);
    return result;
}

void State::apply(const Diff& diff) {
    std::vector<std::pair<Indexed, Indexed>> sides;
    sides.reserve(diff.size());
    for (const auto& change : diff)
        sides.emplace_back(indexed(change.before), indexed(change.after));
    // Removals first: what one resource gives up another may take in the same diff.
    for (std::size_t i = 0; i < diff.size(); ++i)
        if (diff[i].before) take_out(diff[i], sides[i].first, sides[i].second);
    for (std::size_t i = 0; i < diff.size(); ++i)
        if (diff[i].after) put_in(diff[i], sides[i].first, sides[i].second);
}

namespace {

// Calls back for what of `from` is not in `other`; both are in order.
template <class T, class F>
void each_missing(const std::vector<T>& from, const std::vector<T>& other, F visit) {
    auto at = other.begin();
    for (const T& item : from) {
        while (at != other.end() && *at < item) ++at;
        if (at == other.end() || *at != item) visit(item);
    }
}

}  // namespace

void State::take_out(const Change& change, const Indexed& before, const Indexed& after) {
    const Resource& resource = *change.before;
    if (!change.after) {
        by_id_.erase(resource.id);
        by_kind_[static_cast<std::size_t>(resource.kind())].erase(resource.number);
        for (const auto family : {Family::ipv4, Family::ipv6}) free_.erase({resource.id, family});
    }
    each_missing(before.parts, after.parts, [&](std::uint64_t number) { parts_.erase(number); });
    each_missing(before.references, after.references, [&](const auto& edge) {
        referrers_.erase(edge);
        const auto count = referrer_counts_.find({std::get<0>(edge), std::get<1>(edge)});
        if (--count->second == 0) referrer_counts_.erase(count);
    });
    if (const auto* vpc = std::get_if<Vpc>(&resource.spec))
        if (const auto load = vpcs_by_gateway_.find(vpc->gateway); --load->second == 0)
            vpcs_by_gateway_.erase(load);
    if (const auto held = held_.find(resource.id); held != held_.end()) {
        for (const auto& claim : held->second)
            if (const auto taken = claims_.find(claim);
                taken != claims_.end() && taken->second == resource.id)
                claims_.erase(taken);
        held_.erase(held);
    }
    move_addresses(change.before, change.after, &FreeAddresses::release);
}

void State::put_in(const Change& change, const Indexed& before, const Indexed& after) {
    const ResourcePtr& resource = change.after;
    by_id_[resource->id] = resource;
    by_kind_[static_cast<std::size_t>(resource->kind())][resource->number] = resource;
    each_missing(after.parts, before.parts,
                 [&](std::uint64_t number) { parts_[number] = resource->id; });
    each_missing(after.references, before.references, [&](const auto& edge) {
        referrers_.insert(edge);
        ++referrer_counts_[{std::get<0>(edge), std::get<1>(edge)}];
    });
    if (const auto* vpc = std::get_if<Vpc>(&resource->spec)) ++vpcs_by_gateway_[vpc->gateway];
    auto& held = held_[resource->id] = claims_of(*this, *resource);
    for (const auto& claim : held) claims_.emplace(claim, resource->id);
    if (const auto* subnet = std::get_if<Subnet>(&resource->spec)) {
        for (const auto& [block, gateway] : {std::pair(subnet->cidr, subnet->gateway_ip),
                                             std::pair(subnet->ipv6_cidr, subnet->gateway_ipv6)}) {
            if (!block) continue;
            // A replaced subnet keeps its block and its gateway, and so what is free.
            const auto [at, is_new] = free_.try_emplace({resource->id, block->family()},
                                                        FreeAddresses(first_usable(*block)));
            if (is_new && gateway) at->second.take(*gateway);
        }
    }
    move_addresses(change.after, change.before, &FreeAddresses::take);
}

// The addresses that an endpoint has on this side of a change and not on the other.
void State::move_addresses(const ResourcePtr& side, const ResourcePtr& other,
                           void (FreeAddresses::*move)(const IpAddress&)) {
    const auto* endpoint = std::get_if<Endpoint>(&side->spec);
    if (!endpoint) return;
    const auto* counterpart = other ? &other->as<Endpoint>() : nullptr;
    const auto one = [&](const std::optional<IpAddress>& mine,
                         const std::optional<IpAddress>& theirs) {
        if (!mine || mine == theirs) return;
        const auto found = free_.find({endpoint->subnet_id.id, mine->family()});
        if (found != free_.end()) (found->second.*move)(*mine);
    };
    one(endpoint->ip, counterpart ? counterpart->ip : std::nullopt);
    one(endpoint->ipv6, counterpart ? counterpart->ipv6 : std::nullopt);
}

void FreeAddresses::take(const IpAddress& address) {
    if (freed_.erase(address) > 0) return;
    if (address < unused_) return;
    if (address != unused_) {
        above_.insert(address);
        return;
    }
    unused_ = next(unused_);
    while (above_.erase(unused_) > 0) unused_ = next(unused_);
}

void FreeAddresses::release(const IpAddress& address) {
    if (above_.erase(address) == 0 && address < unused_) freed_.insert(address);
}

ResourcePtr State::find(Kind kind, const Uuid& id) const {
    const auto found = by_id_.find(id);
    if (found == by_id_.end() || found->second->kind() != kind) return nullptr;
    return found->second;
}

ResourcePtr State::by_number(std::uint64_t number) const {
    if (const auto part = parts_.find(number); part != parts_.end())
        if (const auto whole = by_id_.find(part->second); whole != by_id_.end())
            return whole->second;
    const std::uint64_t first = number - number % kNumbersPerObject;
    for (const auto& kind : by_kind_)
        if (const auto found = kind.find(first); found != kind.end()) return found->second;
    return nullptr;
}

void State::each_referrer(const Uuid& target, Kind kind,
                          const std::function<bool(const ResourcePtr&)>& visit) const {
    for (auto edge = referrers_.lower_bound({target, kind, Uuid{}});
         edge != referrers_.end() && std::get<0>(*edge) == target && std::get<1>(*edge) == kind;
         ++edge)
        if (!visit(by_id_.at(std::get<2>(*edge)))) return;
}

std::size_t State::count_referrers(const Uuid& target, Kind kind) const {
    const auto found = referrer_counts_.find({target, kind});
    return found == referrer_counts_.end() ? 0 : found->second;
}

ResourcePtr State::holder(const Claim& claim) const {
    const auto found = claims_.find(claim);
    if (found == claims_.end()) return nullptr;
    const auto resource = by_id_.find(found->second);
    return resource == by_id_.end() ? nullptr : resource->second;
}

void State::each_claim(Claim from, const std::function<bool(const Claim&)>& visit) const {
    for (auto claim = claims_.lower_bound(from);
         claim != claims_.end() && claim->first.what == from.what &&
         claim->first.scope == from.scope;
         ++claim)
        if (!visit(claim->first)) return;
}

IpAddress State::first_candidate(const Uuid& subnet, Family family) const {
    const auto found = free_.find({subnet, family});
    return found == free_.end() ? IpAddress{} : found->second.lowest();
}

ResourcePtr State::vpc_of(const Resource& resource) const {
    if (const auto* subnet = std::get_if<Subnet>(&resource.spec)) return find(subnet->vpc_id);
    if (const auto* group = std::get_if<SecurityGroup>(&resource.spec)) return find(group->vpc_id);
    if (const auto* table = std::get_if<RouteTable>(&resource.spec)) return find(table->vpc_id);
    if (const auto* endpoint = std::get_if<Endpoint>(&resource.spec)) {
        const auto subnet = find(endpoint->subnet_id);
        return subnet ? vpc_of(*subnet) : nullptr;
    }
    if (const auto* nat = std::get_if<NatGateway>(&resource.spec)) return find(nat->vpc_id);
    if (const auto* elastic = std::get_if<ElasticIp>(&resource.spec)) {
        if (elastic->endpoint_id) {
            const auto endpoint = find(*elastic->endpoint_id);
            return endpoint ? vpc_of(*endpoint) : nullptr;
        }
        const auto nat = nat_gateway_of(resource);
        return nat ? vpc_of(*nat) : nullptr;
    }
    return nullptr;
}

ResourcePtr State::nat_gateway_of(const Resource& elastic_ip) const {
    ResourcePtr found;
    each_referrer(elastic_ip.id, Kind::nat_gateway, [&](const ResourcePtr& nat) {
        if (!nat->deleting) found = nat;
        return !found;
    });
    return found;
}

}  // namespace sluice::model
