// SPDX-License-Identifier: Apache-2.0
// One way for every change: checked plan → store → state → compiler → gateways; and what
// has become of it.
//
// Threads: the io_context's only. Ownership: the store and the link outlive it.
// Cost: a change costs its transaction, and otherwise follows its size.
// Failure: a change that the store refuses has not happened. A gateway that is away loses
// nothing: it is brought to the present state when it returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/compiler/compiler.hpp"
#include "controller/model/planner.hpp"
#include "controller/store/store.hpp"

namespace boost::asio {
class io_context;
}

namespace sluice::api {

// What a gateway last said of itself, and how the connection to it is.
struct GatewayReport {
    std::string name;
    std::string address;
    std::string state;   // connecting, synchronising, active, error, disconnected
    std::string reason;  // one sentence; empty while active
    std::uint64_t generation = 0, sessions = 0, capacity = 0;
    // Since the controller started: how often another writer's changes were found, and what
    // it was sent.
    std::uint64_t foreign_changes = 0, entries_put = 0, entries_removed = 0;
    std::uint64_t withheld = 0;  // objects that it refuses now
    model::GatewayFacts facts;
    std::int64_t last_seen = 0;  // milliseconds since 1970
};

// What the service asks of the southbound.
class GatewayLink {
  public:
    virtual ~GatewayLink() = default;
    virtual void publish(const std::string& gateway, std::uint64_t revision,
                         const openflow::Changes& changes) = 0;
    // What it says of itself by now; nothing for one that has not connected.
    virtual std::optional<GatewayReport> report(const std::string& gateway) = 0;
    // `kind`: explain, flows, drops, gateway; JSON in, JSON out.
    virtual void query(const std::string& gateway, const std::string& kind, std::string request,
                       std::function<void(Result<std::string>)> done) = 0;
};

struct Status {
    enum class State : std::uint8_t { pending, active, degraded, error, deleting };
    struct OfGateway {
        std::string name;
        State state = State::pending;
        std::string reason;
    };
    State state = State::pending;
    std::string reason;
    std::uint64_t observed_version = 0;  // the last that every gateway had confirmed
    std::vector<OfGateway> gateways;     // that need it
};
std::string_view to_string(Status::State state);

// Who asks, for the audit record.
struct Actor {
    std::string name;
    std::string request_id;
};

class Service {
  public:
    // Loads what the store holds and compiles it.
    static Result<std::unique_ptr<Service>> start(boost::asio::io_context& context,
                                                  store::Store& store);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    void set_link(GatewayLink* link);

    [[nodiscard]] const model::State& state() const;
    [[nodiscard]] const model::Surroundings& surroundings() const;
    [[nodiscard]] store::Store& store();
    // A planner at this moment.
    [[nodiscard]] model::Planner planner();
    // Carries out a plan without problems. Its error is the store's.
    Result<void> commit(const model::Plan& plan, const Actor& actor);

    [[nodiscard]] Status status(const model::Resource& resource) const;
    // Calls back once the resource is active, in error or gone, or when time is up.
    void when_settled(model::Kind kind, const model::Uuid& id, std::chrono::milliseconds time,
                      std::function<void()> done);

    void query(const std::string& gateway, const std::string& kind, std::string request,
               std::function<void(Result<std::string>)> done);
    // Which gateway carries a VPC; empty: none yet.
    [[nodiscard]] static std::string gateway_of(const model::Resource& vpc);

    // What the southbound has to tell. A gateway that reports for the first time becomes a
    // resource, and VPCs without gateway are placed on it.
    void on_gateway(const GatewayReport& report);
    void on_confirmed(const std::string& gateway, std::uint64_t revision);
    void on_error(const std::string& gateway, std::uint64_t revision, const std::string& sentence);
    // What it refuses, object by object, while it has everything else.
    void on_withheld(const std::string& gateway, std::map<Cookie, std::string> sentences);
    [[nodiscard]] GatewayReport report(const std::string& gateway) const;
    [[nodiscard]] const compiler::Compiler& compiler() const;
    [[nodiscard]] std::uint64_t revision() const;

  private:
    struct Impl;
    explicit Service(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::api
