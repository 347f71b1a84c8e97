// SPDX-License-Identifier: Apache-2.0
// What one switch has refused, object by object, and so is not sent again for a while.
//
// Purpose: one entry that a switch does not accept must not keep all others away. The
// entries of its object (those of one cookie, in the change that was refused) are left out;
// they are tried again when the object changes, and after a time that doubles.
//
// Threads: the connection's. Cost: follows what is withheld and the change at hand. Errors:
// none; more than kMostWithheld objects is the caller's to judge.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "controller/compiler/desired_state.hpp"
#include "controller/southbound/difference.hpp"

namespace sluice::southbound {

inline constexpr std::size_t kMostWithheld = 100;

class Withheld {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Sentences = std::map<Cookie, std::string>;

    [[nodiscard]] bool empty() const { return objects_.empty(); }
    [[nodiscard]] std::size_t size() const { return objects_.size(); }
    [[nodiscard]] bool holds(const openflow::EntryKey& key) const { return keys_.contains(key); }
    // Every object, those on trial too, with what the switch said.
    [[nodiscard]] Sentences sentences() const;
    [[nodiscard]] const std::unordered_map<openflow::EntryKey, Cookie, KeyHash>& keys() const {
        return keys_;
    }

    // The switch does not accept these of `changes.put`. What is no longer desired as it was
    // sent, since a later change is on its way, is not withheld.
    void add(const compiler::DesiredState& desired, const openflow::Changes& changes,
             const std::map<std::size_t, std::string>& refused, Time now);
    // Objects that `changes` concern are withheld no longer; what else of them is to be sent.
    std::vector<openflow::EntryKey> lift(const openflow::Changes& changes);
    // Puts on trial what is due: not held, but not yet accepted either. What is to be sent.
    std::vector<openflow::EntryKey> due(Time now, std::chrono::milliseconds first);
    // What was on trial has been accepted. True: there was something.
    bool accept();

  private:
    struct Object {
        std::string sentence;
        Time since;
        unsigned tries = 0;
        bool on_trial = false;
        std::set<openflow::EntryKey> keys;
    };
    std::map<Cookie, Object> objects_;
    std::unordered_map<openflow::EntryKey, Cookie, KeyHash> keys_;  // but of those on trial
};

// The desired state without what is withheld.
class Offered final : public compiler::DesiredState {
  public:
    Offered(const compiler::DesiredState& desired, const Withheld& withheld)
        : desired_(desired), withheld_(withheld) {}

    [[nodiscard]] std::uint64_t revision() const override { return desired_.revision(); }
    void visit(std::uint8_t table, const EntryVisitor& visitor) const override;
    void visit_meters(const MeterVisitor& visitor) const override;
    [[nodiscard]] std::vector<openflow::TableDigest> digests() const override;
    [[nodiscard]] const openflow::Entry* find(const openflow::EntryKey& key) const override;
    [[nodiscard]] const openflow::Meter* find(MeterId id) const override;

  private:
    const compiler::DesiredState& desired_;
    const Withheld& withheld_;
};

// What brings a switch that has all or nothing of `parts` to what `desired` says of the keys
// and meters in them.
openflow::Changes present(const compiler::DesiredState& desired,
                          const std::vector<openflow::Changes>& parts);

}  // namespace sluice::southbound
