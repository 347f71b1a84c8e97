// SPDX-License-Identifier: Apache-2.0
// Lets the oracle ask the product: a JSON text a line in, one out.
//   {"op": "reset"}                                    a cloud without anything
//   {"op": "apply", "changes": [{kind, id, spec}]}     desired state, spec null: removed
//       → {"unmarked": [...]}: connections of before that the change concerns, but whose
//       zones it did not mark, so that no worker would judge them again
//   {"op": "walk", "packets": [...]}                   → {"plans": [...]}
// An answer with "error" tells what part of the product refused and why.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "dataplane/policy/store.hpp"
#include "dataplane/policy/walk.hpp"
#include "tests/oracle/cloud.hpp"
#include "tests/oracle/serve.hpp"

namespace sluice::oracle {
namespace {

namespace json = boost::json;
using openflow::EntryKey;

IpAddress address(const json::value& text) {
    if (text.is_null()) return {};
    return parse_ip(text.as_string()).value();
}

// A policy without packets: no records of reachability, and nobody walks while it changes.
class PolicyTables final : public Tables {
  public:
    PolicyTables() {
        static const openflow::PortRow ports[] = {{PortId{1}, Side::underlay},
                                                  {PortId{2}, Side::uplink}};
        store_ = std::make_unique<policy::Store>(policy::Store::Options{
            .adjacencies = adjacencies_,
            .sources = sources_,
            .qsbr = qsbr_,
            .pipeline = pipeline_,
            .outside = {adjacencies_.allocate(), adjacencies_.allocate(), sources_.allocate()},
            .ports = ports,
            .zone_capacity = 64});
    }
    std::vector<policy::ZoneSlot> commit(const openflow::Changes& changes) override {
        auto prepared = store_->prepare(changes);
        if (!prepared) throw std::runtime_error(text_of(prepared.error()));
        std::vector<policy::ZoneSlot> zones(prepared->zones().begin(), prepared->zones().end());
        (void)store_->publish(*std::move(prepared), [](const policy::Delta&) {});
        store_->reclaim();
        return zones;
    }
    [[nodiscard]] const policy::Snapshot& current() const { return store_->current(); }

  private:
    policy::AdjacencyTable adjacencies_{1024};
    policy::SourceTable sources_{1024};
    reclaim::Qsbr qsbr_{1};
    policy::Pipeline pipeline_{network_functions()};
    std::unique_ptr<policy::Store> store_;
};

Packet packet_of(const json::value& json, const Cloud& cloud) {
    Packet packet;
    const bool uplink = json.at("side").as_string() == "uplink";
    packet.side = uplink ? Side::uplink : Side::underlay;
    packet.port = PortId{uplink ? 2U : 1U};
    packet.vni = Vni{json.at("vni").to_number<std::uint32_t>()};
    packet.vtep = address(json.at("vtep"));
    packet.tuple.source = address(json.at("source"));
    packet.tuple.destination = address(json.at("destination"));
    packet.tuple.protocol = json.at("protocol").to_number<std::uint8_t>();
    packet.tuple.source_port = json.at("source_port").to_number<std::uint16_t>();
    packet.tuple.destination_port = json.at("destination_port").to_number<std::uint16_t>();
    packet.kind = packet.tuple.source.is_v4() ? EtherKind::ipv4 : EtherKind::ipv6;
    packet.source_mac = parse_mac(json.at("source_mac").as_string()).value();
    if (const auto& mac = json.at("destination_mac"); !mac.is_null())
        packet.destination_mac = parse_mac(mac.as_string()).value();
    else if (!uplink)
        packet.destination_mac = cloud.gateway_mac(std::string(json.at("subnet_id").as_string()));
    packet.ttl = 64;
    if (packet.tuple.protocol == 6) packet.tcp_flags = 0x02;  // SYN
    if (packet.tuple.protocol == 1 || packet.tuple.protocol == 58) {
        packet.icmp_type = static_cast<std::uint8_t>(packet.tuple.destination_port >> 8);
        packet.icmp_code = static_cast<std::uint8_t>(packet.tuple.destination_port);
    }
    packet.dont_fragment = true;
    packet.ip_length = 100;
    return packet;
}

json::array meters(const policy::DirectionPlan& direction, const Cloud& cloud) {
    json::array result;
    for (const auto meter : direction.meters)
        if (meter) result.push_back(cloud.meter_of(meter));
    return result;
}

const char* word(policy::Verdict verdict) {
    switch (verdict) {
        case policy::Verdict::drop:
            return "drop";
        case policy::Verdict::forward:
            return "forward";
        case policy::Verdict::answer:
            return "answer";
    }
    return "";
}

json::object describe(const policy::Plan& plan, const Cloud& cloud,
                      const policy::Snapshot& policy) {
    json::object result{
        {"verdict", word(plan.verdict)},
        {"reason", label(plan.verdict == policy::Verdict::drop ? plan.reason : DropReason::none)},
        {"decided_by", cloud.id_of(plan.decided_by.value)},
        {"egress_rule", cloud.id_of(plan.path.egress_rule.value)},
        {"ingress_rule", cloud.id_of(plan.path.ingress_rule.value)}};
    if (plan.verdict != policy::Verdict::forward) return result;
    result["leaves"] =
        json::array{to_string(plan.leaves.source), to_string(plan.leaves.destination),
                    plan.leaves.protocol, plan.leaves.source_port, plan.leaves.destination_port};
    result["destination_vni"] = plan.destination_vni.value;
    result["destination"] = cloud.id_of(plan.destination.value);
    result["meters"] = meters(plan.forward, cloud);
    result["reply_meters"] = meters(plan.reverse, cloud);
    result["bridged"] = false;
    const auto& core = policy.core;
    if (const auto* endpoint = core.endpoint(plan.destination, plan.leaves.destination.family())) {
        result["bridged"] = plan.forward.adjacency == endpoint->bridged;
        result["inner_destination_mac"] = to_string(endpoint->mac);
        const auto* host = core.hosts.find(endpoint->host);
        result["vtep"] = host ? json::value(to_string(host->vteps[0])) : json::value(nullptr);
    }
    return result;
}

// A connection as a worker would hold it.
struct Connection {
    Packet packet;
    policy::Plan plan;
    policy::ZoneSlot source, destination;
};

bool same_words(const policy::DirectionPlan& a, const policy::DirectionPlan& b) {
    return a.source == b.source && a.adjacency == b.adjacency && a.meters == b.meters;
}

bool same_words(const policy::Plan& a, const policy::Plan& b) {
    return b.verdict == policy::Verdict::forward && a.source == b.source &&
           a.destination == b.destination && a.source_vni == b.source_vni &&
           a.destination_vni == b.destination_vni && a.leaves == b.leaves &&
           same_words(a.forward, b.forward) && same_words(a.reverse, b.reverse);
}

class Oracle {
  public:
    json::object answer(const json::value& request);

  private:
    json::array apply(const json::array& changes);
    json::array walk(const json::array& packets);

    [[nodiscard]] json::object described(const policy::Plan& plan) const {
        return describe(plan, *cloud_, tables_->current());
    }

    std::unique_ptr<PolicyTables> tables_ = std::make_unique<PolicyTables>();
    std::unique_ptr<Cloud> cloud_ = std::make_unique<Cloud>(*tables_);
    std::vector<Connection> connections_;
};

json::array Oracle::apply(const json::array& changes) {
    const auto zones = cloud_->apply(changes);
    const auto marked = [&](policy::ZoneSlot zone) {
        return std::find(zones.begin(), zones.end(), zone) != zones.end();
    };
    json::array unmarked;
    for (const Connection& one : connections_) {
        const auto again = policy::walk(tables_->current(), one.packet, policy::WalkMode::rewalk);
        if (!same_words(one.plan, again) && !marked(one.source) && !marked(one.destination))
            unmarked.push_back(
                json::object{{"before", described(one.plan)}, {"now", described(again)}});
    }
    connections_.clear();
    return unmarked;
}

json::array Oracle::walk(const json::array& packets) {
    const auto& policy = tables_->current();
    json::array plans;
    for (const auto& json : packets) {
        const Packet packet = packet_of(json, *cloud_);
        const auto plan = policy::walk(policy, packet, policy::WalkMode::packet);
        plans.push_back(described(plan));
        if (plan.verdict == policy::Verdict::forward)
            connections_.push_back({packet, plan, policy::zone_of(policy, plan.source_vni),
                                    policy::zone_of(policy, plan.destination_vni)});
    }
    return plans;
}

json::object Oracle::answer(const json::value& request) {
    const auto& operation = request.at("op").as_string();
    if (operation == "apply") return {{"unmarked", apply(request.at("changes").as_array())}};
    if (operation == "walk") return {{"plans", walk(request.at("packets").as_array())}};
    tables_ = std::make_unique<PolicyTables>();
    cloud_ = std::make_unique<Cloud>(*tables_);
    connections_.clear();
    return {};
}

}  // namespace
}  // namespace sluice::oracle

int main() {
    sluice::oracle::Oracle oracle;
    sluice::oracle::serve([&](const auto& request) { return oracle.answer(request); });
    return 0;
}
