// SPDX-License-Identifier: Apache-2.0
// What the walk of a first packet comes to. A plan is a value: `explain` prints it, commit
// turns it into a connection with two flows, a re-walk compares it with what is installed.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "dataplane/policy/adjacency.hpp"
#include "dataplane/wire/drop_reason.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::policy {

enum class Verdict : std::uint8_t {
    drop,     // `reason` says why
    forward,  // as a connection, or (installs == false) this packet alone
    answer,   // the gateway itself replies; nothing is installed
};

// What the gateway replies with. The reply is built by the worker from the packet itself.
enum class Answer : std::uint8_t {
    none,
    arp_reply,         // with `answer_mac` for the target address
    neighbour_advert,  // RFC 4861 section 4.4, likewise
    router_advert,     // reserved
    echo_reply,        // ping to a gateway address
    time_exceeded,     // RFC 792 / RFC 4443, from the gateway address of the source's subnet
    host_unreachable,  // no endpoint behind the destination address
    net_unreachable,   // no route
    admin_prohibited,  // reserved
    packet_too_big,    // with `mtu`
};

inline constexpr std::size_t kMetersPerDirection = 2;

// One direction of the connection, in the direction of the packets it carries.
struct DirectionPlan {
    SourceIndex source;        // who may send them
    AdjacencyIndex adjacency;  // where they go
    std::array<MeterId, kMetersPerDirection> meters{};
};

// The entries that decided, by cookie; 0 where none was asked.
struct Path {
    Cookie source_endpoint;
    Cookie egress_rule;
    Cookie route;
    Cookie source_translation;
    Cookie destination_translation;
    Cookie destination_endpoint;
    Cookie ingress_rule;
    constexpr auto operator<=>(const Path&) const = default;
};

// What commit does with ports of NAT gateways.
struct NatPlan {
    // The source becomes a port of this NAT gateway; `leaves.source` is its address, and
    // `leaves.source_port` the port if the endpoint has it already, else 0.
    NatGatewayId source;
    Cookie cookie;  // of its entry
    bool endpoint_independent = true;
    bool remembers_remote = false;  // address-dependent filtering asks whom the port has talked to
    std::uint32_t ports_per_endpoint = 0;
    std::span<const be32> addresses;  // of the snapshot
    // The destination is what the endpoint has a port of this NAT gateway for.
    NatGatewayId destination;

    [[nodiscard]] explicit operator bool() const { return source || destination; }
};

struct Plan {
    Verdict verdict = Verdict::drop;
    DropReason reason = DropReason::not_ready;
    Cookie decided_by;  // the entry behind a drop, or 0

    // Of the snapshot that was walked.
    Generation generation;
    // Of the VPC whose counters this packet and its connection belong to: the sender's, from
    // the uplink the destination's; 0 while unknown.
    ZoneSlot zone;

    // verdict answer; also the reply owed to the sender of a dropped packet (then the
    // verdict is `drop`, and the reply is rate-limited).
    Answer answer = Answer::none;
    // The gateway address of the sender's subnet, of the packet's family. Filled whenever the
    // sender is known, whatever the verdict: the worker sends time exceeded and packet too big
    // from it. From the uplink none: the port's own address is used.
    IpAddress answer_from;
    MacAddress answer_mac;
    std::uint16_t mtu = 0;

    // verdict forward. Zones are VNIs in session keys: 0 is the outside.
    VpcId source_vpc, destination_vpc;  // 0: the outside
    Vni source_vni, destination_vni;
    EndpointId source, destination;  // 0: the outside
    Tuple arrives;                   // the first packet as it comes, in the source's zone
    Tuple leaves;  // the first packet as it goes, in the destination's zone; replies reverse it
    DirectionPlan forward, reverse;
    NatPlan nat;
    // False: this packet passes but installs no flow.
    bool installs = true;
    // The group whose rule admits it on that side, if what that admitted survives the rule
    // (persist_established); else none.
    GroupId egress_group, ingress_group;
    Path path;
};

// What a walk takes for granted.
enum class WalkMode : std::uint8_t {
    packet,  // nothing: the packet has just arrived
    // Who sends: the packet is a connection's stored first tuple. MAC, VTEP and TTL are not
    // looked at; the sender is the endpoint that has the source address.
    rewalk,
};

// What a connection that is judged anew keeps from when it was admitted.
struct Established {
    // Which group admitted it for good, on that side: as long as that persists, no group need
    // allow it any more. Whatever else the policy says must still hold.
    GroupId egress_group, ingress_group;
    bool asks_groups = true;  // false: whatever they say
    // Its source is a port of a NAT gateway's: this one, as long as that is permitted.
    bool nat_source = false;
    IpAddress source;
    std::uint16_t source_port = 0;
};

class Snapshot;

// Pure. Fills as much of the plan as is known also where the verdict is drop. `established`:
// nullptr for a first packet.
using WalkFunction = Plan (*)(const Snapshot& snapshot, const Packet& packet, WalkMode mode,
                              const Established* established);
// Whom a first packet comes from, before it is walked: the endpoint whose address, MAC and VTEP
// it has (0: none of the VPC), and the VPC that is open under its VNI (0: none).
struct Sender {
    ZoneSlot zone;
    EndpointId endpoint;
};
using SenderFunction = Sender (*)(const Snapshot& snapshot, const Packet& packet);
// The slot of the VPC open under this VNI, or 0.
using ZoneFunction = ZoneSlot (*)(const Snapshot& snapshot, Vni vni);

}  // namespace sluice::policy
