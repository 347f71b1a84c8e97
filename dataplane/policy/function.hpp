// SPDX-License-Identifier: Apache-2.0
// What a network function is to the walk and to a commit.
//
// A function brings tables (their schemas), an immutable state built from its entries, and
// steps: plain functions that the walk calls at fixed stages. `main` lists the functions;
// nothing else in the gateway knows them by name.
// Threads: `apply` on the control thread; steps on any worker, on a state that is immutable.
// A step never allocates, locks, logs or throws.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "dataplane/openflow/schema.hpp"
#include "dataplane/policy/commit.hpp"
#include "dataplane/policy/own_addresses.hpp"
#include "dataplane/policy/walk_state.hpp"

namespace sluice::policy {

// Where in the walk a step stands. Steps of one stage run in the order of `main`'s list,
// until one ends the walk. Between the stages the core looks up VPC, route and endpoint.
enum class Stage : std::uint8_t {
    source,                   // overlay, VPC known: who sends this?
    local,                    // does the gateway itself answer it?
    egress,                   // may the sender send it?
    delivered,                // to the gateway's own address, egress judged: what is the answer?
    source_translation,       // routed to the internet: as whom?
    destination_translation,  // from the uplink or to the internet: is it one of ours?
    reply,                    // the destination is known: who may answer?
    ingress,                  // may the destination receive it?
    limit,                    // all is known: which limits apply?
    count
};
inline constexpr std::size_t kStages = static_cast<std::size_t>(Stage::count);

// Whatever a function builds from its entries. Immutable once returned.
class FunctionState {
  public:
    FunctionState() = default;
    FunctionState(const FunctionState&) = default;
    FunctionState& operator=(const FunctionState&) = default;
    virtual ~FunctionState() = default;
};

// The frame of an `apply`: a copy of the state before, which `change_all` makes into the next.
template <class State, class ChangeAll>
Result<std::shared_ptr<const FunctionState>> next_state(const FunctionState& before,
                                                        ChangeAll change_all) {
    auto next = std::make_shared<State>(static_cast<const State&>(before));
    if (const Result<void> done = change_all(*next); !done) return done.error();
    return std::shared_ptr<const FunctionState>(std::move(next));
}

struct Step {
    Stage stage{};
    void (*run)(const FunctionState& state, WalkState& walk) = nullptr;
};

class NetworkFunction {
  public:
    virtual ~NetworkFunction() = default;

    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual std::span<const openflow::TableSchema* const> tables() const = 0;
    [[nodiscard]] virtual std::span<const Step> steps() const = 0;

    // What is wrong with an entry that its schema cannot express, whatever else is in the
    // tables. Asked of each entry before a bundle is applied, so that it alone is refused.
    [[nodiscard]] virtual std::optional<openflow::Problem> check(
        const openflow::Entry& /*entry*/, const OwnAddresses& /*own*/) const {
        return std::nullopt;
    }

    // The state without entries.
    [[nodiscard]] virtual std::shared_ptr<const FunctionState> initial() const = 0;
    // The state after a bundle's changes to this function's tables: entries that `validate`
    // and `check` accepted. Says through `commit` whom they concern. An error refuses the whole
    // bundle.
    [[nodiscard]] virtual Result<std::shared_ptr<const FunctionState>> apply(
        const FunctionState& before, std::span<const EntryChange> changes,
        Commit& commit) const = 0;
};

// The functions of a gateway, in order, and their steps by stage. Outlives every snapshot.
class Pipeline {
  public:
    struct BoundStep {
        void (*run)(const FunctionState& state, WalkState& walk);
        std::uint32_t function;  // index into Snapshot::functions
    };

    explicit Pipeline(std::vector<const NetworkFunction*> functions);

    [[nodiscard]] std::span<const NetworkFunction* const> functions() const { return functions_; }
    [[nodiscard]] std::span<const BoundStep> steps(Stage stage) const {
        return steps_[static_cast<std::size_t>(stage)];
    }
    // Core tables and the functions', by number.
    [[nodiscard]] std::span<const openflow::TableSchema* const> tables() const { return tables_; }
    // nullptr: there is no such table.
    [[nodiscard]] const openflow::TableSchema* table(std::uint8_t id) const {
        return id < by_id_.size() ? by_id_[id].schema : nullptr;
    }
    // Which function owns the table; nullptr: the core.
    [[nodiscard]] const NetworkFunction* owner(std::uint8_t id) const { return by_id_[id].owner; }

  private:
    struct Owned {
        const openflow::TableSchema* schema = nullptr;
        const NetworkFunction* owner = nullptr;
    };
    std::vector<const NetworkFunction*> functions_;
    std::array<std::vector<BoundStep>, kStages> steps_;
    std::vector<const openflow::TableSchema*> tables_;
    std::array<Owned, kTables> by_id_{};
};

}  // namespace sluice::policy
