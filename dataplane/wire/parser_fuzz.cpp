// SPDX-License-Identifier: Apache-2.0
// Any frame on either side: what the parser finds lies in the octets that it was given, and the
// straight line for common frames agrees with it.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/fast_parser.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/parser.hpp"
#include "dataplane/wire/piece.hpp"

using namespace sluice;
using namespace sluice::wire;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

constexpr MacAddress kPort{{2, 0, 0, 0, 0, 2}};
const IpAddress kVteps[] = {*parse_ip("192.0.2.1"), *parse_ip("2001:db8:ff::1")};
const Receiver kReceiver{kPort, kVteps, kVteps};

// Checksums would keep nearly every input out.
void mend(std::vector<std::uint8_t>& frame, std::size_t at) {
    if (frame.size() < at + ipv4::kSize || frame[at] >> 4 != 4) return;
    const std::size_t length =
        std::clamp(ipv4::header_length(&frame[at]), ipv4::kSize, frame.size() - at);
    store(&frame[at + ipv4::kChecksum],
          ipv4_header_checksum(std::span<const std::uint8_t>{frame}.subspan(at, length)));
}

void check(std::span<const std::uint8_t> frame, const Headers& headers) {
    require((headers.kind == FrameKind::drop) == (headers.drop != DropReason::none));
    if (headers.kind == FrameKind::drop || headers.kind == FrameKind::incomplete) return;
    if (headers.kind == FrameKind::local) {
        require(headers.l3 <= frame.size());
        return;
    }
    require(headers.l3 == headers.l2 + ethernet::kSize && headers.l3 < frame.size());
    if (headers.kind != FrameKind::arp_request) {
        require(headers.l4 > headers.l3 && headers.l4 <= frame.size());
        require(headers.l4 - headers.l3 <= headers.ip_length);
    }
    require((headers.zone != 0) == headers.has(kTunnelled));
    // Reads what it converts.
    const Packet packet = to_packet(frame, headers, PortId{1});
    require(packet.vni.value == headers.zone);
    if (headers.has(kFragment))
        if (const auto piece = piece_of(frame, headers))
            require(piece->length > 0 && piece->end() <= 65'535 &&
                    headers.has(kFirstFragment) == (piece->offset == 0));
    if (headers.has(kCheckOuterUdp)) outer_udp_checksum_ok(frame, headers);
}

// What follows from the addresses alone, whichever way they stand, the straight line does not look
// at.
bool by_addresses(const Headers& headers) {
    const DropReason reason = headers.drop;
    return headers.kind == FrameKind::local || reason == DropReason::spoofed_ip ||
           reason == DropReason::inner_martian || reason == DropReason::inner_multicast ||
           reason == DropReason::inner_broadcast || reason == DropReason::inner_land;
}

// A frame that the straight line takes is the same to the general parser.
template <Shape shape>
void compare(const std::vector<std::uint8_t>& segment, std::uint32_t length,
             const Headers& general) {
    FastReceiver fast;
    std::copy_n(kPort.bytes.data(), 6, reinterpret_cast<std::uint8_t*>(&fast.mac));
    fast.vtep = kVteps[0].to_v4().raw;
    Headers straight;
    if (!parse_fast<shape>(segment.data(), static_cast<std::uint32_t>(segment.size()), length, fast,
                           straight))
        return;
    if (general.kind != FrameKind::connection) {
        require(by_addresses(general));
        return;
    }
    require(general.flags == straight.flags && general.protocol == straight.protocol &&
            general.ttl == straight.ttl && general.traffic_class == straight.traffic_class &&
            general.outer_ecn == straight.outer_ecn && general.tcp_flags == straight.tcp_flags &&
            general.zone == straight.zone && general.ports == straight.ports &&
            general.outer_ip == straight.outer_ip && general.l2 == straight.l2 &&
            general.l3 == straight.l3 && general.l4 == straight.l4 &&
            general.ip_length == straight.ip_length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::uint8_t how = data[0];
    std::vector<std::uint8_t> frame(data + 2, data + size);
    if ((how & 1) != 0 && frame.size() >= 6) store(frame.data(), kPort);
    if ((how & 2) != 0) mend(frame, ethernet::kSize);
    if ((how & 4) != 0) mend(frame, kOuterIpv4 + ethernet::kSize);
    if ((how & 8) != 0) mend(frame, kOuterIpv6 + ethernet::kSize);

    // The first segment of a frame, in a buffer of its own so that its end is guarded.
    const std::size_t first =
        (how & 16) != 0 ? std::min<std::size_t>(frame.size(), data[1]) : frame.size();
    const std::vector<std::uint8_t> segment(frame.begin(),
                                            frame.begin() + static_cast<std::ptrdiff_t>(first));
    const auto length = static_cast<std::uint32_t>(frame.size());
    const Headers uplink = parse_uplink(segment, length, kReceiver);
    check(segment, uplink);
    const Headers underlay = parse_underlay(segment, length, kReceiver);
    check(segment, underlay);
    compare<Shape::overlay_ipv4>(segment, length, underlay);
    compare<Shape::overlay_ipv6>(segment, length, underlay);
    compare<Shape::uplink_ipv4>(segment, length, uplink);
    return 0;
}
