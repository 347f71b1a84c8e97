// SPDX-License-Identifier: Apache-2.0
// What only gateways know: explain, flows, drops. They are asked over OpenFlow, and their
// numbers are answered as names; a project sees its own side only.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <set>

#include "controller/api/call.hpp"
#include "controller/api/names.hpp"

namespace sluice::api {
namespace {

using model::Kind;
using model::ResourcePtr;

struct Question {
    std::string gateway;
    json::object request;
};

struct Answer {
    std::string gateway;
    Result<json::object> content;
};

// Asks all of them and goes on when the last has answered or given up.
void ask(const CallPtr& call, const std::string& kind, const std::vector<Question>& questions,
         std::function<void(std::vector<Answer>)> then) {
    struct Gathering {
        std::vector<Answer> answers;
        std::size_t open = 0;
        std::function<void(std::vector<Answer>)> then;
    };
    auto gathering = std::make_shared<Gathering>();
    gathering->open = questions.size();
    gathering->then = std::move(then);
    if (questions.empty()) return gathering->then({});
    for (const auto& question : questions)
        call->service.query(
            question.gateway, kind, json::serialize(question.request),
            [gathering, gateway = question.gateway](Result<std::string> text) {
                Result<json::object> content =
                    Error{Error::Code::unavailable, "the answer is not a JSON object", {}};
                if (!text) {
                    content = text.error();
                } else {
                    boost::system::error_code error;
                    auto value = json::parse(*text, error);
                    if (!error && value.is_object()) content = std::move(value.get_object());
                }
                gathering->answers.push_back({gateway, std::move(content)});
                if (--gathering->open == 0) gathering->then(std::move(gathering->answers));
            });
}

// --- flows and drops ---------------------------------------------------------------------------

std::uint64_t number_in(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    boost::system::error_code error;
    const auto number = value ? value->to_number<std::uint64_t>(error) : 0;
    return error ? 0 : number;
}

// A gateway's counters know no projects: what concerns none of the caller's VPCs is not
// shown to it.
bool concerns_caller(const Call& call, const json::object& item) {
    if (call.is_admin()) return true;
    for (const auto* key : {"vpc", "source_vpc", "destination_vpc"}) {
        const auto number = number_in(item, key);
        if (number != 0 && may_see_number(call, number)) return true;
    }
    return false;
}

// To how far a tenant may raise a limit: of those items that say how much is used of what may be.
void add_ceilings(const Call& call, json::object& item) {
    const auto* vpc = item.if_contains("vpc");
    boost::system::error_code error;
    const auto number = vpc ? vpc->to_number<std::uint64_t>(error) : 0;
    const auto resource = number == 0 || error ? nullptr : call.service.state().by_number(number);
    if (!resource || resource->kind() != Kind::vpc) return;
    const std::string whose = item.contains("endpoint") ? "endpoint_" : "";
    for (const std::string name : {"connections", "half_open", "new_per_second", "fragments"}) {
        auto* measure = item.if_contains(name);
        if (!measure || !measure->is_object()) continue;
        const auto ceiling = model::ceiling_of(resource->as<model::Vpc>(), whose + name,
                                               call.service.surroundings());
        measure->get_object()["ceiling"] =
            ceiling.value ? json::value(*ceiling.value) : json::value();
    }
}

void answer_items(const CallPtr& call, std::vector<Answer> answers, std::uint64_t limit) {
    json::array items, problems;
    for (auto& answer : answers) {
        if (!answer.content) {
            problems.push_back(json::object{{"gateway", answer.gateway},
                                            {"detail", answer.content.error().message}});
            continue;
        }
        auto* list = answer.content->if_contains("items");
        if (!list || !list->is_array()) continue;
        for (auto& item : list->get_array()) {
            if (!item.is_object() || !concerns_caller(*call, item.get_object())) continue;
            if (items.size() == limit) break;
            item.get_object()["gateway"] = answer.gateway;
            add_ceilings(*call, item.get_object());
            name_numbers(*call, item);
            items.push_back(std::move(item));
        }
    }
    // Nothing at all from anyone is a failure; some is better than none.
    if (items.empty() && !problems.empty())
        return call->fail(502, "gateway " + std::string(problems[0].at("gateway").as_string()) +
                                   ": " + std::string(problems[0].at("detail").as_string()));
    call->answer(200, json::object{{"items", std::move(items)},
                                   {"next_page_token", nullptr},
                                   {"problems", std::move(problems)}});
}

// One question per gateway, or per VPC where the caller's view is narrower.
std::optional<std::vector<Question>> questions_for(const CallPtr& call, std::uint64_t limit) {
    std::vector<Question> questions;
    const auto add = [&](const model::Resource& vpc, json::object request) {
        if (Service::gateway_of(vpc).empty()) return;
        request["vpc"] = vpc.register_number();
        request["limit"] = limit;
        questions.push_back({Service::gateway_of(vpc), std::move(request)});
    };
    bool any = false;
    for (const auto& [name, value] : call->parameters) {
        if (name == "vpc_id") {
            const auto vpc = find_or_fail(call, Kind::vpc, value);
            if (!vpc) return std::nullopt;
            add(*vpc, {});
            any = true;
        } else if (name == "endpoint_id") {
            const auto endpoint = find_or_fail(call, Kind::endpoint, value);
            if (!endpoint) return std::nullopt;
            if (const auto vpc = call->service.state().vpc_of(*endpoint))
                add(*vpc, {{"endpoint", endpoint->register_number()}});
            any = true;
        }
    }
    if (any) return questions;
    if (call->is_admin()) {
        for (const auto& [number, gateway] : call->service.state().all(Kind::gateway))
            questions.push_back({gateway->name, {{"limit", limit}}});
        return questions;
    }
    for (const auto& [number, vpc] : call->service.state().all(Kind::vpc))
        if (call->may_see(*vpc)) add(*vpc, {});
    return questions;
}

void list_from_gateways(const CallPtr& call, const std::string& kind) {
    if (!call->only_parameters({"vpc_id", "endpoint_id", "limit"})) return;
    const auto limit = call->number("limit", 1000, 1, 10'000);
    if (!limit) return;
    const auto questions = questions_for(call, *limit);
    if (!questions) return;
    ask(call, kind, *questions, [call, limit = *limit](std::vector<Answer> answers) {
        answer_items(call, std::move(answers), limit);
    });
}

// --- explain -----------------------------------------------------------------------------------

constexpr std::string_view kExplainFields[] = {"vpc_id",           "internet",  "source",
                                               "destination",      "protocol",  "source_port",
                                               "destination_port", "icmp_type", "icmp_code"};

// The members of the request as typed values; problems name them.
class ExplainReader {
  public:
    ExplainReader(const json::object& input, model::Problems& problems)
        : input_(input), problems_(problems) {
        for (const auto& member : input)
            if (std::find(std::begin(kExplainFields), std::end(kExplainFields),
                          std::string_view(member.key())) == std::end(kExplainFields))
                problems.push_back(
                    {model::member_pointer("", member.key()), "is not a field of explain"});
    }
    template <class T>
    std::optional<T> read(std::string_view name, bool required = false) {
        const auto at = model::member_pointer("", name);
        const auto* value = input_.if_contains(name);
        if (value && !value->is_null()) return model::Codec<T>::read(*value, at, problems_);
        if (required) problems_.push_back({at, "is required"});
        return std::nullopt;
    }

  private:
    const json::object& input_;
    model::Problems& problems_;
};

// Steps on another project's side are told apart from the caller's own, not shown.
void hide_foreign_steps(const Call& call, json::object& content) {
    bool decided_elsewhere = false;
    if (auto* steps = content.if_contains("steps"); steps && steps->is_array())
        for (auto& step : steps->get_array()) {
            if (!step.is_object()) continue;
            // From its first step on, the other side is the rest of the way.
            decided_elsewhere =
                decided_elsewhere || !may_see_number(call, number_in(step.get_object(), "cookie"));
            if (decided_elsewhere)
                step = json::object{
                    {"table", step.get_object().contains("table") ? step.get_object().at("table")
                                                                  : json::value()},
                    {"outcome", "hidden"},
                    {"detail", "on another project's side"}};
        }
    if (decided_elsewhere) {
        content["reason"] = "hidden";
        content["sentence"] = "decided on another project's side";
    }
}

void answer_explain(const CallPtr& call, std::vector<Answer> answers) {
    json::array gateways;
    for (auto& answer : answers) {
        if (!answer.content)
            return call->fail(502,
                              "gateway " + answer.gateway + ": " + answer.content.error().message);
        hide_foreign_steps(*call, *answer.content);
        json::value named = std::move(*answer.content);
        name_numbers(*call, named);
        named.get_object()["gateway"] = answer.gateway;
        gateways.push_back(std::move(named));
    }
    call->answer(200, json::object{{"gateways", std::move(gateways)}});
}

}  // namespace

void list_flows(const CallPtr& call) {
    list_from_gateways(call, "flows");
}
void list_limits(const CallPtr& call) {
    list_from_gateways(call, "limits");
}
void list_drops(const CallPtr& call) {
    list_from_gateways(call, "drops");
}

void explain(const CallPtr& call) {
    if (!call->only_parameters({})) return;
    const auto input = call->body();
    if (!input) return;
    model::Problems problems;
    ExplainReader reader(*input, problems);
    const auto vpc_id = reader.read<model::Uuid>("vpc_id");
    const auto internet = reader.read<bool>("internet").value_or(false);
    const auto source = reader.read<IpAddress>("source", true);
    const auto destination = reader.read<IpAddress>("destination", true);
    const auto protocol = reader.read<model::Protocol>("protocol", true);
    const auto source_port = reader.read<std::uint16_t>("source_port");
    const auto destination_port = reader.read<std::uint16_t>("destination_port");
    const auto icmp_type = reader.read<std::uint8_t>("icmp_type");
    const auto icmp_code = reader.read<std::uint8_t>("icmp_code");
    if (problems.empty() && vpc_id.has_value() == internet)
        problems.push_back({"/vpc_id", "is required (or internet: true)"});
    if (problems.empty() && source->family() != destination->family())
        problems.push_back({"/destination", "is not of the source's family"});
    if (!problems.empty()) return call->fail(problems);

    const auto& state = call->service.state();
    ResourcePtr vpc;
    if (vpc_id) {
        vpc = find_or_fail(call, Kind::vpc, model::to_string(*vpc_id));
        if (!vpc) return;
    } else {
        // From the outside: to whoever has the public address.
        const auto elastic = state.holder({model::Claim::What::public_address, {}, *destination});
        if (!elastic || !call->may_see(*elastic)) {
            problems.push_back({"/destination", "is no elastic IP", Error::Code::not_found});
            return call->fail(problems);
        }
        vpc = state.vpc_of(*elastic);
        if (!vpc) return call->fail(409, sluice::to_string(*destination) + " is not attached");
    }
    const auto gateway = Service::gateway_of(*vpc);
    if (gateway.empty()) return call->fail(409, "no gateway carries the VPC yet");

    json::object request{{"source_vpc", vpc_id ? vpc->register_number() : 0},
                         {"source", sluice::to_string(*source)},
                         {"destination", sluice::to_string(*destination)},
                         {"protocol", protocol->number}};
    if (source_port) request["source_port"] = *source_port;
    if (destination_port) request["destination_port"] = *destination_port;
    if (icmp_type) request["icmp_type"] = *icmp_type;
    if (icmp_code) request["icmp_code"] = *icmp_code;
    ask(call, "explain", {{gateway, std::move(request)}},
        [call](std::vector<Answer> answers) { answer_explain(call, std::move(answers)); });
}

}  // namespace sluice::api
