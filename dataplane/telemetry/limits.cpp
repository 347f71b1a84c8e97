// SPDX-License-Identifier: Apache-2.0
// How much VPCs and endpoints have of what they may have.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "dataplane/telemetry/queries.hpp"
#include "dataplane/telemetry/request.hpp"

namespace sluice::telemetry {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMostEndpoints = 10'000;  // in one answer

json::object measure(std::uint64_t used, std::uint64_t limit, std::uint64_t refused) {
    json::object result{{"used", used}};
    if (limit == 0)
        result["limit"] = nullptr;  // none
    else
        result["limit"] = limit;
    result["refused"] = refused;
    return result;
}

// Of both families: a bound that was set, or the sum of what each table leaves.
std::uint64_t both(std::uint32_t set, std::uint32_t ipv4, std::uint32_t ipv6) {
    const std::uint64_t sum = std::uint64_t{ipv4} + ipv6;
    return set == 0 ? sum : std::min<std::uint64_t>(set, sum);
}

struct Refusals {
    std::uint64_t connections = 0, half_open = 0, per_second = 0;
};

void describe(json::object& item, const session::Limits::Use& use, const SessionLimits& set,
              const std::array<SessionLimits, 2>& may, const Refusals& refused) {
    item["connections"] =
        measure(std::uint64_t{use.connections[0]} + use.connections[1],
                both(set.connections, may[0].connections, may[1].connections), refused.connections);
    item["half_open"] =
        measure(std::uint64_t{use.half_open[0]} + use.half_open[1],
                both(set.half_open, may[0].half_open, may[1].half_open), refused.half_open);
    item["new_per_second"] = measure(use.per_second, may[0].per_second, refused.per_second);
}

json::object of_vpc(const Facts& facts, const policy::VpcRecord& vpc) {
    const auto& sessions = facts.tables.sessions;
    const auto& limits = sessions.limits;
    const std::uint32_t slot = vpc.slot.value;
    const auto drops = facts.counters.zone(vpc.slot).drops;
    const auto dropped = [&](DropReason reason) { return drops[static_cast<std::size_t>(reason)]; };
    json::object item{{"vpc", vpc.key.number.value}};
    describe(item, limits.use(slot, facts.now()), limits.own(slot).vpc,
             {limits.vpc_limits(slot, sessions.ipv4.available()),
              limits.vpc_limits(slot, sessions.ipv6.available())},
             {dropped(DropReason::vpc_connections), dropped(DropReason::vpc_half_open),
              dropped(DropReason::vpc_connection_rate)});
    item["fragments"] = measure(sessions.fragments.held(slot), sessions.fragments.vpc_bound(slot),
                                dropped(DropReason::fragment_limit));
    return item;
}

json::object of_endpoint(const Facts& facts, const policy::VpcRecord& vpc, EndpointId endpoint) {
    const auto& sessions = facts.tables.sessions;
    const auto& limits = sessions.limits;
    const std::uint32_t slot = vpc.slot.value;
    const auto refused = limits.refused(endpoint);
    json::object item{{"vpc", vpc.key.number.value}, {"endpoint", endpoint.value}};
    describe(item, limits.use(endpoint, facts.now()), limits.own(slot).endpoint,
             {limits.endpoint_limits(slot, sessions.ipv4.available()),
              limits.endpoint_limits(slot, sessions.ipv6.available())},
             {refused.connections, refused.half_open, refused.per_second});
    return item;
}

// The VPC of an endpoint that there is.
const policy::VpcRecord* vpc_of(const policy::Core& core, EndpointId endpoint) {
    const auto* record = core.endpoint(endpoint, Family::ipv4);
    return record == nullptr ? nullptr : core.vpcs.find(record->key.vpc);
}

}  // namespace

Result<std::string> limits(const Facts& facts, std::string_view text) {
    auto request = parse_request(text);
    if (!request) return request.error();
    const auto vpc = number(*request, "vpc", 1, UINT32_MAX);
    if (!vpc) return vpc.error();
    const auto endpoint = number(*request, "endpoint", 1, UINT32_MAX);
    if (!endpoint) return endpoint.error();
    const auto most = number(*request, "limit", 1, kMostEndpoints);
    if (!most) return most.error();
    const auto& core = facts.tables.store.current().core;
    json::array items;
    if (*endpoint) {
        const EndpointId one{static_cast<std::uint32_t>(**endpoint)};
        if (const auto* record = vpc_of(core, one))
            items.push_back(of_endpoint(facts, *record, one));
    } else if (*vpc) {
        const VpcId one{static_cast<std::uint32_t>(**vpc)};
        if (const auto* record = core.vpcs.find(one)) {
            items.push_back(of_vpc(facts, *record));
            // Those with the most connections first.
            std::vector<std::pair<std::uint64_t, EndpointId>> busy;
            const auto& counts = facts.tables.sessions.limits;
            counts.visit([&](EndpointId id) {
                const auto* where = core.endpoint(id, Family::ipv4);
                if (where == nullptr || where->key.vpc != one) return;
                const auto use = counts.use(id);
                busy.emplace_back(std::uint64_t{use.connections[0]} + use.connections[1], id);
            });
            std::sort(busy.begin(), busy.end(), std::greater<>());
            busy.resize(std::min<std::size_t>(busy.size(), most->value_or(1000)));
            for (const auto& [count, id] : busy) items.push_back(of_endpoint(facts, *record, id));
        }
    } else {
        core.vpcs.visit([&](const policy::VpcRecord& record) {
            items.push_back(of_vpc(facts, record));
            return true;
        });
    }
    return json::serialize(json::object{{"items", std::move(items)}});
}

}  // namespace sluice::telemetry
