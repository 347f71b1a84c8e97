// SPDX-License-Identifier: Apache-2.0
#include "dataplane/reachability/routes.hpp"

#include <algorithm>

namespace sluice::reachability {

Routes::Routes(std::span<const port::Port> ports, std::span<const IpAddress> vteps,
               neighbour::Neighbours& neighbours, neighbour::Time now)
    : ports_(ports), vteps_(vteps.begin(), vteps.end()), neighbours_(neighbours) {
    for (const auto& port : ports_)
        for (const auto& hop : port.next_hops) neighbours_.want({port.id, hop}, now);
}

void Routes::hold(const IpAddress& vtep, neighbour::Time now) {
    auto& remote = remotes_[vtep];
    if (remote.held++ > 0) return;
    for (const auto& port : ports_) {
        if (port.role != Side::underlay) continue;
        const bool on_link = std::any_of(
            port.addresses.begin(), port.addresses.end(),
            [&](const auto& own) { return own.prefix().contains(vtep) && own.address != vtep; });
        if (!on_link) continue;
        remote.on_link = neighbour::Key{port.id, vtep};
        neighbours_.want(*remote.on_link, now);
        break;
    }
    remote.hop = decide(remote, vtep.family());
}

void Routes::release(const IpAddress& vtep) {
    const auto at = remotes_.find(vtep);
    if (at == remotes_.end() || --at->second.held > 0) return;
    if (at->second.on_link) neighbours_.release(*at->second.on_link);
    remotes_.erase(at);
}

std::optional<IpAddress> Routes::own_vtep(Family family) const {
    for (const auto& vtep : vteps_)
        if (vtep.family() == family) return vtep;
    return std::nullopt;
}

std::optional<Hop> Routes::to_vtep(const IpAddress& vtep) const {
    const auto at = remotes_.find(vtep);
    return at == remotes_.end() ? std::nullopt : at->second.hop;
}

std::optional<Hop> Routes::to_internet(Family family) const {
    const auto at = internet_.find(family);
    return at == internet_.end() ? std::nullopt : at->second;
}

const port::Port* Routes::on_link_uplink(const IpAddress& address) const {
    for (const auto& port : ports_)
        if (port.role == Side::uplink)
            for (const auto& own : port.addresses)
                if (own.prefix().contains(address)) return &port;
    return nullptr;
}

void Routes::link(PortId port, bool up) {
    if (up)
        down_.erase(port);
    else
        down_.insert(port);
}

Routes::Moved Routes::refresh() {
    Moved moved;
    for (auto& [vtep, remote] : remotes_) {
        const auto hop = decide(remote, vtep.family());
        if (hop == remote.hop) continue;
        remote.hop = hop;
        moved.vteps.push_back(vtep);
    }
    for (const auto family : {Family::ipv4, Family::ipv6}) {
        const auto hop = first_next_hop(Side::uplink, family);
        if (hop == internet_[family]) continue;
        internet_[family] = hop;
        moved.internet = true;
    }
    return moved;
}

std::optional<Hop> Routes::decide(const Remote& remote, Family family) const {
    return remote.on_link ? resolved(*remote.on_link) : first_next_hop(Side::underlay, family);
}

std::optional<Hop> Routes::first_next_hop(Side side, Family family) const {
    for (const auto& port : ports_) {
        if (port.role != side) continue;
        for (const auto& address : port.next_hops)
            if (address.family() == family)
                if (auto hop = resolved({port.id, address})) return hop;
    }
    return std::nullopt;
}

std::optional<Hop> Routes::resolved(const neighbour::Key& key) const {
    if (down_.contains(key.port)) return std::nullopt;
    const auto mac = neighbours_.mac(key);
    if (!mac) return std::nullopt;
    return Hop{key.port, *mac};
}

}  // namespace sluice::reachability
