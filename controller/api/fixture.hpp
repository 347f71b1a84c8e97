// SPDX-License-Identifier: Apache-2.0
// A whole controller in a test's process: a store in a temporary folder, the API, and
// gateways that confirm what they are told to. For tests only.
#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "controller/api/api.hpp"

namespace sluice::api {

namespace json = boost::json;

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "sluice-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path_ = pattern;
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

// Gateways that answer at once, unless they are silent.
class FakeGateways final : public GatewayLink {
  public:
    explicit FakeGateways(Service& service) : service_(service) {}

    void connect(const std::string& name) {
        service_.on_gateway({.name = name,
                             .address = "unix:",
                             .state = "active",
                             .reason = {},
                             .generation = 0,
                             .sessions = 0,
                             .capacity = 0,
                             .foreign_changes = 0,
                             .entries_put = 0,
                             .entries_removed = 0,
                             .withheld = 0,
                             .facts = facts,
                             .last_seen = 0});
        service_.on_confirmed(name, service_.revision());
    }
    void publish(const std::string& gateway, std::uint64_t revision,
                 const openflow::Changes& changes) override {
        sent[gateway].push_back(changes);
        if (!refusal.empty())
            service_.on_error(gateway, revision, refusal);
        else if (!silent.contains(gateway))
            service_.on_confirmed(gateway, revision);
    }
    std::optional<GatewayReport> report(const std::string&) override { return std::nullopt; }
    void query(const std::string& gateway, const std::string& kind, std::string request,
               std::function<void(Result<std::string>)> done) override {
        asked.push_back(gateway + " " + kind + " " + request);
        done(answer);
    }

    model::GatewayFacts facts;  // of those that connect
    std::map<std::string, std::vector<openflow::Changes>> sent;
    std::set<std::string> silent;
    std::string refusal;
    std::vector<std::string> asked;
    Result<std::string> answer = std::string("{}");

  private:
    Service& service_;
};

struct Reply {
    unsigned status = 0;
    json::value body;
    http::Response raw;

    [[nodiscard]] std::string text(std::string_view pointer) const {
        boost::system::error_code error;
        const auto* found = body.find_pointer(pointer, error);
        if (!found) return "(none)";
        return found->is_string() ? std::string(found->get_string()) : json::serialize(*found);
    }
    [[nodiscard]] std::string id() const { return text("/id"); }
    // The pointers of a problem document's errors.
    [[nodiscard]] std::vector<std::string> pointers() const {
        std::vector<std::string> result;
        if (const auto* errors =
                body.is_object() ? body.get_object().if_contains("errors") : nullptr)
            for (const auto& error : errors->get_array())
                result.emplace_back(error.at("pointer").as_string());
        return result;
    }
};

class Fixture {
  public:
    explicit Fixture(const std::string& tokens = {}) {
        start();
        if (!tokens.empty()) {
            auto parsed = Tokens::parse(tokens, "tokens.toml");
            REQUIRE(parsed);
            api->set_tokens(*parsed);
        }
    }
    // As after kill -9: only the store is left.
    void restart() {
        api.reset();
        gateways.reset();
        service.reset();
        store.reset();
        start();
    }

    Reply call(const std::string& method, const std::string& target, const std::string& body = {},
               const std::string& token = {}) {
        http::Request request;
        request.method = method;
        const auto question = target.find('?');
        request.path = target.substr(0, question);
        if (question != std::string::npos) request.query = target.substr(question + 1);
        request.body = body;
        if (!token.empty()) request.headers.push_back({"Authorization", "Bearer " + token});
        for (const auto& header : extra_headers) request.headers.push_back(header);
        Reply reply;
        api->handle(std::move(request), [&](http::Response response) {
            reply.status = response.status;
            reply.raw = std::move(response);
        });
        context.restart();
        while (reply.status == 0 && context.run_one() != 0) {
        }
        context.restart();
        context.poll();
        REQUIRE(reply.status != 0);
        if (!reply.raw.body.empty()) reply.body = json::parse(reply.raw.body);
        return reply;
    }
    Reply post(const std::string& target, const std::string& body, const std::string& token = {}) {
        return call("POST", target, body, token);
    }
    Reply get(const std::string& target, const std::string& token = {}) {
        return call("GET", target, {}, token);
    }
    Reply patch(const std::string& target, const std::string& body, const std::string& token = {}) {
        return call("PATCH", target, body, token);
    }
    Reply remove(const std::string& target, const std::string& token = {}) {
        return call("DELETE", target, {}, token);
    }
    // The id of a new object, which must come to be.
    std::string make(const std::string& kind, const std::string& body,
                     const std::string& token = {}) {
        const auto reply = post("/v1/" + kind, body, token);
        INFO(reply.raw.body);
        REQUIRE(reply.status == 201);
        return reply.id();
    }

    TemporaryFolder folder;
    boost::asio::io_context context;
    std::unique_ptr<store::Store> store;
    std::unique_ptr<Service> service;
    std::unique_ptr<FakeGateways> gateways;
    std::unique_ptr<Api> api;
    std::vector<http::Header> extra_headers;

  private:
    void start() {
        auto opened = store::open("sqlite:" + folder.file("state.db"));
        REQUIRE(opened);
        store = std::move(*opened);
        auto started = Service::start(context, *store);
        REQUIRE(started);
        service = std::move(*started);
        gateways = std::make_unique<FakeGateways>(*service);
        service->set_link(gateways.get());
        api = std::make_unique<Api>(*service, Tokens::none());
    }
};

// A VPC with a dual-stack subnet, a host and an endpoint; by their ids.
struct Network {
    explicit Network(Fixture& f, const std::string& token = {}) {
        vpc = f.make("vpcs", R"({"name":"blue","cidrs":["10.0.0.0/16","fd00:1::/48"]})", token);
        subnet = f.make("subnets",
                        R"({"name":"front","vpc_id":")" + vpc +
                            R"(","cidr":"10.0.1.0/24","ipv6_cidr":"fd00:1:0:1::/64"})",
                        token);
    }
    std::string endpoint(Fixture& f, const std::string& more = {}, const std::string& token = {}) {
        return f.make("endpoints",
                      R"({"subnet_id":")" + subnet + R"(","vtep":"192.0.2.11")" + more + "}",
                      token);
    }
    std::string group(Fixture& f, const std::string& rules = "[]", const std::string& token = {}) {
        return f.make("security-groups",
                      R"({"name":"web","vpc_id":")" + vpc + R"(","rules":)" + rules + "}", token);
    }
    std::string vpc, subnet;
};

}  // namespace sluice::api
