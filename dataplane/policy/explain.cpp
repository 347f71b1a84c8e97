// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/explain.hpp"

#include <boost/json.hpp>

#include "dataplane/policy/function.hpp"
#include "dataplane/policy/walk.hpp"

namespace sluice::policy {
namespace {

namespace json = boost::json;

json::string text(std::string_view value) {
    return json::string(value.data(), value.size());
}

// Reads members of the request, and remembers the first that is wrong.
class Request {
  public:
    explicit Request(const json::object& object) : object_(object) {}

    std::uint64_t number(std::string_view name, std::uint64_t maximum, bool required = false) {
        const json::value* value = object_.if_contains(name);
        if (value == nullptr) {
            if (required) fail(name, "is missing");
            return 0;
        }
        std::error_code error;
        const auto result = value->is_number() ? value->to_number<std::uint64_t>(error) : 0;
        if (!value->is_number() || error || result > maximum)
            fail(name, "must be a number up to " + std::to_string(maximum));
        return result;
    }
    IpAddress address(std::string_view name) {
        const json::value* value = object_.if_contains(name);
        const auto result =
            value != nullptr && value->is_string()
                ? parse_ip(std::string_view(value->get_string().data(), value->get_string().size()))
                : std::nullopt;
        if (!result) fail(name, "must be an IP address");
        return result.value_or(IpAddress{});
    }
    void fail(std::string_view name, std::string_view what) {
        if (!error_)
            error_ = Error{Error::Code::invalid, std::string(name) + " " + std::string(what),
                           "/" + std::string(name)};
    }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  private:
    const json::object& object_;
    std::optional<Error> error_;
};

Packet packet_of(const Snapshot& snapshot, Request& request) {
    Packet packet;
    const VpcId vpc{static_cast<std::uint32_t>(request.number("source_vpc", ~0U, true))};
    packet.side = vpc == kOutside ? Side::uplink : Side::underlay;
    if (const VpcRecord* record = snapshot.core.vpcs.find(vpc)) packet.vni = record->vni;
    Tuple& tuple = packet.tuple;
    tuple.source = request.address("source");
    tuple.destination = request.address("destination");
    if (tuple.source.family() != tuple.destination.family())
        request.fail("destination", "must be of the source's family");
    tuple.protocol = static_cast<std::uint8_t>(request.number("protocol", 255, true));
    packet.kind = tuple.source.is_v4() ? EtherKind::ipv4 : EtherKind::ipv6;
    packet.ttl = 64;

    const auto icmp =
        static_cast<std::uint8_t>(tuple.source.is_v4() ? Protocol::icmp : Protocol::icmpv6);
    tuple.source_port = static_cast<std::uint16_t>(request.number("source_port", 65535));
    tuple.destination_port = static_cast<std::uint16_t>(request.number("destination_port", 65535));
    packet.icmp_type = static_cast<std::uint8_t>(request.number("icmp_type", 255));
    packet.icmp_code = static_cast<std::uint8_t>(request.number("icmp_code", 255));
    if (tuple.protocol == icmp)
        tuple.destination_port =
            static_cast<std::uint16_t>(packet.icmp_type << 8 | packet.icmp_code);
    return packet;
}

std::string_view word(Verdict verdict) {
    switch (verdict) {
        case Verdict::drop:
            return "drop";
        case Verdict::forward:
            return "forward";
        case Verdict::answer:
            return "answer";
    }
    return "drop";
}

std::string_view word(Outcome outcome) {
    switch (outcome) {
        case Outcome::match:
            return "match";
        case Outcome::no_match:
            return "no match";
        case Outcome::allow:
            return "allow";
        case Outcome::deny:
            return "deny";
        case Outcome::translate:
            return "translate";
        case Outcome::answer:
            return "answer";
        case Outcome::drop:
            return "drop";
    }
    return "drop";
}

std::string_view next_hop_detail(std::uint32_t next_hop) {
    switch (static_cast<openflow::NextHop>(next_hop)) {
        case openflow::NextHop::local:
            return "the destination is inside the VPC";
        case openflow::NextHop::internet:
            return "the next hop is the internet";
        case openflow::NextHop::endpoint:
            return "the next hop is an endpoint";
        case openflow::NextHop::nat_gateway:
            return "the next hop is a NAT gateway";
        case openflow::NextHop::blackhole:
            return "the route is a blackhole";
    }
    return "";
}

std::string detail(const TraceStep& step) {
    if (step.reason != DropReason::none) return std::string(sentence(step.reason));
    if (step.outcome == Outcome::answer) return "the gateway answers it itself";
    switch (step.table) {
        case openflow::kVni:
            return "the VPC is open under VNI " + std::to_string(step.number);
        case openflow::kSource:
            return "the sender may use this address";
        case openflow::kLocal:
            return "the destination is a gateway address";
        case openflow::kEgressRule:
            return "an egress rule of the source's groups allows it";
        case openflow::kRoute:
            return std::string(next_hop_detail(step.number));
        case openflow::kElasticIp:
            return "the source becomes " + to_string(step.address);
        case openflow::kNatGateway:
            return "the source becomes " + to_string(step.address) +
                   (step.number != 0 ? ", port " + std::to_string(step.number)
                                     : ", with a port of the endpoint's block");
        case openflow::kPublicAddress:
            return "the destination becomes " + to_string(step.address) +
                   (step.number != 0 ? ", port " + std::to_string(step.number) : "");
        case openflow::kEndpoint:
            return "an endpoint has the destination address";
        case openflow::kIngressRule:
            return "an ingress rule of the destination's groups allows it";
        default:
            return "";
    }
}

// Which groups were asked, where none of their rules fits.
json::array groups_of(const Snapshot& snapshot, const Plan& plan, std::uint8_t table) {
    const EndpointId judged = table == openflow::kEgressRule ? plan.source : plan.destination;
    json::array groups;
    if (const auto* endpoint = snapshot.core.endpoint(judged, plan.leaves.source.family()))
        for (const GroupId group : endpoint->groups()) groups.push_back(group.value);
    return groups;
}

json::array steps_of(const Snapshot& snapshot, const Plan& plan, const Trace& trace) {
    json::array steps;
    for (const TraceStep& step : trace.steps()) {
        json::object one;
        const openflow::TableSchema* table = snapshot.pipeline->table(step.table);
        const std::string_view name = table == nullptr ? "" : table->name;
        one["table"] = text(name);
        const std::string_view outcome = word(step.outcome);
        one["outcome"] = text(outcome);
        if (step.cookie) one["cookie"] = step.cookie.value;
        one["detail"] = detail(step);
        const bool rules =
            step.table == openflow::kEgressRule || step.table == openflow::kIngressRule;
        if (rules && !step.cookie) one["groups"] = groups_of(snapshot, plan, step.table);
        steps.push_back(std::move(one));
    }
    return steps;
}

}  // namespace

Result<std::string> explain(const Snapshot& snapshot, std::string_view text_of_request) {
    boost::system::error_code error;
    const json::value parsed = json::parse({text_of_request.data(), text_of_request.size()}, error);
    if (error || !parsed.is_object())
        return Error{Error::Code::invalid, "the request is no JSON object", ""};
    Request request(parsed.get_object());
    const Packet packet = packet_of(snapshot, request);
    if (request.error()) return *request.error();

    // The sender is whoever has the address: frames are not what is asked about.
    Trace trace;
    const Plan plan = walk(snapshot, packet, WalkMode::rewalk, trace);
    json::object reply;
    reply["verdict"] = text(word(plan.verdict));
    reply["reason"] = text(label(plan.reason));
    reply["sentence"] = text(sentence(plan.reason));
    if (plan.decided_by) reply["cookie"] = plan.decided_by.value;
    reply["source_vpc"] = plan.source_vpc.value;
    reply["destination_vpc"] = plan.destination_vpc.value;
    reply["source_endpoint"] = plan.source.value;
    reply["destination_endpoint"] = plan.destination.value;
    reply["leaves"] = json::object{{"source", to_string(plan.leaves.source)},
                                   {"destination", to_string(plan.leaves.destination)}};
    if (plan.nat.source) reply["leaves"].as_object()["source_port"] = plan.leaves.source_port;
    if (plan.nat.destination)
        reply["leaves"].as_object()["destination_port"] = plan.leaves.destination_port;
    reply["generation"] = plan.generation.value;
    reply["steps"] = steps_of(snapshot, plan, trace);
    return json::serialize(reply);
}

}  // namespace sluice::policy
