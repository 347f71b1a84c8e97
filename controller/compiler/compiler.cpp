// SPDX-License-Identifier: Apache-2.0
#include "controller/compiler/compiler.hpp"

#include <algorithm>
#include <optional>

#include "controller/compiler/rows.hpp"

namespace sluice::compiler {
namespace {

using model::Kind;
using model::ResourcePtr;
using nfv::Direction;
using UnitKind = Unit::Kind;

Direction direction_of(const model::Rule& rule) {
    return rule.direction == model::RuleDirection::egress ? Direction::egress : Direction::ingress;
}
UnitKind member_kind(Direction direction) {
    return direction == Direction::egress ? UnitKind::egress_member : UnitKind::ingress_member;
}
UnitKind list_kind(Direction direction) {
    return direction == Direction::egress ? UnitKind::egress_list : UnitKind::ingress_list;
}

// The value of a kind on one side of a change; nothing where it does not exist or is on
// its way out.
template <class S>
const S* living(const ResourcePtr& resource) {
    return resource && !resource->deleting ? &resource->as<S>() : nullptr;
}

std::vector<const model::Rule*> by_id(const model::SecurityGroup* group) {
    std::vector<const model::Rule*> rules;
    if (!group) return rules;
    rules.reserve(group->rules.size());
    for (const auto& rule : group->rules) rules.push_back(&rule);
    std::sort(rules.begin(), rules.end(),
              [](const auto* a, const auto* b) { return a->id < b->id; });
    return rules;
}

}  // namespace

struct Compiler::Impl {
    explicit Impl(const model::State& desired) : state(desired) {}

    const model::State& state;
    NamedCounts named;
    // What each unit came to, so that it can be taken back.
    struct Produced {
        std::string gateway;
        std::vector<openflow::EntryKey> keys;
        std::vector<MeterId> meters;
    };
    std::map<Unit, Produced> produced;
    std::set<Unit> dirty;

    void touch(UnitKind kind, const model::Uuid& a, const model::Uuid& b = {}) {
        dirty.insert({kind, a, b});
    }
    void touch_all(UnitKind kind, Kind user, const model::Uuid& target) {
        state.each_referrer(target, user, [&](const ResourcePtr& one) {
            touch(kind, one->id);
            return true;
        });
    }

    void touched_by(const model::Change& change);
    void vpc_changed(const model::Change& change);
    void vpc_moved(const model::Uuid& vpc);
    void endpoint_changed(const model::Change& change);
    void group_changed(const model::Change& change);
    void rule_named(const model::Uuid& vpc, const model::Rule& rule, bool now);
    void endpoint_touched(const model::Uuid& id, const model::Endpoint& endpoint);
    void elastic_ip_touched(const model::Resource& elastic);
    void bandwidth_touched(const model::Uuid& bandwidth);
    void nat_gateway_touched(const model::Resource& nat);
};

void Compiler::Impl::touched_by(const model::Change& change) {
    const auto& resource = change.either();
    switch (resource.kind()) {
        case Kind::vpc:
            return vpc_changed(change);
        case Kind::subnet:
            return touch(UnitKind::subnet, resource.id);
        case Kind::host:
            for (const auto& [number, gateway] : state.all(Kind::gateway))
                touch(UnitKind::host, resource.id, gateway->id);
            return;
        case Kind::endpoint:
            return endpoint_changed(change);
        case Kind::security_group:
            return group_changed(change);
        case Kind::prefix_list:
            for (auto by = named.lower_bound({resource.id, Direction::egress, {}});
                 by != named.end() && by->first.remote == resource.id; ++by)
                touch(list_kind(by->first.direction), resource.id, by->first.vpc);
            return;
        case Kind::external_pool:
            return;
        case Kind::elastic_ip:
            for (const auto& side : {change.before, change.after})
                if (side) elastic_ip_touched(*side);
            return;
        case Kind::bandwidth:
            return bandwidth_touched(resource.id);
        case Kind::nat_gateway:
            for (const auto& side : {change.before, change.after})
                if (side) nat_gateway_touched(*side);
            return;
        case Kind::route_table:
            return touch(UnitKind::routes, resource.id);
        case Kind::gateway:
            for (const auto& [number, host] : state.all(Kind::host))
                touch(UnitKind::host, host->id, resource.id);
            return;
    }
}

void Compiler::Impl::vpc_changed(const model::Change& change) {
    const auto& id = change.either().id;
    const auto* before = living<model::Vpc>(change.before);
    const auto* after = living<model::Vpc>(change.after);
    touch(UnitKind::vpc, id);
    touch_all(UnitKind::routes, Kind::route_table, id);  // its blocks are routes of them
    if (before && after && before->gateway != after->gateway) vpc_moved(id);
}

// Everything in the VPC goes to another gateway.
void Compiler::Impl::vpc_moved(const model::Uuid& vpc) {
    touch_all(UnitKind::subnet, Kind::subnet, vpc);
    state.each_referrer(vpc, Kind::subnet, [&](const ResourcePtr& subnet) {
        state.each_referrer(subnet->id, Kind::endpoint, [&](const ResourcePtr& endpoint) {
            endpoint_touched(endpoint->id, endpoint->as<model::Endpoint>());
            return true;
        });
        return true;
    });
    state.each_referrer(vpc, Kind::nat_gateway, [&](const ResourcePtr& nat) {
        nat_gateway_touched(*nat);
        return true;
    });
    state.each_referrer(vpc, Kind::security_group, [&](const ResourcePtr& group) {
        touch(UnitKind::group, group->id);
        for (const auto& rule : group->as<model::SecurityGroup>().rules) {
            touch(UnitKind::rule, group->id, rule.id);
            if (rule.remote_prefix_list_id)
                touch(list_kind(direction_of(rule)), rule.remote_prefix_list_id->id, vpc);
        }
        return true;
    });
}

void Compiler::Impl::bandwidth_touched(const model::Uuid& bandwidth) {
    for (const auto& [number, gateway] : state.all(Kind::gateway))
        touch(UnitKind::bandwidth, bandwidth, gateway->id);
}

// It may bring the bandwidth that it shares to its gateway, or be the last one there.
void Compiler::Impl::elastic_ip_touched(const model::Resource& elastic) {
    touch(UnitKind::elastic_ip, elastic.id);
    if (const auto& shared = elastic.as<model::ElasticIp>().bandwidth_id)
        bandwidth_touched(shared->id);
    touch_all(UnitKind::nat_gateway, Kind::nat_gateway, elastic.id);  // draws from its meter
}

void Compiler::Impl::nat_gateway_touched(const model::Resource& nat) {
    touch(UnitKind::nat_gateway, nat.id);
    for (const auto& ref : nat.as<model::NatGateway>().elastic_ip_ids)
        if (const auto elastic = state.find(ref)) elastic_ip_touched(*elastic);
}

void Compiler::Impl::endpoint_touched(const model::Uuid& id, const model::Endpoint& endpoint) {
    touch(UnitKind::endpoint, id);
    state.each_referrer(id, Kind::elastic_ip, [&](const ResourcePtr& elastic) {
        elastic_ip_touched(*elastic);
        return true;
    });
    if (!endpoint.security_group_ids) return;
    for (const auto& group : *endpoint.security_group_ids) {
        touch(UnitKind::egress_member, group.id, id);
        touch(UnitKind::ingress_member, group.id, id);
    }
}

void Compiler::Impl::endpoint_changed(const model::Change& change) {
    for (const auto& side : {change.before, change.after})
        if (side) endpoint_touched(side->id, side->as<model::Endpoint>());
}

void Compiler::Impl::group_changed(const model::Change& change) {
    const auto& resource = change.either();
    const auto& vpc = resource.as<model::SecurityGroup>().vpc_id.id;
    const auto* before = living<model::SecurityGroup>(change.before);
    const auto* after = living<model::SecurityGroup>(change.after);
    const auto old = by_id(before), now = by_id(after);
    const auto each_only_in = [&](const auto& some, const auto& others, bool is_now) {
        auto other = others.begin();
        for (const model::Rule* rule : some) {
            while (other != others.end() && (*other)->id < rule->id) ++other;
            if (other != others.end() && **other == *rule) continue;
            touch(UnitKind::rule, resource.id, rule->id);
            rule_named(vpc, *rule, is_now);
        }
    };
    each_only_in(old, now, false);
    each_only_in(now, old, true);
    touch(UnitKind::group, resource.id);
    // A group on its way out has no members; it is named by rules on their way out only.
    if ((before != nullptr) != (after != nullptr))
        state.each_referrer(resource.id, Kind::endpoint, [&](const ResourcePtr& member) {
            touch(UnitKind::egress_member, resource.id, member->id);
            touch(UnitKind::ingress_member, resource.id, member->id);
            return true;
        });
}

// A rule that names a remote came or went. The first one brings the remote's rows, the
// last one takes them.
void Compiler::Impl::rule_named(const model::Uuid& vpc, const model::Rule& rule, bool now) {
    const auto direction = direction_of(rule);
    const auto count = [&](const model::Uuid& remote) {  // true: the rows come or go
        auto& counted = named[{remote, direction, vpc}];
        const bool first_or_last = now ? counted++ == 0 : --counted == 0;
        if (counted == 0) named.erase({remote, direction, vpc});
        return first_or_last;
    };
    if (rule.remote_group_id && count(rule.remote_group_id->id))
        state.each_referrer(rule.remote_group_id->id, Kind::endpoint,
                            [&](const ResourcePtr& member) {
                                touch(member_kind(direction), rule.remote_group_id->id, member->id);
                                return true;
                            });
    if (rule.remote_prefix_list_id && count(rule.remote_prefix_list_id->id))
        touch(list_kind(direction), rule.remote_prefix_list_id->id, vpc);
}

Compiler::Compiler(const model::State& state, std::uint64_t revision)
    : impl_(std::make_unique<Impl>(state)) {
    model::Diff everything;
    for (std::size_t kind = 0; kind < model::kKinds; ++kind)
        for (const auto& [number, resource] : state.all(static_cast<Kind>(kind)))
            everything.push_back({nullptr, resource});
    update(everything, revision);
}
Compiler::~Compiler() = default;

const GatewayTables* Compiler::gateway(const std::string& name) const {
    const auto found = gateways_.find(name);
    return found == gateways_.end() ? nullptr : found->second.get();
}

std::map<std::string, openflow::Changes> Compiler::update(const model::Diff& diff,
                                                          std::uint64_t revision) {
    for (const auto& change : diff)
        if (change.after && change.after->kind() == Kind::gateway)
            if (auto& tables = gateways_[change.after->name]; !tables)
                tables = std::make_unique<GatewayTables>();
    impl_->dirty.clear();
    for (const auto& change : diff) impl_->touched_by(change);

    // What was there of each key that is touched; several units may pass one on.
    struct Touched {
        std::map<openflow::EntryKey, std::optional<openflow::Entry>> entries;
        std::map<MeterId, std::optional<openflow::Meter>> meters;
    };
    std::map<std::string, Touched> touched;
    const auto remember = [&](const std::string& name, const openflow::EntryKey& key) {
        const auto* present = gateways_.at(name)->find(key);
        touched[name].entries.try_emplace(
            key, present ? std::optional(*present) : std::optional<openflow::Entry>());
    };
    const auto remember_meter = [&](const std::string& name, MeterId id) {
        const auto* present = gateways_.at(name)->find(id);
        touched[name].meters.try_emplace(
            id, present ? std::optional(*present) : std::optional<openflow::Meter>());
    };
    for (const auto& unit : impl_->dirty) {
        const auto old = impl_->produced.find(unit);
        if (old == impl_->produced.end()) continue;
        auto& tables = *gateways_.at(old->second.gateway);
        for (const auto& key : old->second.keys) {
            remember(old->second.gateway, key);
            tables.remove(key);
        }
        for (const auto id : old->second.meters) {
            remember_meter(old->second.gateway, id);
            tables.remove(id);
        }
        impl_->produced.erase(old);
    }
    for (const auto& unit : impl_->dirty) {
        auto compiled = compile(impl_->state, impl_->named, unit);
        const auto tables = gateways_.find(compiled.gateway);
        if (tables == gateways_.end()) continue;
        Impl::Produced produced{compiled.gateway, {}, {}};
        for (auto& entry : compiled.entries) {
            remember(compiled.gateway, entry.key);
            produced.keys.push_back(entry.key);
            tables->second->put(std::move(entry));
        }
        for (const auto& meter : compiled.meters) {
            remember_meter(compiled.gateway, meter.id);
            produced.meters.push_back(meter.id);
            tables->second->put(meter);
        }
        if (!produced.keys.empty() || !produced.meters.empty())
            impl_->produced.emplace(unit, std::move(produced));
    }

    std::map<std::string, openflow::Changes> result;
    for (auto& [name, tables] : gateways_) {
        tables->set_revision(revision);
        auto& changes = result[name];
        for (const auto& [key, before] : touched[name].entries) {
            const auto* after = tables->find(key);
            if (!after && before) changes.remove.push_back(key);
            if (after && before != *after) changes.put.push_back(*after);
        }
        for (const auto& [id, before] : touched[name].meters) {
            const auto* after = tables->find(id);
            if (!after && before) changes.remove_meters.push_back(id);
            if (after && before != *after) changes.put_meters.push_back(*after);
        }
    }
    return result;
}

}  // namespace sluice::compiler
