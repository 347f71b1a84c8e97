// SPDX-License-Identifier: Apache-2.0
#include "bench/pktgen/templates.hpp"

#include <algorithm>
#include <cstring>

#include "dataplane/wire/builder.hpp"

namespace sluice::pktgen {
namespace {

using namespace wire;

constexpr std::size_t kLine = 64;
constexpr std::uint16_t kFcs = 4;

std::size_t ip_header(Family family) {
    return family == Family::ipv4 ? ipv4::kSize : ipv6::kSize;
}

// Replaces an address of a header at `ip` and collects what that does to checksums.
void put_source(std::uint8_t* ip, bool v4, const IpAddress& address, ChecksumDelta& delta) {
    std::uint8_t* at = ip + (v4 ? ipv4::kSource : ipv6::kSource);
    delta.replace(v4 ? load_v4(at) : load_v6(at), address);
    v4 ? store_v4(at, address) : store_v6(at, address);
}
void put_destination(std::uint8_t* ip, bool v4, const IpAddress& address, ChecksumDelta& delta) {
    std::uint8_t* at = ip + (v4 ? ipv4::kDestination : ipv6::kDestination);
    delta.replace(v4 ? load_v4(at) : load_v6(at), address);
    v4 ? store_v4(at, address) : store_v6(at, address);
}
void put_port(std::uint8_t* at, std::uint16_t port, ChecksumDelta& delta) {
    delta.replace(load16(at), be16{port});
    store(at, be16{port});
}
void apply(std::uint8_t* checksum, const ChecksumDelta& delta) {
    store(checksum, delta.apply(load16(checksum)));
}

}  // namespace

Templates::Layout Templates::layout(const Profile& profile, Side side, const LinkMacs& macs) {
    namespace b = wire::build;
    const bool tunnelled = side == Side::underlay;
    const Family outer = profile.underlay().gateway.family();
    const Family inner = profile.tenants.family;
    const auto zero4 = IpAddress::v4(be32{0x0a000001}), zero6 = b::operator""_ip("fd00::1", 7);
    const std::uint16_t base = profile.frames[0].octets;

    Layout result;
    result.outer = tunnelled;
    result.outer_v4 = tunnelled && outer == Family::ipv4;
    result.inner_v4 = inner == Family::ipv4;
    const std::size_t around =
        tunnelled ? ethernet::kSize + ip_header(outer) + udp::kSize + vxlan::kSize : 0;
    result.inner_ip = static_cast<std::uint16_t>(around + ethernet::kSize);
    result.l4 = static_cast<std::uint16_t>(result.inner_ip + ip_header(inner));

    std::vector<b::Layer> layers;
    if (tunnelled) {
        layers.emplace_back(b::Ethernet{macs.own, macs.gateway, {}});
        if (outer == Family::ipv4)
            layers.emplace_back(b::Ipv4{.source = zero4,
                                        .destination = profile.underlay().gateway,
                                        .identification = 0,
                                        .flags_and_offset = ipv4::kDontFragment});
        else
            layers.emplace_back(
                b::Ipv6{.source = zero6, .destination = profile.underlay().gateway});
        layers.emplace_back(
            b::Udp{.source = 0, .destination = udp::kVxlan.host(), .length = {}, .checksum = 0});
        layers.emplace_back(b::Vxlan{});
        layers.emplace_back(b::Ethernet{});
    } else {
        layers.emplace_back(b::Ethernet{macs.own, macs.gateway, {}});
    }
    if (inner == Family::ipv4)
        layers.emplace_back(b::Ipv4{.source = zero4,
                                    .destination = zero4,
                                    .identification = 0,
                                    .flags_and_offset = ipv4::kDontFragment});
    else
        layers.emplace_back(b::Ipv6{.source = zero6, .destination = zero6});
    result.traffic = profile.flows.traffic;
    if (result.traffic == Traffic::tcp) {
        layers.emplace_back(b::Tcp{.sequence = 0, .acknowledgement = 0, .flags = 0});
        result.prototype = b::packet(layers);
        result.sizes.resize(1);
        result.sizes[0].octets = static_cast<std::uint16_t>(result.prototype.size());
        return result;
    }
    const bool roce = result.traffic == Traffic::rocev2;
    layers.emplace_back(roce ? b::Udp{.checksum = 0} : b::Udp{});
    const std::size_t payload = base - kFcs - ethernet::kSize - ip_header(inner) - udp::kSize;
    const std::size_t before = roce ? bth::kSize : 0;
    b::Bytes stamped(payload);
    begin_stamp(stamped.data() + before, 0);
    layers.emplace_back(b::Payload{std::move(stamped)});
    result.prototype = b::packet(layers);
    result.prototype.resize(result.l4 + udp::kSize + before + stamp::kSize);

    const std::uint8_t* frame = result.prototype.data();
    for (const auto& share : profile.frames) {
        const int more = share.octets - base;
        const auto longer = [&](std::size_t at) {
            return static_cast<std::uint16_t>(load16(frame + at).host() + more);
        };
        const auto change = [&](std::size_t at, std::uint16_t length, int times) {
            ChecksumDelta delta;
            for (int i = 0; i < times; ++i) delta.replace(load16(frame + at), be16{length});
            return more == 0 ? std::uint16_t{0} : delta.folded();
        };
        Size size;
        size.octets = static_cast<std::uint16_t>(share.octets - kFcs + around);
        if (tunnelled) {
            const std::size_t at =
                ethernet::kSize + (result.outer_v4 ? ipv4::kLength : ipv6::kLength);
            size.outer_length = longer(at);
            size.outer_udp = longer(ethernet::kSize + ip_header(outer) + udp::kLength);
            size.outer_change = change(at, size.outer_length, 1);
        }
        const std::size_t at = result.inner_ip + (result.inner_v4 ? ipv4::kLength : ipv6::kLength);
        size.inner_length = longer(at);
        size.inner_change = change(at, size.inner_length, 1);
        size.udp = longer(result.l4 + udp::kLength);
        // Twice: its own field and the pseudo-header's.
        size.udp_change = change(result.l4 + udp::kLength, size.udp, 2);
        result.sizes.push_back(size);
        if (roce)
            result.paddings.emplace_back(size.octets - result.prototype.size() - bth::kChecksum);
    }
    return result;
}

void Templates::make(std::uint8_t* out, const Layout& layout, const Frame& frame,
                     std::uint32_t lane) const {
    std::memcpy(out, layout.prototype.data(), layout.prototype.size());
    if (layout.outer) {
        std::uint8_t* ip = out + ethernet::kSize;
        ChecksumDelta delta;
        put_source(ip, layout.outer_v4, frame.vtep, delta);
        if (layout.outer_v4) apply(ip + ipv4::kChecksum, delta);
        std::uint8_t* inner = out + layout.inner_ip - ethernet::kSize;
        std::uint8_t* vxlan_header = inner - vxlan::kSize;
        store(vxlan_header - udp::kSize + udp::kSource, be16{frame.outer_port});
        store(vxlan_header + vxlan::kVni, be32{frame.vni.value << 8});
        store(inner + ethernet::kDestination, frame.destination_mac);
        store(inner + ethernet::kSource, frame.source_mac);
    }
    std::uint8_t* ip = out + layout.inner_ip;
    std::uint8_t* l4 = out + layout.l4;
    ChecksumDelta delta;
    put_source(ip, layout.inner_v4, frame.source, delta);
    put_destination(ip, layout.inner_v4, frame.destination, delta);
    if (layout.inner_v4) apply(ip + ipv4::kChecksum, delta);
    put_port(l4 + udp::kSource, frame.source_port, delta);
    put_port(l4 + udp::kDestination, frame.destination_port, delta);
    if (layout.traffic == Traffic::tcp) return apply(l4 + tcp::kChecksum, delta);
    if (layout.traffic == Traffic::rocev2) {
        const bool to_server = lanes_.way(lane) == Way::forward;
        begin_bth(l4 + udp::kSize, kFirstQueuePair + 2 * lanes_.flow(lane) + (to_server ? 1 : 0));
        return begin_stamp(l4 + udp::kSize + bth::kSize, lane);
    }
    // The prototype's lane is 0.
    delta.replace(be32::from_raw(0), be32::from_raw(lane));
    begin_stamp(l4 + udp::kSize, lane);
    apply(l4 + udp::kChecksum, delta);
}

Templates::Templates(const Profile& profile, const Network& network,
                     const std::array<LinkMacs, 2>& links)
    : lanes_(profile), uplink_reverse_(profile.flows.to == Destination::internet) {
    for (const Side side : {Side::underlay, Side::uplink}) {
        auto& one = layouts_[static_cast<std::size_t>(side)];
        one = layout(profile, side, links[static_cast<std::size_t>(side)]);
        stride_ = std::max(stride_, (one.prototype.size() + kLine - 1) / kLine * kLine);
    }
    octets_.resize(stride_ * lanes_.count());
    for (std::uint32_t lane = 0; lane < lanes_.count(); ++lane) {
        const Frame frame = network.sent(lanes_.flow(lane), lanes_.way(lane));
        make(octets_.data() + stride_ * lane, layouts_[static_cast<std::size_t>(frame.side)], frame,
             lane);
    }
}

std::uint16_t Templates::write(std::uint8_t* out, std::uint32_t lane, std::size_t share,
                               std::uint32_t sequence, std::uint64_t time) const {
    const Layout& layout = layouts_[static_cast<std::size_t>(side(lane))];
    const Size& size = layout.sizes[share];
    std::memcpy(out, octets_.data() + stride_ * lane, stride_);
    if (share != 0) {
        if (layout.outer) {
            std::uint8_t* ip = out + ethernet::kSize;
            store(ip + (layout.outer_v4 ? ipv4::kLength : ipv6::kLength), be16{size.outer_length});
            if (layout.outer_v4) apply(ip + ipv4::kChecksum, ChecksumDelta(size.outer_change));
            std::uint8_t* outer_udp =
                out + layout.inner_ip - ethernet::kSize - vxlan::kSize - udp::kSize;
            store(outer_udp + udp::kLength, be16{size.outer_udp});
        }
        std::uint8_t* ip = out + layout.inner_ip;
        store(ip + (layout.inner_v4 ? ipv4::kLength : ipv6::kLength), be16{size.inner_length});
        if (layout.inner_v4) apply(ip + ipv4::kChecksum, ChecksumDelta(size.inner_change));
        store(out + layout.l4 + udp::kLength, be16{size.udp});
    }
    if (layout.traffic == Traffic::rocev2) {
        put_stamp(out + layout.l4 + udp::kSize + bth::kSize, sequence, time);
        finish_roce(out, layout, share, sequence);
    } else {
        finish_stamp(out + layout.l4, sequence, time, size.udp_change);
    }
    return size.octets;
}

void Templates::finish_roce(std::uint8_t* out, const Layout& layout, std::size_t share,
                            std::uint32_t sequence) {
    put_24(out + layout.l4 + udp::kSize + bth::kSequence, sequence);
    const std::size_t end = layout.sizes[share].octets;
    for (const auto& other : layout.sizes)
        if (other.octets < end) put_raw(out + other.octets - bth::kChecksum, std::uint32_t{0});
    std::uint8_t* stamp = out + layout.l4 + udp::kSize + bth::kSize;
    const std::uint32_t state = Crc32::advance(
        begin_invariant_crc(out + layout.inner_ip, layout.inner_v4), {stamp, stamp::kSize});
    put_invariant_crc(out + end - bth::kChecksum, layout.paddings[share].behind(state));
}

std::uint16_t Templates::write_segment(std::uint8_t* out, std::uint32_t lane,
                                       std::uint32_t sequence, std::uint32_t acknowledgement,
                                       std::uint8_t flags) const {
    const Layout& layout = layouts_[static_cast<std::size_t>(side(lane))];
    std::memcpy(out, octets_.data() + stride_ * lane, stride_);
    std::uint8_t* header = out + layout.l4;
    store(header + tcp::kSequence, be32{sequence});
    store(header + tcp::kAcknowledgement, be32{acknowledgement});
    header[tcp::kFlags] = flags;
    // All three are zero in the template.
    ChecksumDelta delta;
    delta.replace(be32{0}, be32{sequence});
    delta.replace(be32{0}, be32{acknowledgement});
    delta.replace(be16{0}, be16{flags});
    apply(header + tcp::kChecksum, delta);
    return layout.sizes[0].octets;
}

}  // namespace sluice::pktgen
