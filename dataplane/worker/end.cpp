// SPDX-License-Identifier: Apache-2.0
// The end of a connection, and what is told of its life.
#include "dataplane/worker/batch.hpp"
#include "dataplane/worker/nat.hpp"
#include "dataplane/worker/stages.hpp"

namespace sluice::worker {

void tell(Worker::State& state, const ConnectionEvent& event) {
    state.events.push(event);
}

template <class Family>
ConnectionEvent describe(Worker::State& state, session::ConnectionIndex number) {
    auto& sessions = table<Family>(state);
    const auto& connection = sessions.connection(number);
    const auto& forward = sessions.flow(session::forward_of(number));
    const auto& reverse = sessions.flow(session::reverse_of(number));
    ConnectionEvent event;
    event.source_vni = forward.key.zone();
    event.destination_vni = reverse.key.zone();
    event.from_uplink = event.source_vni.value == 0;
    event.source = connection.source;
    event.destination = connection.destination;
    event.arrives = forward.key.tuple();
    event.leaves = reversed(reverse.key.tuple()).value_or(Tuple{});
    event.counts = {session::counted(forward.state, connection, false),
                    session::counted(reverse.state, connection, true)};
    for (std::size_t i = 0; i < session::kPathLength; ++i)
        event.path[i] = connection.path[i].load(std::memory_order_relaxed);
    event.time = state.now;
    return event;
}

namespace {
template <class Family>
session::Tick last_seen(Worker::State& state, session::ConnectionIndex number) {
    const auto seen = [&](session::FlowIndex flow) {
        return session::Tick{
            table<Family>(state).flow(flow).state.last_seen.load(std::memory_order_relaxed)};
    };
    const session::Tick one = seen(session::forward_of(number));
    const session::Tick other = seen(session::reverse_of(number));
    return one.since(other) > 0 ? one : other;
}
}  // namespace

template <class Family>
bool end_connection(Worker::State& state, session::ConnectionIndex number, EndReason reason,
                    DropReason drop_reason) {
    auto& sessions = table<Family>(state);
    const std::uint32_t before = sessions.end(state.options.index, number);
    if (before == 0) return false;
    // It rests until the next quiescent state: still readable.
    state.shared.sessions->limits.release(claim_of<Family>(sessions.connection(number), before),
                                          (before & session::kEndpointCounts) != 0);
    state.counters.zone[sessions.connection(number).zone_slot].connections_ended.add(1);
    ConnectionEvent event = describe<Family>(state, number);
    if ((before & (session::kNatSource | session::kNatDestination)) != 0)
        release_ports(state, before, event.arrives, event.leaves, last_seen<Family>(state, number));
    event.kind = ConnectionEvent::Kind::ended;
    event.reason = reason;
    event.drop_reason = drop_reason;
    tell(state, event);
    return true;
}

template ConnectionEvent describe<session::Ipv4>(Worker::State&, session::ConnectionIndex);
template ConnectionEvent describe<session::Ipv6>(Worker::State&, session::ConnectionIndex);
template bool end_connection<session::Ipv4>(Worker::State&, session::ConnectionIndex, EndReason,
                                            DropReason);
template bool end_connection<session::Ipv6>(Worker::State&, session::ConnectionIndex, EndReason,
                                            DropReason);

}  // namespace sluice::worker
