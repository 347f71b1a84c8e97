// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry/attribution.hpp"

#include <utility>

namespace sluice::telemetry {

void Attribution::add(Sums& sums, const std::array<std::uint64_t, session::kPathLength>& path,
                      const std::array<session::DirectionCount, session::kDirections>& counts) {
    for (std::size_t i = 0; i < path.size(); ++i) {
        if (path[i] == 0) continue;
        // One entry may stand at several places of a path; it is counted once.
        bool again = false;
        for (std::size_t k = 0; k < i; ++k) again = again || path[k] == path[i];
        if (again) continue;
        auto& sum = sums[Cookie{path[i]}];
        for (const auto& count : counts) {
            sum.packets += count.packets;
            sum.octets += count.octets;
        }
    }
}

void Attribution::ended(const worker::ConnectionEvent& event) {
    if (event.kind == worker::ConnectionEvent::Kind::ended) add(ended_, event.path, event.counts);
}

bool Attribution::fresh(std::uint64_t now) const {
    constexpr std::uint64_t kFresh = 1'000'000'000;
    return refreshed_ != 0 && now - refreshed_ < kFresh;
}

bool Attribution::refresh(session::Sessions& sessions, reclaim::Qsbr& qsbr, unsigned reader,
                          std::uint64_t now) {
    constexpr std::uint32_t kStep = 16'384;  // some milliseconds
    const bool ended =
        visit_connections(sessions, qsbr, reader, session::Tick::from_nanoseconds(now), cursor_,
                          kStep, [&](const ConnectionView& view) {
                              add(next_, view.path, view.counts);
                              return true;
                          });
    if (!ended) return true;
    live_ = std::exchange(next_, {});
    cursor_ = {};
    refreshed_ = now;
    return false;
}

session::DirectionCount Attribution::of(Cookie cookie) const {
    session::DirectionCount result;
    for (const auto* sums : {&ended_, &live_})
        if (const auto at = sums->find(cookie); at != sums->end()) {
            result.packets += at->second.packets;
            result.octets += at->second.octets;
        }
    return result;
}

}  // namespace sluice::telemetry
