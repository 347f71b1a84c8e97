// SPDX-License-Identifier: Apache-2.0
// Private to the southbound: one connection of a switch, from its HELLO to its end.
//
//   naming      DESC asked: whose connection is it?
//   idle        nothing is known of what it should hold
//   comparing   its digests asked; one that refuses them is read back entirely
//   reading     the tables that differ asked; what is published meanwhile is kept
//   active      what differs is sent, then every change as it comes; while none is under way,
//               the digests are asked again at times (an audit): another difference than
//               ours, and it is compared
//   mending     it refused an object; when the rest under way has its outcome, all but that is
//               sent again
//   failed      it refused something; compared again after a while or at the next change
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "controller/southbound/difference.hpp"
#include "controller/southbound/outbox.hpp"
#include "controller/southbound/southbound.hpp"
#include "controller/southbound/withheld.hpp"
#include "dataplane/openflow/controller_codec.hpp"

namespace sluice::southbound {

class Link;

// What a link tells the southbound.
class LinkOwner {
  public:
    virtual ~LinkOwner() = default;
    // It has said its name; `link` may be closed by this. Returns its record.
    virtual GatewayInfo* named(Link& link, const std::string& name) = 0;
    [[nodiscard]] virtual const compiler::DesiredState* desired(const std::string& name) = 0;
    virtual void changed(const GatewayInfo& gateway) = 0;
    virtual void reported(const GatewayInfo& gateway) = 0;
    virtual void confirmed(const GatewayInfo& gateway, std::uint64_t revision) = 0;
    virtual void refused(const GatewayInfo& gateway, std::uint64_t revision,
                         const std::string& sentence) = 0;
    virtual void withheld(const GatewayInfo& gateway) = 0;
    virtual void ended(Link& link, const std::string& reason) = 0;
    virtual void say(const std::string& sentence) = 0;
};

class Link final : public openflow::Connection::Handler {
  public:
    using Answer = std::function<void(Result<std::string>)>;

    Link(boost::asio::io_context& loop, const Settings& settings, LinkOwner& owner,
         openflow::Connection::Socket socket, std::uint64_t order);
    ~Link() override;

    void publish(std::uint64_t revision, const openflow::Changes& changes);
    void query(openflow::Query query, std::string_view json, Answer done);
    // No call of the owner comes after this.
    void close(const std::string& reason);
    [[nodiscard]] GatewayInfo* gateway() const { return gateway_; }  // null: no name yet
    [[nodiscard]] std::uint64_t order() const { return order_; }     // in which they came

    void on_open() override;
    void on_message(openflow::MessageView message) override;
    void on_drained() override;
    void on_closed(const std::string& reason) override;

  private:
    enum class Phase : std::uint8_t { naming, idle, comparing, reading, active, mending, failed };
    using Clock = std::chrono::steady_clock;
    struct Question {
        std::string text;
        Answer done;
        Clock::time_point asked;
    };

    // The question whether another writer has changed what an idle gateway holds.
    struct Audit {
        Xid xid;
        std::vector<openflow::TableDigest> expected;
        Clock::time_point asked;
    };

    void on_desc(openflow::MessageView message);
    void on_error(openflow::MessageView message);
    void on_query_reply(openflow::MessageView message);
    void on_flows(openflow::MessageView message);
    void on_meters(openflow::MessageView message);
    void on_confirmations();

    void compare();
    void compared(std::string_view text);
    void read_back(std::set<std::uint8_t> tables);
    void read_one(openflow::MessageView message);
    void send_difference();
    void refused(Outbox::Outcome outcome);
    void mend();
    [[nodiscard]] openflow::Changes now_of(std::vector<openflow::EntryKey> keys) const;
    void offer_again(std::vector<openflow::EntryKey> keys);
    void report_withheld();
    void fail(std::uint64_t revision, const std::string& sentence);
    void enter(GatewayState state, const std::string& reason);
    void tick();
    void drop(const std::string& reason);
    void watch();
    [[nodiscard]] bool is_audit_due(Clock::time_point now) const;
    void audit();
    void audited(std::string_view text);
    void refresh();
    void end_questions(const std::string& reason);

    const Settings& settings_;
    const std::uint64_t order_;
    LinkOwner& owner_;
    std::shared_ptr<openflow::Connection> connection_;
    Outbox outbox_;
    boost::asio::steady_timer timer_;
    GatewayInfo* gateway_ = nullptr;
    std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);
    bool closed_ = false;
    Phase phase_ = Phase::naming;
    bool plain_ = false;       // refuses the digest: not one of ours
    bool settled_ = false;     // the difference of the last comparison is confirmed
    Clock::time_point since_;  // in this phase
    Clock::time_point refreshed_{}, audited_{};
    std::optional<Audit> audit_;  // under way
    Xid digest_xid_, desc_xid_;
    std::unordered_map<Xid, std::uint8_t> reads_;  // under way, and of which table
    Actual actual_;
    std::size_t foreign_ = 0;
    std::vector<openflow::Changes> published_;  // while reading
    Withheld withheld_;
    std::vector<openflow::Changes> mending_;  // to be sent again, or for the first time
    std::unordered_map<Xid, Question> questions_;
};

}  // namespace sluice::southbound
