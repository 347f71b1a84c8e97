// SPDX-License-Identifier: Apache-2.0
// Private to the switch: one controller's connection to it, message by message.
//
// Order: everything is served in the order in which it came. Commits take time, so what
// must wait for them is kept back: replies to barriers and bundle commits in `waiting_`;
// any other message that must see the committed state stops the input (`held_`).
// Modifications outside of bundles are gathered until the next other message, or until no
// more octets are there, and committed together; if that fails, one by one.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>

#include "dataplane/openflow/bundle.hpp"
#include "dataplane/openflow/connection.hpp"
#include "dataplane/openflow/staging.hpp"
#include "dataplane/openflow/switch.hpp"
#include "dataplane/openflow/switch_codec.hpp"

namespace sluice::openflow {

class Session;

// Commits and barriers of one connection under way; then it is read no further.
inline constexpr std::size_t kMostWaiting = 1024;

// What the connections of one switch share. The backend's callbacks may come after the
// switch is gone, so they hold it weakly.
struct SwitchContext : std::enable_shared_from_this<SwitchContext> {
    SwitchContext(boost::asio::io_context& loop_, Backend& backend_, SwitchSettings settings_,
                  std::function<void(const std::string&)> log_)
        : loop(loop_), backend(backend_), settings(std::move(settings_)), log(std::move(log_)) {}

    boost::asio::io_context& loop;
    Backend& backend;
    SwitchSettings settings;
    std::function<void(const std::string&)> log;
    SwitchCounters counters;
    std::size_t bundle_octets = 0;
    MeterTable meters;
    std::size_t outstanding = 0;  // commits
    bool meters_unsure = false;   // after a commit that failed
    std::optional<std::uint64_t> role_generation;
    std::unordered_set<Session*> sessions;
    std::chrono::steady_clock::time_point quiet_since;
    std::size_t lines = 0, unsaid = 0;

    void say(const std::string& sentence) const {
        if (log) log(sentence);
    }
    // The same for what a peer can cause at will: at most ten lines a second.
    void say_rarely(const std::string& sentence);
    void read_meters();
    void commit(Changes changes, std::function<void(Result<void>)> done);
};

class Session final : public Connection::Handler, public std::enable_shared_from_this<Session> {
  public:
    // `ended` is called once, when the connection is over, unless the session is closed.
    static std::shared_ptr<Session> start(const std::shared_ptr<SwitchContext>& context,
                                          Connection::Socket socket, std::function<void()> opened,
                                          std::function<void(const std::string&)> ended);
    ~Session() override;
    void close();

    // How long its peer has said nothing but HELLO and ECHO; and whether it ever did.
    [[nodiscard]] bool has_spoken() const { return has_spoken_; }
    [[nodiscard]] std::chrono::steady_clock::time_point last_heard() const { return last_heard_; }

    void on_open() override;
    void on_message(MessageView message) override;
    void on_drained() override;
    void on_closed(const std::string& reason) override;

  private:
    // A reply that waits for its turn.
    struct Waiting {
        enum class What : std::uint8_t { barrier, bundle, batch };
        What what{};
        Bytes request;
        std::optional<BundleControl> bundle;
        bool done = false;
        std::optional<WireError> failed;
        std::vector<Modification> batch;
    };
    struct Dump;

    Session(const std::shared_ptr<SwitchContext>& context, Connection::Socket&& socket);

    // session.cpp: order.
    void dispatch(MessageView message);
    bool must_hold(Kind kind, MessageView message);
    void hold(MessageView message);
    void settle();
    void release();
    void reply(const Waiting& waiting);
    void refuse(const WireError& error, MessageView request);
    void refuse(ErrorCode code, MessageView request) { refuse(WireError{code, {}}, request); }
    [[nodiscard]] bool is_secondary_forbidden(Kind kind, MessageView message) const;

    // session_mods.cpp: modifications, bundles, barriers.
    void modify(Kind kind, MessageView message);
    std::optional<Modification> read_modification(Kind kind, MessageView message);
    void flush_batch();
    void batch_done(const std::shared_ptr<Waiting>& waiting, const Result<void>& result);
    void retry_one(const std::shared_ptr<Waiting>& waiting, std::size_t index);
    void bundle_control(MessageView message);
    void commit_bundle(const BundleControl& control, MessageView message);
    void bundle_add(MessageView message);
    void watch_bundles();
    void barrier(MessageView message);

    // session_queries.cpp: everything that only reads, and roles.
    void query(Kind kind, MessageView message);
    void multipart(Kind kind, MessageView message);
    void ports(MessageView message, bool stats);
    enum class Reply : std::uint8_t { entries, aggregate };
    void start_dump(MessageView message, Reply reply);
    template <class Each>
    bool look_on(std::size_t most, Each each);
    void continue_aggregate();
    void meters(MessageView message, bool config);
    void continue_dump();
    void experimenter(MessageView message);
    void answer(const Bytes& request, Query query, const Result<std::string>& text);
    void role(MessageView message);

    std::shared_ptr<SwitchContext> context_;
    std::shared_ptr<Connection> connection_;
    std::function<void()> opened_;
    std::function<void(const std::string&)> ended_;
    std::deque<std::shared_ptr<Waiting>> waiting_;
    std::optional<Bytes> held_;
    bool has_spoken_ = false;
    std::chrono::steady_clock::time_point last_heard_;
    std::vector<Modification> batch_;
    bool batch_posted_ = false, settling_ = false;
    Bundles bundles_;
    boost::asio::steady_timer bundle_timer_;
    bool bundle_timer_runs_ = false;
    std::unique_ptr<Dump> dump_;
    Role role_ = Role::equal;
    SwitchConfig config_;
};

}  // namespace sluice::openflow
