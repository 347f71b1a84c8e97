// SPDX-License-Identifier: Apache-2.0
// Takes a received frame apart down to the generator's stamp: plain, or behind VXLAN.
//
// Contract: pure; reads only the octets it is given, whatever they claim. Cost: some ten
// nanoseconds. Nothing for whatever is not a stamped packet. Options, extension headers and
// fragments are nothing that the generator sends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "bench/pktgen/network.hpp"
#include "bench/pktgen/stamp.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::pktgen {

// Where the headers of a packet lie.
struct Located {
    Side side = Side::uplink;  // underlay: it came in VXLAN
    std::uint32_t vni = 0;
    std::uint16_t outer_ip = 0;  // offset; underlay only
    std::uint16_t ip = 0;        // of the IP header in front of the stamp
    std::uint16_t l4 = 0;
    std::uint8_t protocol = 0;  // UDP or TCP, whose header is in the frame
    bool outer_v4 = true, v4 = true;
};
struct Stamped : Located {
    bool roce = false;  // the stamp lies behind the header of RoCEv2
    Stamp stamp;
};

// Nothing for whatever the generator does not send.
std::optional<Located> locate(std::span<const std::uint8_t> frame);

std::optional<Stamped> find_stamp(std::span<const std::uint8_t> frame);

// Whether the checksums of the packet are right: its IPv4 header's and UDP's or TCP's, over the
// whole of it; of RoCEv2 its invariant CRC in place of UDP's.
bool checksums_ok(std::span<const std::uint8_t> frame, const Located& located);
bool checksums_ok(std::span<const std::uint8_t> frame, const Stamped& stamped);

// The low 32 bits of an address, which tell the profile's addresses apart.
inline std::uint32_t low_bits(const IpAddress& address) {
    return wire::raw32(address.bytes.data() + 12);
}
inline std::uint32_t low_source(const std::uint8_t* ip, bool v4) {
    return wire::raw32(ip + (v4 ? wire::ipv4::kSource : wire::ipv6::kSource + 12));
}
inline std::uint32_t low_destination(const std::uint8_t* ip, bool v4) {
    return wire::raw32(ip + (v4 ? wire::ipv4::kDestination : wire::ipv6::kDestination + 12));
}

// Where a packet must arrive: low 32 bits of the addresses, VNI 0 on the uplink.
struct Place {
    std::uint32_t vtep = 0, vni = 0, source = 0, destination = 0;

    Place() = default;
    explicit Place(const Arrival& at)
        : vtep(low_bits(at.vtep)),
          vni(at.vni.value),
          source(low_bits(at.source)),
          destination(low_bits(at.destination)) {}
    // `port`: on which the frame came in.
    [[nodiscard]] bool is_of(std::span<const std::uint8_t> frame, const Located& found,
                             Side port) const {
        const std::uint8_t* ip = frame.data() + found.ip;
        const bool right = found.vni == vni && low_source(ip, found.v4) == source &&
                           low_destination(ip, found.v4) == destination && port == found.side;
        if (found.side == Side::uplink) return right;
        const std::uint8_t* outer = frame.data() + found.outer_ip;
        return right && low_destination(outer, found.outer_v4) == vtep;
    }
};

}  // namespace sluice::pktgen
