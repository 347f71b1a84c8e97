// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/switch.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <random>
#include <tuple>
#include <unordered_set>

#include "dataplane/openflow/dump.hpp"
#include "dataplane/openflow/endpoint.hpp"
#include "dataplane/openflow/session.hpp"

namespace sluice::openflow {
namespace {

// One controller that the switch keeps connected to.
class Link : public std::enable_shared_from_this<Link> {
  public:
    Link(const std::shared_ptr<SwitchContext>& context, std::string name, Endpoint to)
        : context_(context),
          name_(std::move(name)),
          to_(std::move(to)),
          timer_(context->loop),
          delay_(context->settings.first_retry),
          random_(std::random_device{}()) {}

    void connect() {
        openflow::connect(context_->loop, to_,
                          [weak = weak_from_this()](Result<std::shared_ptr<StreamSocket>> socket) {
                              const auto self = weak.lock();
                              if (!self) return;
                              if (socket)
                                  self->serve(std::move(**socket));
                              else
                                  self->retry(socket.error().message);
                          });
    }

    void stop() {
        timer_.cancel();
        if (session_) session_->close();
        session_.reset();
    }

  private:
    void serve(StreamSocket socket) {
        session_ = Session::start(
            context_, std::move(socket),
            [weak = weak_from_this()] {
                const auto self = weak.lock();
                if (!self) return;
                self->delay_ = self->context_->settings.first_retry;
                self->context_->say("connected to controller " + self->name_);
            },
            [weak = weak_from_this()](const std::string& reason) {
                const auto self = weak.lock();
                if (!self) return;
                self->session_.reset();
                self->retry(reason);
            });
    }

    // Exponential, with jitter, so that the gateways of a controller that comes back do not
    // all arrive at once.
    void retry(const std::string& reason) {
        if (reason != last_reason_) context_->say("controller " + name_ + ": " + reason);
        last_reason_ = reason;
        std::uniform_real_distribution<double> jitter(0.75, 1.25);
        timer_.expires_after(std::chrono::milliseconds(
            static_cast<std::int64_t>(static_cast<double>(delay_.count()) * jitter(random_))));
        delay_ = std::min(2 * delay_, context_->settings.longest_retry);
        timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self) self->connect();
        });
    }

    std::shared_ptr<SwitchContext> context_;
    std::string name_;
    Endpoint to_;
    boost::asio::steady_timer timer_;
    std::chrono::milliseconds delay_;
    std::minstd_rand random_;
    std::string last_reason_;
    std::shared_ptr<Session> session_;
};

}  // namespace

struct Switch::State : std::enable_shared_from_this<Switch::State> {
    explicit State(std::shared_ptr<SwitchContext> shared) : context(std::move(shared)) {}

    void serve(StreamSocket socket) {
        if (accepted.size() >= context->settings.connections && !make_room()) {
            context->say_rarely("refused a connection: " + std::to_string(accepted.size()) +
                                " are open already");
            return;
        }
        const auto number = ++last_number;
        accepted[number] = Session::start(context, std::move(socket), nullptr,
                                          [weak = weak_from_this(), number](const std::string&) {
                                              if (const auto self = weak.lock())
                                                  self->accepted.erase(number);
                                          });
    }

    // False: whoever is connected has spoken not long ago.
    bool make_room() {
        if (accepted.empty()) return false;
        const auto last = std::min_element(
            accepted.begin(), accepted.end(), [](const auto& one, const auto& other) {
                const auto rank = [](const auto& entry) {
                    return std::make_tuple(entry.second->has_spoken(), entry.second->last_heard(),
                                           entry.first);
                };
                return rank(one) < rank(other);
            });
        const auto& session = *last->second;
        const auto silent = context->settings.now() - session.last_heard();
        if (session.has_spoken() && silent < context->settings.silence) return false;
        context->say_rarely("closed a silent connection to make room for another");
        const auto closing = last->second;
        accepted.erase(last);
        closing->close();
        return true;
    }

    std::shared_ptr<SwitchContext> context;
    std::unique_ptr<Listening> listening;
    std::vector<std::shared_ptr<Link>> links;
    std::unordered_map<std::uint64_t, std::shared_ptr<Session>> accepted;
    std::uint64_t last_number = 0;
};

Switch::Switch(boost::asio::io_context& loop, Backend& backend, SwitchSettings settings,
               std::function<void(const std::string&)> log)
    : state_(std::make_shared<State>(
          std::make_shared<SwitchContext>(loop, backend, std::move(settings), std::move(log)))) {
    silence_library();
}

Switch::~Switch() {
    state_->listening.reset();
    for (const auto& link : state_->links) link->stop();
    for (auto& [number, session] : state_->accepted) session->close();
    state_->accepted.clear();
}

Result<void> Switch::start() {
    SwitchContext& context = *state_->context;
    std::vector<std::shared_ptr<Link>> links;
    for (const std::string& name : context.settings.controllers) {
        auto to = parse_endpoint(name);
        if (!to) return to.error();
        links.push_back(std::make_shared<Link>(state_->context, name, *std::move(to)));
    }
    context.read_meters();
    if (!context.settings.listen.empty()) {
        if (auto wrong = check_listen_address(context.settings.listen); !wrong) return wrong;
        auto listening = listen(context.loop, context.settings.listen,
                                [weak = std::weak_ptr(state_)](StreamSocket socket) {
                                    if (const auto state = weak.lock())
                                        state->serve(std::move(socket));
                                });
        if (!listening) return listening.error();
        state_->listening = *std::move(listening);
    }
    state_->links = std::move(links);
    for (const auto& link : state_->links) link->connect();
    return {};
}

void Switch::serve(Connection::Socket socket) {
    state_->serve(std::move(socket));
}

SwitchCounters Switch::counters() const {
    return state_->context->counters;
}

Result<void> check_listen_address(std::string_view address) {
    const auto at = parse_endpoint(address);
    if (!at) return at.error();
    return {};
}

Result<void> check_controller_address(std::string_view address) {
    return check_listen_address(address);
}

}  // namespace sluice::openflow
