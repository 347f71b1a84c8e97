// SPDX-License-Identifier: Apache-2.0
// The ports of NAT gateways' addresses: how blocks come to owners and go back.
#include <bit>
#include <mutex>

#include "dataplane/session/port_table.hpp"
#include "dataplane/session/port_table_parts.hpp"

namespace sluice::session {

std::size_t PortTable::expire(std::uint32_t& cursor, std::uint32_t stride, unsigned budget,
                              Tick now, std::span<BlockEvent> released) {
    std::size_t count = 0;
    if (stride == 0) return count;
    for (; budget > 0 && count < released.size(); --budget, cursor += stride) {
        if (cursor >= high_water()) {
            cursor = cursor % stride;
            break;
        }
        if (cursor == kNone) continue;
        Block& block = blocks_[cursor];
        const std::uint32_t owner = block.owner.load(std::memory_order_acquire);
        if (owner == kNone || block.live.load(kRelaxed) != 0 ||
            !is_over(block.rest_end.load(kRelaxed), now))
            continue;
        const std::uint64_t key = owners_[owner].key.load(kRelaxed);
        const std::lock_guard locked(bucket_of(key).lock);
        // Somebody may have come in between.
        if (block.owner.load(kRelaxed) != owner || owners_[owner].key.load(kRelaxed) != key ||
            block.live.load(kRelaxed) != 0 || !is_over(block.rest_end.load(kRelaxed), now))
            continue;
        const std::uint32_t place = block.place.load(kRelaxed);
        released[count++] = {false,
                             owner_of(key),
                             be32::from_raw(block.address.load(kRelaxed)),
                             static_cast<PortSpace>(place >> 16),
                             port_of(block, 0),
                             nanoseconds(now.value)};
        give_back(block, cursor);
    }
    return count;
}

std::uint32_t PortTable::add_owner(std::uint64_t key) {
    std::uint32_t at = kNone;
    {
        const std::lock_guard locked(common_.lock);
        if (common_.free_owner != kNone) {
            at = common_.free_owner;
            common_.free_owner = owners_[at].next.load(kRelaxed);
        } else if (common_.untouched_owner <= capacity_) {
            at = common_.untouched_owner++;
        }
    }
    if (at == kNone) return kNone;
    Owner& owner = owners_[at];
    Bucket& bucket = bucket_of(key);
    for (std::size_t space = 0; space < kPortSpaces; ++space) {
        owner.first[space].store(kNone, kRelaxed);
        owner.blocks[space].store(0, kRelaxed);
    }
    owner.address.store(0, kRelaxed);
    owner.key.store(key, kRelaxed);
    owner.next.store(bucket.first.load(kRelaxed), kRelaxed);
    bucket.first.store(at, std::memory_order_release);
    return at;
}

void PortTable::remove_owner(Owner& owner, std::uint32_t at) {
    Half* link = &bucket_of(owner.key.load(kRelaxed)).first;
    while (link->load(kRelaxed) != at) link = &owners_[link->load(kRelaxed)].next;
    link->store(owner.next.load(kRelaxed), std::memory_order_release);
    owner.key.store(0, kRelaxed);
    const std::lock_guard locked(common_.lock);
    owner.next.store(common_.free_owner, kRelaxed);
    common_.free_owner = at;
}

// Under the lock of blocks. A slot whose address has no block in use may be another's.
PortTable::Address* PortTable::add_address(be32 address) {
    if (Address* known = find_address(address)) return known;
    const std::size_t start = spread(address.raw) >> 32;
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
        Address& slot = addresses_[(start + probe) & address_mask_];
        bool idle = true;
        for (const auto& blocks : slot.blocks) idle = idle && blocks.load(kRelaxed) == 0;
        if (!idle) continue;
        slot.key.store(address.raw, std::memory_order_release);
        return &slot;
    }
    return nullptr;
}

PortTable::Assigned PortTable::assign(std::uint32_t owner_index, const PortRequest& request,
                                      be32 address, std::uint64_t random) {
    const std::size_t space = index(request.space);
    const std::lock_guard locked(common_.lock);
    if (!may_have_another(request.zone)) return {DropReason::nat_blocks_exhausted};
    Address* slot = add_address(address);
    if (slot == nullptr) return {DropReason::nat_blocks_exhausted};
    // The first free place at or after a random one.
    constexpr unsigned kWords = (kBlocksPerSpace + 63) / 64;
    const unsigned start = static_cast<unsigned>(random >> 40) % kBlocksPerSpace;
    unsigned place = kBlocksPerSpace;
    for (unsigned i = 0; i <= kWords && place == kBlocksPerSpace; ++i) {
        const unsigned word = (start / 64 + i) % kWords;
        std::uint64_t free = ~slot->used[space][word].load(kRelaxed);
        if (word == kWords - 1) free &= ~std::uint64_t{0} >> (kWords * 64 - kBlocksPerSpace);
        if (i == 0) free &= ~std::uint64_t{0} << start % 64;
        if (free != 0) place = word * 64 + static_cast<unsigned>(std::countr_zero(free));
    }
    if (place == kBlocksPerSpace) return {DropReason::nat_ports_exhausted};
    std::uint32_t number = common_.free_block;
    // One is free, or there were no share of it.
    if (number != kNone)
        common_.free_block = blocks_[number].next.load(kRelaxed);
    else
        number = common_.untouched.load(kRelaxed);

    Block& block = blocks_[number];
    Owner& owner = owners_[owner_index];
    for (auto& word : block.tags) word.store(0, kRelaxed);
    for (auto& inside : block.inside) inside.store(0, kRelaxed);
    for (auto& until : block.rest_until) until.store(0, kRelaxed);
    block.live.store(0, kRelaxed);
    block.resting.store(0, kRelaxed);
    block.dependent.store(0, kRelaxed);
    block.rest_first.store(0, kRelaxed);
    block.rest_end.store(0, kRelaxed);
    block.address.store(address.raw, kRelaxed);
    block.place.store(place | static_cast<std::uint32_t>(space) << 16, kRelaxed);
    block.slot.store(static_cast<std::uint32_t>(slot - &addresses_[0]), kRelaxed);
    block.zone.store(request.zone, kRelaxed);
    block.next.store(owner.first[space].load(kRelaxed), kRelaxed);
    block.owner.store(owner_index, std::memory_order_release);
    owner.address.store(address.raw, kRelaxed);
    owner.first[space].store(number, std::memory_order_release);
    owner.blocks[space].fetch_add(1, kRelaxed);
    slot->gateway.store(request.owner.gateway.value, kRelaxed);
    slot->used[space][place / 64].fetch_or(std::uint64_t{1} << place % 64, kRelaxed);
    slot->blocks[space].fetch_add(1, kRelaxed);
    slot->block[space][place].store(number, std::memory_order_release);
    if (number == common_.untouched.load(kRelaxed))
        common_.untouched.store(number + 1, std::memory_order_release);
    common_.in_use.fetch_add(1, kRelaxed);
    zones_[request.zone].fetch_add(1, kRelaxed);
    return {DropReason::none, number};
}

void PortTable::give_back(Block& block, std::uint32_t number) {
    const std::uint32_t at = block.owner.load(kRelaxed);
    Owner& owner = owners_[at];
    const std::uint32_t place = block.place.load(kRelaxed);
    const std::size_t space = place >> 16;
    const unsigned within = place & 0xffff;
    Half* link = &owner.first[space];
    while (link->load(kRelaxed) != number) link = &blocks_[link->load(kRelaxed)].next;
    link->store(block.next.load(kRelaxed), std::memory_order_release);
    owner.blocks[space].fetch_sub(1, kRelaxed);
    {
        const std::lock_guard locked(common_.lock);
        Address& slot = addresses_[block.slot.load(kRelaxed)];
        slot.block[space][within].store(kNone, std::memory_order_release);
        slot.used[space][within / 64].fetch_and(~(std::uint64_t{1} << within % 64), kRelaxed);
        slot.blocks[space].fetch_sub(1, kRelaxed);
        common_.in_use.fetch_sub(1, kRelaxed);
        zones_[block.zone.load(kRelaxed)].fetch_sub(1, kRelaxed);
        block.owner.store(kNone, std::memory_order_release);
        block.next.store(common_.free_block, kRelaxed);
        common_.free_block = number;
    }
    for (const auto& blocks : owner.blocks)
        if (blocks.load(kRelaxed) != 0) return;
    remove_owner(owner, at);
}

}  // namespace sluice::session
