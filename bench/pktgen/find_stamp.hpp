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

#include "bench/pktgen/stamp.hpp"
#include "dataplane/wire/packet.hpp"

namespace sluice::pktgen {

struct Found {
    Stamp stamp;
    Side side = Side::uplink;  // underlay: it came in VXLAN
    std::uint32_t vni = 0;
    std::uint16_t outer_ip = 0;  // offset; underlay only
    std::uint16_t ip = 0;        // of the IP header in front of the stamp
    std::uint16_t udp = 0;
    bool outer_v4 = true, v4 = true;
};

std::optional<Found> find_stamp(std::span<const std::uint8_t> frame);

// Whether the checksums of the packet with the stamp are right: its IPv4 header's and UDP's, over
// the whole of it.
bool checksums_ok(std::span<const std::uint8_t> frame, const Found& found);

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

}  // namespace sluice::pktgen
