// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/find_stamp.hpp"

namespace sluice::pktgen {
namespace {

using namespace wire;

// UDP or TCP in IP in Ethernet.
struct Layers {
    std::size_t ip = 0, l4 = 0;
    std::uint8_t protocol = 0;
    bool v4 = true;
};

std::optional<Layers> find_layers(std::span<const std::uint8_t> frame, std::size_t at) {
    // The shorter of both; the longer is checked behind it.
    if (frame.size() < at + ethernet::kSize + ipv4::kSize + udp::kSize) return std::nullopt;
    const be16 type = load16(frame.data() + at + ethernet::kType);
    Layers result;
    result.ip = at + ethernet::kSize;
    const std::uint8_t* ip = frame.data() + result.ip;
    if (type == ethernet::kIpv4) {
        if (ip[0] != 0x45) return std::nullopt;
        result.protocol = ip[ipv4::kProtocol];
        result.l4 = result.ip + ipv4::kSize;
    } else if (type == ethernet::kIpv6) {
        if (ip[0] >> 4 != 6) return std::nullopt;
        result.v4 = false;
        result.protocol = ip[ipv6::kNextHeader];
        result.l4 = result.ip + ipv6::kSize;
    } else {
        return std::nullopt;
    }
    const bool udp_inside = result.protocol == static_cast<std::uint8_t>(Protocol::udp);
    const bool tcp_inside = result.protocol == static_cast<std::uint8_t>(Protocol::tcp);
    if (!udp_inside && !tcp_inside) return std::nullopt;
    if (frame.size() < result.l4 + (tcp_inside ? tcp::kSize : udp::kSize)) return std::nullopt;
    return result;
}

}  // namespace

std::optional<Located> locate(std::span<const std::uint8_t> frame) {
    auto layers = find_layers(frame, 0);
    if (!layers) return std::nullopt;
    Located found;
    if (layers->protocol == static_cast<std::uint8_t>(Protocol::udp) &&
        load16(frame.data() + layers->l4 + udp::kDestination) == udp::kVxlan) {
        const std::size_t vxlan_header = layers->l4 + udp::kSize;
        if (frame.size() < vxlan_header + vxlan::kSize ||
            frame[vxlan_header + vxlan::kFlags] != vxlan::kVniPresent)
            return std::nullopt;
        found.side = Side::underlay;
        found.outer_ip = static_cast<std::uint16_t>(layers->ip);
        found.outer_v4 = layers->v4;
        found.vni = load32(frame.data() + vxlan_header + vxlan::kVni).host() >> 8;
        layers = find_layers(frame, vxlan_header + vxlan::kSize);
        if (!layers) return std::nullopt;
    }
    found.ip = static_cast<std::uint16_t>(layers->ip);
    found.l4 = static_cast<std::uint16_t>(layers->l4);
    found.protocol = layers->protocol;
    found.v4 = layers->v4;
    return found;
}

std::optional<Stamped> find_stamp(std::span<const std::uint8_t> frame) {
    const auto located = locate(frame);
    if (!located || located->protocol != static_cast<std::uint8_t>(Protocol::udp))
        return std::nullopt;
    const auto stamp = read_stamp(frame.subspan(located->l4 + udp::kSize));
    if (!stamp) return std::nullopt;
    return Stamped{*located, *stamp};
}

bool checksums_ok(std::span<const std::uint8_t> frame, const Located& located) {
    const std::uint8_t* ip = frame.data() + located.ip;
    // The length of the upper layer by the IP header.
    const std::size_t header = located.l4 - located.ip;
    const std::size_t total = located.v4 ? load16(ip + ipv4::kLength).host()
                                         : load16(ip + ipv6::kLength).host() + ipv6::kSize;
    const auto protocol = static_cast<Protocol>(located.protocol);
    const std::size_t least = protocol == Protocol::tcp ? tcp::kSize : udp::kSize;
    if (total < header + least || located.ip + total > frame.size()) return false;
    if (located.v4 && !ipv4_header_checksum_ok(frame.subspan(located.ip, ipv4::kSize)))
        return false;
    const auto source = located.v4 ? load_v4(ip + ipv4::kSource) : load_v6(ip + ipv6::kSource);
    const auto destination =
        located.v4 ? load_v4(ip + ipv4::kDestination) : load_v6(ip + ipv6::kDestination);
    return transport_checksum_ok(source, destination, protocol,
                                 frame.subspan(located.l4, total - header));
}

}  // namespace sluice::pktgen
