// SPDX-License-Identifier: Apache-2.0
// Any frame: what the gateway answers to it is well-formed, and is not answered with an error
// again.
#include <cstdlib>
#include <vector>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/echo.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/icmp_error.hpp"
#include "dataplane/wire/neighbour.hpp"
#include "dataplane/wire/upper_layer.hpp"

using namespace sluice;
using namespace sluice::wire;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

// Exactly as long as the frame, so that a read or a write beyond it is seen.
using Frame = std::vector<std::uint8_t>;

const IpAddress kFrom4 = *parse_ip("192.0.2.1"), kFrom6 = *parse_ip("2001:db8::1");

// The IP packet of an ICMP message that was written anew: right in every length and checksum.
void check_written(std::span<const std::uint8_t> frame) {
    const auto packet = frame.subspan(ethernet::kSize);
    const bool v4 = packet[0] >> 4 == 4;
    const auto upper = find_upper_layer(packet);
    require(upper && !upper->is_fragment());
    const auto message = packet.subspan(upper->offset);
    if (v4) {
        require(load16(&packet[ipv4::kLength]).host() == packet.size());
        require(ipv4_header_checksum_ok(packet.first(upper->offset)));
        require(Sum{}.add(message).folded() == 0xffff);
    } else {
        require(load16(&packet[ipv6::kLength]).host() == message.size());
        require(transport_checksum_ok(load_v6(&packet[ipv6::kSource]),
                                      load_v6(&packet[ipv6::kDestination]), Protocol::icmpv6,
                                      message));
    }
}

void errors_about(const Frame& frame) {
    for (const IpAddress& from : {kFrom4, kFrom6})
        for (std::uint8_t error = 0; error <= static_cast<std::uint8_t>(IcmpError::too_big);
             ++error)
            for (std::size_t room : {std::size_t{100}, std::size_t{2000}}) {
                Frame out(room);
                const IcmpErrorMessage message{static_cast<IcmpError>(error), from, 1400};
                out.resize(write_icmp_error(out, frame, message));
                if (out.empty()) continue;
                require(out.size() <= (from.is_v4() ? kMaxIcmpErrorFrame : kMaxIcmpv6ErrorFrame));
                check_written(out);
                Frame again(room);
                require(write_icmp_error(again, out, message) == 0);
            }
}

void reply_to(Frame frame) {
    const Frame before = frame;
    const auto reply = make_echo_reply(frame);
    if (reply.empty()) {
        require(frame == before);
        return;
    }
    require(reply.data() >= frame.data() &&
            reply.data() + reply.size() <= frame.data() + frame.size());
    // A reply is never a request.
    Frame again(reply.begin(), reply.end());
    require(make_echo_reply(again).empty());
}

void resolve(const Frame& frame) {
    Frame out(kNeighbourFrame);
    if (const auto message = parse_arp(frame)) {
        out.resize(write_arp_reply(out, {kFrom4, message->sender.mac}, message->sender));
        require(out.size() == kArpFrame && parse_arp(out));
    } else if (const auto asked = parse_solicitation(frame)) {
        const Neighbour to{asked->source, asked->source_link.value_or(MacAddress{{2}})};
        out.resize(
            write_advertisement(out, {asked->target, MacAddress{{2}}}, to, NeighbourRole::router));
        require(out.size() == kNeighbourFrame && parse_advertisement(out));
    } else if (const auto told = parse_advertisement(frame)) {
        out.resize(write_solicitation(out, {told->source, MacAddress{{2}}}, told->target));
        require(out.size() == kNeighbourFrame && parse_solicitation(out));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Frame frame(data, data + size);
    errors_about(frame);
    reply_to(frame);
    resolve(frame);
    return 0;
}
