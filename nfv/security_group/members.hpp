// SPDX-License-Identifier: Apache-2.0
// Which groups and prefix lists an address belongs to: the union of all blocks that contain
// it, by one look-up for each prefix length that the VPC has.
//
// Threads: Members is immutable in a snapshot; RemoteAddress is a value of one walk, and
// looks up nothing until a rule that names a group asks. Neither allocates while reading.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/policy/persistent_map.hpp"
#include "dataplane/policy/records.hpp"
#include "nfv/security_group/table.hpp"

namespace sluice::nfv {

struct BlockKey {
    Direction direction{};
    VpcId vpc;
    Prefix block;
    bool operator==(const BlockKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const {
        return policy::hash_of(std::uint64_t{vpc.value} << 16 | std::uint64_t{block.length} << 8 |
                                   static_cast<std::uint64_t>(direction),
                               block.address);
    }
};
struct BlockRecord {
    using Traits = policy::KeyedTraits<BlockRecord, BlockKey>;
    BlockKey key;
    std::vector<std::pair<GroupId, Cookie>> groups;
};

struct LengthsKey {
    Direction direction{};
    VpcId vpc;
    Family family{};
    bool operator==(const LengthsKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const {
        return policy::finish(policy::mix(
            policy::mix(9, vpc.value),
            static_cast<std::uint64_t>(direction) << 8 | static_cast<std::uint64_t>(family)));
    }
};
// How many blocks of each prefix length there are; no length with none.
struct LengthsRecord {
    using Traits = policy::KeyedTraits<LengthsRecord, LengthsKey>;
    LengthsKey key;
    std::vector<std::pair<std::uint8_t, std::uint32_t>> counts;
};

class Members {
  public:
    void put(const GroupAddressRow& row);
    void remove(const GroupAddressRow& row);

    [[nodiscard]] const BlockRecord* find(const BlockKey& key) const { return blocks_.find(key); }
    [[nodiscard]] const LengthsRecord* lengths(const LengthsKey& key) const {
        return lengths_.find(key);
    }

  private:
    void count(const BlockKey& key, bool more);

    policy::PersistentMap<BlockRecord> blocks_;
    policy::PersistentMap<LengthsRecord> lengths_;
};

class RemoteAddress {
  public:
    RemoteAddress(const Members& members, Direction direction, VpcId vpc, const IpAddress& address)
        : members_(members), direction_(direction), vpc_(vpc), address_(address) {}

    bool contain(GroupId group);

  private:
    void look_up();

    const Members& members_;
    Direction direction_;
    VpcId vpc_;
    const IpAddress& address_;
    bool known_ = false;
    unsigned count_ = 0;
    std::array<const BlockRecord*, 129> found_;  // one a prefix length at most
};

}  // namespace sluice::nfv
