// SPDX-License-Identifier: Apache-2.0
#include "nfv/security_group/members.hpp"

#include <algorithm>

namespace sluice::nfv {

void Members::put(const GroupAddressRow& row) {
    BlockRecord record{{row.direction, row.vpc, row.remote}, {}};
    const BlockRecord* there = blocks_.find(record.key);
    if (there != nullptr) record.groups = there->groups;
    std::erase_if(record.groups, [&](const auto& one) { return one.first == row.group; });
    record.groups.emplace_back(row.group, row.cookie);
    if (there == nullptr) count(record.key, true);
    blocks_.put(std::move(record));
}

void Members::remove(const GroupAddressRow& row) {
    const BlockRecord* there = blocks_.find({row.direction, row.vpc, row.remote});
    if (there == nullptr) return;
    BlockRecord record = *there;
    std::erase_if(record.groups, [&](const auto& one) { return one.first == row.group; });
    if (!record.groups.empty()) {
        blocks_.put(std::move(record));
        return;
    }
    blocks_.remove(record.key);
    count(record.key, false);
}

void Members::count(const BlockKey& key, bool more) {
    LengthsRecord record{{key.direction, key.vpc, key.block.family()}, {}};
    if (const LengthsRecord* there = lengths_.find(record.key)) record.counts = there->counts;
    auto place = std::find_if(record.counts.begin(), record.counts.end(),
                              [&](const auto& one) { return one.first == key.block.length; });
    if (place == record.counts.end()) place = record.counts.insert(place, {key.block.length, 0});
    place->second += more ? 1U : ~0U;
    if (place->second == 0) record.counts.erase(place);
    if (record.counts.empty())
        lengths_.remove(record.key);
    else
        lengths_.put(std::move(record));
}

bool RemoteAddress::contain(GroupId group) {
    if (!known_) look_up();
    for (unsigned i = 0; i < count_; ++i)
        for (const auto& [member_of, cookie] : found_[i]->groups)
            if (member_of == group) return true;
    return false;
}

void RemoteAddress::look_up() {
    known_ = true;
    const LengthsRecord* lengths = members_.lengths({direction_, vpc_, address_.family()});
    if (lengths == nullptr) return;
    for (const auto& [length, count] : lengths->counts) {
        const Prefix block = Prefix{address_, length}.without_host_bits();
        if (const BlockRecord* record = members_.find({direction_, vpc_, block}))
            found_[count_++] = record;
    }
}

}  // namespace sluice::nfv
