// SPDX-License-Identifier: Apache-2.0
// Address resolution: ARP (RFC 826, RFC 5227) and Neighbour Discovery (RFC 4861).
//
// Reads what others ask and say, writes what the gateway answers and asks. A writer fills the
// caller's span with one complete Ethernet frame and returns its length in octets; 0 means that
// the span is too short or that the addresses are not of the right family. Frames are not padded
// to Ethernet's minimum. Pure functions, no allocation, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/wire/types.hpp"

namespace sluice::wire {

// An address and where it is.
struct Neighbour {
    IpAddress address;
    MacAddress mac;

    constexpr auto operator<=>(const Neighbour&) const = default;
};

inline constexpr std::size_t kArpFrame = 42;
// Longest of those written here: one with a link-layer address option.
inline constexpr std::size_t kNeighbourFrame = 86;

// --- ARP ---------------------------------------------------------------------------------------

enum class ArpOperation : std::uint8_t { request = 1, reply = 2 };

struct ArpMessage {
    ArpOperation operation = ArpOperation::request;
    Neighbour sender;  // address 0.0.0.0: a probe (RFC 5227 section 2.1.1)
    Neighbour target;
};

// `frame` from its Ethernet header. Nothing: not ARP for IPv4 over Ethernet, another operation, or
// a sender that is no single station. That the sender's MAC is the frame's source is the
// caller's to ask.
std::optional<ArpMessage> parse_arp(std::span<const std::uint8_t> frame);

std::size_t write_arp_request(std::span<std::uint8_t> out, const Neighbour& sender,
                              const IpAddress& target);
// To one station: confirms what is known already (RFC 1122 section 2.3.2.1 (2)).
std::size_t write_arp_probe(std::span<std::uint8_t> out, const Neighbour& sender,
                            const Neighbour& target);
// Answers `to`, with `sender` as what was asked for.
std::size_t write_arp_reply(std::span<std::uint8_t> out, const Neighbour& sender,
                            const Neighbour& to);
// Gratuitous ARP: "this address is here now" to all (an announcement, RFC 5227 section 3).
std::size_t write_arp_announcement(std::span<std::uint8_t> out, const Neighbour& self);

// --- Neighbour Discovery -----------------------------------------------------------------------

enum class NeighbourRole : std::uint8_t { host, router };

struct NeighbourSolicitation {
    IpAddress source;  // "::": duplicate address detection
    IpAddress target;
    std::optional<MacAddress> source_link;
};

struct NeighbourAdvertisement {
    IpAddress source;
    IpAddress target;
    std::optional<MacAddress> target_link;
    bool router = false;
    bool solicited = false;
    bool override_known = false;
};

// `frame` from its Ethernet header, whole. Nothing unless every check of RFC 4861 section 7.1.1
// (7.1.2 for the other) passes: hop limit 255, checksum, code, length, target, options.
std::optional<NeighbourSolicitation> parse_solicitation(std::span<const std::uint8_t> frame);
std::optional<NeighbourAdvertisement> parse_advertisement(std::span<const std::uint8_t> frame);

// To the solicited-node group of `target`.
std::size_t write_solicitation(std::span<std::uint8_t> out, const Neighbour& sender,
                               const IpAddress& target);
// To one station: unreachability detection (section 7.3.3).
std::size_t write_solicitation_probe(std::span<std::uint8_t> out, const Neighbour& sender,
                                     const Neighbour& target);
// Answers a solicitation of `to`; if that has no address yet ("::"), all nodes are told (7.2.4).
std::size_t write_advertisement(std::span<std::uint8_t> out, const Neighbour& sender,
                                const Neighbour& to, NeighbourRole role);
// Unsolicited, to all nodes: the address is here now (section 7.2.6).
std::size_t write_unsolicited_advertisement(std::span<std::uint8_t> out, const Neighbour& self,
                                            NeighbourRole role);

// ff02::1:ffXX:XXXX of an address (RFC 4291 section 2.7.1), and the Ethernet group of an IPv6
// multicast address (RFC 2464 section 7).
IpAddress solicited_node_group(const IpAddress& address);
MacAddress ethernet_group(const IpAddress& group);

}  // namespace sluice::wire
