// SPDX-License-Identifier: Apache-2.0
// How many packets and octets each table entry has decided over.
//
// Packets hit connections, not entries; a connection remembers the entries that decided it.
// So an entry's count is that of the connections that ended (told by events) plus a sum over
// the live ones, made again, in steps, when it is asked for and older than a second.
// Threads: the control thread's. Cost: an event, one addition per entry of the path.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "dataplane/session/sessions.hpp"
#include "dataplane/telemetry/connections.hpp"
#include "dataplane/wire/types.hpp"
#include "dataplane/worker/messages.hpp"

namespace sluice::telemetry {

class Attribution {
  public:
    void ended(const worker::ConnectionEvent& event);
    [[nodiscard]] bool fresh(std::uint64_t now) const;
    // One step of summing the live connections anew. True: there are more.
    bool refresh(session::Sessions& sessions, reclaim::Qsbr& qsbr, unsigned reader,
                 std::uint64_t now);
    [[nodiscard]] session::DirectionCount of(Cookie cookie) const;

  private:
    using Sums = std::unordered_map<Cookie, session::DirectionCount>;
    static void add(Sums& sums, const std::array<std::uint64_t, session::kPathLength>& path,
                    const std::array<session::DirectionCount, session::kDirections>& counts);

    Sums ended_, live_, next_;
    ConnectionCursor cursor_;
    std::uint64_t refreshed_ = 0;  // nanoseconds; 0: never
};

}  // namespace sluice::telemetry
