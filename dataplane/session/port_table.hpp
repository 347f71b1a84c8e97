// SPDX-License-Identifier: Apache-2.0
// The ports of NAT gateways' addresses: who has which, and since when nobody has.
//
// Purpose: connections of many endpoints share public IPv4 addresses. Ports 1024 to 65535 of an
// address, apart for TCP, UDP and ICMP identifiers, are cut into blocks of 64. A block belongs to
// one endpoint from its first port's use until all of its ports have rested; within its blocks an
// endpoint's ports are its own, so that a log of blocks answers who had a port. An endpoint keeps
// to one address while it has a block there (paired pooling, RFC 4787 REQ-2).
// A port is live while a connection uses it. After the last one it rests until no packet of it
// can be about: 4 minutes after its last packet for TCP (two maximum segment lifetimes, RFC 9293
// section 3.4.2), 2 minutes for others (RFC 6888 REQ-8). It rests whoever ends the connection,
// and though the endpoint be gone.
// A VPC may have as many blocks as are free (dynamic thresholds, as limits.hpp has them for
// connections): alone half of them, and whatever others do, something stays free for the next one.
// Two ways to map (RFC 4787 section 4.1): endpoint-independent, one port per private address and
// port, whatever the destination; or address- and port-dependent, any port of the endpoint, many
// connections each. The caller sees to it that no two of these have one destination.
// UDP port 4791 is nobody's: what comes to it is RoCEv2.
// Threads: `find`, `owns`, `visit` any, lock-free; `choose` any, without a lock if the endpoint has
// a port or room for one; the rest workers, under the lock of the owner's bucket for some tens of
// nanoseconds, and another once per block. Every field that is read without a lock is an atomic;
// such a reader may see a moment ago.
// Cost: an endpoint's port is sought by tags, two lines of memory per block it has of the protocol,
// one if mappings are address- and port-dependent: 64 blocks at most (settings.hpp).
// Memory: 1,152 octets a block in use, 12 KiB an address in use, 4 a VPC; taken when first touched.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "dataplane/session/memory.hpp"
#include "dataplane/session/spin_lock.hpp"
#include "dataplane/session/tick.hpp"
#include "dataplane/wire/drop_reason.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::session {

enum class PortSpace : std::uint8_t { tcp, udp, icmp };
inline constexpr std::size_t kPortSpaces = 3;
// Nothing for a protocol that a NAT gateway does not translate.
constexpr std::optional<PortSpace> port_space(std::uint8_t protocol) {
    switch (static_cast<Protocol>(protocol)) {
        case Protocol::tcp:
            return PortSpace::tcp;
        case Protocol::udp:
            return PortSpace::udp;
        case Protocol::icmp:
            return PortSpace::icmp;
        default:
            return std::nullopt;
    }
}

inline constexpr std::uint16_t kFirstNatPort = 1024;
inline constexpr unsigned kBlockPorts = 64;
inline constexpr unsigned kBlocksPerSpace = (65536 - kFirstNatPort) / kBlockPorts;

struct NatOwner {
    NatGatewayId gateway;
    EndpointId endpoint;
    constexpr auto operator<=>(const NatOwner&) const = default;
};

// An IPv4 address and a port, or an ICMP identifier, in host order.
struct Ipv4Port {
    be32 address;
    std::uint16_t port = 0;
    constexpr auto operator<=>(const Ipv4Port&) const = default;
};

// A public port in its protocol's space.
struct NatPort {
    PortSpace space = PortSpace::tcp;
    Ipv4Port at;
};

struct PortRequest {
    NatOwner owner;
    PortSpace space = PortSpace::tcp;
    Ipv4Port inside;
    bool endpoint_independent = true;
    std::uint32_t ports_per_endpoint = 1024;  // a multiple of kBlockPorts
    std::span<const be32> addresses;          // of the NAT gateway
    std::uint32_t zone = 0;                   // slot of the endpoint's VPC, to which blocks count
};

// A block came to an endpoint or left it.
struct BlockEvent {
    bool assigned = false;
    NatOwner owner;
    be32 address;
    PortSpace space = PortSpace::tcp;
    std::uint16_t first_port = 0;
    std::uint64_t time = 0;  // nanoseconds, the worker's clock
};

struct PortTableOptions {
    std::uint32_t blocks = 1U << 16;
    std::uint32_t addresses = 1U << 12;
    std::uint32_t zones = 1U << 14;
    Allocate allocate = map_memory;
    std::array<std::uint32_t, kPortSpaces> rest = {ticks(240), ticks(120), ticks(120)};
};

class PortTable {
  public:
    explicit PortTable(const PortTableOptions& options);
    PortTable(const PortTable&) = delete;
    PortTable& operator=(const PortTable&) = delete;
    [[nodiscard]] bool ok() const;

    // --- for everybody ---

    struct Choice {
        DropReason reason = DropReason::none;  // why there is none
        be32 address;
        std::uint16_t port = 0;  // 0: to be given by `take`
    };
    // What workers take for the present.
    [[nodiscard]] Tick now() const { return {now_.load(std::memory_order_relaxed)}; }
    void advance(Tick now) { now_.store(now.value, std::memory_order_relaxed); }

    // What `take` would say now.
    [[nodiscard]] Choice choose(const PortRequest& request, Tick now) const;

    struct Mapping {
        NatOwner owner;
        Ipv4Port inside;  // port 0: of an address- and port-dependent mapping
    };
    // Behind a live port.
    [[nodiscard]] std::optional<Mapping> find(const NatPort& port) const;
    [[nodiscard]] bool owns(const NatOwner& owner, const NatPort& port) const;
    // Names a live port for as long as it is.
    [[nodiscard]] std::uint32_t number(const NatPort& port) const;

    struct Use {
        be32 address;
        NatGatewayId gateway;  // that last took a block of it
        std::array<std::uint32_t, kPortSpaces> live{}, blocks{};
    };
    // Each address with a block in use.
    void visit(const std::function<void(const Use&)>& see) const;

    [[nodiscard]] std::uint32_t capacity() const { return capacity_; }  // in blocks
    [[nodiscard]] std::uint32_t free() const;
    // Blocks that a VPC's endpoints have.
    [[nodiscard]] std::uint32_t held(std::uint32_t zone) const {
        return zones_[zone].load(std::memory_order_relaxed);
    }

    // --- for workers ---

    struct Taken {
        DropReason reason = DropReason::none;
        std::uint16_t port = 0;
        std::optional<BlockEvent> assigned = std::nullopt;
    };
    enum class Want : std::uint8_t {
        any,    // endpoint-independent: the mapping's; else one that nobody uses, else a used one
        fresh,  // one that nobody uses
    };
    // One more connection on a port of this address (as chosen). `random`: which, among equals.
    Taken take(const PortRequest& request, be32 address, Want want, std::uint64_t random, Tick now);

    // Ports that connections with address- and port-dependent mappings share.
    struct Used {
        std::uint16_t first = 0;
        std::uint64_t bits = 0;  // from `first` on
    };
    // Of one of the owner's blocks.
    [[nodiscard]] Used used(const PortRequest& request, be32 address, std::uint64_t random,
                            Tick now);
    // One more connection on one of these; none left: nat_endpoint_ports.
    Taken take_used(const PortRequest& request, const Ipv4Port& port, Tick now);
    // One more on a live endpoint-independent mapping; false if it is no more what it was.
    bool hold(const NatPort& port, const Mapping& mapping);
    // One less; its last packet was seen at `last`.
    void release(const NatPort& port, Tick last, Tick now);
    // One less that never was.
    void undo(const NatPort& port, Tick now);

    // Looks at the next `budget` blocks from `cursor`, in steps of `stride`: those whose ports
    // have all rested are free again. How many, and which: no more than `released` can hold.
    std::size_t expire(std::uint32_t& cursor, std::uint32_t stride, unsigned budget, Tick now,
                       std::span<BlockEvent> released);
    // Blocks at and above it were never used.
    [[nodiscard]] std::uint32_t high_water() const {
        return common_.untouched.load(std::memory_order_acquire);
    }

  private:
    using Word = std::atomic<std::uint64_t>;
    using Half = std::atomic<std::uint32_t>;
    static constexpr std::uint32_t kNone = 0;  // indexes of blocks and owners begin with 1

    struct alignas(64) Block {
        Half owner{kNone};
        Half next{kNone};  // of the owner, in this space; or of the free ones
        Half address{0};   // as in the packet
        Half place{0};     // number within the address | space << 16
        Half slot{0};      // of the address
        Half zone{0};
        Half rest_first{0};  // Ticks: of the earliest, and
        Half rest_end{0};    // ... of the latest
        Word live{0};        // a bit per port: connections use it
        Word resting{0};     // one of its connections ended not long ago: rest_until is set
        Word dependent{0};   // its mappings are address- and port-dependent
        alignas(64)
            std::array<Word, kBlockPorts / 8> tags{};  // of `inside`, an octet per port, 0: none
        std::array<Word, kBlockPorts> inside{};        // address << 16 | port, 0: none
        std::array<Half, kBlockPorts> uses{};
        std::array<Half, kBlockPorts> rest_until{};  // Tick; 0: does not rest
    };
    static_assert(sizeof(Block) == 1152);
    struct alignas(64) Owner {
        Word key{0};  // gateway << 32 | endpoint
        Half next{kNone};
        Half address{0};  // that it is paired with
        std::array<Half, kPortSpaces> first{};
        std::array<Half, kPortSpaces> blocks{};
    };
    static_assert(sizeof(Owner) == 64);
    struct alignas(64) Address {
        Half key{0};  // as in the packet; 0: never used
        Half gateway{0};
        std::array<Half, kPortSpaces> live{}, blocks{};
        std::array<std::array<Word, (kBlocksPerSpace + 63) / 64>, kPortSpaces> used{};
        std::array<std::array<Half, kBlocksPerSpace>, kPortSpaces> block{};
    };
    struct Bucket {
        Half first{kNone};
        SpinLock lock;
    };
    struct Place {
        Block* block = nullptr;
        unsigned bit = 0;
    };

    static std::uint64_t key_of(const NatOwner& owner) {
        return std::uint64_t{owner.gateway.value} << 32 | owner.endpoint.value;
    }
    static NatOwner owner_of(std::uint64_t key) {
        return {NatGatewayId{static_cast<std::uint32_t>(key >> 32)},
                EndpointId{static_cast<std::uint32_t>(key)}};
    }
    [[nodiscard]] Bucket& bucket_of(std::uint64_t key) const;
    [[nodiscard]] std::uint32_t find_owner(std::uint64_t key, std::uint32_t most) const;
    [[nodiscard]] Choice look(const PortRequest& request, std::uint32_t owner, Tick now) const;
    [[nodiscard]] Address* find_address(be32 address) const;
    [[nodiscard]] Place place_of(const NatPort& port) const;
    [[nodiscard]] bool full(be32 address, PortSpace space) const;
    [[nodiscard]] bool may_have_another(std::uint32_t zone) const { return held(zone) < free(); }
    template <class See>
    bool each_block(const Owner& owner, PortSpace space, be32 address, See see) const;
    [[nodiscard]] bool beyond_cap(const Owner& owner, const PortRequest& request,
                                  be32 address) const;
    static unsigned mapped(const Block& block, std::uint64_t inside);  // kBlockPorts: nowhere
    static std::uint64_t usable(const Block& block);
    static std::uint64_t resting(const Block& block, Tick now);
    static std::uint64_t vacant(const Block& block, Tick now);
    static std::uint64_t shareable(const Block& block, Tick now);
    static std::uint16_t port_of(const Block& block, unsigned bit);

    // Under the owner's lock.
    [[nodiscard]] bool is_at(const Block& block, std::uint64_t key, const NatPort& port) const;
    [[nodiscard]] Block* any_shareable(const Owner& owner, PortSpace space, be32 address,
                                       std::uint64_t random, Tick now) const;
    std::uint32_t add_owner(std::uint64_t key);
    void remove_owner(Owner& owner, std::uint32_t index);
    static void settle(Block& block, Tick now);
    Taken give(Block& block, unsigned bit, const PortRequest& request);
    void leave(Block& block, unsigned bit, Tick until, Tick now);
    // Takes the lock of all blocks.
    struct Assigned {
        DropReason reason = DropReason::none;
        std::uint32_t block = kNone;
    };
    Assigned assign(std::uint32_t owner, const PortRequest& request, be32 address,
                    std::uint64_t random);
    void give_back(Block& block, std::uint32_t index);
    Address* add_address(be32 address);

    // What is changed under its lock only, on a line of its own.
    struct alignas(64) Common {
        SpinLock lock;
        Half untouched{1};
        Half in_use{0};
        std::uint32_t free_block = kNone;
        std::uint32_t free_owner = kNone;
        std::uint32_t untouched_owner = 1;
    };

    Common common_;
    const std::array<std::uint32_t, kPortSpaces> rest_;
    std::uint32_t capacity_;
    std::size_t address_mask_, bucket_mask_;
    mutable Array<Block> blocks_;
    mutable Array<Owner> owners_;
    mutable Array<Address> addresses_;
    mutable Array<Bucket> buckets_;
    Array<Half> zones_;
    Half now_{0};
};

}  // namespace sluice::session
