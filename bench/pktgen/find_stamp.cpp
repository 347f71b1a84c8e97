// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/find_stamp.hpp"

namespace sluice::pktgen {
namespace {

using namespace wire;

// A UDP datagram in IP in Ethernet.
struct Datagram {
    std::size_t ip = 0, udp = 0;
    bool v4 = true;
};

std::optional<Datagram> find_datagram(std::span<const std::uint8_t> frame, std::size_t at) {
    // The shorter of both; the longer is checked behind it.
    if (frame.size() < at + ethernet::kSize + ipv4::kSize + udp::kSize) return std::nullopt;
    const be16 type = load16(frame.data() + at + ethernet::kType);
    Datagram result;
    result.ip = at + ethernet::kSize;
    const std::uint8_t* ip = frame.data() + result.ip;
    if (type == ethernet::kIpv4) {
        if (ip[0] != 0x45 || ip[ipv4::kProtocol] != static_cast<std::uint8_t>(Protocol::udp))
            return std::nullopt;
        result.udp = result.ip + ipv4::kSize;
    } else if (type == ethernet::kIpv6) {
        if (ip[0] >> 4 != 6 || ip[ipv6::kNextHeader] != static_cast<std::uint8_t>(Protocol::udp))
            return std::nullopt;
        result.v4 = false;
        result.udp = result.ip + ipv6::kSize;
    } else {
        return std::nullopt;
    }
    if (frame.size() < result.udp + udp::kSize) return std::nullopt;
    return result;
}

}  // namespace

std::optional<Found> find_stamp(std::span<const std::uint8_t> frame) {
    auto datagram = find_datagram(frame, 0);
    if (!datagram) return std::nullopt;
    Found found;
    if (load16(frame.data() + datagram->udp + udp::kDestination) == udp::kVxlan) {
        const std::size_t vxlan_header = datagram->udp + udp::kSize;
        if (frame.size() < vxlan_header + vxlan::kSize ||
            frame[vxlan_header + vxlan::kFlags] != vxlan::kVniPresent)
            return std::nullopt;
        found.side = Side::underlay;
        found.outer_ip = static_cast<std::uint16_t>(datagram->ip);
        found.outer_v4 = datagram->v4;
        found.vni = load32(frame.data() + vxlan_header + vxlan::kVni).host() >> 8;
        datagram = find_datagram(frame, vxlan_header + vxlan::kSize);
        if (!datagram) return std::nullopt;
    }
    found.ip = static_cast<std::uint16_t>(datagram->ip);
    found.udp = static_cast<std::uint16_t>(datagram->udp);
    found.v4 = datagram->v4;
    const auto stamp = read_stamp(frame.subspan(datagram->udp + udp::kSize));
    if (!stamp) return std::nullopt;
    found.stamp = *stamp;
    return found;
}

bool checksums_ok(std::span<const std::uint8_t> frame, const Found& found) {
    const std::uint8_t* ip = frame.data() + found.ip;
    const std::size_t length = load16(frame.data() + found.udp + udp::kLength).host();
    if (length < udp::kSize || found.udp + length > frame.size()) return false;
    if (found.v4 && !ipv4_header_checksum_ok(frame.subspan(found.ip, ipv4::kSize))) return false;
    const auto source = found.v4 ? load_v4(ip + ipv4::kSource) : load_v6(ip + ipv6::kSource);
    const auto destination =
        found.v4 ? load_v4(ip + ipv4::kDestination) : load_v6(ip + ipv6::kDestination);
    return transport_checksum_ok(source, destination, Protocol::udp,
                                 frame.subspan(found.udp, length));
}

}  // namespace sluice::pktgen
