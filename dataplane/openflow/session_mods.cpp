// SPDX-License-Identifier: Apache-2.0
// A session's modifications: gathered, bundled, committed.
#include <boost/asio/post.hpp>

#include "dataplane/openflow/dump.hpp"
#include "dataplane/openflow/session.hpp"

namespace sluice::openflow {
namespace {

constexpr std::size_t kLongestBatch = 4096;

std::optional<WireError> apply(Staging& staging, const Modification& modification) {
    return std::visit([&](const auto& mod) { return staging.apply(mod); }, modification.what);
}

}  // namespace

std::optional<Modification> Session::read_modification(Kind kind, MessageView message) {
    ++context_->counters.modifications;
    if (kind == Kind::flow_mod) {
        auto mod = decode_flow_mod(message);
        if (!mod) return refuse(mod.error(), message), std::nullopt;
        if (auto wrong = precheck(context_->backend, *mod))
            return refuse(*wrong, message), std::nullopt;
        return make_modification(*std::move(mod), message);
    }
    auto mod = decode_meter_mod(message);
    if (!mod) return refuse(mod.error(), message), std::nullopt;
    return make_modification(*std::move(mod), message);
}

void Session::modify(Kind kind, MessageView message) {
    auto modification = read_modification(kind, message);
    if (!modification) return;
    const bool looks =
        std::visit([](const auto& mod) { return depends_on_state(mod); }, modification->what);
    if ((looks && !waiting_.empty()) || waiting_.size() >= kMostWaiting) {
        flush_batch();
        --context_->counters.modifications;  // it will be read again
        return hold(message);
    }
    batch_.push_back(*std::move(modification));
    if (batch_.size() >= kLongestBatch) return flush_batch();
    if (batch_posted_) return;
    batch_posted_ = true;
    boost::asio::post(context_->loop, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        self->batch_posted_ = false;
        self->flush_batch();
    });
}

void Session::flush_batch() {
    if (batch_.empty()) return;
    Staging staging(context_->backend, context_->meters);
    auto waiting = std::make_shared<Waiting>();
    waiting->what = Waiting::What::batch;
    for (Modification& modification : std::exchange(batch_, {})) {
        if (auto wrong = apply(staging, modification))
            refuse(*wrong, modification.quote);
        else
            waiting->batch.push_back(std::move(modification));
    }
    Changes changes = staging.take();
    if (changes.empty()) return;
    waiting_.push_back(waiting);
    context_->commit(std::move(changes),
                     [weak = weak_from_this(), waiting](const Result<void>& result) {
                         if (const auto self = weak.lock()) self->batch_done(waiting, result);
                     });
}

void Session::batch_done(const std::shared_ptr<Waiting>& waiting, const Result<void>& result) {
    if (!result && waiting->batch.size() > 1) return retry_one(waiting, 0);
    if (!result) refuse(to_wire(result.error()), waiting->batch.front().quote);
    waiting->done = true;
    settle();
}

// All together were refused: each by itself, so that only the wrong ones are.
void Session::retry_one(const std::shared_ptr<Waiting>& waiting, std::size_t index) {
    for (; index < waiting->batch.size(); ++index) {
        const Modification& modification = waiting->batch[index];
        Staging staging(context_->backend, context_->meters);
        if (auto wrong = apply(staging, modification)) {
            refuse(*wrong, modification.quote);
            continue;
        }
        Changes changes = staging.take();
        if (changes.empty()) continue;
        context_->commit(std::move(changes),
                         [weak = weak_from_this(), waiting, index](const Result<void>& result) {
                             const auto self = weak.lock();
                             if (!self) return;
                             if (!result)
                                 self->refuse(to_wire(result.error()), waiting->batch[index].quote);
                             boost::asio::post(self->context_->loop, [self, waiting, index] {
                                 self->retry_one(waiting, index + 1);
                             });
                         });
        return;
    }
    waiting->done = true;
    settle();
}

void Session::barrier(MessageView message) {
    if (waiting_.empty()) return append_barrier_reply(connection_->out(), message);
    auto waiting = std::make_shared<Waiting>();
    waiting->what = Waiting::What::barrier;
    waiting->request.assign(message.begin(), message.end());
    waiting->done = true;
    waiting_.push_back(std::move(waiting));
}

void Session::bundle_control(MessageView message) {
    const auto control = decode_bundle_control(message);
    if (!control) return refuse(control.error(), message);
    const auto now = context_->settings.now();
    std::optional<ErrorCode> wrong;
    switch (control->type) {
        case BundleType::open_request:
            wrong = bundles_.open(*control, message, now);
            break;
        case BundleType::close_request:
            wrong = bundles_.close(*control, now);
            break;
        case BundleType::discard_request:
            wrong = bundles_.discard(*control);
            break;
        case BundleType::commit_request:
            return commit_bundle(*control, message);
        default:
            wrong = error::kBundleBadType;
    }
    if (wrong) return refuse(*wrong, message);
    watch_bundles();
    BundleControl answer = *control;
    answer.type = static_cast<BundleType>(static_cast<std::uint16_t>(control->type) + 1);
    append_bundle_reply(connection_->out(), message, answer);
}

void Session::commit_bundle(const BundleControl& control, MessageView message) {
    const auto wrong = bundles_.may_commit(control);
    const Bundle bundle = bundles_.commit(control.bundle);
    if (wrong) return refuse(*wrong, message);
    Staging staging(context_->backend, context_->meters);
    for (const Modification& modification : bundle.messages) {
        if (auto failed = apply(staging, modification)) {
            refuse(*failed, modification.quote);
            return refuse(error::kBundleFailed, message);
        }
    }
    auto waiting = std::make_shared<Waiting>();
    waiting->what = Waiting::What::bundle;
    waiting->request.assign(message.begin(), message.end());
    waiting->bundle = control;
    waiting_.push_back(waiting);
    Changes changes = staging.take();
    if (changes.empty()) {
        waiting->done = true;
        return settle();
    }
    context_->commit(std::move(changes),
                     [weak = weak_from_this(), waiting](const Result<void>& result) {
                         const auto self = weak.lock();
                         if (!self) return;
                         waiting->done = true;
                         if (!result) waiting->failed = to_wire(result.error());
                         self->settle();
                     });
}

void Session::bundle_add(MessageView message) {
    const auto request = decode_bundle_add(message);
    if (!request) {
        bundles_.refuse(bundle_of(message));
        return refuse(request.error(), message);
    }
    if (const auto wrong = bundles_.admit(*request, message, context_->settings.now())) {
        bundles_.refuse(request->bundle);
        return refuse(*wrong, message);
    }
    watch_bundles();
    auto modification = read_modification(request->inner_kind, request->inner);
    if (!modification) return bundles_.refuse(request->bundle);
    bundles_.add(request->bundle, *std::move(modification), message.size());
}

void Session::watch_bundles() {
    if (bundle_timer_runs_ || bundles_.empty()) return;
    bundle_timer_runs_ = true;
    const auto idle = context_->settings.bundle_idle;
    bundle_timer_.expires_after(idle / 2 + std::chrono::milliseconds(1));
    bundle_timer_.async_wait(
        [weak = weak_from_this(), idle](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (error || !self) return;
            self->bundle_timer_runs_ = false;
            const auto since = self->context_->settings.now() - idle;
            for (const auto& opened_by : self->bundles_.expire(since))
                self->refuse(error::kBundleTimeout, opened_by);
            self->watch_bundles();
        });
}

}  // namespace sluice::openflow
