// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/cloud.hpp"

#include <algorithm>
#include <stdexcept>

#include "controller/model/fields.hpp"
#include "controller/model/mac.hpp"
#include "controller/model/saved.hpp"
#include "nfv/anti_spoof/function.hpp"
#include "nfv/elastic_ip/function.hpp"
#include "nfv/gateway_address/function.hpp"
#include "nfv/nat_gateway/function.hpp"
#include "nfv/policer/function.hpp"
#include "nfv/security_group/function.hpp"

namespace sluice::oracle {
namespace {

namespace json = boost::json;

constexpr const char* kGateway = "gateway";

// In the order in which one refers to another.
constexpr model::Kind kOrder[] = {
    model::Kind::gateway,     model::Kind::host,           model::Kind::vpc,
    model::Kind::route_table, model::Kind::security_group, model::Kind::prefix_list,
    model::Kind::subnet,      model::Kind::endpoint,       model::Kind::external_pool,
    model::Kind::bandwidth,   model::Kind::elastic_ip,     model::Kind::nat_gateway};

std::size_t rank(const model::Change& change) {
    return static_cast<std::size_t>(
        std::find(std::begin(kOrder), std::end(kOrder), change.either().kind()) -
        std::begin(kOrder));
}

model::Uuid uuid(std::string_view text) {
    const auto parsed = model::parse_uuid(text);
    if (!parsed) throw std::runtime_error("no UUID: " + std::string(text));
    return *parsed;
}

}  // namespace

std::vector<const policy::NetworkFunction*> network_functions() {
    return {&nfv::anti_spoof(), &nfv::gateway_address(), &nfv::security_group(),
            &nfv::elastic_ip(), &nfv::nat_gateway(),     &nfv::policer()};
}

std::string text_of(const Error& error) {
    return error.message + " (" + error.path + ")";
}

Cloud::Cloud(Tables& tables) : tables_(tables) {
    auto gateway = std::make_shared<model::Resource>();
    gateway->id = uuid("00000000-0000-4000-8000-000000000001");
    gateway->number = new_number();
    gateway->name = kGateway;
    gateway->spec = model::Gateway{};
    state_.apply({{nullptr, gateway}});
    compiler_ = std::make_unique<compiler::Compiler>(state_, revision_);
}

std::uint64_t Cloud::new_number() {
    return last_number_ += model::kNumbersPerObject;
}

model::ResourcePtr Cloud::find(model::Kind kind, const model::Uuid& id) const {
    return state_.find(kind, id);
}

std::vector<policy::ZoneSlot> Cloud::apply(const json::array& changes) {
    model::Diff diff;
    for (const auto& change : changes) {
        const auto* kind = model::find_kind(change.at("kind").as_string());
        if (!kind) throw std::runtime_error("unknown kind");
        const auto id = uuid(change.at("id").as_string());
        const auto before = find(kind->kind, id);
        const auto& spec = change.at("spec");
        if (!before && spec.is_null()) continue;  // made and removed between two calls
        diff.push_back({before, spec.is_null() ? nullptr : make(kind->kind, id, spec.as_object())});
    }
    // What is referred to is created before and removed after what refers to it.
    std::stable_sort(diff.begin(), diff.end(), [](const auto& a, const auto& b) {
        if (static_cast<bool>(a.after) != static_cast<bool>(b.after)) return b.after == nullptr;
        return a.after ? rank(a) < rank(b) : rank(a) > rank(b);
    });
    state_.apply(diff);
    return tables_.commit(compiler_->update(diff, ++revision_)[kGateway]);
}

// As the store would read it back, with the numbers that it gives to the object's parts.
model::ResourcePtr Cloud::make(model::Kind kind, const model::Uuid& id, json::object spec) {
    number_parts(kind, spec);
    auto loaded = model::load(kind,
                              {{"name", model::to_string(id)},
                               {"created_at", std::int64_t{0}},
                               {"updated_at", std::int64_t{0}},
                               {"spec", std::move(spec)}},
                              {});
    if (!loaded) throw std::runtime_error(text_of(loaded.error()));
    auto resource = std::make_shared<model::Resource>(*std::move(loaded));
    const auto before = find(kind, id);
    resource->id = id;
    resource->number = before ? before->number : new_number();
    if (kind == model::Kind::vpc) resource->as<model::Vpc>().gateway = kGateway;
    return resource;
}

void Cloud::number_parts(model::Kind kind, json::object& spec) {
    const bool is_group = kind == model::Kind::security_group;
    if (!is_group && kind != model::Kind::route_table) return;
    json::array numbers;
    for (const auto& part : spec.at(is_group ? "rules" : "routes").as_array()) {
        const std::string name = is_group
                                     ? std::string(part.at("id").as_string())
                                     : json::serialize(spec.at("vpc_id")) + json::serialize(part);
        auto& number = part_numbers_[name];
        if (number == 0) {
            number = new_number();
            parts_by_number_[number] = name;
        }
        numbers.push_back(number);
    }
    spec["numbers"] = std::move(numbers);
}

json::value Cloud::id_of(std::uint64_t number) const {
    if (const auto part = parts_by_number_.find(number); part != parts_by_number_.end())
        return json::value(part->second);
    const auto resource = state_.by_number(number);
    return resource ? json::value(model::to_string(resource->id)) : json::value(nullptr);
}

json::value Cloud::meter_of(MeterId meter) const {
    const auto resource = state_.by_number(meter.value);
    if (!resource) return "of nothing";
    const std::uint64_t within = meter.value - resource->number;
    return json::array{model::to_string(resource->id), within == 1 ? "out" : "in"};
}

MacAddress Cloud::gateway_mac(const std::string& subnet) const {
    const auto resource = find(model::Kind::subnet, uuid(subnet));
    return resource ? model::gateway_mac(resource->register_number()) : MacAddress{};
}

}  // namespace sluice::oracle
