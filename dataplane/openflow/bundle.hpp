// SPDX-License-Identifier: Apache-2.0
// The bundles of one connection: which exist, in which state, with what in them (ONF
// extension 230, sections 2 and 3). What happens to a committed bundle is its user's affair.
//
//   request   absent                open              closed
//   open      opens                 BUNDLE_EXIST      BUNDLE_EXIST
//   add       opens, adds           adds              BUNDLE_CLOSED
//   close     BAD_ID                closes            BUNDLE_CLOSED
//   commit    BAD_ID                commits, ends     commits, ends
//   discard   BAD_ID                ends              ends
//
// Flags that differ from the first ones are BAD_FLAGS, except for a discard. A message that
// was refused makes the bundle fail at its commit: nothing of it is applied.
//
// Threads: control. Cost: constant a message. Bounded: bundles, messages in each, octets
// in all bundles of all connections together.
#pragma once

#include <chrono>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "dataplane/openflow/codec.hpp"

namespace sluice::openflow {

// A modification and the start of the message that asked for it, which an error quotes.
struct Modification {
    std::variant<FlowMod, MeterMod> what;
    std::vector<std::uint8_t> quote;
};
Modification make_modification(std::variant<FlowMod, MeterMod> what, MessageView message);

struct Bundle {
    enum class State : std::uint8_t { open, closed };
    State state = State::open;
    std::uint16_t flags = 0;
    bool refused = false;  // one of its messages was
    std::size_t octets = 0;
    std::vector<Modification> messages;
    std::vector<std::uint8_t> opened_by;
    std::chrono::steady_clock::time_point last_used;
};

struct BundleLimits {
    std::size_t bundles, messages, octets;
};

class Bundles {
  public:
    // `octets_in_use` is shared by all connections.
    Bundles(BundleLimits limits, std::size_t& octets_in_use)
        : limits_(limits), octets_(octets_in_use) {}
    ~Bundles();
    Bundles(const Bundles&) = delete;
    Bundles& operator=(const Bundles&) = delete;

    using Time = std::chrono::steady_clock::time_point;
    std::optional<ErrorCode> open(const BundleControl& request, MessageView message, Time now);
    std::optional<ErrorCode> close(const BundleControl& request, Time now);
    std::optional<ErrorCode> discard(const BundleControl& request);
    // Whether commit() would hand out a bundle.
    [[nodiscard]] std::optional<ErrorCode> may_commit(const BundleControl& request) const;
    [[nodiscard]] const Bundle* find(std::uint32_t id) const;
    // Ends it, even when it is the wrong moment: a commit is a bundle's last request.
    Bundle commit(std::uint32_t id);

    // Whether a message may be added; opens the bundle where it is absent.
    std::optional<ErrorCode> admit(const BundleAdd& request, MessageView message, Time now);
    // Only after admit() said nothing.
    void add(std::uint32_t id, Modification modification, std::size_t octets);
    void refuse(std::uint32_t id);
    // Ends those not used since `since`; returns what opened them.
    std::vector<std::vector<std::uint8_t>> expire(Time since);
    [[nodiscard]] bool empty() const { return bundles_.empty(); }

  private:
    void end(std::unordered_map<std::uint32_t, Bundle>::iterator at);

    BundleLimits limits_;
    std::size_t& octets_;
    std::unordered_map<std::uint32_t, Bundle> bundles_;
};

}  // namespace sluice::openflow
