// SPDX-License-Identifier: Apache-2.0
#include "dataplane/reachability/reachability.hpp"

#include <algorithm>

#include "dataplane/reachability/header.hpp"

namespace sluice::reachability {

using policy::Adjacency;
using policy::Source;

Reachability::Reachability(policy::AdjacencyTable& adjacencies, policy::SourceTable& sources,
                           reclaim::Qsbr& qsbr, Routes& routes)
    : adjacencies_(adjacencies),
      sources_(sources),
      routes_(routes),
      outside_{adjacencies.allocate(), adjacencies.allocate(), sources.allocate()},
      retired_adjacencies_(qsbr),
      retired_sources_(qsbr) {
    // From the uplink anybody may send: no MAC, no VTEP, the outside's zone.
    replace(outside_.source, std::make_unique<const Source>());
    build_internet();
}

Reachability::~Reachability() {
    for (const auto& [key, place] : places_) {
        replace(place.routed, nullptr);
        replace(place.bridged, nullptr);
    }
    for (const auto& [index, sender] : senders_) replace(index, nullptr);
    replace(outside_.ipv4, nullptr);
    replace(outside_.ipv6, nullptr);
    replace(outside_.source, nullptr);
}

void Reachability::put_vpc(VpcId vpc, Vni vni, policy::ZoneSlot zone) {
    auto& state = vpcs_[vpc];
    state.vni = vni;
    state.zone = zone;
    state.open = true;
    mark(state.places);
    mark(state.senders);
}

void Reachability::remove_vpc(VpcId vpc) {
    const auto at = vpcs_.find(vpc);
    if (at == vpcs_.end()) return;
    at->second.open = false;
    mark(at->second.places);
    mark(at->second.senders);
    if (at->second.places.empty() && at->second.senders.empty()) vpcs_.erase(at);
}

void Reachability::put_subnet(const Subnet& subnet) {
    auto& state = subnets_[{subnet.id, subnet.family}];
    state.facts = subnet;
    state.known = true;
    mark(state.places);
}

void Reachability::remove_subnet(SubnetId subnet, Family family) {
    const auto at = subnets_.find({subnet, family});
    if (at == subnets_.end()) return;
    at->second.known = false;
    mark(at->second.places);
    if (at->second.places.empty()) subnets_.erase(at);
}

void Reachability::hold(const std::vector<IpAddress>& vteps, HostId host, neighbour::Time now) {
    for (const auto& vtep : vteps) {
        routes_.hold(vtep, now);
        hosts_by_vtep_[vtep].insert(host);
    }
}

void Reachability::release(const std::vector<IpAddress>& vteps, HostId host) {
    for (const auto& vtep : vteps) {
        routes_.release(vtep);
        auto& hosts = hosts_by_vtep_[vtep];
        hosts.erase(host);
        if (hosts.empty()) hosts_by_vtep_.erase(vtep);
    }
}

void Reachability::put_host(const openflow::HostRow& row, neighbour::Time now) {
    auto& host = hosts_[row.host];
    // Held before released: a VTEP that stays keeps its resolved neighbour.
    hold(row.vteps, row.host, now);
    release(host.vteps, row.host);
    for (const auto& vtep : row.vteps) hosts_by_vtep_[vtep].insert(row.host);
    host.vteps = row.vteps;
    host.known = true;
    mark(host.places);
    mark(host.senders);
}

void Reachability::remove_host(HostId id) {
    const auto at = hosts_.find(id);
    if (at == hosts_.end()) return;
    auto& host = at->second;
    release(host.vteps, id);
    host.vteps.clear();
    host.known = false;
    mark(host.places);
    mark(host.senders);
    if (host.places.empty() && host.senders.empty()) hosts_.erase(at);
}

void Reachability::put_place(const Place& place) {
    const PlaceKey key{place.vpc, place.address};
    if (const auto at = places_.find(key); at != places_.end()) {
        const Place before = at->second;
        unlink(key, before);
        if (before.routed != place.routed) replace(before.routed, nullptr);
        if (before.bridged != place.bridged) replace(before.bridged, nullptr);
    }
    places_[key] = place;
    vpcs_[place.vpc].places.insert(key);
    hosts_[place.host].places.insert(key);
    subnets_[{place.subnet, place.address.family()}].places.insert(key);
    dirty_places_.insert(key);
}

void Reachability::remove_place(VpcId vpc, const IpAddress& address) {
    const PlaceKey key{vpc, address};
    const auto at = places_.find(key);
    if (at == places_.end()) return;
    unlink(key, at->second);
    replace(at->second.routed, nullptr);
    replace(at->second.bridged, nullptr);
    places_.erase(at);
    dirty_places_.erase(key);
}

// Forgets the owners' references; an owner that is neither known nor used goes with them.
void Reachability::unlink(const PlaceKey& key, const Place& place) {
    if (const auto at = vpcs_.find(place.vpc); at != vpcs_.end()) {
        at->second.places.erase(key);
        if (!at->second.open && at->second.places.empty() && at->second.senders.empty())
            vpcs_.erase(at);
    }
    if (const auto at = hosts_.find(place.host); at != hosts_.end()) {
        at->second.places.erase(key);
        if (!at->second.known && at->second.places.empty() && at->second.senders.empty())
            hosts_.erase(at);
    }
    if (const auto at = subnets_.find({place.subnet, place.address.family()});
        at != subnets_.end()) {
        at->second.places.erase(key);
        if (!at->second.known && at->second.places.empty()) subnets_.erase(at);
    }
}

void Reachability::unlink(const Sender& sender) {
    if (const auto at = vpcs_.find(sender.vpc); at != vpcs_.end()) {
        at->second.senders.erase(sender.index);
        if (!at->second.open && at->second.places.empty() && at->second.senders.empty())
            vpcs_.erase(at);
    }
    if (const auto at = hosts_.find(sender.host); at != hosts_.end()) {
        at->second.senders.erase(sender.index);
        if (!at->second.known && at->second.places.empty() && at->second.senders.empty())
            hosts_.erase(at);
    }
}

void Reachability::put_sender(const Sender& sender) {
    if (const auto at = senders_.find(sender.index); at != senders_.end()) unlink(at->second);
    senders_[sender.index] = sender;
    vpcs_[sender.vpc].senders.insert(sender.index);
    hosts_[sender.host].senders.insert(sender.index);
    dirty_senders_.insert(sender.index);
}

void Reachability::remove_sender(SourceIndex index) {
    const auto at = senders_.find(index);
    if (at == senders_.end()) return;
    unlink(at->second);
    replace(index, nullptr);
    senders_.erase(at);
    dirty_senders_.erase(index);
}

void Reachability::build() {
    for (const auto& key : dirty_places_) build_place(key);
    for (const auto index : dirty_senders_) build_sender(index);
    dirty_places_.clear();
    dirty_senders_.clear();
    retired_adjacencies_.seal();
    retired_sources_.seal();
}

std::size_t Reachability::neighbours_changed() {
    const auto moved = routes_.refresh();
    for (const auto& vtep : moved.vteps)
        if (const auto at = hosts_by_vtep_.find(vtep); at != hosts_by_vtep_.end())
            for (const auto host : at->second) mark(hosts_[host].places);
    const auto records = 2 * dirty_places_.size() + (moved.internet ? 2 : 0);
    if (moved.internet) build_internet();
    build();
    return records;
}

void Reachability::reclaim() {
    retired_adjacencies_.reclaim();
    retired_sources_.reclaim();
}

void Reachability::build_place(const PlaceKey& key) {
    const auto& place = places_.at(key);
    replace(place.routed, std::make_unique<const Adjacency>(to_place(place, false)));
    replace(place.bridged, std::make_unique<const Adjacency>(to_place(place, true)));
}

Adjacency Reachability::to_place(const Place& place, bool bridged) const {
    const auto vpc = vpcs_.find(place.vpc);
    if (vpc == vpcs_.end() || !vpc->second.open) return unreachable({});
    const auto zone = vpc->second.zone;
    const auto host = hosts_.find(place.host);
    const auto subnet = subnets_.find({place.subnet, place.address.family()});
    if (host == hosts_.end() || subnet == subnets_.end() || !subnet->second.known)
        return unreachable(zone);
    for (const auto& vtep : host->second.vteps) {
        const auto own = routes_.own_vtep(vtep.family());
        const auto hop = routes_.to_vtep(vtep);
        if (!own || !hop) continue;
        const auto& port = routes_.port(hop->port);
        const auto overhead = vtep.is_v4() ? kOverheadIpv4 : kOverheadIpv6;
        const auto& facts = subnet->second.facts;
        return vxlan({.port = port.id,
                      .own_mac = port.mac,
                      .next_hop_mac = hop->mac,
                      .own_vtep = *own,
                      .remote_vtep = vtep,
                      .vni = vpc->second.vni,
                      .zone = zone,
                      .inner_source = facts.gateway_mac,
                      .inner_destination = place.mac,
                      .inner = place.address.family(),
                      .mtu = std::min(facts.mtu, static_cast<std::uint16_t>(port.mtu - overhead)),
                      .bridged = bridged});
    }
    return unreachable(zone);
}

void Reachability::build_sender(SourceIndex index) {
    const auto& sender = senders_.at(index);
    auto source = std::make_unique<Source>();
    source->mac = sender.mac;
    if (const auto vpc = vpcs_.find(sender.vpc); vpc != vpcs_.end())
        source->zone = vpc->second.zone;
    if (const auto host = hosts_.find(sender.host); host != hosts_.end())
        std::copy_n(host->second.vteps.begin(),
                    std::min(host->second.vteps.size(), source->vteps.size()),
                    source->vteps.begin());
    replace(index, std::move(source));
}

void Reachability::build_internet() {
    replace(outside_.ipv4, std::make_unique<const Adjacency>(to_internet(Family::ipv4)));
    replace(outside_.ipv6, std::make_unique<const Adjacency>(to_internet(Family::ipv6)));
}

Adjacency Reachability::to_internet(Family family) const {
    const auto hop = routes_.to_internet(family);
    if (!hop) return unreachable({});
    const auto& port = routes_.port(hop->port);
    return ethernet({.port = port.id,
                     .own_mac = port.mac,
                     .next_hop_mac = hop->mac,
                     .family = family,
                     .mtu = port.mtu});
}

void Reachability::replace(AdjacencyIndex index, std::unique_ptr<const Adjacency> record) {
    retired_adjacencies_.add(adjacencies_.replace(index, record.release()));
}

void Reachability::replace(SourceIndex index, std::unique_ptr<const Source> record) {
    retired_sources_.add(sources_.replace(index, record.release()));
}

Reachability::Counts Reachability::counts() const {
    Counts counts{places_.size(), 0, senders_.size(), 0};
    for (const auto& [id, host] : hosts_) {
        if (!host.known) continue;
        ++counts.hosts;
        counts.unreachable_hosts +=
            std::none_of(host.vteps.begin(), host.vteps.end(), [&](const IpAddress& vtep) {
                return routes_.own_vtep(vtep.family()) && routes_.to_vtep(vtep);
            });
    }
    return counts;
}

}  // namespace sluice::reachability
