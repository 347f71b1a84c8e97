// SPDX-License-Identifier: Apache-2.0
// Records that were replaced and may still be read: freed after a grace period.
//
// Use: `add` each, `seal` after a batch (one grace period for all of it), `reclaim` now and
// then. Threads: the control thread's.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/reclaim/qsbr.hpp"

namespace sluice::reachability {

template <class Record>
class Retired {
  public:
    explicit Retired(reclaim::Qsbr& qsbr) : qsbr_(qsbr) {}

    void add(const Record* record) {
        if (record != nullptr) batch_.emplace_back(record);
    }
    void seal() {
        if (!batch_.empty()) sealed_.push_back({qsbr_.advance(), std::exchange(batch_, {})});
    }
    void reclaim() {
        while (!sealed_.empty() && qsbr_.elapsed(sealed_.front().token)) sealed_.pop_front();
    }

  private:
    using Batch = std::vector<std::unique_ptr<const Record>>;
    struct Sealed {
        reclaim::Qsbr::Token token;
        Batch records;
    };
    reclaim::Qsbr& qsbr_;
    Batch batch_;
    std::deque<Sealed> sealed_;
};

}  // namespace sluice::reachability
