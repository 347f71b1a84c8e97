// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/neighbour.hpp"
#include "dataplane/wire/special_address.hpp"

namespace sluice::wire {
namespace {

std::size_t write_arp(std::span<std::uint8_t> out, be16 operation, const MacAddress& to,
                      const Neighbour& sender, const Neighbour& target) {
    if (out.size() < kArpFrame || !sender.address.is_v4() || !target.address.is_v4()) return 0;
    std::uint8_t* frame = out.data();
    store(frame + ethernet::kDestination, to);
    store(frame + ethernet::kSource, sender.mac);
    store(frame + ethernet::kType, ethernet::kArp);
    std::uint8_t* message = frame + ethernet::kSize;
    store(message + arp::kHardware, arp::kEthernet);
    store(message + arp::kProtocol, ethernet::kIpv4);
    message[arp::kHardwareLength] = 6;
    message[arp::kProtocolLength] = 4;
    store(message + arp::kOperation, operation);
    store(message + arp::kSenderMac, sender.mac);
    store_v4(message + arp::kSenderIp, sender.address);
    store(message + arp::kTargetMac, target.mac);
    store_v4(message + arp::kTargetIp, target.address);
    return kArpFrame;
}

}  // namespace

std::optional<ArpMessage> parse_arp(std::span<const std::uint8_t> frame) {
    if (frame.size() < kArpFrame) return std::nullopt;
    if (load16(frame.data() + ethernet::kType) != ethernet::kArp) return std::nullopt;
    const std::uint8_t* message = frame.data() + ethernet::kSize;
    if (load16(message + arp::kHardware) != arp::kEthernet ||
        load16(message + arp::kProtocol) != ethernet::kIpv4 || message[arp::kHardwareLength] != 6 ||
        message[arp::kProtocolLength] != 4)
        return std::nullopt;
    const be16 operation = load16(message + arp::kOperation);
    if (operation != arp::kRequest && operation != arp::kReply) return std::nullopt;

    const ArpMessage result{
        operation == arp::kRequest ? ArpOperation::request : ArpOperation::reply,
        {load_v4(message + arp::kSenderIp), load_mac(message + arp::kSenderMac)},
        {load_v4(message + arp::kTargetIp), load_mac(message + arp::kTargetMac)}};
    if (result.sender.mac.is_multicast() || result.sender.mac.is_zero()) return std::nullopt;
    const bool probe = result.operation == ArpOperation::request &&
                       result.sender.address == IpAddress::v4(be32{0});
    if (!probe && !is_station(result.sender.address)) return std::nullopt;
    return result;
}

std::size_t write_arp_request(std::span<std::uint8_t> out, const Neighbour& sender,
                              const IpAddress& target) {
    return write_arp(out, arp::kRequest, ethernet::kBroadcast, sender, {target, {}});
}

std::size_t write_arp_probe(std::span<std::uint8_t> out, const Neighbour& sender,
                            const Neighbour& target) {
    return write_arp(out, arp::kRequest, target.mac, sender, {target.address, {}});
}

std::size_t write_arp_reply(std::span<std::uint8_t> out, const Neighbour& sender,
                            const Neighbour& to) {
    return write_arp(out, arp::kReply, to.mac, sender, to);
}

std::size_t write_arp_announcement(std::span<std::uint8_t> out, const Neighbour& self) {
    return write_arp(out, arp::kRequest, ethernet::kBroadcast, self, {self.address, {}});
}

}  // namespace sluice::wire
