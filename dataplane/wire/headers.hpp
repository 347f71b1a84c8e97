// SPDX-License-Identifier: Apache-2.0
// Where the fields of the headers lie, and how to read and write them.
//
// A field is an offset from the start of its header, read and written bytewise: packets
// lie at any address, and the bytes belong to whoever owns the span. The callers check
// bounds; nothing here does. Lengths and offsets are octets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dataplane/wire/types.hpp"

namespace sluice::wire {

inline be16 load16(const std::uint8_t* bytes) {
    std::uint16_t raw;
    std::memcpy(&raw, bytes, sizeof raw);
    return be16::from_raw(raw);
}
inline be32 load32(const std::uint8_t* bytes) {
    std::uint32_t raw;
    std::memcpy(&raw, bytes, sizeof raw);
    return be32::from_raw(raw);
}
inline MacAddress load_mac(const std::uint8_t* bytes) {
    MacAddress mac;
    std::memcpy(mac.bytes.data(), bytes, mac.bytes.size());
    return mac;
}
inline IpAddress load_v4(const std::uint8_t* bytes) {
    return IpAddress::v4(load32(bytes));
}
inline IpAddress load_v6(const std::uint8_t* bytes) {
    return IpAddress::v6(bytes);
}

inline void store(std::uint8_t* bytes, be16 value) {
    std::memcpy(bytes, &value.raw, 2);
}
inline void store(std::uint8_t* bytes, be32 value) {
    std::memcpy(bytes, &value.raw, 4);
}
inline void store(std::uint8_t* bytes, const MacAddress& mac) {
    std::memcpy(bytes, mac.bytes.data(), mac.bytes.size());
}
inline void store_v4(std::uint8_t* bytes, const IpAddress& address) {
    std::memcpy(bytes, address.bytes.data() + 12, 4);
}
inline void store_v6(std::uint8_t* bytes, const IpAddress& address) {
    std::memcpy(bytes, address.bytes.data(), 16);
}

namespace ethernet {
inline constexpr std::size_t kSize = 14, kDestination = 0, kSource = 6, kType = 12;
inline constexpr be16 kIpv4{0x0800}, kArp{0x0806}, kIpv6{0x86dd}, kVlan{0x8100};
inline constexpr MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
}  // namespace ethernet

namespace arp {  // RFC 826, for Ethernet and IPv4
inline constexpr std::size_t kSize = 28, kHardware = 0, kProtocol = 2, kHardwareLength = 4,
                             kProtocolLength = 5, kOperation = 6, kSenderMac = 8, kSenderIp = 14,
                             kTargetMac = 18, kTargetIp = 24;
inline constexpr be16 kEthernet{1}, kRequest{1}, kReply{2};
}  // namespace arp

namespace ipv4 {  // RFC 791
inline constexpr std::size_t kSize = 20, kMaxHeader = 60, kTos = 1, kLength = 2,
                             kIdentification = 4, kFragment = 6, kTtl = 8, kProtocol = 9,
                             kChecksum = 10, kSource = 12, kDestination = 16;
inline constexpr std::uint16_t kDontFragment = 0x4000, kMoreFragments = 0x2000,
                               kOffsetMask = 0x1fff;
inline constexpr std::size_t kMinMtu = 68;
// The length that the header says it has.
inline std::size_t header_length(const std::uint8_t* header) {
    return (header[0] & 0xfU) * 4;
}
}  // namespace ipv4

namespace ipv6 {  // RFC 8200
inline constexpr std::size_t kSize = 40, kLength = 4, kNextHeader = 6, kHopLimit = 7, kSource = 8,
                             kDestination = 24;
inline constexpr std::size_t kMinMtu = 1280;
inline constexpr std::uint8_t kHopByHop = 0, kRouting = 43, kFragmentHeader = 44,
                              kAuthentication = 51, kNoNextHeader = 59, kDestinationOptions = 60,
                              kMobility = 135, kHip = 139, kShim6 = 140;
}  // namespace ipv6

namespace udp {  // RFC 768
inline constexpr std::size_t kSize = 8, kSource = 0, kDestination = 2, kLength = 4, kChecksum = 6;
inline constexpr be16 kVxlan{4789}, kRoceV2{4791};
}  // namespace udp

namespace tcp {  // RFC 9293
inline constexpr std::size_t kSize = 20, kSource = 0, kDestination = 2, kSequence = 4,
                             kAcknowledgement = 8, kDataOffset = 12, kFlags = 13, kWindow = 14,
                             kChecksum = 16, kUrgent = 18;
inline constexpr std::uint8_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kPsh = 0x08, kAck = 0x10;
}  // namespace tcp

namespace icmp {  // RFC 792; ICMPv6, RFC 4443, has the same first eight octets
inline constexpr std::size_t kSize = 8, kType = 0, kCode = 1, kChecksum = 2, kIdentifier = 4,
                             kSequence = 6, kMtu4 = 6, kMtu6 = 4;
inline constexpr std::uint8_t kEchoReply = 0, kUnreachable = 3, kSourceQuench = 4, kRedirect = 5,
                              kEchoRequest = 8, kTimeExceeded = 11, kParameterProblem = 12;
}  // namespace icmp

namespace icmpv6 {
inline constexpr std::uint8_t kUnreachable = 1, kPacketTooBig = 2, kTimeExceeded = 3,
                              kParameterProblem = 4, kEchoRequest = 128, kEchoReply = 129,
                              kRouterSolicitation = 133, kRouterAdvertisement = 134,
                              kNeighbourSolicitation = 135, kNeighbourAdvertisement = 136,
                              kRedirect = 137;
}  // namespace icmpv6

namespace vxlan {  // RFC 7348 section 5
inline constexpr std::size_t kSize = 8, kFlags = 0, kVni = 4;
inline constexpr std::uint8_t kVniPresent = 0x08;
}  // namespace vxlan

}  // namespace sluice::wire
