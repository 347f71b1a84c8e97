// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/connections.hpp"

#include <array>

#include "dataplane/wire/headers.hpp"

namespace sluice::pktgen {
namespace {

using namespace wire::tcp;

// Numbers of one attempt, of which each end uses three; as many attempts have numbers of their own.
constexpr std::uint32_t kSpace = 8, kAttempts = UINT32_MAX / kSpace;

struct Step {
    Way way;
    std::uint8_t flags;
    std::uint8_t sequence, acknowledgement;  // from the initial numbers
};
constexpr std::array<Step, 6> kSteps{{{Way::forward, kSyn, 0, 0},
                                      {Way::reverse, kSyn | kAck, 0, 1},
                                      {Way::forward, kAck, 1, 1},
                                      {Way::forward, kFin | kAck, 1, 1},
                                      {Way::reverse, kFin | kAck, 1, 2},
                                      {Way::forward, kAck, 2, 2}}};

}  // namespace

Segment Connections::segment(std::uint32_t flow, std::uint32_t attempt, std::size_t step) const {
    const Step& one = kSteps[step];
    const std::uint32_t first = attempt * kSpace;
    return {flow, one.way, first + one.sequence,
            (one.flags & kAck) != 0 ? first + one.acknowledgement : 0, one.flags};
}

void Connections::begin() {
    for (auto& state : open_) state.awaited = kNone;
    counts_ = {};
}

Segment Connections::open(std::uint64_t now) {
    const auto flow = static_cast<std::uint32_t>(attempt_ % open_.size());
    Open& state = open_[flow];
    if (state.awaited != kNone) ++counts_.abandoned;
    state = {now, attempt_, 0};
    ++counts_.opened;
    const Segment first = segment(flow, attempt_, 0);
    const auto flows = static_cast<std::uint32_t>(open_.size());
    if (++attempt_ == kAttempts / flows * flows) attempt_ = 0;
    return first;
}

Connections::Answer Connections::arrive(std::uint32_t sequence, std::uint32_t acknowledgement,
                                        std::uint8_t flags) {
    const std::uint32_t attempt = sequence / kSpace;
    const auto flow = static_cast<std::uint32_t>(attempt % open_.size());
    Open& state = open_[flow];
    if (state.awaited == kNone || state.attempt != attempt) {
        ++counts_.unexpected;
        return {};
    }
    const Segment awaited = segment(flow, attempt, state.awaited);
    if (awaited.sequence != sequence || awaited.acknowledgement != acknowledgement ||
        awaited.flags != flags) {
        ++counts_.unexpected;
        return {};
    }
    if (state.awaited == 1) ++counts_.answered;
    if (++state.awaited < kSteps.size())
        return {segment(flow, attempt, state.awaited), {}, awaited};
    state.awaited = kNone;
    ++counts_.completed;
    return {{}, state.since, awaited};
}

}  // namespace sluice::pktgen
