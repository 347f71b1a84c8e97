// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/bundle.hpp"

#include <algorithm>

namespace sluice::openflow {
namespace {

constexpr std::size_t kQuoted = 64;

std::vector<std::uint8_t> quote_of(MessageView message) {
    const auto start = message.first(std::min(message.size(), kQuoted));
    return {start.begin(), start.end()};
}

}  // namespace

Modification make_modification(std::variant<FlowMod, MeterMod> what, MessageView message) {
    return {std::move(what), quote_of(message)};
}

Bundles::~Bundles() {
    while (!bundles_.empty()) end(bundles_.begin());
}

void Bundles::end(std::unordered_map<std::uint32_t, Bundle>::iterator at) {
    octets_ -= at->second.octets;
    bundles_.erase(at);
}

std::optional<ErrorCode> Bundles::open(const BundleControl& request, MessageView message,
                                       Time now) {
    if (bundles_.contains(request.bundle)) return error::kBundleExists;
    if ((request.flags & ~(kBundleAtomic | kBundleOrdered)) != 0) return error::kBundleBadFlags;
    if (bundles_.size() >= limits_.bundles) return error::kOutOfBundles;
    Bundle& bundle = bundles_[request.bundle];
    bundle.flags = request.flags;
    bundle.opened_by = quote_of(message);
    bundle.last_used = now;
    return std::nullopt;
}

std::optional<ErrorCode> Bundles::close(const BundleControl& request, Time now) {
    const auto at = bundles_.find(request.bundle);
    if (at == bundles_.end()) return error::kBundleBadId;
    if (at->second.state == Bundle::State::closed) return error::kBundleClosed;
    if (at->second.flags != request.flags) return error::kBundleBadFlags;
    at->second.state = Bundle::State::closed;
    at->second.last_used = now;
    return std::nullopt;
}

std::optional<ErrorCode> Bundles::discard(const BundleControl& request) {
    const auto at = bundles_.find(request.bundle);
    if (at == bundles_.end()) return error::kBundleBadId;
    end(at);
    return std::nullopt;
}

std::optional<ErrorCode> Bundles::may_commit(const BundleControl& request) const {
    const auto at = bundles_.find(request.bundle);
    if (at == bundles_.end()) return error::kBundleBadId;
    if (at->second.flags != request.flags) return error::kBundleBadFlags;
    return at->second.refused ? std::optional(error::kBundleFailed) : std::nullopt;
}

const Bundle* Bundles::find(std::uint32_t id) const {
    const auto at = bundles_.find(id);
    return at == bundles_.end() ? nullptr : &at->second;
}

Bundle Bundles::commit(std::uint32_t id) {
    const auto at = bundles_.find(id);
    if (at == bundles_.end()) return {};
    Bundle result = std::move(at->second);
    octets_ -= result.octets;
    bundles_.erase(at);
    return result;
}

std::optional<ErrorCode> Bundles::admit(const BundleAdd& request, MessageView message, Time now) {
    auto at = bundles_.find(request.bundle);
    if (at == bundles_.end()) {
        if (auto refused =
                open({request.bundle, BundleType::open_request, request.flags}, message, now))
            return refused;
        at = bundles_.find(request.bundle);
    }
    Bundle& bundle = at->second;
    bundle.last_used = now;
    if (bundle.state == Bundle::State::closed) return error::kBundleClosed;
    if (bundle.flags != request.flags) return error::kBundleBadFlags;
    if (bundle.messages.size() >= limits_.messages || octets_ + message.size() > limits_.octets)
        return error::kBundleTooMany;
    return std::nullopt;
}

void Bundles::add(std::uint32_t id, Modification modification, std::size_t octets) {
    Bundle& bundle = bundles_.at(id);
    bundle.messages.push_back(std::move(modification));
    bundle.octets += octets;
    octets_ += octets;
}

void Bundles::refuse(std::uint32_t id) {
    const auto at = bundles_.find(id);
    if (at != bundles_.end()) at->second.refused = true;
}

std::vector<std::vector<std::uint8_t>> Bundles::expire(Time since) {
    std::vector<std::vector<std::uint8_t>> result;
    for (auto at = bundles_.begin(); at != bundles_.end();) {
        const auto next = std::next(at);
        if (at->second.last_used < since) {
            result.push_back(std::move(at->second.opened_by));
            end(at);
        }
        at = next;
    }
    return result;
}

}  // namespace sluice::openflow
