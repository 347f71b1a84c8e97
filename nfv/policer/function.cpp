// SPDX-License-Identifier: Apache-2.0
#include "nfv/policer/function.hpp"

namespace sluice::nfv {
namespace {

using namespace policy;

// A packet draws from a meter once, however many of its entries name it: two elastic addresses
// that share a bandwidth, for example.
void draw_once(DirectionPlan& direction) {
    auto& meters = direction.meters;
    for (std::size_t i = 1; i < meters.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (meters[i] == meters[j]) meters[i] = MeterId{};
}

void limit(const FunctionState&, WalkState& walk) {
    draw_once(walk.plan.forward);
    draw_once(walk.plan.reverse);
}

class Policer final : public NetworkFunction {
  public:
    [[nodiscard]] std::string_view name() const override { return "policer"; }
    // Meters are no table: entries of others' tables name them.
    [[nodiscard]] std::span<const openflow::TableSchema* const> tables() const override {
        return {};
    }
    [[nodiscard]] std::span<const Step> steps() const override {
        static constexpr Step kSteps[] = {{Stage::limit, &limit}};
        return kSteps;
    }
    [[nodiscard]] std::shared_ptr<const FunctionState> initial() const override {
        return std::make_shared<FunctionState>();
    }
    [[nodiscard]] Result<std::shared_ptr<const FunctionState>> apply(const FunctionState& before,
                                                                     std::span<const EntryChange>,
                                                                     Commit&) const override {
        return std::shared_ptr<const FunctionState>(std::make_shared<FunctionState>(before));
    }
};

}  // namespace

const NetworkFunction& policer() {
    static const Policer function;
    return function;
}

}  // namespace sluice::nfv
