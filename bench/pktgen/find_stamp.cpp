// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/find_stamp.hpp"

#include "bench/pktgen/roce.hpp"

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
    const auto payload = frame.subspan(located->l4 + udp::kSize);
    if (const auto stamp = read_stamp(payload)) return Stamped{*located, false, *stamp};
    // No opcode is the octet that a stamp begins with.
    if (payload.size() < bth::kSize ||
        load16(frame.data() + located->l4 + udp::kDestination) != udp::kRoceV2)
        return std::nullopt;
    const auto stamp = read_stamp(payload.subspan(bth::kSize));
    if (!stamp) return std::nullopt;
    return Stamped{*located, true, *stamp};
}

namespace {

// Octets of the packet by its IP header; nothing if the frame does not hold them, or they do not
// hold `least` behind that header, or it has a wrong checksum.
std::optional<std::size_t> packet_octets(std::span<const std::uint8_t> frame,
                                         const Located& located, std::size_t least) {
    const std::uint8_t* ip = frame.data() + located.ip;
    const std::size_t header = located.l4 - located.ip;
    const std::size_t total = located.v4 ? load16(ip + ipv4::kLength).host()
                                         : load16(ip + ipv6::kLength).host() + ipv6::kSize;
    if (total < header + least || located.ip + total > frame.size()) return std::nullopt;
    if (located.v4 && !ipv4_header_checksum_ok(frame.subspan(located.ip, ipv4::kSize)))
        return std::nullopt;
    return total;
}

}  // namespace

bool checksums_ok(std::span<const std::uint8_t> frame, const Located& located) {
    const auto protocol = static_cast<Protocol>(located.protocol);
    const auto total =
        packet_octets(frame, located, protocol == Protocol::tcp ? tcp::kSize : udp::kSize);
    if (!total) return false;
    const std::uint8_t* ip = frame.data() + located.ip;
    const auto source = located.v4 ? load_v4(ip + ipv4::kSource) : load_v6(ip + ipv6::kSource);
    const auto destination =
        located.v4 ? load_v4(ip + ipv4::kDestination) : load_v6(ip + ipv6::kDestination);
    return transport_checksum_ok(source, destination, protocol,
                                 frame.subspan(located.l4, *total - (located.l4 - located.ip)));
}

bool checksums_ok(std::span<const std::uint8_t> frame, const Stamped& stamped) {
    if (!stamped.roce) return checksums_ok(frame, static_cast<const Located&>(stamped));
    const auto total =
        packet_octets(frame, stamped, udp::kSize + bth::kSize + stamp::kSize + bth::kChecksum);
    return total && invariant_crc_ok(frame.subspan(stamped.ip, *total), stamped.v4);
}

}  // namespace sluice::pktgen
