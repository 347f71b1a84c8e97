// SPDX-License-Identifier: Apache-2.0
#include "controller/southbound/link.hpp"

#include <algorithm>

namespace sluice::southbound {

using namespace openflow;

namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr std::size_t kLongestName = 64;

bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= kLongestName &&
           std::ranges::all_of(name, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

Link::Link(boost::asio::io_context& loop, const Settings& settings, LinkOwner& owner,
           Connection::Socket socket, std::uint64_t order)
    : settings_(settings),
      order_(order),
      owner_(owner),
      connection_(Connection::start(std::move(socket), *this, settings.limits)),
      outbox_(*connection_, settings.now),
      timer_(loop),
      since_(settings.now()) {
    tick();
}

Link::~Link() {
    connection_->close();
}

void Link::close(const std::string& reason) {
    closed_ = true;
    timer_.cancel();
    connection_->close();
    end_questions(reason);
}

void Link::drop(const std::string& reason) {
    connection_->close();
    on_closed(reason);
}

void Link::on_closed(const std::string& reason) {
    closed_ = true;
    timer_.cancel();
    end_questions(reason);
    owner_.ended(*this, reason);
}

void Link::end_questions(const std::string& reason) {
    for (auto& [xid, question] : std::exchange(questions_, {}))
        question.done(Error{Error::Code::unavailable, reason, {}});
}

void Link::on_open() {
    desc_xid_ = connection_->next_xid();
    append_desc_request(connection_->out(), desc_xid_);
    connection_->flush();
}

void Link::on_drained() {
    outbox_.pump();
}

void Link::on_message(MessageView message) {
    if (gateway_ != nullptr) gateway_->last_seen = std::chrono::system_clock::now();
    const auto kind = classify(message);
    if (!kind) return owner_.say("a message that cannot be read: " + to_string(kind.error().code));
    switch (*kind) {
        case Kind::desc_reply:
            return on_desc(message);
        case Kind::error:
            return on_error(message);
        case Kind::experimenter_reply:
            return on_query_reply(message);
        case Kind::flow_reply:
            return on_flows(message);
        case Kind::meter_config_reply:
            return on_meters(message);
        case Kind::barrier_reply:
            outbox_.on_barrier(header(message).xid);
            return on_confirmations();
        case Kind::bundle_control:
            if (const auto reply = decode_bundle_control(message))
                outbox_.on_bundle(*reply, header(message).xid);
            return;
        default:
            return;  // nothing that was asked for
    }
}

void Link::on_desc(MessageView message) {
    if (phase_ != Phase::naming || header(message).xid != desc_xid_) return;
    const auto description = decode_desc_reply(message);
    if (!description || !is_name(description->datapath))
        return drop("the switch says no name in its DESC");
    gateway_ = owner_.named(*this, description->datapath);
    if (gateway_ == nullptr) return;
    gateway_->address = connection_->peer();
    gateway_->last_seen = std::chrono::system_clock::now();
    enter(GatewayState::synchronising, "its tables are being compared");
    compare();
}

void Link::enter(GatewayState state, const std::string& reason) {
    if (gateway_->state == state && gateway_->reason == reason) return;
    gateway_->state = state;
    gateway_->reason = reason;
    owner_.changed(*gateway_);
}

void Link::compare() {
    outbox_.clear();
    reads_.clear();
    actual_ = {};
    published_.clear();
    mending_.clear();
    audit_.reset();
    foreign_ = 0;
    settled_ = false;
    since_ = settings_.now();
    const compiler::DesiredState* desired = owner_.desired(gateway_->name);
    if (desired == nullptr) {
        phase_ = Phase::idle;
        return enter(GatewayState::synchronising, "nothing is known yet of what it should hold");
    }
    if (plain_) {
        std::set<std::uint8_t> tables;
        for (const TableDigest& digest : desired->digests()) tables.insert(digest.table);
        return read_back(std::move(tables));
    }
    phase_ = Phase::comparing;
    digest_xid_ = connection_->next_xid();
    append_query(connection_->out(), digest_xid_, Query::digest, {});
    connection_->flush();
}

void Link::compared(std::string_view text) {
    const compiler::DesiredState* desired = owner_.desired(gateway_->name);
    if (desired == nullptr) return compare();
    const auto actual = decode_digests(text);
    if (!actual) return drop("a malformed digest");
    read_back(differing(Offered(*desired, withheld_).digests(), *actual));
}

void Link::read_back(std::set<std::uint8_t> tables) {
    phase_ = Phase::reading;
    since_ = settings_.now();
    for (const std::uint8_t table : tables) {
        const Xid xid = connection_->next_xid();
        reads_[xid] = table;
        if (table == kMeterDigest)
            append_meter_config_request(connection_->out(), xid);
        else
            append_flow_request(connection_->out(), xid, table);
    }
    actual_.tables = std::move(tables);
    connection_->flush();
    if (reads_.empty()) send_difference();
}

void Link::on_flows(MessageView message) {
    if (!reads_.contains(header(message).xid)) return;
    auto reply = decode_flow_reply(message);
    if (!reply) return drop(reply.error().message);
    for (Entry& entry : reply->entries) {
        EntryKey key = entry.key;
        actual_.entries.insert_or_assign(std::move(key), std::move(entry));
    }
    foreign_ += reply->foreign;
    read_one(message);
}

void Link::on_meters(MessageView message) {
    if (!reads_.contains(header(message).xid)) return;
    const auto reply = decode_meter_config_reply(message);
    if (!reply) return drop(reply.error().message);
    for (const Meter& meter : reply->meters) actual_.meters.insert_or_assign(meter.id, meter);
    foreign_ += reply->foreign;
    read_one(message);
}

void Link::read_one(MessageView message) {
    since_ = settings_.now();
    if (has_more(message)) return;
    reads_.erase(header(message).xid);
    if (reads_.empty()) send_difference();
}

void Link::send_difference() {
    const compiler::DesiredState* desired = owner_.desired(gateway_->name);
    if (desired == nullptr) return compare();
    std::unordered_set<MeterId> meters;
    const std::set<std::uint8_t> read = actual_.tables;
    if (read.contains(kMeterDigest)) {
        for (const auto& [id, meter] : actual_.meters) meters.insert(id);
    } else {
        desired->visit_meters([&](const Meter& meter) { meters.insert(meter.id); });
        // Those of changes published since the digests agreed are not there yet, or still.
        for (auto change = published_.rbegin(); change != published_.rend(); ++change) {
            for (const Meter& meter : change->put_meters) meters.erase(meter.id);
            for (const MeterId id : change->remove_meters) meters.insert(id);
        }
    }
    Changes changes = difference(Offered(*desired, withheld_), std::exchange(actual_, {}));
    append_unread(changes, std::exchange(published_, {}), read);
    owner_.say(gateway_->name + ": " + std::to_string(read.size()) + " tables differ, " +
               std::to_string(changes.put.size()) + " entries put, " +
               std::to_string(changes.remove.size()) + " removed" +
               (foreign_ > 0 ? ", " + std::to_string(foreign_) + " not understood" : ""));
    phase_ = Phase::active;
    audited_ = settings_.now();
    outbox_.set_plain(plain_);
    outbox_.set_meters(std::move(meters));
    outbox_.push(desired->revision(), std::move(changes));
    outbox_.pump();
    on_confirmations();
}

// Nothing is under way, so the gateway has what is desired now. The answer may come after the
// next change was published, but it tells of the time before: what is expected is kept.
void Link::audit() {
    const compiler::DesiredState* desired = owner_.desired(gateway_->name);
    if (desired == nullptr) return;
    const auto now = settings_.now();
    audited_ = now;
    audit_ = Audit{connection_->next_xid(), Offered(*desired, withheld_).digests(), now};
    append_query(connection_->out(), audit_->xid, Query::digest, {});
    connection_->flush();
}

void Link::audited(std::string_view text) {
    const Audit audit = *std::exchange(audit_, std::nullopt);
    const auto actual = decode_digests(text);
    if (!actual) return drop("a malformed digest");
    const auto tables = differing(audit.expected, *actual);
    if (tables.empty()) return;
    ++gateway_->foreign_changes;
    std::string names;
    for (const std::uint8_t table : tables)
        names += (names.empty() ? "" : ", ") +
                 (table == kMeterDigest ? "the meters" : "table " + std::to_string(table));
    enter(GatewayState::synchronising, "another writer has changed " + names);
    compare();
}

void Link::publish(std::uint64_t revision, const Changes& changes) {
    // An object that has changed is tried as it is now, whole.
    std::vector<EntryKey> lifted = withheld_.lift(changes);
    if (!lifted.empty()) report_withheld();
    switch (phase_) {
        case Phase::naming:
        case Phase::comparing:
            return;  // the comparison is still to come
        case Phase::reading:
            published_.push_back(changes);
            if (!lifted.empty()) published_.push_back(now_of(std::move(lifted)));
            return;
        case Phase::mending:
            mending_.push_back(changes);
            if (!lifted.empty()) mending_.push_back(now_of(std::move(lifted)));
            return;
        case Phase::active:
            outbox_.push(revision, changes);
            if (!lifted.empty()) outbox_.push(revision, now_of(std::move(lifted)));
            outbox_.pump();
            return on_confirmations();
        case Phase::failed:
            enter(GatewayState::synchronising, "its tables are being compared");
            [[fallthrough]];
        case Phase::idle:
            return compare();
    }
}

void Link::on_confirmations() {
    while (phase_ == Phase::active || phase_ == Phase::mending) {
        auto outcome = outbox_.pop();
        if (!outcome) break;
        if (outcome->refused) {
            refused(*std::move(outcome));
            continue;
        }
        gateway_->entries_put += outcome->changes.put.size();
        gateway_->entries_removed += outcome->changes.remove.size();
        if (phase_ == Phase::mending) continue;  // of something before it nothing is there
        gateway_->confirmed_revision = outcome->revision;
        if (!settled_) {
            settled_ = true;
            enter(GatewayState::active, {});
            refresh();
        }
        if (outbox_.empty()) withheld_.accept();
        report_withheld();
        owner_.confirmed(*gateway_, outcome->revision);
    }
    if (phase_ == Phase::mending && outbox_.empty()) mend();
}

// Nothing of the change was applied. Only of the first one is the cause certain: those sent
// after it may have built on it.
void Link::refused(Outbox::Outcome outcome) {
    if (phase_ == Phase::active) {
        const compiler::DesiredState* desired = owner_.desired(gateway_->name);
        if (desired == nullptr || outcome.culprits.empty() ||
            withheld_.size() + outcome.culprits.size() > kMostWithheld)
            return fail(outcome.revision, *outcome.refused);
        owner_.say(gateway_->name + " " + *outcome.refused + "; the rest is sent without it");
        withheld_.add(*desired, outcome.changes, outcome.culprits, settings_.now());
        report_withheld();
        phase_ = Phase::mending;
    }
    mending_.push_back(std::move(outcome.changes));
}

void Link::mend() {
    const compiler::DesiredState* desired = owner_.desired(gateway_->name);
    if (desired == nullptr) return compare();
    phase_ = Phase::active;
    outbox_.push(desired->revision(),
                 present(Offered(*desired, withheld_), std::exchange(mending_, {})));
    outbox_.pump();
    on_confirmations();
}

// What the keys should be by now.
Changes Link::now_of(std::vector<EntryKey> keys) const {
    const compiler::DesiredState* desired = owner_.desired(gateway_->name);
    if (desired == nullptr) return {};
    Changes part;
    part.remove = std::move(keys);
    return present(Offered(*desired, withheld_), {std::move(part)});
}

void Link::offer_again(std::vector<EntryKey> keys) {
    const compiler::DesiredState* desired = owner_.desired(gateway_->name);
    if (desired == nullptr) return compare();
    outbox_.push(desired->revision(), now_of(std::move(keys)));
    outbox_.pump();
    on_confirmations();
}

void Link::report_withheld() {
    auto sentences = withheld_.sentences();
    if (gateway_->withheld == sentences) return;
    gateway_->withheld = std::move(sentences);
    owner_.withheld(*gateway_);
}

void Link::fail(std::uint64_t revision, const std::string& sentence) {
    phase_ = Phase::failed;
    since_ = settings_.now();
    outbox_.clear();
    connection_->flush();
    enter(GatewayState::error, sentence);
    owner_.refused(*gateway_, revision, sentence);
}

void Link::on_error(MessageView message) {
    const auto error = decode_error(message);
    if (!error) return;
    if (error->xid == desc_xid_ && phase_ == Phase::naming)
        return drop("the switch says no name: " + error->text);
    if (error->xid == digest_xid_ && phase_ == Phase::comparing) {
        plain_ = true;  // read back entirely
        return compare();
    }
    if (reads_.contains(error->xid) && phase_ == Phase::reading)
        return fail(gateway_->confirmed_revision, "refused to read back table " +
                                                      std::to_string(reads_[error->xid]) + ": " +
                                                      error->text);
    if (const auto question = questions_.find(error->xid); question != questions_.end()) {
        const Answer done = std::move(question->second.done);
        questions_.erase(question);
        return done(Error{Error::Code::unsupported, error->text, {}});
    }
    // A refusal becomes an outcome with its barrier; of what was forgotten it is no news.
    outbox_.on_error(*error);
}

void Link::query(Query query, std::string_view json, Answer done) {
    const Xid xid = connection_->next_xid();
    questions_[xid] = {{}, std::move(done), settings_.now()};
    append_query(connection_->out(), xid, query, json);
    connection_->flush();
}

void Link::on_query_reply(MessageView message) {
    const auto reply = decode_query_reply(message);
    const Xid xid = header(message).xid;
    if (!reply) return;
    if (reply->query == Query::digest) {
        if (xid == digest_xid_ && phase_ == Phase::comparing)
            compared(reply->text);
        else if (audit_ && xid == audit_->xid)
            audited(reply->text);
        return;
    }
    const auto at = questions_.find(xid);
    if (at == questions_.end()) return;
    at->second.text += reply->text;
    if (has_more(message)) return;
    const Question question = std::move(at->second);
    questions_.erase(at);
    question.done(question.text);
}

void Link::tick() {
    timer_.expires_after(std::min(kTick, settings_.answer / 4));
    timer_.async_wait(
        [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
            if (error || alive.expired() || closed_) return;
            watch();
            if (!closed_) tick();
        });
}

// A switch that refuses the digest would have to be read back entirely: it is compared when
// it connects only.
bool Link::is_audit_due(Clock::time_point now) const {
    return settings_.compare.count() > 0 && !plain_ && settled_ && !audit_ && outbox_.empty() &&
           now - audited_ >= settings_.compare;
}

// What has taken too long, and what is due.
void Link::watch() {
    const auto now = settings_.now();
    std::vector<Answer> unanswered;
    std::erase_if(questions_, [&](auto& item) {
        if (now - item.second.asked <= settings_.answer) return false;
        unanswered.push_back(std::move(item.second.done));
        return true;
    });
    for (const Answer& done : unanswered)
        done(Error{Error::Code::unavailable, "the gateway did not answer in time", {}});
    switch (phase_) {
        case Phase::naming:
        case Phase::comparing:
        case Phase::reading:
            if (now - since_ > settings_.answer) drop("the switch did not answer in time");
            break;
        case Phase::failed:
            if (now - since_ <= settings_.retry) break;
            enter(GatewayState::synchronising, "its tables are being compared");
            compare();
            break;
        case Phase::mending:
        case Phase::active:
            if (const auto waiting = outbox_.waiting_since();
                waiting && now - *waiting > settings_.answer) {
                enter(GatewayState::synchronising, "it did not confirm a change in time");
                compare();
            } else if (phase_ == Phase::mending) {
                break;
            } else if (audit_ && now - audit_->asked > settings_.answer) {
                drop("the switch did not answer in time");
            } else if (auto due = withheld_.due(now, settings_.retry); !due.empty()) {
                offer_again(std::move(due));
            } else if (is_audit_due(now)) {
                audit();
            } else if (now - refreshed_ > settings_.refresh) {
                refresh();
            }
            break;
        case Phase::idle:
            break;
    }
}

}  // namespace sluice::southbound
