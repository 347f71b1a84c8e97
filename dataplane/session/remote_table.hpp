// SPDX-License-Identifier: Apache-2.0
// Whom a mapped port has connections with: what address-dependent filtering asks (RFC 4787
// section 5).
//
// A counted set of {port, remote address}; ports by PortTable::number, never 0.
// Threads: `has` any, without a lock if it has; `has` not, `add` and `remove` under the lock of a
// bucket. Cost: some 20 ns. Memory: 16 octets a pair, and 8 a bucket; taken when first touched.
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/session/key.hpp"
#include "dataplane/session/memory.hpp"
#include "dataplane/session/spin_lock.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::session {

class RemoteTable {
  public:
    // `capacity`: pairs at once, connections of NAT gateways at most. `seed`:
    // random, so that no tenant knows which remotes share a bucket.
    RemoteTable(const Allocate& allocate, std::uint32_t capacity, const HashSeed& seed);
    RemoteTable(const RemoteTable&) = delete;
    RemoteTable& operator=(const RemoteTable&) = delete;
    [[nodiscard]] bool ok() const { return pairs_.ok() && buckets_.ok(); }

    [[nodiscard]] bool has(std::uint32_t port, be32 remote) const;
    // False: the table is full.
    bool add(std::uint32_t port, be32 remote);
    void remove(std::uint32_t port, be32 remote);

  private:
    struct Pair {
        std::atomic<std::uint64_t> key{0};
        std::atomic<std::uint32_t> next{0};
        std::uint32_t count = 0;  // under the bucket's lock
    };
    struct Bucket {
        std::atomic<std::uint32_t> first{0};
        SpinLock lock;
    };

    [[nodiscard]] Bucket& bucket_of(std::uint64_t key) const {
        return buckets_[mix(key ^ seed_.words[0], seed_.words[1]) & mask_];
    }
    [[nodiscard]] std::uint32_t find(const Bucket& bucket, std::uint64_t key,
                                     std::uint32_t most) const;
    std::uint32_t take_free();

    // What is changed under its lock only, on a line of its own.
    struct alignas(64) Common {
        SpinLock lock;
        std::uint32_t free = 0, untouched = 1;
    };

    Common common_;
    HashSeed seed_;
    std::size_t mask_;
    mutable Array<Pair> pairs_;
    mutable Array<Bucket> buckets_;
    std::uint32_t capacity_;
};

}  // namespace sluice::session
