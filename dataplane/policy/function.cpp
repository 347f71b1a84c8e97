// SPDX-License-Identifier: Apache-2.0
#include "dataplane/policy/function.hpp"

namespace sluice::policy {

Pipeline::Pipeline(std::vector<const NetworkFunction*> functions)
    : functions_(std::move(functions)) {
    for (const openflow::TableSchema* schema : openflow::core_tables())
        by_id_[schema->id] = {schema, nullptr};
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
        for (const openflow::TableSchema* schema : functions_[i]->tables())
            by_id_[schema->id] = {schema, functions_[i]};
        for (const Step& step : functions_[i]->steps())
            steps_[static_cast<std::size_t>(step.stage)].push_back({step.run, i});
    }
    for (const Owned& table : by_id_)
        if (table.schema != nullptr) tables_.push_back(table.schema);
}

}  // namespace sluice::policy
