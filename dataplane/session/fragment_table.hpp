// SPDX-License-Identifier: Apache-2.0
// Which connection a fragment belongs to: only a datagram's first fragment names its ports.
//
// Purpose: the first fragment is judged like any packet; the table remembers its ports, and the
// fragments that follow are looked up by them. Those that come before it are held. Nothing is put
// together: each fragment leaves as it came. Forwarding so follows RFC 1858, 3128 and 5722: a
// datagram with fragments that overlap goes no further.
// Identity: besides the datagram's own (RFC 791: addresses, protocol, identification) the VNI and
// the sender's MAC and VTEP, so that nobody's forged fragment meets the datagram of another.
// Ownership: of what is held, until it is handed back (`Released`); whoever destroys the table
// takes it out with `expire` before. Packets are opaque: this folder is free of DPDK.
// Threads: any number of workers. A bucket of four datagrams has a lock, held for some tens of
// nanoseconds; nothing allocates after construction.
// Bounds: datagrams of a VPC, of a sender (an endpoint; those of a VPC that are not known to be one
// are one together; from the outside: of a destination), and of all; packets held, likewise.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "dataplane/session/datagram.hpp"
#include "dataplane/session/key.hpp"
#include "dataplane/session/spin_lock.hpp"
#include "dataplane/session/tick.hpp"
#include "dataplane/wire/piece.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::session {

struct FragmentKey {
    Vni zone;  // 0: the outside
    // Of the VPC, and who sends it, 0: not known; for their counts, no part of the key.
    std::uint32_t slot = 0;
    EndpointId sender;
    std::uint32_t identification = 0;
    std::uint8_t protocol = 0;
    MacAddress mac;
    IpAddress vtep;  // none: from the outside
    IpAddress source, destination;

    friend bool operator==(const FragmentKey& a, const FragmentKey& b) {
        return a.zone == b.zone && a.identification == b.identification &&
               a.protocol == b.protocol && a.mac == b.mac && a.vtep == b.vtep &&
               a.source == b.source && a.destination == b.destination;
    }
};

// What a first fragment says for all: ports and protocol as in a session key, and with which
// identification it left, 0: its own.
struct Transport {
    std::uint32_t ports = 0;
    std::uint8_t protocol = 0;
    std::uint16_t identification = 0;
};

enum class FragmentVerdict : std::uint8_t {
    pass,       // goes on: by its own ports, or by those of the first
    held,       // is the table's until the first comes
    duplicate,  // is there already
    overlap,    // overlaps another, or its datagram had such a one
    refused,    // the first was not carried
    full,       // a bound
};

struct FragmentAnswer {
    FragmentVerdict verdict = FragmentVerdict::full;
    Transport transport;  // of a later one that may pass
};

struct FragmentLimits {
    std::uint32_t datagrams = 4096;  // a power of two, 64 or more
    std::uint32_t held = 1024;       // packets
    // Of either, how much a VPC and a sender may have: this part.
    std::uint32_t vpc_part = 4;
    std::uint32_t sender_part = 8;
};

class FragmentTable {
  public:
    // Packets held of one datagram: 64 KiB in the smallest pieces of a usual MTU.
    static constexpr unsigned kHeld = 56;
    // How long a datagram waits for its first fragment, and how long all of it may take. RFC 791
    // lets a receiver wait 15 s; within a data centre fragments are milliseconds apart, and a
    // short time keeps a 16-bit identification from meeting its predecessor (RFC 4963).
    static constexpr std::uint32_t kWait = ticks(1), kLife = ticks(2);

    struct Released {
        std::array<void*, kHeld> packets;
        unsigned count = 0;

        [[nodiscard]] std::span<void* const> all() const { return {packets.data(), count}; }
    };

    FragmentTable(const FragmentLimits& limits, const HashSeed& seed, std::uint32_t zones);

    // Packets that a VPC, and each sender of it, may have held from now on; 0: their parts.
    void set(std::uint32_t slot, std::uint32_t vpc, std::uint32_t sender);

    // A first fragment, before it is judged. After `pass`, `decide` must follow. `expired`: held
    // packets of a datagram whose time was over; drop them.
    FragmentVerdict first(const FragmentKey& key, const wire::Piece& piece, Tick now,
                          Released& expired);
    // ... and after: its ports, or none when it went no further. `held` is what had waited for it,
    // in the order of arrival: carry it, or drop it.
    void decide(const FragmentKey& key, const std::optional<Transport>& transport, Released& held);

    // A later fragment. With `held` the packet is the table's. `released`: to be dropped; where
    // the answer is `overlap` those of this datagram, else expired ones.
    FragmentAnswer later(const FragmentKey& key, const wire::Piece& piece, void* packet, Tick now,
                         Released& released);

    // Ends at most one datagram whose time is over, looking at `buckets` of them. False: none was.
    bool expire(Tick now, unsigned buckets, Released& expired);

    [[nodiscard]] unsigned buckets() const { return static_cast<unsigned>(mask_ + 1); }
    [[nodiscard]] std::uint32_t held() const { return all_.held.load(std::memory_order_relaxed); }
    // Of a VPC, and how many it may have.
    [[nodiscard]] std::uint32_t held(std::uint32_t slot) const {
        return vpcs_[slot].held.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint32_t vpc_bound(std::uint32_t slot) const;
    [[nodiscard]] std::uint32_t datagrams() const {
        return all_.datagrams.load(std::memory_order_relaxed);
    }

  private:
    enum class State : std::uint8_t { free, waiting, judging, carried, refused };
    struct Count {
        std::atomic<std::uint32_t> datagrams{0}, held{0};
    };
    struct Vpc : Count {
        std::atomic<std::uint32_t> most_held{0}, most_of_sender{0};  // as `set` said
    };
    struct Entry {
        FragmentKey key;
        Datagram datagram;
        Tick begun;
        State state = State::free;
        bool overlapped = false;
        Transport transport;
        Released held;
    };
    struct Bucket {
        SpinLock lock;
        std::array<Entry, 4> entries;
    };
    // Senders share a count where their hashes do: a bound is then reached sooner, never later.
    static constexpr std::size_t kSenders = 1024;

    [[nodiscard]] std::uint64_t hash(const FragmentKey& key) const;
    [[nodiscard]] std::uint64_t hash(const IpAddress& address, std::uint64_t salt) const;
    Bucket& bucket_of(const FragmentKey& key);
    Vpc& vpc_of(const FragmentKey& key) { return vpcs_[key.slot]; }
    [[nodiscard]] std::uint32_t sender_bound(std::uint32_t slot) const;
    Count& sender_of(const FragmentKey& key);
    Entry* find(Bucket& bucket, const FragmentKey& key, Tick now, Released& expired);
    Entry* make(Bucket& bucket, const FragmentKey& key, Tick now, State state, Released& expired);
    void release(Entry& entry, Released& released);
    void finish(Entry& entry, Released& released);
    bool hold(Entry& entry, void* packet);
    [[nodiscard]] static bool is_over(const Entry& entry, Tick now);

    FragmentLimits limits_;
    HashSeed seed_;
    std::size_t mask_;
    std::unique_ptr<Bucket[]> buckets_;
    std::unique_ptr<Vpc[]> vpcs_;  // by slot
    std::unique_ptr<Count[]> senders_;
    Count all_;
    std::atomic<std::uint32_t> cursor_{0};
};

}  // namespace sluice::session
