// SPDX-License-Identifier: Apache-2.0
// IPv4 identifications for datagrams of many senders that leave with one address: unless it can
// never be fragmented, a datagram's must not occur again for the same source, destination and
// protocol while it may be on its way (RFC 6864 section 4.3), and whoever shares the address sees
// to that as if it were the source (section 5.3). Where an address is one sender's alone, its own
// numbers do.
//
// Threads: all workers. Cost: a hash and an atomic addition, for datagrams without DF and fragments
// of shared addresses only. Memory: 8 KiB. Sources, destinations and protocols whose hashes meet
// share a counter: it then comes round sooner.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "dataplane/session/key.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::session {

class Identifications {
  public:
    explicit Identifications(const HashSeed& seed) : seed_(seed) {
        // Where they begin, nobody can guess.
        for (std::size_t i = 0; i < counters_.size(); ++i)
            counters_[i].store(static_cast<std::uint32_t>(mix(seed_.words[2] ^ i, seed_.words[3])),
                               std::memory_order_relaxed);
    }

    // The next one; never zero.
    std::uint16_t next(be32 source, be32 destination, std::uint8_t protocol) {
        const std::uint64_t ends = std::uint64_t{source.raw} << 32 | destination.raw;
        auto& counter =
            counters_[mix(ends ^ seed_.words[0], seed_.words[1] ^ protocol) % counters_.size()];
        constexpr std::uint32_t kNumbers = 0xffff;
        return static_cast<std::uint16_t>(
            counter.fetch_add(1, std::memory_order_relaxed) % kNumbers + 1);
    }

  private:
    const HashSeed seed_;
    std::array<std::atomic<std::uint32_t>, 2048> counters_;
};

}  // namespace sluice::session
