// SPDX-License-Identifier: Apache-2.0
// Quiescent-state-based reclamation: when may the writer reuse what readers may still hold?
//
// Use: a reader (worker) calls `quiescent` whenever it holds no pointer into shared
// structures, once per burst: one relaxed load and one release store to a line of its
// own. A writer unpublishes, takes `advance()`, and reuses the memory once `elapsed` of
// that token. An idle reader goes offline and is not waited for.
// Threads: each reader index belongs to one thread; `advance` and `elapsed` from any.
// DPDK's rte_rcu_qsbr does the same but hides its orderings from ThreadSanitizer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace sluice::reclaim {

class Qsbr {
  public:
    using Token = std::uint64_t;

    // All readers start offline.
    explicit Qsbr(unsigned readers)
        : readers_(std::make_unique<Reader[]>(readers)), count_(readers) {}
    Qsbr(const Qsbr&) = delete;
    Qsbr& operator=(const Qsbr&) = delete;

    [[nodiscard]] unsigned readers() const { return count_; }

    // Reader: "I hold nothing". What it reads afterwards is read after this.
    void quiescent(unsigned reader) {
        readers_[reader].seen.store(epoch_.load(std::memory_order_acquire),
                                    std::memory_order_release);
    }
    void online(unsigned reader) {
        // Sequentially consistent: the reader's later loads must not move before the
        // moment at which a writer can see it online.
        readers_[reader].seen.store(epoch_.load(std::memory_order_seq_cst),
                                    std::memory_order_seq_cst);
        epoch_.load(std::memory_order_seq_cst);
    }
    void offline(unsigned reader) {
        readers_[reader].seen.store(kOffline, std::memory_order_release);
    }

    // Writer: starts a grace period; everything unpublished before is covered by it.
    [[nodiscard]] Token advance() { return epoch_.fetch_add(1, std::memory_order_seq_cst) + 1; }
    // True when every reader has been quiescent or offline since `token` was taken.
    [[nodiscard]] bool elapsed(Token token) const {
        for (unsigned i = 0; i < count_; ++i)
            if (readers_[i].seen.load(std::memory_order_seq_cst) < token) return false;
        return true;
    }

  private:
    static constexpr std::uint64_t kOffline = ~0ULL;
    struct alignas(64) Reader {
        std::atomic<std::uint64_t> seen{kOffline};
    };
    alignas(64) std::atomic<std::uint64_t> epoch_{1};
    std::unique_ptr<Reader[]> readers_;
    unsigned count_;
};

}  // namespace sluice::reclaim
