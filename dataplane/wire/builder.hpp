// SPDX-License-Identifier: Apache-2.0
// Builds packets for tests, fuzzers and benchmarks from a list of headers:
//
//     using namespace sluice::wire::build;
//     const Bytes frame = packet({Ethernet{}, Ipv4{}, Udp{.destination = 4789},
//                                 Vxlan{.vni = Vni{7}}, Ethernet{}, Ipv4{.ttl = 1},
//                                 Tcp{.flags = tcp::kSyn}, Payload{{'h', 'i'}}});
//
// Every length, type and checksum is right by itself; a value that is given is written as it is,
// which makes bad packets. Any header may come first, and any may follow any. Allocates, throws:
// not for the packet path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "dataplane/wire/checksum.hpp"
#include "dataplane/wire/headers.hpp"
#include "dataplane/wire/packet.hpp"
#include "dataplane/wire/types.hpp"

namespace sluice::wire::build {

using Bytes = std::vector<std::uint8_t>;

inline IpAddress operator""_ip(const char* text, std::size_t size) {
    const auto address = parse_ip({text, size});
    if (!address) throw std::invalid_argument(std::string{text, size});
    return *address;
}
inline MacAddress operator""_mac(const char* text, std::size_t size) {
    const auto mac = parse_mac({text, size});
    if (!mac) throw std::invalid_argument(std::string{text, size});
    return *mac;
}

// `size` octets that differ from their neighbours.
inline Bytes filler(std::size_t size) {
    Bytes result(size);
    for (std::size_t i = 0; i < size; ++i) result[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    return result;
}

template <class T>
using Given = std::optional<T>;  // absent: what is right

struct Ethernet {
    MacAddress source = "02:00:00:00:00:01"_mac;
    MacAddress destination = "02:00:00:00:00:02"_mac;
    Given<std::uint16_t> type = {};
};
struct Vlan {
    std::uint16_t tag = 1;
    Given<std::uint16_t> type = {};
};
struct Arp {
    be16 operation = arp::kRequest;
    MacAddress sender_mac = "02:00:00:00:00:01"_mac;
    IpAddress sender = "10.0.0.1"_ip;
    MacAddress target_mac = {};
    IpAddress target = "10.0.0.2"_ip;
    be16 hardware = arp::kEthernet;
    be16 protocol = ethernet::kIpv4;
    std::uint8_t hardware_length = 6;
    std::uint8_t protocol_length = 4;
};
struct Ipv4 {
    IpAddress source = "10.0.0.1"_ip;
    IpAddress destination = "10.0.0.2"_ip;
    std::uint8_t ttl = 64;
    std::uint8_t tos = 0;
    std::uint16_t identification = 0x1234;
    std::uint16_t flags_and_offset = 0;  // as in the header: kDontFragment, offset in units of 8
    Bytes options = {};                  // padded with zeros to a multiple of four
    Given<std::uint8_t> version_and_words = {};
    Given<std::uint8_t> protocol = {};
    Given<std::uint16_t> length = {};
    Given<std::uint16_t> checksum = {};
};
struct Ipv6 {
    IpAddress source = "2001:db8::1"_ip;
    IpAddress destination = "2001:db8::2"_ip;
    std::uint8_t hop_limit = 64;
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;
    std::uint8_t version = 6;
    Given<std::uint8_t> next_header = {};
    Given<std::uint16_t> length = {};
};
// Hop-by-hop, routing, destination options, ...: two octets and `body`, padded with zeros to a
// multiple of eight. (For options, zeros are Pad1.)
struct Extension {
    std::uint8_t kind = ipv6::kDestinationOptions;
    Bytes body = {};
    Given<std::uint8_t> next_header = {};
    Given<std::uint8_t> length = {};  // as in the header
};
struct FragmentHeader {
    std::uint16_t offset_and_more = 0;  // as in the header: offset in octets, more: 1
    std::uint32_t identification = 0x12345678;
    Given<std::uint8_t> next_header = {};
};
struct Udp {
    std::uint16_t source = 40000;
    std::uint16_t destination = 53;
    Given<std::uint16_t> length = {};
    Given<std::uint16_t> checksum = {};
};
struct Tcp {
    std::uint16_t source = 40000;
    std::uint16_t destination = 80;
    std::uint32_t sequence = 1000;
    std::uint32_t acknowledgement = 0;
    std::uint8_t flags = tcp::kAck;
    std::uint16_t window = 65535;
    Bytes options = {};  // padded with zeros to a multiple of four
    Given<std::uint8_t> header_words = {};
    Given<std::uint16_t> checksum = {};
};
// ICMP, or ICMPv6 behind an IPv6 header.
struct Icmp {
    std::uint8_t type = icmp::kEchoRequest;
    std::uint8_t code = 0;
    std::uint16_t identifier = 77;  // the other four octets of the header
    std::uint16_t sequence = 1;
    Given<std::uint16_t> checksum = {};
};
struct Vxlan {
    Vni vni{1};
    std::uint8_t flags = vxlan::kVniPresent;
    std::uint32_t reserved = 0;  // the 24 bits behind the flags
    std::uint8_t reserved_last = 0;
};
struct Payload {
    Bytes bytes = {};
};

using Layer = std::variant<Ethernet, Vlan, Arp, Ipv4, Ipv6, Extension, FragmentHeader, Udp, Tcp,
                           Icmp, Vxlan, Payload>;

namespace detail {

inline Bytes padded(Bytes bytes, std::size_t multiple) {
    bytes.resize((bytes.size() + multiple - 1) / multiple * multiple);
    return bytes;
}

// Writes one header in front of what follows it.
struct Writer {
    const std::vector<Layer>& layers;
    std::size_t at = 0;  // of the header that is written
    Bytes rest = {};     // all that follows it, complete

    // The numbers by which the header in front names the one behind it.
    [[nodiscard]] std::uint16_t ether_type() const {
        if (at + 1 == layers.size()) return 0;
        const Layer& next = layers[at + 1];
        if (std::holds_alternative<Ipv6>(next)) return ethernet::kIpv6.host();
        if (std::holds_alternative<Arp>(next)) return ethernet::kArp.host();
        if (std::holds_alternative<Vlan>(next)) return ethernet::kVlan.host();
        return ethernet::kIpv4.host();
    }
    [[nodiscard]] std::uint8_t ip_protocol() const {
        constexpr std::uint8_t kIpInIp = 4, kIpv6InIp = 41, kExperimental = 253;
        if (at + 1 == layers.size()) return ipv6::kNoNextHeader;
        const Layer& next = layers[at + 1];
        if (const auto* extension = std::get_if<Extension>(&next)) return extension->kind;
        if (std::holds_alternative<FragmentHeader>(next)) return ipv6::kFragmentHeader;
        if (std::holds_alternative<Udp>(next)) return static_cast<std::uint8_t>(Protocol::udp);
        if (std::holds_alternative<Tcp>(next)) return static_cast<std::uint8_t>(Protocol::tcp);
        if (std::holds_alternative<Icmp>(next)) return static_cast<std::uint8_t>(icmp_protocol());
        if (std::holds_alternative<Ipv4>(next)) return kIpInIp;
        if (std::holds_alternative<Ipv6>(next)) return kIpv6InIp;
        return kExperimental;
    }
    [[nodiscard]] Protocol icmp_protocol() const {
        for (std::size_t i = at + 1; i-- > 0;) {
            if (std::holds_alternative<Ipv6>(layers[i])) return Protocol::icmpv6;
            if (std::holds_alternative<Ipv4>(layers[i])) return Protocol::icmp;
        }
        return Protocol::icmp;
    }
    // Of a whole segment, under the IP header that it lies in; without one, 0.
    [[nodiscard]] be16 checksum(Protocol protocol, const Bytes& segment) const {
        for (std::size_t i = at; i-- > 0;) {
            if (const auto* v4 = std::get_if<Ipv4>(&layers[i]))
                return transport_checksum(v4->source, v4->destination, protocol, segment);
            if (const auto* v6 = std::get_if<Ipv6>(&layers[i]))
                return transport_checksum(v6->source, v6->destination, protocol, segment);
        }
        return be16{0};
    }
    [[nodiscard]] std::uint16_t length_with(std::size_t header) const {
        return static_cast<std::uint16_t>(header + rest.size());
    }
    void prepend(const Bytes& header) { rest.insert(rest.begin(), header.begin(), header.end()); }

    void operator()(const Ethernet& layer) {
        Bytes header(ethernet::kSize);
        store(&header[ethernet::kDestination], layer.destination);
        store(&header[ethernet::kSource], layer.source);
        store(&header[ethernet::kType], be16{layer.type.value_or(ether_type())});
        prepend(header);
    }
    void operator()(const Vlan& layer) {
        Bytes header(4);
        store(&header[0], be16{layer.tag});
        store(&header[2], be16{layer.type.value_or(ether_type())});
        prepend(header);
    }
    void operator()(const Arp& layer) {
        Bytes header(arp::kSize);
        store(&header[arp::kHardware], layer.hardware);
        store(&header[arp::kProtocol], layer.protocol);
        header[arp::kHardwareLength] = layer.hardware_length;
        header[arp::kProtocolLength] = layer.protocol_length;
        store(&header[arp::kOperation], layer.operation);
        store(&header[arp::kSenderMac], layer.sender_mac);
        store_v4(&header[arp::kSenderIp], layer.sender);
        store(&header[arp::kTargetMac], layer.target_mac);
        store_v4(&header[arp::kTargetIp], layer.target);
        prepend(header);
    }
    void operator()(const Ipv4& layer) {
        Bytes header(ipv4::kSize);
        const Bytes options = padded(layer.options, 4);
        header.insert(header.end(), options.begin(), options.end());
        header[0] = layer.version_and_words.value_or(
            static_cast<std::uint8_t>(0x40 | (header.size() / 4 & 0xf)));
        header[ipv4::kTos] = layer.tos;
        store(&header[ipv4::kLength], be16{layer.length.value_or(length_with(header.size()))});
        store(&header[ipv4::kIdentification], be16{layer.identification});
        store(&header[ipv4::kFragment], be16{layer.flags_and_offset});
        header[ipv4::kTtl] = layer.ttl;
        header[ipv4::kProtocol] = layer.protocol.value_or(ip_protocol());
        store_v4(&header[ipv4::kSource], layer.source);
        store_v4(&header[ipv4::kDestination], layer.destination);
        store(&header[ipv4::kChecksum],
              layer.checksum ? be16{*layer.checksum} : ipv4_header_checksum(header));
        prepend(header);
    }
    void operator()(const Ipv6& layer) {
        Bytes header(ipv6::kSize);
        store(&header[0],
              be32{static_cast<std::uint32_t>(layer.version) << 28 |
                   static_cast<std::uint32_t>(layer.traffic_class) << 20 | layer.flow_label});
        store(&header[ipv6::kLength], be16{layer.length.value_or(length_with(0))});
        header[ipv6::kNextHeader] = layer.next_header.value_or(ip_protocol());
        header[ipv6::kHopLimit] = layer.hop_limit;
        store_v6(&header[ipv6::kSource], layer.source);
        store_v6(&header[ipv6::kDestination], layer.destination);
        prepend(header);
    }
    void operator()(const Extension& layer) {
        Bytes header(2);
        header.insert(header.end(), layer.body.begin(), layer.body.end());
        header = padded(std::move(header), 8);
        header[0] = layer.next_header.value_or(ip_protocol());
        // RFC 4302 section 2.2 counts the authentication header in words of four, less two.
        const std::size_t length =
            layer.kind == ipv6::kAuthentication ? header.size() / 4 - 2 : header.size() / 8 - 1;
        header[1] = layer.length.value_or(static_cast<std::uint8_t>(length));
        prepend(header);
    }
    void operator()(const FragmentHeader& layer) {
        Bytes header(8);
        header[0] = layer.next_header.value_or(ip_protocol());
        store(&header[2], be16{layer.offset_and_more});
        store(&header[4], be32{layer.identification});
        prepend(header);
    }
    void operator()(const Udp& layer) {
        Bytes header(udp::kSize);
        store(&header[udp::kSource], be16{layer.source});
        store(&header[udp::kDestination], be16{layer.destination});
        store(&header[udp::kLength], be16{layer.length.value_or(length_with(udp::kSize))});
        prepend(header);
        store(&rest[udp::kChecksum],
              layer.checksum ? be16{*layer.checksum} : checksum(Protocol::udp, rest));
    }
    void operator()(const Tcp& layer) {
        Bytes header(tcp::kSize);
        const Bytes options = padded(layer.options, 4);
        header.insert(header.end(), options.begin(), options.end());
        store(&header[tcp::kSource], be16{layer.source});
        store(&header[tcp::kDestination], be16{layer.destination});
        store(&header[tcp::kSequence], be32{layer.sequence});
        store(&header[tcp::kAcknowledgement], be32{layer.acknowledgement});
        const std::size_t words = layer.header_words.value_or(header.size() / 4 & 0xf);
        header[tcp::kDataOffset] = static_cast<std::uint8_t>(words << 4);
        header[tcp::kFlags] = layer.flags;
        store(&header[tcp::kWindow], be16{layer.window});
        prepend(header);
        store(&rest[tcp::kChecksum],
              layer.checksum ? be16{*layer.checksum} : checksum(Protocol::tcp, rest));
    }
    void operator()(const Icmp& layer) {
        Bytes header(icmp::kSize);
        header[icmp::kType] = layer.type;
        header[icmp::kCode] = layer.code;
        store(&header[icmp::kIdentifier], be16{layer.identifier});
        store(&header[icmp::kSequence], be16{layer.sequence});
        prepend(header);
        const be16 right = icmp_protocol() == Protocol::icmpv6 ? checksum(Protocol::icmpv6, rest)
                                                               : icmp_checksum(rest);
        store(&rest[icmp::kChecksum], layer.checksum ? be16{*layer.checksum} : right);
    }
    void operator()(const Vxlan& layer) {
        Bytes header(vxlan::kSize);
        store(&header[0],
              be32{static_cast<std::uint32_t>(layer.flags) << 24 | (layer.reserved & 0xffffff)});
        store(&header[vxlan::kVni], be32{layer.vni.value << 8 | layer.reserved_last});
        prepend(header);
    }
    void operator()(const Payload& layer) { prepend(layer.bytes); }
};

}  // namespace detail

inline Bytes packet(const std::vector<Layer>& layers) {
    detail::Writer writer{layers};
    for (writer.at = layers.size(); writer.at-- > 0;) std::visit(writer, layers[writer.at]);
    return std::move(writer.rest);
}

}  // namespace sluice::wire::build
