// SPDX-License-Identifier: Apache-2.0
// What makes an external pool or an elastic IP right.
#include <algorithm>

#include "controller/model/address.hpp"
#include "controller/model/draft.hpp"
#include "dataplane/wire/special_address.hpp"
#include "nfv/nat_gateway/table.hpp"

namespace sluice::model {
namespace {

constexpr const char* kOneNatLimit =
    "the addresses of a NAT gateway share one bandwidth_id, or have no limit";

// On a link the block's first and last address are the network's and the broadcast
// address; a routed block is all addresses.
bool is_in_pool(const ExternalPool& pool, const IpAddress& address) {
    return pool.mode == PoolMode::on_link ? is_usable(pool.cidr, address)
                                          : pool.cidr.contains(address);
}
const Prefix* reserved_block(const ExternalPool& pool, const IpAddress& address) {
    for (const auto& block : pool.reserved)
        if (block.contains(address)) return &block;
    return nullptr;
}

// The lowest address that is given out unasked. A routed pool's first and last address may be
// asked for, but many a host would take them for a network's and a broadcast address. On a
// link the first one that a station can have is by convention its router's.
IpAddress first_given(const ExternalPool& pool) {
    const IpAddress first = first_usable(pool.cidr);
    const bool is_alone = pool.cidr.length == 128;
    return pool.mode == PoolMode::on_link && !is_alone ? next(first) : first;
}

}  // namespace

std::optional<IpAddress> Planner::first_free(const ExternalPool& pool) const {
    IpAddress candidate = first_given(pool);
    while (is_usable(pool.cidr, candidate)) {
        if (const auto* block = reserved_block(pool, candidate)) {
            candidate = next(last_of(*block));
            continue;
        }
        if (!surroundings_.taken(candidate).empty()) {
            candidate = next(candidate);
            continue;
        }
        IpAddress free = candidate;
        state_.each_claim({Claim::What::public_address, {}, candidate}, [&](const Claim& taken) {
            if (taken.value != free) return false;
            free = next(free);
            return true;
        });
        if (free == candidate) return candidate;
        candidate = free;
    }
    return std::nullopt;
}

void Planner::check_external_pool(Draft& draft) {
    const auto& pool = draft.spec<ExternalPool>();
    if (pool.cidr.family() != Family::ipv4) {
        draft.fail("/cidr", "IPv6 pools are not enforced by this release",
                   Error::Code::unsupported);
        return;
    }
    if (!wire::is_internet(pool.cidr))
        draft.fail(
            "/cidr",
            "holds addresses that no packet on the internet may have (RFC 6890): the gateways "
            "would drop them");
    if (pool.cidr.family_length() < 8) draft.fail("/cidr", "must be a /8 or smaller");
    for (std::size_t i = 0; i < pool.reserved.size(); ++i)
        if (!pool.cidr.contains(pool.reserved[i].address) ||
            pool.reserved[i].length < pool.cidr.length)
            draft.fail("/reserved/" + std::to_string(i), "is not inside of the pool");
    for (const auto& [number, other] : state_.all(Kind::external_pool))
        if (other->id != draft.resource.id && other->as<ExternalPool>().cidr.overlaps(pool.cidr))
            draft.conflict("/cidr", "overlaps " + describe(*other));
}

void Planner::check_elastic_ip(Draft& draft) {
    const auto& elastic = draft.spec<ElasticIp>();
    if (!draft.before) choose_public_address(draft);
    if (elastic.bandwidth_mbps && elastic.bandwidth_id)
        draft.fail("/bandwidth_id",
                   "an elastic IP has bandwidth_id or bandwidth_mbps: clear the other with null");
    const auto nat = draft.before ? state_.nat_gateway_of(draft.resource) : nullptr;
    if (nat) share_nat_limit(draft, *nat);
    if (!elastic.endpoint_id) return;
    if (nat)
        draft.conflict("/endpoint_id", "it is an address of " + describe(*nat) +
                                           ": take it out of its elastic_ip_ids first");

    const auto endpoint = state_.find(*elastic.endpoint_id);
    if (!endpoint->as<Endpoint>().ip)
        draft.fail("/endpoint_id", describe(*endpoint) + " has no IPv4 address");
    state_.each_referrer(endpoint->id, Kind::elastic_ip, [&](const ResourcePtr& other) {
        if (other->id != draft.resource.id)
            draft.conflict("/endpoint_id",
                           describe(*endpoint) + " already has " + describe(*other));
        return true;
    });
    const auto* old = draft.old<ElasticIp>();
    if (draft.only_if_free && old && old->endpoint_id && old->endpoint_id != elastic.endpoint_id)
        draft.conflict("/endpoint_id", "the elastic IP is attached to " +
                                           describe(*state_.find(*old->endpoint_id)));
}

void Planner::check_nat_gateway(Draft& draft) {
    const auto& nat = draft.spec<NatGateway>();
    if (nat.elastic_ip_ids.empty() || nat.elastic_ip_ids.size() > nfv::kNatMaximumAddresses)
        draft.fail("/elastic_ip_ids",
                   "must name 1 to " + std::to_string(nfv::kNatMaximumAddresses) + " elastic IPs");
    if (nat.ports_per_endpoint.value % nfv::kNatBlockPorts != 0)
        draft.fail("/ports_per_endpoint", "must be a multiple of " +
                                              std::to_string(nfv::kNatBlockPorts) +
                                              ", the ports of a block");
    // Else nothing says to whom a new connection from outside would go.
    if (nat.mapping != NatMapping::endpoint_independent &&
        nat.filtering != NatFiltering::address_and_port_dependent)
        draft.fail("/filtering",
                   "admits more than replies: only with mapping endpoint_independent");
    for (std::size_t i = 0; i < nat.elastic_ip_ids.size(); ++i) {
        const auto here = "/elastic_ip_ids/" + std::to_string(i);
        const auto& ref = nat.elastic_ip_ids[i];
        if (std::find(nat.elastic_ip_ids.begin(), nat.elastic_ip_ids.begin() + std::ptrdiff_t(i),
                      ref) != nat.elastic_ip_ids.begin() + std::ptrdiff_t(i))
            draft.fail(here, "occurs twice");
        const auto elastic = state_.find(ref);
        if (const auto& endpoint_id = elastic->as<ElasticIp>().endpoint_id)
            draft.conflict(here, describe(*elastic) + " is attached to " +
                                     describe(*state_.find(*endpoint_id)) + ": detach it first");
        const auto other = state_.nat_gateway_of(*elastic);
        if (other && other->id != draft.resource.id)
            draft.conflict(
                here, describe(*elastic) + " is an address of " + describe(*other) + " already");
    }
    if (draft.problems.empty()) check_nat_limits(draft);
}

// A NAT gateway has one meter for what leaves, whichever of its addresses it leaves from; so its
// addresses share one limit or have none.
void Planner::check_nat_limits(Draft& draft) {
    const auto& addresses = draft.spec<NatGateway>().elastic_ip_ids;
    if (addresses.size() < 2) return;
    const auto shared = state_.find(addresses.front())->as<ElasticIp>().bandwidth_id;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const auto& one = state_.find(addresses[i])->as<ElasticIp>();
        if (!one.bandwidth_mbps && one.bandwidth_id == shared) continue;
        draft.fail("/elastic_ip_ids/" + std::to_string(i), kOneNatLimit);
        return;
    }
}

// What one address of a NAT gateway shares from now on, or no longer, the others do, too: one
// after the other they could never change.
void Planner::share_nat_limit(Draft& draft, const Resource& nat) {
    const auto& addresses = nat.as<NatGateway>().elastic_ip_ids;
    if (addresses.size() < 2) return;
    const auto& elastic = draft.spec<ElasticIp>();
    if (elastic.bandwidth_mbps) {
        draft.fail("/bandwidth_mbps", kOneNatLimit);
        return;
    }
    for (const auto& ref : addresses) {
        const auto other = state_.find(ref);
        if (other->id == draft.resource.id ||
            other->as<ElasticIp>().bandwidth_id == elastic.bandwidth_id)
            continue;
        auto after = std::make_shared<Resource>(*other);
        after->as<ElasticIp>().bandwidth_id = elastic.bandwidth_id;
        after->updated_at = sources_.now;
        ++after->version;
        draft.companions.push_back({other, std::move(after)});
    }
}

void Planner::choose_public_address(Draft& draft) {
    auto& elastic = draft.spec<ElasticIp>();
    if (elastic.address)
        if (const auto whose = surroundings_.taken(*elastic.address); !whose.empty())
            draft.fail("/address", "is " + whose);
    if (elastic.pool_id) {
        const auto pool = state_.find(*elastic.pool_id);
        if (elastic.address && !is_in_pool(pool->as<ExternalPool>(), *elastic.address)) {
            draft.fail("/address", "is not an address of " + describe(*pool));
            return;
        }
    }
    for (const auto& [number, pool] : state_.all(Kind::external_pool)) {
        const auto& block = pool->as<ExternalPool>();
        if (pool->deleting || (elastic.pool_id && elastic.pool_id->id != pool->id)) continue;
        if (elastic.address) {
            if (!is_in_pool(block, *elastic.address)) continue;
            if (reserved_block(block, *elastic.address))
                draft.fail("/address", "is reserved in " + describe(*pool));
        } else if (const auto free = first_free(block)) {
            elastic.address = free;
        } else {
            continue;
        }
        elastic.pool_id = Ref<Kind::external_pool>{pool->id};
        return;
    }
    if (elastic.address)
        draft.fail("/address", "is not an address of any external pool");
    else
        draft.fail(elastic.pool_id ? "/pool_id" : "/address", "no address is free",
                   Error::Code::exhausted);
}

}  // namespace sluice::model
