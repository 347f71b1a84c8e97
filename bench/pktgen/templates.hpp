// SPDX-License-Identifier: Apache-2.0
// The headers of every lane, made beforehand: a packet is a copy of its lane's template with the
// stamp filled in and, in a mix, the lengths of its size.
//
// Ownership: holds all templates, 128 octets each (IPv6 somewhere: 192). `write` neither allocates
// nor fails. Threads: const after construction. Checksums of IP and of inner UDP are right; the
// outer UDP checksum is zero, as VXLAN recommends it, and RoCEv2's, whose invariant CRC is right.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bench/pktgen/network.hpp"
#include "bench/pktgen/roce.hpp"
#include "bench/pktgen/stamp.hpp"

namespace sluice::pktgen {

// MAC addresses of both ends of a port's link.
struct LinkMacs {
    MacAddress own, gateway;
};

// Lanes are numbered flow by flow; without packets in reverse each flow has one.
struct Lanes {
    std::uint32_t flows = 0;
    std::uint32_t ways = 1;  // 1: forward only

    explicit Lanes(const Profile& profile)
        : flows(profile.flows.count),
          ways(profile.flows.reverse_percent != 0 || profile.flows.traffic == Traffic::tcp ? 2
                                                                                           : 1) {}
    [[nodiscard]] std::uint32_t count() const { return flows * ways; }
    [[nodiscard]] std::uint32_t of(std::uint32_t flow, Way way) const {
        return flow * ways + (way == Way::forward ? 0 : 1);
    }
    [[nodiscard]] std::uint32_t flow(std::uint32_t lane) const { return lane / ways; }
    [[nodiscard]] Way way(std::uint32_t lane) const {
        return lane % ways == 0 ? Way::forward : Way::reverse;
    }
};

class Templates {
  public:
    // `links`: of the underlay, of the uplink.
    Templates(const Profile& profile, const Network& network, const std::array<LinkMacs, 2>& links);

    // Octets that `write` always writes: the frame's headers and zeros behind them. What follows up
    // to the frame's end must be zero already: the payload's checksum says so.
    [[nodiscard]] std::size_t stride() const { return stride_; }
    // Writes packet `sequence` of a lane, of the profile's frame size `share`; returns its octets
    // without FCS.
    std::uint16_t write(std::uint8_t* out, std::uint32_t lane, std::size_t share,
                        std::uint32_t sequence, std::uint64_t time) const;
    // The same of a profile of TCP: a segment without data.
    std::uint16_t write_segment(std::uint8_t* out, std::uint32_t lane, std::uint32_t sequence,
                                std::uint32_t acknowledgement, std::uint8_t flags) const;
    [[nodiscard]] Side side(std::uint32_t lane) const {
        return uplink_reverse_ && lanes_.way(lane) == Way::reverse ? Side::uplink : Side::underlay;
    }

  private:
    // How a size differs from that of the templates.
    struct Size {
        std::uint16_t octets = 0;
        std::uint16_t outer_length = 0, outer_udp = 0, inner_length = 0, udp = 0;
        std::uint16_t outer_change = 0, inner_change = 0, udp_change = 0;  // folded
    };
    struct Layout {
        std::uint16_t inner_ip = 0;  // offsets
        std::uint16_t l4 = 0;
        Traffic traffic = Traffic::udp;
        bool outer_v4 = false;  // an outer header with a checksum
        bool outer = false;
        bool inner_v4 = true;
        std::vector<std::uint8_t> prototype;  // headers and stamp
        std::vector<Size> sizes;
        std::vector<Crc32::Zeros> paddings;  // RoCEv2: of each size, between stamp and CRC
    };
    static Layout layout(const Profile& profile, Side side, const LinkMacs& macs);
    // Sequence number and invariant CRC of a packet that is else complete.
    static void finish_roce(std::uint8_t* out, const Layout& layout, std::size_t share,
                            std::uint32_t sequence);
    void make(std::uint8_t* out, const Layout& layout, const Frame& frame,
              std::uint32_t lane) const;

    Lanes lanes_;
    bool uplink_reverse_;
    std::size_t stride_ = 0;
    std::array<Layout, 2> layouts_;  // by Side
    std::vector<std::uint8_t> octets_;
};

}  // namespace sluice::pktgen
