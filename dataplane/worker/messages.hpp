// SPDX-License-Identifier: Apache-2.0
// What a worker tells the control thread. Plain values that travel through bounded rings.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/policy/plan.hpp"
#include "dataplane/session/connection.hpp"
#include "dataplane/wire/drop_reason.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::worker {

// Somebody on a port's own link has this address: from ARP (RFC 826) requests and replies and
// from neighbour solicitations and adverts (RFC 4861). A hint: the receiver decides whether
// it asked for it.
struct NeighbourMessage {
    PortId port;
    IpAddress address;
    MacAddress mac;
    bool solicited = false;  // an ARP reply or an advert, rather than somebody's question
};

enum class EndReason : std::uint8_t {
    idle,            // longer than its protocol's timeout
    policy_changed,  // no longer allowed, or its key or translation no longer permitted
    reopened,        // its key was opened anew after it had closed
    evicted,         // unanswered or closed, and its room was needed
};

struct ConnectionEvent {
    enum class Kind : std::uint8_t { created, changed, ended };
    Kind kind = Kind::created;
    EndReason reason = EndReason::idle;         // kind ended
    DropReason drop_reason = DropReason::none;  // reason policy_changed: what the walk said
    bool from_uplink = false;
    Vni source_vni, destination_vni;  // 0: the outside
    EndpointId source, destination;
    Tuple arrives;  // the first packet, as it came
    Tuple leaves;   // ... and as it went
    std::array<session::DirectionCount, session::kDirections> counts{};  // kind ended
    std::array<std::uint64_t, session::kPathLength> path{};              // as policy::Path
    std::uint64_t time = 0;  // nanoseconds, the worker's clock
};

// One packet of those that were dropped: a bounded sample beside the exact counters.
struct DropSample {
    DropReason reason = DropReason::none;
    policy::ZoneSlot zone;
    Vni vni;
    Side side = Side::underlay;
    PortId port;
    IpAddress vtep;
    MacAddress source_mac;
    Tuple tuple;        // zero where the packet has none
    Cookie decided_by;  // the entry, or 0
    EndpointId source, destination;
    IpAddress translated;  // where an elastic address led to, or none
    std::uint64_t time = 0;
};

}  // namespace sluice::worker
