// SPDX-License-Identifier: Apache-2.0
// How many ICMP errors the gateway sends to whom (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4
// (f)): so many to each endpoint, so that none can have the gateway work for it alone, and so many
// in all. What goes to the internet, where senders may be anybody's invention, is limited apart,
// and takes nothing away from tenants.
//
// Threads: all workers. One GCRA word each (RateWord): whoever exceeds its rate only reads it.
// Endpoints share a word where their hashes, which nobody can guess, do: a bound is then reached
// sooner, never later. Cost: a hash and two words; only for packets that are dropped anyway.
// Memory: 64 KiB.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "dataplane/session/key.hpp"
#include "dataplane/session/limits.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::session {

class AnswerLimits {
  public:
    // To each, and to all: errors a second, and at once after a rest.
    static constexpr std::uint64_t kPerSecond = 100, kBurst = 50;
    static constexpr std::uint64_t kAllPerSecond = 10'000, kAllBurst = 1'000;

    explicit AnswerLimits(const HashSeed& seed)
        : seed_(seed), words_(std::make_unique<std::array<RateWord, kWords>>()) {}

    // Whether one may be sent to a tenant's endpoint; `now` in nanoseconds. If so it is counted.
    bool allow(EndpointId endpoint, std::uint64_t now) {
        return take(word(seed_.words[0] ^ endpoint.value, 0), tenants_, now);
    }
    // ... to an address on the internet.
    bool allow(const IpAddress& address, std::uint64_t now) {
        std::array<std::uint64_t, 2> words;
        std::memcpy(words.data(), address.bytes.data(), sizeof words);
        return take(word(seed_.words[0] ^ words[0], words[1]), outside_, now);
    }

  private:
    static constexpr std::size_t kWords = 8192;
    static constexpr std::uint64_t kSecond = 1'000'000'000;

    RateWord& word(std::uint64_t high, std::uint64_t low) {
        return (*words_)[mix(high, low ^ seed_.words[1]) % kWords];
    }
    static bool take(RateWord& own, RateWord& all, std::uint64_t now) {
        constexpr std::uint64_t kOwn = kSecond / kPerSecond, kAll = kSecond / kAllPerSecond;
        return own.take(now, kOwn, kOwn * (kBurst - 1)) &&
               all.take(now, kAll, kAll * (kAllBurst - 1));
    }

    const HashSeed seed_;
    std::unique_ptr<std::array<RateWord, kWords>> words_;
    RateWord tenants_, outside_;
};

}  // namespace sluice::session
