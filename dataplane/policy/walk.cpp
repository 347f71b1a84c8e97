// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/walk.hpp"

#include "dataplane/policy/function.hpp"
#include "dataplane/wire/special_address.hpp"

namespace sluice::policy {
namespace {

using openflow::NextHop;

void run(WalkState& walk, Stage stage) {
    for (const Pipeline::BoundStep& step : walk.snapshot.pipeline->steps(stage)) {
        if (walk.ended) return;
        step.run(*walk.snapshot.functions[step.function], walk);
    }
}

void enter_vpc(WalkState& walk) {
    const VniRecord* vni = walk.snapshot.core.vnis.find(walk.packet.vni);
    if (vni == nullptr) return walk.drop(openflow::kVni, DropReason::unknown_vni);
    walk.note(openflow::kVni, Outcome::match, vni->vpc.cookie, DropReason::none, {},
              vni->vpc.vni.value);
    walk.source_vpc = &vni->vpc;
    walk.plan.source_vpc = vni->vpc.key.number;
    walk.plan.source_vni = vni->vpc.vni;
    walk.plan.zone = vni->vpc.slot;
}

// What is known with the sender: its subnet, and whom the gateway answers as.
void know_sender(WalkState& walk) {
    // No function that is linked knows senders: then nobody is one.
    if (walk.source == nullptr) return walk.drop(openflow::kSource, DropReason::unknown_source);
    const EndpointRecord& source = *walk.source;
    walk.plan.source = source.endpoint;
    walk.plan.path.source_endpoint = source.cookie;
    walk.source_subnet =
        walk.snapshot.core.subnets.find({source.subnet, walk.packet.tuple.destination.family()});
    if (walk.source_subnet == nullptr) return walk.drop(openflow::kLocal, DropReason::no_route);
    walk.plan.answer_from = walk.source_subnet->gateway;
}

void route(WalkState& walk) {
    const Core& core = walk.snapshot.core;
    const RouteTableRecord* table = core.route_tables.find(walk.source_subnet->route_table);
    const openflow::RouteRow* row =
        table == nullptr ? nullptr : table->routes->find(walk.tuple.destination);
    if (row == nullptr)
        return walk.refuse(openflow::kRoute, DropReason::no_route, Answer::net_unreachable);
    walk.note(openflow::kRoute, Outcome::match, row->cookie, DropReason::none, {},
              static_cast<std::uint32_t>(row->next_hop));
    walk.plan.path.route = row->cookie;
    walk.next_hop = row->next_hop;
    switch (row->next_hop) {
        case NextHop::local:
            walk.destination_vpc = walk.plan.source_vpc;
            return;
        case NextHop::internet:
            return;
        case NextHop::nat_gateway:
            walk.nat_gateway = row->nat_gateway;
            return;
        case NextHop::endpoint:
            walk.destination_vpc = walk.plan.source_vpc;
            walk.destination = core.endpoint(row->endpoint, walk.family());
            if (walk.destination != nullptr) return;
            [[fallthrough]];  // a next hop that is gone leads nowhere
        case NextHop::blackhole:
            break;
    }
    walk.drop(openflow::kRoute, DropReason::route_blackhole, row->cookie);
}

// Inside a subnet the frame is passed on as it is; any other is for the gateway's MAC alone.
bool destination_mac_fits(const WalkState& walk, bool bridged) {
    if (!walk.from_overlay() || walk.mode == WalkMode::rewalk) return true;
    const MacAddress& mac = walk.packet.destination_mac;
    return mac == walk.source_subnet->mac || (bridged && mac == walk.destination->mac);
}

void endpoint(WalkState& walk) {
    const Core& core = walk.snapshot.core;
    Plan& plan = walk.plan;
    if (walk.destination == nullptr)
        walk.destination = core.endpoints.find({walk.destination_vpc, walk.tuple.destination});
    const VpcRecord* vpc = walk.destination_vpc == plan.source_vpc
                               ? walk.source_vpc
                               : core.vpcs.find(walk.destination_vpc);
    if (walk.destination == nullptr || vpc == nullptr)
        return walk.refuse(openflow::kEndpoint, DropReason::unknown_destination,
                           Answer::host_unreachable);
    const EndpointRecord& destination = *walk.destination;
    walk.note(openflow::kEndpoint, Outcome::match, destination.cookie);

    plan.destination_vpc = walk.destination_vpc;
    plan.destination_vni = vpc->vni;
    plan.destination = destination.endpoint;
    plan.path.destination_endpoint = destination.cookie;
    if (!walk.from_overlay()) plan.zone = vpc->slot;

    const bool bridged =
        walk.next_hop == NextHop::local && walk.source->subnet == destination.subnet;
    plan.forward.adjacency = bridged ? destination.bridged : destination.routed;
    if (walk.source != nullptr)
        plan.reverse.adjacency = bridged ? walk.source->bridged : walk.source->routed;
    else
        plan.reverse.adjacency =
            walk.family() == Family::ipv4 ? walk.snapshot.outside.ipv4 : walk.snapshot.outside.ipv6;
    if (!destination_mac_fits(walk, bridged))
        walk.drop(openflow::kEndpoint, DropReason::inner_wrong_mac);
}

void leave(WalkState& walk) {
    if (!walk.may_leave)  // whatever functions there are: no address goes out by default
        return walk.drop(openflow::kRoute, DropReason::private_on_uplink);
    // Beyond the uplink it would be lost, or would reach a machine of the provider's own networks.
    if (!wire::is_internet(walk.tuple.destination))
        return walk.refuse(openflow::kRoute, DropReason::private_destination,
                           Answer::net_unreachable, walk.plan.path.route);
    const Outside& outside = walk.snapshot.outside;
    walk.plan.forward.adjacency = walk.family() == Family::ipv4 ? outside.ipv4 : outside.ipv6;
    walk.plan.reverse.source = outside.source;
    walk.plan.reverse.adjacency = walk.source->routed;
    if (!destination_mac_fits(walk, false))
        walk.drop(openflow::kRoute, DropReason::inner_wrong_mac);
}

// From the packet's VPC to where its destination is known to be.
void cross_overlay(WalkState& walk) {
    enter_vpc(walk);
    if (!walk.ended) run(walk, Stage::source);
    if (!walk.ended) know_sender(walk);
    if (!walk.ended) run(walk, Stage::local);
    if (!walk.ended) run(walk, Stage::egress);
    if (walk.ended) return;
    if (walk.gateway != nullptr) {
        run(walk, Stage::delivered);
        walk.ended = true;
        return;
    }
    route(walk);
    if (walk.ended || (walk.next_hop != NextHop::internet && walk.next_hop != NextHop::nat_gateway))
        return;
    run(walk, Stage::source_translation);
    if (!walk.ended) run(walk, Stage::destination_translation);
}

void arrive(WalkState& walk) {
    if (walk.destination_vpc == kOutside) return leave(walk);
    endpoint(walk);
    if (!walk.ended) run(walk, Stage::reply);
    if (!walk.ended) run(walk, Stage::ingress);
}

Plan traverse(const Snapshot& snapshot, const Packet& packet, WalkMode mode,
              const Established* established, Trace* trace) {
    WalkState walk{.snapshot = snapshot,
                   .packet = packet,
                   .mode = mode,
                   .established = established,
                   .trace = trace,
                   .plan = {},
                   .tuple = packet.tuple};
    walk.plan.generation = snapshot.generation;
    walk.plan.arrives = packet.tuple;
    if (packet.side == Side::underlay) {
        cross_overlay(walk);
    } else {
        walk.plan.forward.source = snapshot.outside.source;
        run(walk, Stage::destination_translation);
    }
    if (!walk.ended) arrive(walk);
    if (!walk.ended) run(walk, Stage::limit);
    if (!walk.decided) {
        walk.plan.verdict = Verdict::forward;
        walk.plan.reason = DropReason::none;
    }
    walk.plan.leaves = walk.tuple;
    return walk.plan;
}

}  // namespace

Plan walk(const Snapshot& snapshot, const Packet& packet, WalkMode mode,
          const Established* established) {
    return traverse(snapshot, packet, mode, established, nullptr);
}

Plan walk(const Snapshot& snapshot, const Packet& packet, WalkMode mode, Trace& trace) {
    return traverse(snapshot, packet, mode, nullptr, &trace);
}

Standing standing(const Installed& installed, const Plan& rewalked) {
    if (rewalked.verdict != Verdict::forward) return Standing::denied;
    // The worker may have chosen another source port where the plan's was taken.
    Tuple leaves = rewalked.leaves;
    leaves.source_port = installed.leaves.source_port;
    const bool same = rewalked.source_vni == installed.source_vni &&
                      rewalked.destination_vni == installed.destination_vni &&
                      rewalked.source == installed.source &&
                      rewalked.destination == installed.destination &&
                      rewalked.arrives == installed.arrives && leaves == installed.leaves;
    return same ? Standing::permitted : Standing::replaced;
}

}  // namespace sluice::policy
