// SPDX-License-Identifier: Apache-2.0
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "dataplane/telemetry/queries.hpp"
#include "dataplane/telemetry/request.hpp"

namespace sluice::telemetry {
namespace {

namespace json = boost::json;

// What the latest packet of this kind was, as far as it is known.
void add_sample(json::object& item, const worker::DropSample& sample) {
    if (sample.decided_by) item["cookie"] = sample.decided_by.value;
    if (sample.source) item["endpoint"] = sample.source.value;
    if (sample.destination) item["destination_endpoint"] = sample.destination.value;
    if (sample.vni) item["vni"] = sample.vni.value;
    if (!sample.vtep.is_none()) item["vtep"] = to_string(sample.vtep);
    if (!sample.source_mac.is_zero()) item["source_mac"] = to_string(sample.source_mac);
    if (!sample.tuple.source.is_none()) item["source"] = to_string(sample.tuple.source);
    if (!sample.tuple.destination.is_none()) {
        item["destination"] = to_string(sample.tuple.destination);
        item["protocol"] = sample.tuple.protocol;
        item["source_port"] = sample.tuple.source_port;
        item["destination_port"] = sample.tuple.destination_port;
    }
    if (!sample.translated.is_none()) item["translated"] = to_string(sample.translated);
}

void add_zone(json::array& items, const Facts& facts, std::uint32_t vpc, policy::ZoneSlot slot) {
    const auto sum = facts.counters.zone(slot);
    for (std::size_t i = 1; i < kDropReasons; ++i) {
        if (sum.drops[i] == 0) continue;
        const auto reason = static_cast<DropReason>(i);
        json::object item{{"vpc", vpc},
                          {"reason", label(reason)},
                          {"sentence", sentence(reason)},
                          {"packets", sum.drops[i]}};
        if (const auto* sample = facts.samples.latest(slot, reason)) add_sample(item, *sample);
        items.push_back(std::move(item));
    }
}

}  // namespace

Result<std::string> drops(const Facts& facts, std::string_view text) {
    auto request = parse_request(text);
    if (!request) return request.error();
    const auto vpc = number(*request, "vpc", 0, UINT32_MAX);
    if (!vpc) return vpc.error();
    json::array items;
    const auto& vpcs = facts.tables.store.current().core.vpcs;
    if (!*vpc || **vpc == 0) add_zone(items, facts, 0, policy::ZoneSlot{0});
    vpcs.visit([&](const policy::VpcRecord& record) {
        const auto number = record.key.number.value;
        if (!*vpc || **vpc == number) add_zone(items, facts, number, record.slot);
        return true;
    });
    return json::serialize(json::object{{"items", std::move(items)}});
}

}  // namespace sluice::telemetry
