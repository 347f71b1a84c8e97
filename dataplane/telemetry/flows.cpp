// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "dataplane/telemetry/connections.hpp"
#include "dataplane/telemetry/queries.hpp"
#include "dataplane/telemetry/request.hpp"

namespace sluice::telemetry {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMostFlows = 10'000;  // in one answer
constexpr std::uint64_t kSecond = 1'000'000'000;

std::string_view state_name(session::TcpState state) {
    switch (state) {
        case session::TcpState::none:
            return "open";
        case session::TcpState::syn_sent:
            return "syn_sent";
        case session::TcpState::simultaneous_open:
        case session::TcpState::syn_received:
            return "syn_received";
        case session::TcpState::established:
        case session::TcpState::reset_doubted:
            return "established";
        case session::TcpState::fin_initiator:
        case session::TcpState::fin_responder:
            return "closing";
        case session::TcpState::time_wait:
            return "time_wait";
        case session::TcpState::closed:
        case session::TcpState::count:
            break;
    }
    return "closed";
}

json::object count(const session::DirectionCount& direction) {
    return {{"packets", direction.packets}, {"bytes", direction.octets}};
}

// Where each number of a connection's path was found, in the order of policy::Path.
constexpr std::array<std::string_view, session::kPathLength> kPathTables = {
    "source", "egress_rule", "route", "elastic_ip", "public_address", "endpoint", "ingress_rule"};

json::array path(const ConnectionView& view) {
    json::array result;
    for (std::size_t i = 0; i < view.path.size(); ++i)
        if (view.path[i] != 0)
            result.push_back({{"table", kPathTables[i]}, {"cookie", view.path[i]}});
    return result;
}

std::uint32_t vpc_of(const policy::Snapshot& snapshot, Vni vni) {
    if (vni == Vni{0}) return 0;
    const auto* record = snapshot.core.vnis.find(vni);
    return record == nullptr ? 0 : record->vpc.key.number.value;
}

json::object item(const policy::Snapshot& snapshot, const ConnectionView& view) {
    json::object result{{"source_vpc", vpc_of(snapshot, view.source_vni)},
                        {"destination_vpc", vpc_of(snapshot, view.destination_vni)},
                        {"source_endpoint", view.source.value},
                        {"destination_endpoint", view.destination.value},
                        {"source", to_string(view.arrives.source)},
                        {"destination", to_string(view.arrives.destination)},
                        {"protocol", view.arrives.protocol},
                        {"source_port", view.arrives.source_port},
                        {"destination_port", view.arrives.destination_port},
                        {"state", state_name(view.tcp_state)},
                        {"age_seconds", view.age / kSecond},
                        {"idle_seconds", view.idle / kSecond},
                        {"forward", count(view.counts[0])},
                        {"reverse", count(view.counts[1])},
                        {"path", path(view)}};
    if (view.leaves.source != view.arrives.source ||
        view.leaves.destination != view.arrives.destination ||
        view.leaves.source_port != view.arrives.source_port)
        result["translated"] = {{"source", to_string(view.leaves.source)},
                                {"destination", to_string(view.leaves.destination)},
                                {"source_port", view.leaves.source_port},
                                {"destination_port", view.leaves.destination_port}};
    return result;
}

}  // namespace

Result<FlowList> FlowList::ask(const Facts& facts, std::string_view text) {
    auto request = parse_request(text);
    if (!request) return request.error();
    const auto vpc = number(*request, "vpc", 0, UINT32_MAX);
    if (!vpc) return vpc.error();
    const auto endpoint = number(*request, "endpoint", 1, UINT32_MAX);
    if (!endpoint) return endpoint.error();
    const auto limit = number(*request, "limit", 1, kMostFlows);
    if (!limit) return limit.error();
    FlowList list;
    list.left_ = limit->value_or(1000);
    list.endpoint_ = *endpoint;
    if (*vpc) {
        list.vni_ = Vni{0};
        if (**vpc != 0) {
            const auto* record = facts.tables.store.current().core.vpcs.find(
                VpcId{static_cast<std::uint32_t>(**vpc)});
            if (record == nullptr)
                list.left_ = 0;
            else
                list.vni_ = record->vni;
        }
    }
    return list;
}

bool FlowList::step(const Facts& facts) {
    if (left_ == 0) return false;
    constexpr std::uint32_t kPlaces = 16'384;
    unsigned room = 256;  // of a turn: each is some microseconds
    const auto& snapshot = facts.tables.store.current();
    const bool ended =
        visit_connections(facts.tables.sessions, facts.tables.qsbr, facts.tables.reader(),
                          session::Tick::from_nanoseconds(facts.now()), cursor_, kPlaces,
                          [&](const ConnectionView& view) {
                              if (vni_ && view.source_vni != *vni_ && view.destination_vni != *vni_)
                                  return true;
                              if (endpoint_ && view.source.value != *endpoint_ &&
                                  view.destination.value != *endpoint_)
                                  return true;
                              if (!std::exchange(first_, false)) text_ += ',';
                              text_ += json::serialize(item(snapshot, view));
                              return --left_ > 0 && --room > 0;
                          });
    return !ended && left_ > 0;
}

}  // namespace sluice::telemetry
