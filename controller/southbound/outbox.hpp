// SPDX-License-Identifier: Apache-2.0
// Changes on their way to one switch: each one ordered bundle, its commit and a barrier,
// several under way at a time.
//
// Purpose: writes a change's messages as the connection takes them, and tells from the
// replies which change was confirmed or refused, in order. To a switch that cannot bundle
// meters (every other one), meters go before the bundle and leave after it.
//
// Threads: the connection's. Cost: a message of a change costs its encoding; at most about
// a megabyte of them waits in the connection.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "dataplane/openflow/codec.hpp"
#include "dataplane/openflow/connection.hpp"

namespace sluice::southbound {

using openflow::Xid;

class Outbox {
  public:
    struct Outcome {
        std::uint64_t revision = 0;
        openflow::Changes changes;
        std::optional<std::string> refused;  // a sentence: nothing of it was applied
        // The entries that were wrong in themselves, if that is all that was: their place in
        // `changes.put`, and the switch's words.
        std::map<std::size_t, std::string> culprits;
    };
    using Clock = std::chrono::steady_clock;

    using Now = std::function<Clock::time_point()>;

    Outbox(openflow::Connection& connection, Now now)
        : connection_(connection), now_(std::move(now)) {}

    void set_plain(bool plain) { plain_ = plain; }
    // The meters that the switch has now; to know an addition from a modification.
    void set_meters(std::unordered_set<MeterId> meters) { meters_ = std::move(meters); }

    // An empty change is only confirmed.
    void push(std::uint64_t revision, openflow::Changes changes);
    // Writes what the connection has room for.
    void pump();
    // The outcomes that have become known, oldest first; call after each of the below.
    std::optional<Outcome> pop();

    void on_barrier(Xid xid);
    void on_bundle(const openflow::BundleControl& reply, Xid xid);
    // False: the error answers nothing of ours.
    bool on_error(const openflow::RemoteError& error);
    // Since when the oldest change that is wholly written waits for its answer.
    [[nodiscard]] std::optional<Clock::time_point> waiting_since() const;
    [[nodiscard]] bool empty() const { return parcels_.empty(); }
    // Forgets everything; a bundle that is half written is discarded.
    void clear();

  private:
    // The messages of a change, in the order in which they are written.
    enum class Step : std::uint8_t {
        plain_meters,
        open,
        meters,
        remove,
        put,
        remove_meters,
        commit,
        plain_remove,
        barrier,
        done
    };
    // Consecutive transaction ids of consecutive messages of one step.
    struct Run {
        std::uint32_t first_xid;
        Step step;
        std::size_t first_index;
    };
    struct Parcel {
        std::uint64_t revision = 0;
        openflow::Changes changes;
        std::uint32_t bundle = 0;
        Step step = Step::plain_meters;
        std::size_t index = 0;
        std::vector<Run> runs;
        std::uint32_t first_xid = 0, last_xid = 0;
        bool bundled = false, committed = false, finished = false;
        std::optional<std::string> refused;
        std::map<std::size_t, std::string> culprits;
        bool wrong_otherwise = false;
        std::vector<MeterId> new_meters;
        Clock::time_point written;
    };

    bool write_step(Parcel& parcel);
    std::size_t size_of(const Parcel& parcel) const;
    void write_one(Parcel& parcel);
    void control(Parcel& parcel, openflow::BundleType type);
    Xid use_xid(Parcel& parcel);
    struct Place {
        Step step = Step::done;
        std::size_t index = 0;
    };
    [[nodiscard]] static Place locate(const Parcel& parcel, std::uint32_t xid);
    [[nodiscard]] static std::string describe(const Parcel& parcel, const Place& place);

    openflow::Connection& connection_;
    Now now_;
    bool plain_ = false;
    std::unordered_set<MeterId> meters_;
    std::uint32_t last_bundle_ = 0;
    std::deque<Parcel> parcels_;
};

}  // namespace sluice::southbound
