// SPDX-License-Identifier: Apache-2.0
// The registers of a walk: what its steps read, and what they add to the plan.
//
// A value on the walking thread's stack. Steps decide with `deny`, `drop`, `answer` and
// `refuse`; the first decision is the packet's.
#pragma once

#include "dataplane/openflow/tables.hpp"
#include "dataplane/policy/plan.hpp"
#include "dataplane/policy/snapshot.hpp"
#include "dataplane/policy/trace.hpp"

namespace sluice::policy {

struct WalkState {
    const Snapshot& snapshot;
    const Packet& packet;
    WalkMode mode;
    const Established* established;  // nullptr: a first packet
    Trace* trace;                    // nullptr: nobody asks

    Plan plan;
    // The packet's addresses and ports as translated so far.
    Tuple tuple;

    // The sender; nullptr on the uplink or while unknown. `source` is an address of the
    // endpoint, not always the one that the packet carries.
    const EndpointRecord* source = nullptr;
    const VpcRecord* source_vpc = nullptr;
    const SubnetRecord* source_subnet = nullptr;
    // The destination's VPC; 0: outside.
    VpcId destination_vpc{};
    const EndpointRecord* destination = nullptr;
    const SubnetRecord* gateway = nullptr;  // the gateway's address that it is sent to
    bool may_leave = false;                 // its source is an address that the internet may see
    openflow::NextHop next_hop = openflow::NextHop::blackhole;
    NatGatewayId nat_gateway{};   // that the route names; 0: none
    bool to_nat_gateway = false;  // the destination is a NAT gateway's address
    bool decided = false;         // the verdict stands
    bool ended = false;           // and no further step runs

    [[nodiscard]] bool from_overlay() const { return packet.side == Side::underlay; }
    [[nodiscard]] Family family() const { return tuple.destination.family(); }

    // Judged: it must not pass. The walk goes on, so that the plan says where it would have
    // gone (a reply to a connection of before a restart is found by that).
    void deny(std::uint8_t table, DropReason reason, Cookie cookie) {
        note(table, Outcome::deny, cookie, reason);
        decide(Verdict::drop, reason, cookie);
    }
    // It cannot go further.
    void drop(std::uint8_t table, DropReason reason, Cookie cookie = {}) {
        note(table, Outcome::drop, cookie, reason);
        decide(Verdict::drop, reason, cookie);
        ended = true;
    }
    // The same, and its sender is told.
    void refuse(std::uint8_t table, DropReason reason, Answer answer, Cookie cookie = {}) {
        if (!decided && from_overlay()) plan.answer = answer;
        drop(table, reason, cookie);
    }
    // The gateway replies itself.
    void answer(std::uint8_t table, Answer answer, const IpAddress& from, const MacAddress& mac,
                Cookie cookie) {
        note(table, Outcome::answer, cookie);
        if (!decided) {
            plan.answer = answer;
            plan.answer_from = from;
            plan.answer_mac = mac;
        }
        decide(Verdict::answer, DropReason::none, cookie);
        ended = true;
    }

    void note(std::uint8_t table, Outcome outcome, Cookie cookie,
              DropReason reason = DropReason::none, const IpAddress& address = {},
              std::uint32_t number = 0) const {
        if (__builtin_expect(trace != nullptr, 0))
            trace->add({table, outcome, reason, cookie, address, number});
    }

  private:
    void decide(Verdict verdict, DropReason reason, Cookie cookie) {
        if (decided) return;
        decided = true;
        plan.verdict = verdict;
        plan.reason = reason;
        plan.decided_by = cookie;
    }
};

}  // namespace sluice::policy
