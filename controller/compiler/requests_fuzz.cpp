// SPDX-License-Identifier: Apache-2.0
// Any octets as the body of a request: refused with pointers, or a change that compiles.
// The first octet chooses the kind, the second what is done; the rest is the body.
#include <boost/json/parser.hpp>
#include <cstdint>
#include <cstdlib>

#include "controller/compiler/compiler.hpp"
#include "controller/model/planner.hpp"
#include "controller/model/saved.hpp"

using namespace sluice;
using namespace sluice::model;

namespace {

// Ids are fixed, so that the kept inputs can name them: 00…01, 00…02 and so on.
struct World {
    State state;
    std::uint64_t number = 0, ids = 0;

    World() {
        add(planner().add_gateway("gw1"));
        make(Kind::vpc, R"({"cidrs":["10.0.0.0/8","fd00::/16"]})");
        const auto vpc = to_string(state.all(Kind::vpc).begin()->second->id);
        make(Kind::subnet,
             R"({"cidr":"10.0.0.0/24","ipv6_cidr":"fd00::/64","vpc_id":")" + vpc + "\"}");
        const auto subnet = to_string(state.all(Kind::subnet).begin()->second->id);
        make(Kind::host, R"({"vteps":["192.0.2.1"]})");
        make(Kind::endpoint, R"({"vtep":"192.0.2.9","subnet_id":")" + subnet + "\"}");
        make(Kind::prefix_list, R"({"cidrs":["172.16.0.0/12"]})");
        make(Kind::external_pool, R"({"cidr":"203.0.113.0/29"})");
        make(Kind::elastic_ip, "{}");
        make(Kind::bandwidth, R"({"mbps":5})");
        make(Kind::elastic_ip, "{}");
        const auto shared = to_string(state.all(Kind::elastic_ip).rbegin()->second->id);
        make(Kind::nat_gateway,
             R"({"vpc_id":")" + vpc + R"(","elastic_ip_ids":[")" + shared + "\"]}");
    }
    Planner planner() {
        return {state,
                {.number = [this] { return number += kNumbersPerObject; },
                 .uuid =
                     [this] {
                         Uuid id;
                         id.bytes[15] = static_cast<std::uint8_t>(++ids);
                         id.bytes[14] = static_cast<std::uint8_t>(ids >> 8);
                         return id;
                     },
                 .now = 0}};
    }
    void add(const Plan& plan) {
        if (!plan.ok()) std::abort();
        state.apply(plan.diff);
    }
    void make(Kind kind, std::string_view body) {
        json::parser parser;
        parser.write(body);
        add(planner().create(kind, parser.release().get_object(), {{}, true}));
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto kind = static_cast<Kind>(data[0] % kKinds);
    json::parse_options options;
    options.max_depth = 16;
    json::parser parser({}, options);
    boost::system::error_code error;
    const auto text = std::string_view(reinterpret_cast<const char*>(data) + 2, size - 2);
    const auto consumed = parser.write_some(text.data(), text.size(), error);
    if (error || consumed != text.size()) return 0;
    const auto value = parser.release();
    if (!value.is_object()) return 0;

    World world;
    auto planner = world.planner();
    Plan plan;
    const auto& all = world.state.all(kind);
    const Caller caller{"default", data[1] % 2 == 0};
    if (data[1] % 3 == 0 || all.empty())
        plan = planner.create(kind, value.get_object(), caller);
    else if (data[1] % 3 == 1)
        plan = planner.patch(all.begin()->second, value.get_object(), caller);
    else
        plan = planner.add_rule(world.state.all(Kind::security_group).begin()->second, value);
    if (!plan.ok()) {
        if (!plan.diff.empty()) std::abort();  // refused is refused whole
        return 0;
    }
    compiler::Compiler compiled(world.state, 1);
    world.state.apply(plan.diff);
    compiled.update(plan.diff, 2);
    for (const auto& change : plan.diff) {
        // What was accepted is kept and read back as it is.
        const auto again = load(change.after->kind(), save(*change.after),
                                save_parts({nullptr, change.after}).put);
        if (!again || again->spec != change.after->spec) std::abort();
    }
    return 0;
}
