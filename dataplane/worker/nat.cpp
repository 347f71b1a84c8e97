// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/nat.hpp"

#include <bit>

#include "dataplane/worker/nat_ports.hpp"

namespace sluice::worker {

namespace {

using session::NatPort;
using session::PortTable;

// A port of an address, of a protocol that the walk has let through.
NatPort port_of(std::uint8_t protocol, const IpAddress& address, std::uint16_t port) {
    return {session::port_space(protocol).value_or(session::PortSpace::tcp),
            {address.to_v4(), port}};
}

// As exactly as the log can say it: a tick is too coarse.
void tell(Worker::State& state, session::BlockEvent event) {
    event.time = state.now;
    state.blocks.push(event);
}

}  // namespace

DropReason PortClaim::hold() {
    if (!plan_.nat.destination) return DropReason::none;
    const Tuple& arrives = plan_.arrives;
    destination_ = port_of(arrives.protocol, arrives.destination, arrives.destination_port);
    held_ = state_.shared.sessions->ports.hold(
        destination_, {{plan_.nat.destination, plan_.destination},
                       {plan_.leaves.destination.to_v4(), plan_.leaves.destination_port}});
    return held_ ? DropReason::none : DropReason::nat_unmapped;
}

// Among the used ports of one block, the first that has no connection to this destination.
PortTable::Taken PortClaim::take_used(const session::PortRequest& request, Tuple leaves) {
    session::Sessions& sessions = *state_.shared.sessions;
    const auto used = sessions.ports.used(request, source_.at.address, random_, state_.tick);
    for (std::uint64_t left = used.bits; left != 0; left &= left - 1) {
        leaves.source_port =
            static_cast<std::uint16_t>(used.first + static_cast<unsigned>(std::countr_zero(left)));
        const auto replies = reversed(leaves);
        if (!replies) break;
        const auto key = session::KeyIpv4::of(plan_.destination_vni, *replies);
        if (sessions.ipv4.find(key, sessions.ipv4.hash(key)) == session::kNoFlow)
            return sessions.ports.take_used(request, {source_.at.address, leaves.source_port},
                                            state_.tick);
    }
    PortTable::Taken none;
    none.reason = DropReason::nat_endpoint_ports;
    return none;
}

DropReason PortClaim::take(Tuple& leaves, unsigned attempt) {
    const policy::NatPlan& nat = plan_.nat;
    if (!nat.source) return DropReason::none;
    if (attempt == 0) random_ = state_.next_random();
    session::Sessions& sessions = *state_.shared.sessions;
    const Tuple& arrives = plan_.arrives;
    source_ = port_of(arrives.protocol, leaves.source, 0);
    const session::PortRequest request{.owner = {nat.source, plan_.source},
                                       .space = source_.space,
                                       .inside = {arrives.source.to_v4(), arrives.source_port},
                                       .endpoint_independent = nat.endpoint_independent,
                                       .ports_per_endpoint = nat.ports_per_endpoint,
                                       .addresses = nat.addresses,
                                       .zone = plan_.zone.value};
    // The mapping's. Or one that nobody uses, else any used one; then a used one that is without a
    // connection to this destination; then one of a new block.
    const auto want = has_others() && attempt > 1 ? PortTable::Want::fresh : PortTable::Want::any;
    const auto taken =
        has_others() && attempt == 1
            ? take_used(request, leaves)
            : sessions.ports.take(request, source_.at.address, want, random_, state_.tick);
    if (taken.assigned) tell(state_, *taken.assigned);
    if (taken.reason != DropReason::none) return taken.reason;
    source_.at.port = leaves.source_port = taken.port;
    if (nat.remembers_remote &&
        !sessions.remotes.add(sessions.ports.number(source_), arrives.destination.to_v4())) {
        sessions.ports.undo(source_, state_.tick);
        return DropReason::session_table_full;
    }
    taken_ = true;
    return DropReason::none;
}

void PortClaim::give_back() {
    if (!taken_) return;
    taken_ = false;
    session::Sessions& sessions = *state_.shared.sessions;
    if (plan_.nat.remembers_remote)
        sessions.remotes.remove(sessions.ports.number(source_), plan_.arrives.destination.to_v4());
    sessions.ports.undo(source_, state_.tick);
}

void PortClaim::undo() {
    give_back();
    if (held_) state_.shared.sessions->ports.undo(destination_, state_.tick);
    held_ = false;
}

std::uint32_t PortClaim::flags() const {
    const policy::NatPlan& nat = plan_.nat;
    return (nat.source ? session::kNatSource : 0U) |
           (nat.source && nat.remembers_remote ? session::kNatRemote : 0U) |
           (nat.destination ? session::kNatDestination : 0U);
}

void release_ports(Worker::State& state, std::uint32_t flags, const Tuple& arrives,
                   const Tuple& leaves, session::Tick last_seen) {
    session::Sessions& sessions = *state.shared.sessions;
    if ((flags & session::kNatSource) != 0) {
        const NatPort port = port_of(arrives.protocol, leaves.source, leaves.source_port);
        if ((flags & session::kNatRemote) != 0)
            sessions.remotes.remove(sessions.ports.number(port), arrives.destination.to_v4());
        sessions.ports.release(port, last_seen, state.tick);
    }
    if ((flags & session::kNatDestination) != 0)
        sessions.ports.release(
            port_of(arrives.protocol, arrives.destination, arrives.destination_port), last_seen,
            state.tick);
}

void expire_ports(Worker::State& state) {
    // All blocks are looked at once in so many ticks (two seconds).
    constexpr std::uint32_t kRound = 32;
    PortTable& ports = state.shared.sessions->ports;
    ports.advance(state.tick);
    const std::uint32_t end = ports.high_water();
    if (end <= 1) return;
    const std::uint32_t share = end / (state.shared.workers * kRound) + 1;
    std::array<session::BlockEvent, 16> released;
    const std::size_t count =
        ports.expire(state.block_cursor, state.shared.workers, share, state.tick, released);
    for (std::size_t i = 0; i < count; ++i) tell(state, released[i]);
}

policy::NatPorts::Choice NatPorts::choose(const policy::NatRequest& request) const {
    const auto choice = sessions_.ports.choose(
        {.owner = {request.gateway, request.endpoint},
         .space = session::port_space(request.protocol).value_or(session::PortSpace::tcp),
         .inside = {request.inside.to_v4(), request.port},
         .endpoint_independent = request.endpoint_independent,
         .ports_per_endpoint = request.ports_per_endpoint,
         .addresses = request.addresses,
         .zone = request.zone.value},
        sessions_.ports.now());
    return {choice.reason, IpAddress::v4(choice.address), choice.port};
}

std::optional<policy::NatPorts::Mapping> NatPorts::find(std::uint8_t protocol,
                                                        const IpAddress& address,
                                                        std::uint16_t port) const {
    if (!session::port_space(protocol)) return std::nullopt;
    const auto mapping = sessions_.ports.find(port_of(protocol, address, port));
    if (!mapping) return std::nullopt;
    return Mapping{mapping->owner.gateway, mapping->owner.endpoint,
                   IpAddress::v4(mapping->inside.address), mapping->inside.port};
}

bool NatPorts::admits(std::uint8_t protocol, const IpAddress& address, std::uint16_t port,
                      const IpAddress& remote) const {
    const std::uint32_t number = sessions_.ports.number(port_of(protocol, address, port));
    return number != 0 && sessions_.remotes.has(number, remote.to_v4());
}

}  // namespace sluice::worker
