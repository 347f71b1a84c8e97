// SPDX-License-Identifier: Apache-2.0
// RoCEv2, as the InfiniBand Architecture Specification has it in volume 1, annex A17: UDP to port
// 4791, the base transport header (chapter 9.2), a payload of whole words, the invariant CRC.
//
// The invariant CRC (A17.3.3) is Ethernet's CRC-32 over eight octets of ones, the IP header, UDP
// and all behind it; what a router may change counts as ones: traffic class, flow label, hop limit
// or TTL, and the checksums; so does the first reserved octet of the base transport header, which
// holds the marks of congestion. Addresses and ports count: a translation breaks it.
// Pure, no allocation; an octet costs about half a nanosecond. Bounds are the caller's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/raw.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::pktgen {

namespace bth {
inline constexpr std::size_t kSize = 12, kOpcode = 0, kFlags = 1, kPartition = 2, kCongestion = 4,
                             kQueuePair = 5, kSequence = 9;  // the last two of 24 bits
inline constexpr std::uint8_t kReliableSendOnly = 0x04;
inline constexpr std::uint8_t kMigrated = 0x40;
inline constexpr std::uint16_t kDefaultPartition = 0xffff;
inline constexpr std::size_t kChecksum = 4;  // octets of the invariant CRC, the packet's last
}  // namespace bth

inline constexpr std::uint32_t kQueuePairs = 1U << 24;
// 0 and 1 are the management's.
inline constexpr std::uint32_t kFirstQueuePair = 2;

inline void put_24(std::uint8_t* at, std::uint32_t value) {
    at[0] = static_cast<std::uint8_t>(value >> 16);
    at[1] = static_cast<std::uint8_t>(value >> 8);
    at[2] = static_cast<std::uint8_t>(value);
}

// A message of one packet to a queue pair of a reliable connection; the sequence number zero.
inline void begin_bth(std::uint8_t* header, std::uint32_t queue_pair) {
    std::memset(header, 0, bth::kSize);
    header[bth::kOpcode] = bth::kReliableSendOnly;
    header[bth::kFlags] = bth::kMigrated;
    wire::store(header + bth::kPartition, be16{bth::kDefaultPartition});
    put_24(header + bth::kQueuePair, queue_pair);
}

// CRC-32 of IEEE 802.3, eight octets a step. A state is the CRC before its last inversion.
class Crc32 {
  public:
    static constexpr std::uint32_t kBegin = 0xffffffff;

    static std::uint32_t advance(std::uint32_t state, std::span<const std::uint8_t> octets) {
        const std::uint8_t* at = octets.data();
        std::size_t left = octets.size();
        for (; left >= 8; left -= 8, at += 8) {
            const std::uint64_t word = wire::raw64(at) ^ state;
            state = 0;
            for (std::size_t i = 0; i < 8; ++i) state ^= kTables[7 - i][word >> (8 * i) & 0xff];
        }
        for (; left != 0; --left, ++at) state = kTables[0][(state ^ *at) & 0xff] ^ state >> 8;
        return state;
    }

    // As many zeros at once, whatever their number: the CRC is linear in its state.
    class Zeros {
      public:
        Zeros() : Zeros(0) {}
        explicit Zeros(std::size_t octets) {
            std::array<std::uint32_t, 32> bits;
            for (std::size_t bit = 0; bit < 32; ++bit) {
                std::uint32_t state = 1U << bit;
                for (std::size_t i = 0; i < octets; ++i)
                    state = kTables[0][state & 0xff] ^ state >> 8;
                bits[bit] = state;
            }
            for (std::size_t octet = 0; octet < 4; ++octet)
                for (std::size_t value = 0; value < 256; ++value)
                    for (std::size_t bit = 0; bit < 8; ++bit)
                        if ((value >> bit & 1) != 0) after_[octet][value] ^= bits[8 * octet + bit];
        }
        [[nodiscard]] std::uint32_t behind(std::uint32_t state) const {
            return after_[0][state & 0xff] ^ after_[1][state >> 8 & 0xff] ^
                   after_[2][state >> 16 & 0xff] ^ after_[3][state >> 24];
        }

      private:
        std::array<std::array<std::uint32_t, 256>, 4> after_{};
    };

  private:
    using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
    static constexpr Tables make() {
        constexpr std::uint32_t kPolynomial = 0xedb88320;  // reflected
        Tables tables{};
        for (std::uint32_t value = 0; value < 256; ++value) {
            std::uint32_t state = value;
            for (int bit = 0; bit < 8; ++bit)
                state = (state & 1) != 0 ? state >> 1 ^ kPolynomial : state >> 1;
            tables[0][value] = state;
        }
        for (std::size_t i = 1; i < 8; ++i)
            for (std::size_t value = 0; value < 256; ++value) {
                const std::uint32_t before = tables[i - 1][value];
                tables[i][value] = tables[0][before & 0xff] ^ before >> 8;
            }
        return tables;
    }
    static const Tables kTables;
};
inline constexpr Crc32::Tables Crc32::kTables = Crc32::make();

// The state behind the base transport header of a packet whose IP header begins at `ip`.
inline std::uint32_t begin_invariant_crc(const std::uint8_t* ip, bool v4) {
    constexpr std::size_t kOnes = 8;  // in place of InfiniBand's own header
    const std::size_t header = v4 ? wire::ipv4::kSize : wire::ipv6::kSize;
    std::array<std::uint8_t, kOnes + wire::ipv6::kSize + wire::udp::kSize + bth::kSize> copy;
    const std::size_t size = kOnes + header + wire::udp::kSize + bth::kSize;
    std::memset(copy.data(), 0xff, kOnes);
    std::uint8_t* at = copy.data() + kOnes;
    std::memcpy(at, ip, size - kOnes);
    if (v4) {
        at[wire::ipv4::kTos] = at[wire::ipv4::kTtl] = 0xff;
        std::memset(at + wire::ipv4::kChecksum, 0xff, 2);
    } else {
        at[0] |= 0x0f;
        std::memset(at + 1, 0xff, 3);
        at[wire::ipv6::kHopLimit] = 0xff;
    }
    std::memset(at + header + wire::udp::kChecksum, 0xff, 2);
    at[header + wire::udp::kSize + bth::kCongestion] = 0xff;
    return Crc32::advance(Crc32::kBegin, {copy.data(), size});
}

// The CRC goes out low octet first.
inline void put_invariant_crc(std::uint8_t* at, std::uint32_t state) {
    wire::put_raw(at, ~state);
}

// Whether the last four octets of an IP packet of RoCEv2 are its invariant CRC. It must hold its
// headers and the CRC, and no options.
inline bool invariant_crc_ok(std::span<const std::uint8_t> packet, bool v4) {
    const std::size_t headers =
        (v4 ? wire::ipv4::kSize : wire::ipv6::kSize) + wire::udp::kSize + bth::kSize;
    const std::uint32_t state =
        Crc32::advance(begin_invariant_crc(packet.data(), v4),
                       packet.subspan(headers, packet.size() - headers - bth::kChecksum));
    return wire::raw32(packet.data() + packet.size() - bth::kChecksum) == ~state;
}

}  // namespace sluice::pktgen
