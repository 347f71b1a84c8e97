// SPDX-License-Identifier: Apache-2.0
#include "dataplane/control/tables.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <utility>

#include "dataplane/policy/walk.hpp"
#include "dataplane/worker/vpc_settings.hpp"

namespace sluice::control {
namespace {

// Two records for each address of an endpoint, and those of the outside and of nobody.
constexpr std::uint32_t kAdjacencies = (1U << 20) + 16;
constexpr std::uint32_t kSources = (1U << 20) + 16;
constexpr std::uint32_t kMeters = 1U << 16;

SessionLimits or_else(const SessionLimits& given, const SessionLimits& otherwise) {
    const auto one = [](std::uint32_t a, std::uint32_t b) { return a != 0 ? a : b; };
    return {one(given.connections, otherwise.connections),
            one(given.half_open, otherwise.half_open), one(given.per_second, otherwise.per_second)};
}

session::SessionOptions session_options(const config::Config& config) {
    session::SessionOptions options;
    options.ipv4_capacity = config.sessions.capacity;
    options.ipv6_capacity = config.sessions.ipv6_capacity;
    options.ports.blocks = config.sessions.nat_blocks;
    // The fuller an address is, the fewer of them take all blocks: at 16 each it is these.
    options.ports.addresses = std::max(options.ports.addresses, options.ports.blocks / 16);
    options.workers = static_cast<unsigned>(config.workers.size());
    options.limits = session::LimitDefaults::of(config.sessions.capacity, options.workers);
    options.limits.vpc = or_else(config.sessions.vpc, options.limits.vpc);
    options.limits.endpoint = or_else(config.sessions.endpoint, options.limits.endpoint);
    // Never blocks after boot; a short read would only leave the default words.
    if (getrandom(options.seed.words.data(), sizeof(options.seed.words), 0) < 0) options.seed = {};
    return options;
}

std::vector<openflow::PortRow> port_rows(std::span<const port::Port> ports) {
    std::vector<openflow::PortRow> rows;
    for (const auto& port : ports) rows.push_back({port.id, port.role});
    return rows;
}

IpAddress broadcast_of(const config::InterfaceAddress& address) {
    const std::uint32_t host_bits = (1U << (128 - address.length)) - 1;
    return IpAddress::v4(be32{address.address.to_v4().host() | host_bits});
}

// Static neighbours are the configuration's: `Ports` does not know them.
policy::OwnAddresses own_addresses(const config::Config& config,
                                   std::span<const port::Port> ports) {
    using Whose = policy::OwnAddresses::Whose;
    policy::OwnAddresses own;
    for (const auto& vtep : config.vteps) own.add(vtep, Whose::gateway, "the gateway's own VTEP");
    for (std::size_t i = 0; i < ports.size(); ++i) {
        const auto& port = ports[i];
        const auto name = fmt::format("port {} ({})", port.id.value,
                                      port.role == Side::uplink ? "uplink" : "underlay");
        for (const auto& address : port.addresses)
            own.add(address.address, Whose::gateway, "the gateway's own address on " + name);
        for (const auto& hop : port.next_hops)
            own.add(hop, Whose::neighbour, "a next hop of " + name);
        for (const auto& neighbour : config.ports[i].neighbours)
            own.add(neighbour.address, Whose::neighbour, "a static neighbour of " + name);
        for (const auto& address : port.addresses) {
            if (address.length >= 127) continue;  // RFC 3021, RFC 6164: both are stations'
            own.add(address.prefix().address, Whose::neighbour, "the network address of " + name);
            if (address.address.is_v4())
                own.add(broadcast_of(address), Whose::neighbour,
                        "the broadcast address of " + name);
        }
    }
    return own;
}

policy::Outside outside(const reachability::Outside& indexes) {
    return {indexes.ipv4, indexes.ipv6, indexes.source};
}

std::vector<IpAddress> vteps(const policy::HostRecord& host) {
    std::vector<IpAddress> result;
    for (const auto& vtep : host.vteps)
        if (!vtep.is_none()) result.push_back(vtep);
    return result;
}

}  // namespace

Tables::Tables(const config::Config& config, std::span<const port::Port> ports,
               const policy::Pipeline& pipeline, neighbour::Time now)
    : qsbr(static_cast<unsigned>(config.workers.size()) + 1),
      sessions(session_options(config), qsbr),
      nat_ports(sessions),
      meters(kMeters, static_cast<unsigned>(config.workers.size())),
      adjacencies(kAdjacencies),
      sources(kSources),
      routes(ports, config.vteps, neighbours, now),
      reachability(adjacencies, sources, qsbr, routes),
      store({.adjacencies = adjacencies,
             .sources = sources,
             .qsbr = qsbr,
             .pipeline = pipeline,
             .outside = outside(reachability.outside()),
             .ports = port_rows(ports),
             .own = own_addresses(config, ports),
             .now = now,
             .vacant = [this](policy::ZoneSlot slot) { return sessions.vacant(slot.value); },
             .nat_ports = &nat_ports}) {
    for (std::size_t i = 0; i < config.ports.size(); ++i)
        for (const auto& pinned : config.ports[i].neighbours)
            neighbours.pin({ports[i].id, pinned.address}, pinned.mac);
    follow_neighbours();
}

Result<std::unique_ptr<Tables>> Tables::create(const config::Config& config,
                                               std::span<const port::Port> ports,
                                               const policy::Pipeline& pipeline,
                                               neighbour::Time now) {
    auto tables = std::unique_ptr<Tables>(new Tables(config, ports, pipeline, now));
    if (!tables->sessions.ok())
        return Error{
            Error::Code::exhausted,
            "no memory for the session tables; lower `capacity` and `ipv6_capacity` or give "
            "the machine more memory",
            "sessions"};
    return tables;
}

Result<reclaim::Qsbr::Token> Tables::commit(const openflow::Changes& changes, state::State* file,
                                            neighbour::Time now) {
    auto prepared = store.prepare(changes, now);
    if (!prepared) return prepared.error();
    // Written before it is visible: a commit that the disk refuses never happened. Dying in
    // between leaves a file that is ahead of what was confirmed, which the controller finds
    // when it compares.
    if (file != nullptr)
        if (auto written = file->write(changes, prepared->next().generation); !written)
            return written.error();
    return store.publish(std::move(*prepared),
                         [&](const policy::Delta& delta) { install(delta, now); });
}

void Tables::install(const policy::Delta& delta, neighbour::Time now) {
    install_meters(delta);
    for (const auto& [before, after] : delta.vpcs) {
        if (after) {
            reachability.put_vpc(after->key.number, after->vni, after->slot);
            if (!before || before->slot != after->slot)
                opened_.push_back({after->key.number, after->slot});
            worker::apply_settings(sessions, after->slot, after->settings);
        } else {
            sessions.zones.close(before->slot.value);
            reachability.remove_vpc(before->key.number);
        }
    }
    for (const auto& [before, after] : delta.subnets) {
        if (after)
            reachability.put_subnet({after->key.subnet, after->key.family, after->mac, after->mtu});
        else
            reachability.remove_subnet(before->key.subnet, before->key.family);
    }
    for (const auto& [before, after] : delta.hosts) {
        if (after)
            reachability.put_host({after->key.number, vteps(*after), after->cookie}, now);
        else
            reachability.remove_host(before->key.number);
    }
    for (const auto& [before, after] : delta.endpoints) {
        if (after)
            reachability.put_place({after->key.vpc, after->key.address, after->subnet, after->host,
                                    after->mac, after->routed, after->bridged});
        else
            reachability.remove_place(before->key.vpc, before->key.address);
    }
    for (const auto& [before, after] : delta.senders) {
        if (before && (!after || before->source != after->source))
            reachability.remove_sender(before->source);
        if (after)
            reachability.put_sender({after->source, after->vpc, after->host, after->key.mac});
    }
    address_changes_.insert(address_changes_.end(), delta.public_addresses.begin(),
                            delta.public_addresses.end());
    reachability.build();
}

void Tables::install_meters(const policy::Delta& delta) {
    for (const auto& [before, after] : delta.meters) {
        if (!after) {
            meters.remove(before->id);
            continue;
        }
        // Full: the store's own limit is the same number, so this cannot fail.
        (void)meters.set(after->id, {std::uint64_t{after->rate_kbps} * 1000,
                                     std::uint64_t{after->burst_kbit} * 1000});
    }
}

void Tables::follow_neighbours() {
    (void)neighbours.take_changes();
    reachability.neighbours_changed();
}

void Tables::reclaim() {
    store.reclaim();
    reachability.reclaim();
}

std::vector<policy::Change<IpAddress>> Tables::take_address_changes() {
    return std::exchange(address_changes_, {});
}
std::vector<Opened> Tables::take_opened() {
    return std::exchange(opened_, {});
}

void Tables::share(worker::Shared& shared) {
    shared.root = &store.root();
    shared.walk = policy::walk;
    shared.zone_of = policy::zone_of;
    shared.sender_of = policy::sender_of;
    shared.adjacencies = &adjacencies;
    shared.sources = &sources;
    shared.changed = store.changed();
    shared.sessions = &sessions;
    shared.meters = &meters;
    shared.qsbr = &qsbr;
}

}  // namespace sluice::control
