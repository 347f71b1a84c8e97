// SPDX-License-Identifier: Apache-2.0
// The controller's OpenFlow side: brings every gateway to the desired state and says how
// far each has come.
//
// Purpose: gateways connect; each is compared with the desired state by a digest per table,
// what differs is read back, and only the difference is sent. From then on every published
// change to a gateway is one ordered bundle, its commit and a barrier, sent at once;
// several may be under way, they are confirmed in order. A gateway is named by its DESC.
// While nothing is under way the digests are compared again now and then: what another
// writer has changed is put right in the same way.
//
// Ownership: the io_context, the desired states and the listener outlive it. Threads: the
// io_context's only. Cost: publishing follows the size of the change and the number of
// gateways; a reconnect costs one digest per table, and reading back what differs.
// Failure: an error or a time-out never loses a change: what a gateway has is then unknown
// and it is compared again. An entry that it refuses by itself is withheld with all of its
// object, and tried again when that changes and after a while; everything else is sent. If it
// refuses for another reason, it stays in `error` with the refusal as its reason and is tried
// again after a while and with the next change.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/compiler/desired_state.hpp"
#include "controller/model/surroundings.hpp"
#include "dataplane/openflow/codec.hpp"
#include "dataplane/openflow/connection.hpp"

namespace sluice::southbound {

enum class GatewayState : std::uint8_t { connecting, synchronising, active, error, disconnected };
std::string_view to_string(GatewayState state);

// What is known of one gateway. `generation`, `sessions` and `capacity` are what it last
// reported (experimenter query "gateway").
struct GatewayInfo {
    std::string name;
    std::string address;
    GatewayState state = GatewayState::connecting;
    std::string reason;  // one sentence; empty while active
    std::uint64_t generation = 0;
    std::uint64_t sessions = 0;
    std::uint64_t capacity = 0;
    model::GatewayFacts facts;  // likewise
    std::uint64_t confirmed_revision = 0;
    std::chrono::system_clock::time_point last_seen;
    // Sent to it since the controller started.
    std::uint64_t entries_put = 0;
    std::uint64_t entries_removed = 0;
    // How often its tables were found changed by another writer.
    std::uint64_t foreign_changes = 0;
    // The objects whose entries it refuses, and its words.
    std::map<Cookie, std::string> withheld;
};

// What a gateway of that name should hold; null: nothing is known of it (yet). Asked when it
// has connected, after Listener::on_gateway, and again with each publish until it is known.
using Desired = std::function<const compiler::DesiredState*(const std::string& gateway)>;

class Listener {
  public:
    virtual ~Listener() = default;
    // The gateway holds `revision` and everything before it.
    virtual void on_confirmed(const std::string& gateway, std::uint64_t revision) = 0;
    // It refused what `revision` needs; `sentence` says what and why.
    virtual void on_error(const std::string& gateway, std::uint64_t revision,
                          const std::string& sentence) = 0;
    // `gateway.withheld` changed.
    virtual void on_withheld(const GatewayInfo& gateway) = 0;
    // Its state or what it says of itself changed, or it is new.
    virtual void on_gateway(const GatewayInfo& gateway) = 0;
};

struct Settings {
    std::vector<std::string> listen;            // "tcp:127.0.0.1:6653" (loopback only), "unix:PATH"
    std::chrono::milliseconds answer{10'000};   // a commit's; then its outcome is unknown
    std::chrono::milliseconds retry{5'000};     // of a gateway in `error`, or an object
    std::chrono::milliseconds refresh{5'000};   // of what it reports about itself
    std::chrono::milliseconds compare{30'000};  // an idle gateway's digests; 0: never
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
    std::size_t connections = 1024;  // at a time; at the limit, one without a name makes room
    openflow::ConnectionLimits limits;
};

class Southbound {
  public:
    // `log` gets one sentence per event worth a line in a log; may be empty.
    Southbound(boost::asio::io_context& loop, Settings settings, Desired desired,
               Listener& listener, std::function<void(const std::string&)> log);
    ~Southbound();
    Southbound(const Southbound&) = delete;
    Southbound& operator=(const Southbound&) = delete;

    // Listens on every address, or says why not.
    Result<void> start();
    // Serves a socket that is already connected, as a test or a socketpair has it.
    void serve(openflow::Connection::Socket socket);
    // Connects out to a switch that only listens, as ovs-vswitchd's management socket does.
    void connect(const std::string& address);

    // `changes` lead from the gateway's revision before to `revision`, which its desired
    // state's is now. An empty change is confirmed in its order, without a message.
    void publish(const std::string& gateway, std::uint64_t revision,
                 const openflow::Changes& changes);

    [[nodiscard]] std::vector<GatewayInfo> gateways() const;
    // Null: it has not connected. Holds until control returns to the event loop.
    [[nodiscard]] const GatewayInfo* gateway(const std::string& name) const;

    // Asks one gateway; `done` is called once, with its JSON text, its refusal, or that it
    // is not connected or did not answer in time.
    void query(const std::string& gateway, openflow::Query query, std::string_view json,
               std::function<void(Result<std::string>)> done);

    struct State;

  private:
    std::shared_ptr<State> state_;
};

// What is wrong with an address to listen on, if anything; for --check.
Result<void> check_listen_address(std::string_view address);

}  // namespace sluice::southbound
