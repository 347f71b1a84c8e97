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

// Where a visit in steps is. Connections that come behind it are not seen.
struct ConnectionCursor {
    Family family = Family::ipv4;
    std::uint32_t next = 0;
};

namespace detail {

template <class Family, class Visit>
bool visit_table(session::SessionTable<Family>& table, session::Tick now, std::uint32_t& next,
                 std::uint32_t& budget, Visit& visit) {
    const std::uint32_t end = table.high_water();
    for (; next < end; ++next) {
        if (budget-- == 0) return ++budget, false;
        const session::ConnectionIndex index{next};
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
        if (!visit(view)) return ++next, false;
    }
    return true;
}

}  // namespace detail

// Looks at `budget` places for a connection, from the cursor on, and calls `visit(view)` for each
// that is live until it returns false. False: there are more.
template <class Visit>
bool visit_connections(session::Sessions& sessions, reclaim::Qsbr& qsbr, unsigned reader,
                       session::Tick now, ConnectionCursor& cursor, std::uint32_t budget,
                       Visit visit) {
    qsbr.online(reader);
    bool ended = true;
    if (cursor.family == Family::ipv4) {
        ended = detail::visit_table(sessions.ipv4, now, cursor.next, budget, visit);
        if (ended) cursor = {Family::ipv6, 0};
    }
    if (ended) ended = detail::visit_table(sessions.ipv6, now, cursor.next, budget, visit);
    qsbr.offline(reader);
    return ended;
}

}  // namespace sluice::telemetry
