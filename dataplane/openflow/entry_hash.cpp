// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/entry_hash.hpp"

namespace sluice::openflow {
namespace {

__extension__ using Wide = unsigned __int128;

// One multiply and fold a word: the result depends on the order of the words.
class Hasher {
  public:
    Hasher& add(std::uint64_t word) {
        const auto product = static_cast<Wide>(state_ ^ word ^ kSeed) * kMultiplier;
        state_ = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64) ^
                 (state_ << 1 | state_ >> 63);
        return *this;
    }
    Hasher& add(const U128& value) { return add(value.high).add(value.low); }
    [[nodiscard]] std::uint64_t finish() const {  // splitmix64's finaliser
        std::uint64_t x = state_;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
        return x ^ (x >> 31);
    }

  private:
    static constexpr std::uint64_t kSeed = 0x9e3779b97f4a7c15ULL;
    static constexpr std::uint64_t kMultiplier = 0xd6e8feb86659fd93ULL;
    std::uint64_t state_ = kSeed;
};

void add_key(Hasher& hasher, const EntryKey& key) {
    hasher.add(std::uint64_t{key.table} << 32 | std::uint64_t{key.priority} << 16 |
               key.match.size());
    for (const MatchField& match : key.match)
        hasher.add(static_cast<std::uint64_t>(match.field)).add(match.value).add(match.mask);
}

}  // namespace

std::uint64_t key_hash(const EntryKey& key) {
    Hasher hasher;
    add_key(hasher, key);
    return hasher.finish();
}

std::uint64_t entry_hash(const Entry& entry) {
    Hasher hasher;
    add_key(hasher, entry.key);
    hasher.add(entry.cookie.value)
        .add(std::uint64_t{entry.meter.value} << 32 | (entry.next ? *entry.next + 1U : 0U))
        .add(entry.set.size());
    for (const SetField& set : entry.set)
        hasher.add(static_cast<std::uint64_t>(set.field)).add(set.value);
    return hasher.finish();
}

std::uint64_t meter_hash(const Meter& meter) {
    return Hasher{}.add(meter.id.value).add(meter.rate_kbps).add(meter.burst_kbit).finish();
}

}  // namespace sluice::openflow
