// SPDX-License-Identifier: Apache-2.0
#include "controller/southbound/southbound.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <unordered_map>

#include "controller/southbound/link.hpp"
#include "dataplane/openflow/endpoint.hpp"

namespace sluice::southbound {

using namespace openflow;

namespace {

std::uint64_t number(const boost::json::object& report, std::string_view key) {
    const auto* value = report.if_contains(key);
    boost::system::error_code error;
    const auto result = value == nullptr ? 0 : value->to_number<std::uint64_t>(error);
    return error ? 0 : result;
}

}  // namespace

std::string_view to_string(GatewayState state) {
    switch (state) {
        case GatewayState::connecting:
            return "connecting";
        case GatewayState::synchronising:
            return "synchronising";
        case GatewayState::active:
            return "active";
        case GatewayState::error:
            return "error";
        case GatewayState::disconnected:
            return "disconnected";
    }
    return "unknown";
}

// Asks what the gateway says of itself. The answer may come when this link is gone: the
// question is ended with it, so `this` holds.
void Link::refresh() {
    refreshed_ = settings_.now();
    if (plain_) return;
    query(Query::gateway, "{}", [this](const Result<std::string>& answer) {
        if (!answer || gateway_ == nullptr) return;
        boost::system::error_code error;
        const boost::json::value report = boost::json::parse(*answer, error);
        if (error || !report.is_object()) return;
        gateway_->generation = number(report.get_object(), "generation");
        gateway_->sessions = number(report.get_object(), "sessions");
        gateway_->capacity = number(report.get_object(), "capacity");
        auto facts = model::read_facts(*answer);
        if (facts == gateway_->facts) return;
        gateway_->facts = std::move(facts);
        owner_.reported(*gateway_);
    });
}

struct Southbound::State final : LinkOwner, std::enable_shared_from_this<Southbound::State> {
    State(boost::asio::io_context& loop_, Settings settings_, Desired desired_, Listener& listener_,
          std::function<void(const std::string&)> log_)
        : loop(loop_),
          settings(std::move(settings_)),
          desired_of(std::move(desired_)),
          listener(listener_),
          log(std::move(log_)) {}

    struct Gateway {
        GatewayInfo info;
        Link* link = nullptr;
    };

    void serve(Connection::Socket socket) {
        // Whoever has not said a name is no gateway yet, and must not keep one away.
        if (links.size() >= settings.connections) {
            const auto oldest =
                std::min_element(links.begin(), links.end(), [](const auto& a, const auto& b) {
                    const auto key = [](const Link& link) {
                        return std::pair(link.gateway() != nullptr, link.order());
                    };
                    return key(*a.second) < key(*b.second);
                });
            if (oldest == links.end() || oldest->second->gateway() != nullptr)
                return say("refused a connection: there are " + std::to_string(links.size()));
            oldest->second->close("there are too many connections");
            bury(*oldest->second);
        }
        auto link = std::make_unique<Link>(loop, settings, *this, std::move(socket), ++served);
        Link* key = link.get();
        links.emplace(key, std::move(link));
    }

    // A link calls from within itself: it is destroyed when it has returned.
    void bury(Link& link) {
        const auto at = links.find(&link);
        if (at == links.end()) return;
        std::shared_ptr<Link> dead = std::move(at->second);
        links.erase(at);
        boost::asio::post(loop, [dead] {});
    }

    GatewayInfo* named(Link& link, const std::string& name) override {
        Gateway& gateway = gateways[name];
        gateway.info.name = name;
        if (gateway.link != nullptr) {
            say(name + " has connected again; its former connection is closed");
            gateway.link->close("the gateway has connected again");
            bury(*gateway.link);
        }
        gateway.link = &link;
        return &gateway.info;
    }
    const compiler::DesiredState* desired(const std::string& name) override {
        return desired_of(name);
    }
    void changed(const GatewayInfo& gateway) override {
        say("gateway " + gateway.name + " is " + std::string(to_string(gateway.state)) +
            (gateway.reason.empty() ? "" : ": " + gateway.reason));
        listener.on_gateway(gateway);
    }
    void reported(const GatewayInfo& gateway) override { listener.on_gateway(gateway); }
    void confirmed(const GatewayInfo& gateway, std::uint64_t revision) override {
        listener.on_confirmed(gateway.name, revision);
    }
    void refused(const GatewayInfo& gateway, std::uint64_t revision,
                 const std::string& sentence) override {
        listener.on_error(gateway.name, revision, sentence);
    }
    void withheld(const GatewayInfo& gateway) override { listener.on_withheld(gateway); }
    void ended(Link& link, const std::string& reason) override {
        GatewayInfo* gateway = link.gateway();
        if (gateway == nullptr) {
            say("a connection ended before its switch had said its name: " + reason);
        } else {
            gateways[gateway->name].link = nullptr;
            gateway->state = GatewayState::disconnected;
            gateway->reason = reason;
            changed(*gateway);
        }
        bury(link);
    }
    void say(const std::string& sentence) override {
        if (log) log(sentence);
    }

    boost::asio::io_context& loop;
    Settings settings;
    Desired desired_of;
    Listener& listener;
    std::function<void(const std::string&)> log;
    std::uint64_t served = 0;
    std::map<std::string, Gateway> gateways;  // its addresses hold
    std::unordered_map<Link*, std::unique_ptr<Link>> links;
    std::vector<std::unique_ptr<Listening>> listening;
};

Southbound::Southbound(boost::asio::io_context& loop, Settings settings, Desired desired,
                       Listener& listener, std::function<void(const std::string&)> log)
    : state_(std::make_shared<State>(loop, std::move(settings), std::move(desired), listener,
                                     std::move(log))) {
    silence_library();
}

Southbound::~Southbound() {
    state_->listening.clear();
    for (auto& [key, link] : state_->links) link->close("the controller ends");
    state_->links.clear();
}

Result<void> Southbound::start() {
    std::vector<std::unique_ptr<Listening>> all;
    for (const std::string& address : state_->settings.listen) {
        auto one =
            listen(state_->loop, address, [weak = std::weak_ptr(state_)](StreamSocket socket) {
                if (const auto state = weak.lock()) state->serve(std::move(socket));
            });
        if (!one) return one.error();
        all.push_back(*std::move(one));
    }
    state_->listening = std::move(all);
    return {};
}

void Southbound::serve(Connection::Socket socket) {
    state_->serve(std::move(socket));
}

void Southbound::connect(const std::string& address) {
    const auto to = parse_endpoint(address);
    if (!to) return state_->say(address + ": " + to.error().message);
    openflow::connect(
        state_->loop, *to,
        [weak = std::weak_ptr(state_), address](Result<std::shared_ptr<StreamSocket>> socket) {
            const auto state = weak.lock();
            if (!state) return;
            if (socket)
                state->serve(std::move(**socket));
            else
                state->say(address + ": " + socket.error().message);
        });
}

void Southbound::publish(const std::string& gateway, std::uint64_t revision,
                         const Changes& changes) {
    const auto at = state_->gateways.find(gateway);
    if (at != state_->gateways.end() && at->second.link != nullptr)
        at->second.link->publish(revision, changes);
}

const GatewayInfo* Southbound::gateway(const std::string& name) const {
    const auto at = state_->gateways.find(name);
    return at == state_->gateways.end() ? nullptr : &at->second.info;
}

std::vector<GatewayInfo> Southbound::gateways() const {
    std::vector<GatewayInfo> result;
    for (const auto& [name, gateway] : state_->gateways) result.push_back(gateway.info);
    return result;
}

void Southbound::query(const std::string& gateway, Query query, std::string_view json,
                       std::function<void(Result<std::string>)> done) {
    const auto at = state_->gateways.find(gateway);
    if (at == state_->gateways.end() || at->second.link == nullptr) {
        boost::asio::post(state_->loop, [done = std::move(done), gateway] {
            done(Error{Error::Code::unavailable, "the gateway is not connected", gateway});
        });
        return;
    }
    at->second.link->query(query, json, std::move(done));
}

Result<void> check_listen_address(std::string_view address) {
    const auto at = parse_endpoint(address);
    if (!at) return at.error();
    return {};
}

}  // namespace sluice::southbound
