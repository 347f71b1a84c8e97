// SPDX-License-Identifier: Apache-2.0
// IPv4 fragmentation (RFC 791 section 3.2): which pieces a packet is cut into for an MTU.
//
// A plan says which octets each fragment takes and writes its header; whoever owns the buffers
// copies or attaches the octets. A packet that is a fragment itself is cut further. Pure, no
// allocation; planning costs one pass over the options.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/wire/headers.hpp"

namespace sluice::wire {

struct Fragment {
    std::uint16_t header_length = 0;   // octets of the header that write_header writes
    std::uint16_t payload_offset = 0;  // from the start of the original's IP header, octets
    std::uint16_t payload_length = 0;
};

class FragmentPlan {
  public:
    // `packet` starts with the IPv4 header, whole with its options; the payload need not be in
    // the span, its length is taken from the header. Nothing: it does not fit and DF is
    // set (RFC 1191 has the answer), `mtu` is less than 68, the header or an option contradicts
    // itself, a fragment that is not the last has a length that is no multiple of eight, or the
    // datagram would end beyond 65,535.
    static std::optional<FragmentPlan> make(std::span<const std::uint8_t> packet, std::size_t mtu);

    // 1 if the packet fits as it is.
    [[nodiscard]] std::size_t count() const { return count_; }
    // `index` < count().
    [[nodiscard]] Fragment operator[](std::size_t index) const;
    // Writes the header of a fragment: length, offset, flags and checksum right, all options in the
    // first, only the copied ones (RFC 791 section 3.1) behind it. Returns its length; `out` has
    // room for 60 octets.
    std::size_t write_header(std::size_t index, std::span<std::uint8_t> out) const;

  private:
    struct Header {
        std::array<std::uint8_t, ipv4::kMaxHeader> octets{};
        std::uint16_t length = 0;
    };
    // Copies the fixed header and, of the options, those that later fragments have.
    static std::optional<Header> later_header(std::span<const std::uint8_t> header);

    Header first_;
    Header later_;
    std::uint16_t payload_ = 0;        // of the original, octets
    std::uint16_t first_payload_ = 0;  // in the first fragment
    std::uint16_t later_payload_ = 0;  // in each of the others but the last
    std::uint16_t base_ = 0;           // the original's own offset, octets
    bool more_ = false;                // the original is not its datagram's last fragment
    std::size_t count_ = 1;
};

}  // namespace sluice::wire
