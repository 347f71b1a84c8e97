// SPDX-License-Identifier: Apache-2.0
// Looks at the live connections, one after another.
//
// Threads: one QSBR reader (the control thread's), online while it looks; workers go on. What
// changes meanwhile is seen before or after its change, never in the middle of a word.
// Cost: one line per flow and connection; 10 million take about a second.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "dataplane/reclaim/qsbr.hpp"
#include "dataplane/session/sessions.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::telemetry {

struct ConnectionView {
    Vni source_vni, destination_vni;  // 0: the outside
    EndpointId source, destination;
    Tuple arrives;  // the first packet as it came
    Tuple leaves;   // ... and as it went
    session::TcpState tcp_state{};
    std::uint64_t age = 0, idle = 0;  // nanoseconds
    std::array<session::DirectionCount, session::kDirections> counts{};
    std::array<std::uint64_t, session::kPathLength> path{};
};

namespace detail {

template <class Family, class Visit>
bool visit_table(session::SessionTable<Family>& table, session::Tick now, Visit& visit) {
    const std::uint32_t end = table.high_water();
    for (std::uint32_t i = 0; i < end; ++i) {
        const session::ConnectionIndex index{i};
        auto& connection = table.connection(index);
        if (connection.life() != session::Life::live) continue;
        const auto& forward = table.flow(session::forward_of(index));
        const auto& reverse = table.flow(session::reverse_of(index));
        ConnectionView view;
        view.source_vni = forward.key.zone();
        view.destination_vni = reverse.key.zone();
        view.source = connection.source;
        view.destination = connection.destination;
        view.arrives = forward.key.tuple();
        // A connection is only made of what can be answered.
        view.leaves = reversed(reverse.key.tuple()).value_or(Tuple{});
        view.tcp_state = connection.tcp_state();
        view.age = session::nanoseconds(now.since(connection.created));
        const session::Tick seen[] = {{forward.state.last_seen.load(std::memory_order_relaxed)},
                                      {reverse.state.last_seen.load(std::memory_order_relaxed)}};
        view.idle = session::nanoseconds(std::min(now.since(seen[0]), now.since(seen[1])));
        view.counts = {session::counted(forward.state, connection, false),
                       session::counted(reverse.state, connection, true)};
        for (std::size_t k = 0; k < session::kPathLength; ++k)
            view.path[k] = connection.path[k].load(std::memory_order_relaxed);
        if (!visit(view)) return false;
    }
    return true;
}

}  // namespace detail

// Calls `visit(view)` for each until it returns false.
template <class Visit>
void visit_connections(session::Sessions& sessions, reclaim::Qsbr& qsbr, unsigned reader,
                       session::Tick now, Visit visit) {
    qsbr.online(reader);
    if (detail::visit_table(sessions.ipv4, now, visit))
        detail::visit_table(sessions.ipv6, now, visit);
    qsbr.offline(reader);
}

}  // namespace sluice::telemetry
