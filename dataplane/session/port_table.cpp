// SPDX-License-Identifier: Apache-2.0
#include "dataplane/session/port_table.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

#include "dataplane/session/port_table_parts.hpp"
#include "dataplane/wire/headers.hpp"

namespace sluice::session {

namespace {

// A reader without lock may run into another chain, or through all free ones.
constexpr std::uint32_t kLongestChain = 64;
constexpr unsigned kRoce = wire::udp::kRoceV2.host() - kFirstNatPort;
constexpr std::uint64_t kOctets = 0x0101010101010101ULL;
constexpr std::uint64_t kTops = 0x8080808080808080ULL;

std::uint64_t word_of(const Ipv4Port& inside) {
    return std::uint64_t{inside.address.host()} << 16 | inside.port;
}
std::uint8_t tag_of(std::uint64_t inside) {
    return static_cast<std::uint8_t>(spread(inside) >> 56 | 1);
}
// The bit of `bits` that comes `random`ly first.
unsigned pick(std::uint64_t bits, std::uint64_t random) {
    const auto turn = static_cast<int>(random & 63);
    return (static_cast<unsigned>(std::countr_zero(std::rotr(bits, turn))) + random) & 63;
}

}  // namespace

PortTable::PortTable(const PortTableOptions& options)
    : rest_(options.rest),
      capacity_(options.blocks),
      address_mask_(std::bit_ceil(std::max(options.addresses, kProbes)) - 1),
      bucket_mask_(std::bit_ceil(std::max(options.blocks, 64U)) - 1),
      blocks_(options.allocate, std::size_t{options.blocks} + 1),
      owners_(options.allocate, std::size_t{options.blocks} + 1),
      addresses_(options.allocate, address_mask_ + 1),
      buckets_(options.allocate, bucket_mask_ + 1),
      zones_(options.allocate, options.zones) {}

bool PortTable::ok() const {
    return blocks_.ok() && owners_.ok() && addresses_.ok() && buckets_.ok() && zones_.ok();
}

PortTable::Bucket& PortTable::bucket_of(std::uint64_t key) const {
    return buckets_[spread(key) >> 20 & bucket_mask_];
}

std::uint32_t PortTable::find_owner(std::uint64_t key, std::uint32_t most) const {
    std::uint32_t at = bucket_of(key).first.load(std::memory_order_acquire);
    for (std::uint32_t step = 0; at != kNone && step < most; ++step) {
        const Owner& owner = owners_[at];
        if (owner.key.load(kRelaxed) == key) return at;
        at = owner.next.load(std::memory_order_acquire);
    }
    return kNone;
}

PortTable::Address* PortTable::find_address(be32 address) const {
    const std::size_t start = spread(address.raw) >> 32;
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
        Address& slot = addresses_[(start + probe) & address_mask_];
        const std::uint32_t key = slot.key.load(std::memory_order_acquire);
        if (key == address.raw) return &slot;
        if (key == 0) return nullptr;
    }
    return nullptr;
}

PortTable::Place PortTable::place_of(const NatPort& port) const {
    if (port.at.port < kFirstNatPort) return {};
    const Address* address = find_address(port.at.address);
    if (address == nullptr) return {};
    const unsigned number = port.at.port - kFirstNatPort;
    const std::uint32_t block =
        address->block[index(port.space)][number / kBlockPorts].load(std::memory_order_acquire);
    if (block == kNone) return {};
    return {&blocks_[block], number % kBlockPorts};
}

bool PortTable::full(be32 address, PortSpace space) const {
    const Address* slot = find_address(address);
    return slot != nullptr && slot->blocks[index(space)].load(kRelaxed) >= kBlocksPerSpace;
}

std::uint32_t PortTable::free() const {
    return capacity_ - common_.in_use.load(kRelaxed);
}

// True: `see` has found what it sought.
template <class See>
bool PortTable::each_block(const Owner& owner, PortSpace space, be32 address, See see) const {
    std::uint32_t at = owner.first[index(space)].load(std::memory_order_acquire);
    const std::uint32_t most = owner.blocks[index(space)].load(kRelaxed);
    for (std::uint32_t step = 0; at != kNone && step < most; ++step) {
        Block& block = blocks_[at];
        if (block.address.load(kRelaxed) == address.raw && see(block)) return true;
        at = block.next.load(std::memory_order_acquire);
    }
    return false;
}

unsigned PortTable::mapped(const Block& block, std::uint64_t inside) {
    const std::uint64_t wanted = tag_of(inside) * kOctets;
    for (unsigned word = 0; word < block.tags.size(); ++word) {
        const std::uint64_t other = block.tags[word].load(kRelaxed) ^ wanted;
        // Octets that are zero; above one, perhaps, some that are not.
        for (std::uint64_t hits = (other - kOctets) & ~other & kTops; hits != 0; hits &= hits - 1) {
            const unsigned bit = word * 8 + static_cast<unsigned>(std::countr_zero(hits)) / 8;
            if (block.inside[bit].load(kRelaxed) == inside) return bit;
        }
    }
    return kBlockPorts;
}

std::uint16_t PortTable::port_of(const Block& block, unsigned bit) {
    return static_cast<std::uint16_t>(kFirstNatPort +
                                      (block.place.load(kRelaxed) & 0xffff) * kBlockPorts + bit);
}

std::uint64_t PortTable::usable(const Block& block) {
    constexpr std::uint32_t kPlace =
        kRoce / kBlockPorts | static_cast<std::uint32_t>(PortSpace::udp) << 16;
    const bool has_roce = block.place.load(kRelaxed) == kPlace;
    return has_roce ? ~(std::uint64_t{1} << kRoce % kBlockPorts) : ~std::uint64_t{0};
}

// Those that rest still: looked at one by one only after the first of them is over.
std::uint64_t PortTable::resting(const Block& block, Tick now) {
    std::uint64_t bits = block.resting.load(kRelaxed);
    if (bits == 0 || !is_over(block.rest_first.load(kRelaxed), now)) return bits;
    for (std::uint64_t left = bits; left != 0; left &= left - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(left));
        if (is_over(block.rest_until[bit].load(kRelaxed), now)) bits &= ~(std::uint64_t{1} << bit);
    }
    return bits;
}

// Ports that nobody uses and that have rested.
std::uint64_t PortTable::vacant(const Block& block, Tick now) {
    const std::uint64_t unused = ~block.live.load(kRelaxed) & usable(block);
    return unused == 0 ? 0 : unused & ~resting(block, now);
}

// Ports in use by connections each with a destination of its own, none of which has just ended.
std::uint64_t PortTable::shareable(const Block& block, Tick now) {
    const std::uint64_t shared = block.live.load(kRelaxed) & block.dependent.load(kRelaxed);
    return shared == 0 ? 0 : shared & ~resting(block, now);
}

// The cap was lowered below what the endpoint has blocks for: then its live ports count.
bool PortTable::beyond_cap(const Owner& owner, const PortRequest& request, be32 address) const {
    if (owner.blocks[index(request.space)].load(kRelaxed) * kBlockPorts <=
        request.ports_per_endpoint)
        return false;
    std::uint32_t live = 0;
    each_block(owner, request.space, address, [&](const Block& block) {
        live += static_cast<std::uint32_t>(std::popcount(block.live.load(kRelaxed)));
        return false;
    });
    return live >= request.ports_per_endpoint;
}

PortTable::Choice PortTable::choose(const PortRequest& request, Tick now) const {
    const std::uint64_t key = key_of(request.owner);
    if (const std::uint32_t at = find_owner(key, kLongestChain); at != kNone) {
        const Choice choice = look(request, at, now);
        if (choice.reason == DropReason::none) return choice;
    }
    // What is not there, or not enough, may have been passed by.
    const std::lock_guard locked(bucket_of(key).lock);
    return look(request, find_owner(key, capacity_), now);
}

PortTable::Choice PortTable::look(const PortRequest& request, std::uint32_t at, Tick now) const {
    Choice choice;
    const auto& addresses = request.addresses;
    if (at != kNone) {
        const Owner& owner = owners_[at];
        choice.address = be32::from_raw(owner.address.load(kRelaxed));
        // Paired with an address that the NAT gateway has no more: with another from now on.
        if (std::find(addresses.begin(), addresses.end(), choice.address) != addresses.end()) {
            bool room = false;
            const bool has_all = beyond_cap(owner, request, choice.address);
            each_block(owner, request.space, choice.address, [&](const Block& block) {
                room = room || (!has_all && vacant(block, now) != 0) ||
                       (!request.endpoint_independent && shareable(block, now) != 0);
                if (!request.endpoint_independent) return room;
                const unsigned bit = mapped(block, word_of(request.inside));
                if (bit == kBlockPorts) return false;
                choice.port = port_of(block, bit);
                return true;
            });
            if (room || choice.port != 0) return choice;
            if (owner.blocks[index(request.space)].load(kRelaxed) * kBlockPorts >=
                request.ports_per_endpoint)
                choice.reason = DropReason::nat_endpoint_ports;
            else if (full(choice.address, request.space))
                choice.reason = DropReason::nat_ports_exhausted;
            else if (!may_have_another(request.zone))
                choice.reason = DropReason::nat_blocks_exhausted;
            return choice;
        }
    }
    // Endpoints spread over the addresses; whose is full goes to the next.
    const std::size_t start = spread(request.owner.endpoint.value) >> 32;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        choice.address = addresses[(start + i) % addresses.size()];
        if (full(choice.address, request.space)) continue;
        if (!may_have_another(request.zone)) choice.reason = DropReason::nat_blocks_exhausted;
        return choice;
    }
    choice.reason = DropReason::nat_ports_exhausted;
    return choice;
}

std::optional<PortTable::Mapping> PortTable::find(const NatPort& port) const {
    const Place place = place_of(port);
    if (place.block == nullptr) return std::nullopt;
    const Block& block = *place.block;
    if ((block.live.load(std::memory_order_acquire) >> place.bit & 1) == 0) return std::nullopt;
    const std::uint64_t inside = block.inside[place.bit].load(kRelaxed);
    const std::uint32_t owner = block.owner.load(kRelaxed);
    if (owner == kNone) return std::nullopt;
    return Mapping{
        owner_of(owners_[owner].key.load(kRelaxed)),
        {be32{static_cast<std::uint32_t>(inside >> 16)}, static_cast<std::uint16_t>(inside)}};
}

bool PortTable::owns(const NatOwner& owner, const NatPort& port) const {
    const auto mapping = find(port);
    return mapping && mapping->owner == owner;
}

std::uint32_t PortTable::number(const NatPort& port) const {
    const Place place = place_of(port);
    if (place.block == nullptr) return 0;
    return static_cast<std::uint32_t>(place.block - &blocks_[0]) * kBlockPorts + place.bit;
}

void PortTable::visit(const std::function<void(const Use&)>& see) const {
    for (std::size_t i = 0; i <= address_mask_; ++i) {
        const Address& address = addresses_[i];
        Use use;
        use.address = be32::from_raw(address.key.load(std::memory_order_acquire));
        if (use.address.raw == 0) continue;
        use.gateway = NatGatewayId{address.gateway.load(kRelaxed)};
        bool any = false;
        for (std::size_t space = 0; space < kPortSpaces; ++space) {
            use.live[space] = address.live[space].load(kRelaxed);
            use.blocks[space] = address.blocks[space].load(kRelaxed);
            any = any || use.blocks[space] != 0;
        }
        if (any) see(use);
    }
}

// --- under locks ---

// What has rested is as if it had never been used, but that its mapping is remembered.
void PortTable::settle(Block& block, Tick now) {
    const std::uint64_t before = block.resting.load(kRelaxed);
    if (before == 0 || !is_over(block.rest_first.load(kRelaxed), now)) return;
    const std::uint64_t after = resting(block, now);
    for (std::uint64_t left = before & ~after; left != 0; left &= left - 1)
        block.rest_until[static_cast<unsigned>(std::countr_zero(left))].store(0, kRelaxed);
    std::uint32_t first = block.rest_end.load(kRelaxed);
    for (std::uint64_t left = after; left != 0; left &= left - 1) {
        const std::uint32_t until =
            block.rest_until[static_cast<unsigned>(std::countr_zero(left))].load(kRelaxed);
        if (is_over(until, Tick{first})) first = until;
    }
    block.resting.store(after, kRelaxed);
    block.rest_first.store(first, kRelaxed);
    if (after == 0) block.rest_end.store(0, kRelaxed);
}

PortTable::Taken PortTable::give(Block& block, unsigned bit, const PortRequest& request) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    if (block.uses[bit].fetch_add(1, kRelaxed) == 0) {
        const std::uint64_t inside =
            request.endpoint_independent ? word_of(request.inside) : std::uint64_t{0};
        const std::uint64_t tag = request.endpoint_independent ? tag_of(inside) : 0;
        const unsigned shift = bit % 8 * 8;
        auto& tags = block.tags[bit / 8];
        block.inside[bit].store(inside, kRelaxed);
        tags.store((tags.load(kRelaxed) & ~(0xffULL << shift)) | tag << shift, kRelaxed);
        const std::uint64_t dependent = block.dependent.load(kRelaxed);
        block.dependent.store(request.endpoint_independent ? dependent & ~one : dependent | one,
                              kRelaxed);
        block.live.store(block.live.load(kRelaxed) | one, std::memory_order_release);
        addresses_[block.slot.load(kRelaxed)].live[index(request.space)].fetch_add(1, kRelaxed);
    }
    Taken taken;
    taken.port = port_of(block, bit);
    return taken;
}

PortTable::Taken PortTable::take(const PortRequest& request, be32 address, Want want,
                                 std::uint64_t random, Tick now) {
    const std::uint64_t key = key_of(request.owner);
    const std::lock_guard locked(bucket_of(key).lock);
    std::uint32_t at = find_owner(key, capacity_);
    const auto failed = [&](DropReason reason) {
        Taken taken;
        taken.reason = reason;
        return taken;
    };
    if (at != kNone) {
        Owner& owner = owners_[at];
        if (owner.address.load(kRelaxed) != address.raw) {
            const be32 paired = be32::from_raw(owner.address.load(kRelaxed));
            // Another worker has just paired it: the packet may come again.
            if (std::find(request.addresses.begin(), request.addresses.end(), paired) !=
                request.addresses.end())
                return failed(DropReason::session_conflict);
            owner.address.store(address.raw, kRelaxed);
        }
        std::optional<Taken> taken;
        if (request.endpoint_independent &&
            each_block(owner, request.space, address, [&](Block& block) {
                const unsigned bit = mapped(block, word_of(request.inside));
                if (bit != kBlockPorts) taken = give(block, bit, request);
                return taken.has_value();
            }))
            return *taken;
        if (!beyond_cap(owner, request, address) &&
            each_block(owner, request.space, address, [&](Block& block) {
                settle(block, now);
                const std::uint64_t free = vacant(block, now);
                if (free != 0) taken = give(block, pick(free, random), request);
                return taken.has_value();
            }))
            return *taken;
        if (want == Want::any && !request.endpoint_independent)
            if (Block* block = any_shareable(owner, request.space, address, random / 64, now))
                return give(*block, pick(shareable(*block, now), random), request);
        if (owner.blocks[index(request.space)].load(kRelaxed) * kBlockPorts >=
            request.ports_per_endpoint)
            return failed(DropReason::nat_endpoint_ports);
    }
    const bool is_new = at == kNone;
    if (is_new) at = add_owner(key);
    if (at == kNone) return failed(DropReason::nat_blocks_exhausted);
    const Assigned assigned = assign(at, request, address, random);
    if (assigned.reason != DropReason::none) {
        if (is_new) remove_owner(owners_[at], at);
        return failed(assigned.reason);
    }
    Block& block = blocks_[assigned.block];
    Taken taken = give(block, pick(vacant(block, now), random >> 32), request);
    taken.assigned = BlockEvent{true,          request.owner,     address,
                                request.space, port_of(block, 0), nanoseconds(now.value)};
    return taken;
}

// Any of those with a port that one more connection may have, each as likely.
PortTable::Block* PortTable::any_shareable(const Owner& owner, PortSpace space, be32 address,
                                           std::uint64_t random, Tick now) const {
    Block* chosen = nullptr;
    std::uint64_t seen = 0;
    each_block(owner, space, address, [&](Block& block) {
        if (shareable(block, now) != 0 && random % ++seen == 0) chosen = &block;
        return false;
    });
    return chosen;
}

PortTable::Used PortTable::used(const PortRequest& request, be32 address, std::uint64_t random,
                                Tick now) {
    const std::uint64_t key = key_of(request.owner);
    const std::lock_guard locked(bucket_of(key).lock);
    const std::uint32_t at = find_owner(key, capacity_);
    if (at == kNone) return {};
    const Block* block = any_shareable(owners_[at], request.space, address, random, now);
    if (block == nullptr) return {};
    return {port_of(*block, 0), shareable(*block, now)};
}

PortTable::Taken PortTable::take_used(const PortRequest& request, const Ipv4Port& port, Tick now) {
    const std::uint64_t key = key_of(request.owner);
    const Place place = place_of({request.space, port});
    Taken taken;
    taken.reason = DropReason::nat_endpoint_ports;
    if (place.block == nullptr) return taken;
    const std::lock_guard locked(bucket_of(key).lock);
    if (!is_at(*place.block, key, {request.space, port}) ||
        (shareable(*place.block, now) >> place.bit & 1) == 0)
        return taken;
    return give(*place.block, place.bit, request);
}

// Under the owner's lock: whether the block is that owner's, and still where the port is.
bool PortTable::is_at(const Block& block, std::uint64_t key, const NatPort& port) const {
    const std::uint32_t owner = block.owner.load(kRelaxed);
    return owner != kNone && owners_[owner].key.load(kRelaxed) == key &&
           block.address.load(kRelaxed) == port.at.address.raw &&
           block.place.load(kRelaxed) == ((port.at.port - kFirstNatPort) / kBlockPorts |
                                          static_cast<std::uint32_t>(port.space) << 16);
}

bool PortTable::hold(const NatPort& port, const Mapping& mapping) {
    const Place place = place_of(port);
    if (place.block == nullptr) return false;
    const std::lock_guard locked(bucket_of(key_of(mapping.owner)).lock);
    Block& block = *place.block;
    if (!is_at(block, key_of(mapping.owner), port) ||
        (block.live.load(kRelaxed) >> place.bit & 1) == 0 ||
        block.inside[place.bit].load(kRelaxed) != word_of(mapping.inside))
        return false;
    block.uses[place.bit].fetch_add(1, kRelaxed);
    return true;
}

void PortTable::leave(Block& block, unsigned bit, Tick until, Tick now) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    if (!is_over(until.value, now)) {
        const std::uint64_t resting = block.resting.load(kRelaxed);
        const std::uint32_t first = block.rest_first.load(kRelaxed);
        if (resting == 0 || is_over(until.value, Tick{first}))
            block.rest_first.store(until.value, kRelaxed);
        block.resting.store(resting | one, kRelaxed);
        const std::uint32_t before = block.rest_until[bit].load(kRelaxed);
        if (is_over(before, until)) block.rest_until[bit].store(until.value, kRelaxed);
        const std::uint32_t end = block.rest_end.load(kRelaxed);
        if (is_over(end, until)) block.rest_end.store(until.value, kRelaxed);
    }
    if (block.uses[bit].fetch_sub(1, kRelaxed) != 1) return;
    block.live.store(block.live.load(kRelaxed) & ~one, std::memory_order_release);
    addresses_[block.slot.load(kRelaxed)].live[block.place.load(kRelaxed) >> 16].fetch_sub(
        1, kRelaxed);
}

void PortTable::release(const NatPort& port, Tick last, Tick now) {
    const Place place = place_of(port);
    if (place.block == nullptr) return;
    // In use, so neither block nor owner can go meanwhile.
    const std::uint32_t owner = place.block->owner.load(kRelaxed);
    const std::lock_guard locked(bucket_of(owners_[owner].key.load(kRelaxed)).lock);
    std::uint32_t until = last.value + rest_[index(port.space)];
    if (until == 0) until = 1;
    leave(*place.block, place.bit, Tick{until}, now);
}

void PortTable::undo(const NatPort& port, Tick now) {
    const Place place = place_of(port);
    if (place.block == nullptr) return;
    const std::uint32_t owner = place.block->owner.load(kRelaxed);
    const std::lock_guard locked(bucket_of(owners_[owner].key.load(kRelaxed)).lock);
    leave(*place.block, place.bit, now, now);
}

}  // namespace sluice::session
