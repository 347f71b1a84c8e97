// SPDX-License-Identifier: Apache-2.0
// Lets the oracle send packets through the product: a JSON text a line in, one out.
//   {"op": "reset"}                                a gateway without tables and connections
//   {"op": "apply", "changes": [{kind, id, spec}]} desired state, spec null: removed
//       → {"macs": {subnet: MAC}}                  the gateway's towards the subnets that changed
//   {"op": "advance", "seconds": N}                → a fate: of what had waited
//   {"op": "packets", "packets": [[port, hex, explain or null]]} → {"fates": [...]}
//       a fate: [[[port, hex], ...], [[reason, VNI, packets], ...], walked, explained or null,
//           [the tuple with which a connection that it opened leaves, ...]];
//       `explain`: {source_vni, source, destination, ...} → [verdict, reason] before it is sent
//   {"op": "flows"}     → {"live": [[VNI, tuple, VNI, tuple]], "unanswered": N, "ports": N,
//   "wrong": [...]}
//   {"op": "leftovers"} → {"left": [...]}
//   {"op": "cells"}     → {"cells": [state][direction][event]}
// An answer with "error" tells what part of the product refused and why.
#include <charconv>
#include <memory>
#include <stdexcept>
#include <string>

#include "dataplane/policy/explain.hpp"
#include "tests/oracle/gateway.hpp"
#include "tests/oracle/serve.hpp"

namespace sluice::oracle {
namespace {

namespace json = boost::json;

Octets octets_of(std::string_view hex) {
    Octets octets(hex.size() / 2);
    for (std::size_t i = 0; i < octets.size(); ++i)
        std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, octets[i], 16);
    return octets;
}

std::string hex_of(const Octets& octets) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    hex.reserve(octets.size() * 2);
    for (const std::uint8_t octet : octets) {
        hex += kDigits[octet >> 4];
        hex += kDigits[octet & 15];
    }
    return hex;
}

json::array words(const Tuple& tuple) {
    return {to_string(tuple.source), to_string(tuple.destination), tuple.protocol,
            tuple.source_port, tuple.destination_port};
}

json::array words(const std::vector<std::string>& sentences) {
    json::array result;
    for (const auto& sentence : sentences) result.push_back(json::value(sentence));
    return result;
}

json::array words(const std::vector<Gateway::Fate::Connection>& connections) {
    json::array result;
    for (const auto& one : connections)
        result.push_back(
            json::array{one.from.value, words(one.arrives), words(one.leaves), one.after});
    return result;
}

class Oracle {
  public:
    json::object answer(const json::value& request);

  private:
    json::object apply(const json::array& changes);
    json::array fate(const Gateway::Fate& fate) const;
    json::value explain(json::object question) const;
    json::array packets(const json::array& packets);
    json::array burst(const json::object& request);
    json::object flows() const;

    std::unique_ptr<Gateway> gateway_;
    std::unique_ptr<Cloud> cloud_;
};

json::object Oracle::apply(const json::array& changes) {
    cloud_->apply(changes);
    json::object macs;
    for (const auto& change : changes)
        if (change.at("kind").as_string() == "subnets" && !change.at("spec").is_null()) {
            const std::string id(change.at("id").as_string());
            macs[id] = to_string(cloud_->gateway_mac(id));
        }
    return {{"macs", std::move(macs)}};
}

json::array Oracle::fate(const Gateway::Fate& fate) const {
    json::array sent, dropped;
    for (const auto& frame : fate.sent)
        sent.push_back(json::array{frame.port.value, hex_of(frame.octets)});
    for (const auto& drop : fate.dropped) {
        std::uint32_t vni = 0;
        gateway_->policy().core.vpcs.visit([&](const policy::VpcRecord& vpc) {
            if (vpc.slot == drop.zone) vni = vpc.vni.value;
            return true;
        });
        dropped.push_back(json::array{label(drop.reason), vni, drop.packets});
    }
    return {std::move(sent), std::move(dropped), fate.walked,
            nullptr,         words(fate.opened), words(fate.evicted)};
}

json::value Oracle::explain(json::object question) const {
    const Vni vni{question.at("source_vni").to_number<std::uint32_t>()};
    const auto* of = gateway_->policy().core.vnis.find(vni);
    question["source_vpc"] = of == nullptr ? 0 : of->vpc.key.number.value;
    const auto text = policy::explain(gateway_->policy(), json::serialize(question));
    if (!text) throw std::runtime_error(text_of(text.error()));
    const json::value answer = json::parse(*text);
    return json::array{answer.at("verdict"), answer.at("reason")};
}

json::array Oracle::packets(const json::array& packets) {
    json::array fates;
    for (const auto& packet : packets) {
        const auto& parts = packet.as_array();
        json::value explained;
        if (parts[2].is_object()) explained = explain(parts[2].as_object());
        const auto octets = octets_of(parts[1].as_string());
        json::array fate =
            this->fate(gateway_->receive(PortId{parts[0].to_number<std::uint16_t>()}, octets));
        fate[3] = std::move(explained);
        fates.push_back(std::move(fate));
    }
    return fates;
}

json::array Oracle::burst(const json::object& request) {
    std::vector<Octets> frames;
    for (const auto& frame : request.at("frames").as_array())
        frames.push_back(octets_of(frame.as_string()));
    return fate(
        gateway_->receive_burst(PortId{request.at("port").to_number<std::uint16_t>()}, frames));
}

json::object Oracle::flows() const {
    const Gateway::Flows flows = gateway_->flows();
    json::array live;
    for (const auto& one : flows.live)
        live.push_back(
            json::array{one.from.value, words(one.forward), one.to.value, words(one.reverse)});
    return {{"live", std::move(live)},
            {"unanswered", flows.unanswered},
            {"ports", flows.ports},
            {"wrong", words(flows.wrong)}};
}

json::object Oracle::answer(const json::value& request) {
    const auto& operation = request.at("op").as_string();
    if (operation == "apply") return apply(request.at("changes").as_array());
    if (operation == "packets") return {{"fates", packets(request.at("packets").as_array())}};
    if (operation == "burst") return {{"fate", burst(request.as_object())}};
    if (operation == "restarted") {
        gateway_->restarted();
        return {};
    }
    if (operation == "advance")
        return {{"fate", fate(gateway_->advance(request.at("seconds").to_number<std::uint64_t>() *
                                                1'000'000'000))}};
    if (operation == "flows") return flows();
    if (operation == "leftovers") return {{"left", words(gateway_->leftovers())}};
    if (operation == "cells") {
        json::array states;
        for (const auto& state : Gateway::cells()) {
            json::array directions;
            for (const auto& direction : state) {
                json::array events;
                for (const std::uint64_t count : direction) events.push_back(count);
                directions.push_back(std::move(events));
            }
            states.push_back(std::move(directions));
        }
        return {{"cells", std::move(states)}};
    }
    cloud_.reset();
    gateway_.reset();
    gateway_ = std::make_unique<Gateway>();
    cloud_ = std::make_unique<Cloud>(*gateway_);
    return {};
}

}  // namespace
}  // namespace sluice::oracle

int main() {
    sluice::oracle::Oracle oracle;
    sluice::oracle::serve([&](const auto& request) { return oracle.answer(request); });
    return 0;
}
