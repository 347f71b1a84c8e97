// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/session.hpp"

#include <boost/asio/post.hpp>

#include "dataplane/openflow/dump.hpp"

namespace sluice::openflow {

void SwitchContext::read_meters() {
    meters.clear();
    for (const Meter& meter : backend.meters()) meters.emplace(meter.id, meter);
    meters_unsure = false;
}

void SwitchContext::say_rarely(const std::string& sentence) {
    constexpr std::size_t kLines = 10;
    const auto now = settings.now();
    if (now - quiet_since >= std::chrono::seconds(1)) {
        if (unsaid > 0) say(std::to_string(unsaid) + " more lines like these were left out");
        quiet_since = now;
        lines = unsaid = 0;
    }
    if (++lines <= kLines)
        say(sentence);
    else
        ++unsaid;
}

void SwitchContext::commit(Changes changes, std::function<void(Result<void>)> done) {
    ++outstanding;
    ++counters.commits;
    for (const MeterId id : changes.remove_meters) meters.erase(id);
    for (const Meter& meter : changes.put_meters) meters.insert_or_assign(meter.id, meter);
    backend.commit(std::move(changes),
                   [weak = weak_from_this(), done = std::move(done)](const Result<void>& result) {
                       const auto self = weak.lock();
                       if (!self) return;
                       --self->outstanding;
                       if (!result) self->meters_unsure = true;
                       if (self->meters_unsure && self->outstanding == 0) self->read_meters();
                       done(result);
                   });
}

Session::Session(const std::shared_ptr<SwitchContext>& context, Connection::Socket&& socket)
    : context_(context),
      last_heard_(context->settings.now()),
      bundles_({context->settings.bundles, context->settings.bundle_messages,
                context->settings.bundle_octets},
               context->bundle_octets),
      bundle_timer_(context->loop) {
    connection_ = Connection::start(std::move(socket), *this, context->settings.limits);
    context_->sessions.insert(this);
}

std::shared_ptr<Session> Session::start(const std::shared_ptr<SwitchContext>& context,
                                        Connection::Socket socket, std::function<void()> opened,
                                        std::function<void(const std::string&)> ended) {
    std::shared_ptr<Session> self(new Session(context, std::move(socket)));
    self->opened_ = std::move(opened);
    self->ended_ = std::move(ended);
    return self;
}

Session::~Session() {
    close();
}

void Session::close() {
    context_->sessions.erase(this);
    bundle_timer_.cancel();
    connection_->close();
}

void Session::on_open() {
    ++context_->counters.connections;
    if (opened_) opened_();
}

void Session::on_closed(const std::string& reason) {
    const auto self = shared_from_this();  // whoever owns us may let go now
    context_->sessions.erase(this);
    bundle_timer_.cancel();
    // What is gathered was received whole: it is served although nobody waits for it.
    flush_batch();
    if (ended_) std::exchange(ended_, nullptr)(reason);
}

void Session::on_message(MessageView message) {
    ++context_->counters.messages;
    has_spoken_ = true;
    last_heard_ = context_->settings.now();
    dispatch(message);
}

void Session::on_drained() {
    continue_dump();
}

bool Session::is_secondary_forbidden(Kind kind, MessageView message) const {
    if (role_ != Role::secondary) return false;
    switch (kind) {
        case Kind::flow_mod:
        case Kind::meter_mod:
        case Kind::group_mod:
        case Kind::port_mod:
        case Kind::table_mod:
        case Kind::packet_out:
        case Kind::set_config:
        case Kind::bundle_control:
        case Kind::bundle_add:
            return true;
        case Kind::table_features_request:
            return has_body(message);
        default:
            return false;
    }
}

// OpenFlow's order of checks: header, role, then whatever the message is.
void Session::dispatch(MessageView message) {
    const auto kind = classify(message);
    if (!kind) return refuse(kind.error(), message);
    if (is_secondary_forbidden(*kind, message)) return refuse(error::kIsSecondary, message);
    if (*kind == Kind::flow_mod || *kind == Kind::meter_mod) return modify(*kind, message);
    flush_batch();
    if (must_hold(*kind, message)) return hold(message);
    switch (*kind) {
        case Kind::bundle_control:
            bundle_control(message);
            break;
        case Kind::bundle_add:
            bundle_add(message);
            break;
        case Kind::barrier_request:
            barrier(message);
            break;
        default:
            query(*kind, message);
    }
}

bool Session::must_hold(Kind kind, MessageView message) {
    if (waiting_.empty()) return false;
    if (waiting_.size() >= kMostWaiting) return true;
    switch (kind) {
        case Kind::bundle_add:
        case Kind::barrier_request:
            return false;
        case Kind::bundle_control: {
            const auto control = decode_bundle_control(message);
            if (!control || control->type != BundleType::commit_request) return false;
            const Bundle* bundle = bundles_.find(control->bundle);
            if (bundle == nullptr) return false;
            for (const Modification& modification : bundle->messages)
                if (std::visit([](const auto& mod) { return depends_on_state(mod); },
                               modification.what))
                    return true;
            return false;
        }
        default:
            return true;
    }
}

void Session::hold(MessageView message) {
    held_.emplace(message.begin(), message.end());
    connection_->pause();
}

// Sends the replies whose turn has come, then lets what was held back go on.
void Session::settle() {
    if (settling_) return;
    settling_ = true;
    while (!waiting_.empty() && waiting_.front()->done) {
        const auto first = waiting_.front();
        waiting_.pop_front();
        reply(*first);
    }
    settling_ = false;
    if (waiting_.empty()) release();
    connection_->flush();
}

void Session::release() {
    if (!held_) return;
    const Bytes message = *std::exchange(held_, std::nullopt);
    dispatch(message);
    connection_->resume();
}

void Session::reply(const Waiting& waiting) {
    switch (waiting.what) {
        case Waiting::What::barrier:
            append_barrier_reply(connection_->out(), waiting.request);
            break;
        case Waiting::What::bundle:
            if (waiting.failed) {
                // First what is wrong, then what it means for the bundle.
                refuse(*waiting.failed, waiting.request);
                refuse(error::kBundleFailed, waiting.request);
            } else {
                BundleControl control = *waiting.bundle;
                control.type = BundleType::commit_reply;
                append_bundle_reply(connection_->out(), waiting.request, control);
            }
            break;
        case Waiting::What::batch:
            break;  // only its errors are told, and they were
    }
}

void Session::refuse(const WireError& error, MessageView request) {
    ++context_->counters.errors;
    append_error(connection_->out(), error.code, request, error.message);
    connection_->flush();
    if (!error.message.empty())
        context_->say_rarely("refused a message of " + connection_->peer() + " with " +
                             to_string(error.code) + ": " + error.message);
}

}  // namespace sluice::openflow
