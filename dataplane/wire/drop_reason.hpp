// SPDX-License-Identifier: Apache-2.0
// Every reason for which a packet does not reach its destination, declared once: the
// enumerator, the metric label (the same word) and the sentence that people read.
//
// Each dropped packet has exactly one reason. Adding a reason is one line here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

// X(name, "sentence")
#define SLUICE_DROP_REASONS(X)                                                                    \
    /* the outer packet */                                                                        \
    X(outer_truncated, "the underlay frame ends before its headers do")                           \
    X(outer_not_for_us, "the underlay frame is not addressed to this gateway")                    \
    X(outer_bad_header, "an outer IP or UDP header has a length or version that cannot be")       \
    X(outer_bad_checksum, "the outer IPv4 or UDP checksum is wrong")                              \
    X(outer_fragment, "the outer packet is a fragment; VTEPs must not fragment (RFC 7348 4.3)")   \
    X(outer_ttl, "the outer TTL or hop limit is zero")                                            \
    X(outer_not_vxlan, "the underlay packet is neither VXLAN nor anything the gateway answers")   \
    X(vxlan_no_vni, "the VXLAN header lacks the I flag (RFC 7348 section 5)")                     \
    X(vxlan_reserved, "a reserved VXLAN flag is set that asks for an unknown extension")          \
    X(ecn_invalid, "outer CE on an inner packet that cannot carry it (RFC 6040 4.2)")             \
    /* the inner packet */                                                                        \
    X(inner_truncated, "the inner frame ends before its headers do")                              \
    X(inner_bad_header, "an inner header has a length or version that cannot be")                 \
    X(inner_bad_checksum, "the inner IPv4 header checksum is wrong")                              \
    X(inner_vlan, "the inner frame has a VLAN tag (RFC 7348 section 6.1)")                        \
    X(inner_ethertype, "the inner frame is neither IPv4, IPv6 nor ARP")                           \
    X(inner_ip_options, "an IPv4 option the gateway does not pass (source routing)")              \
    X(inner_extension_header, "an IPv6 extension header that is malformed or not passed")         \
    X(inner_fragment, "an inner fragment that no connection covers")                              \
    X(fragment_tiny, "a fragment that hides a TCP header or part of it (RFC 3128, RFC 7112)")     \
    X(fragment_overlap, "a fragment overlaps another of its datagram (RFC 5722)")                 \
    X(fragment_duplicate, "the same fragment came before")                                        \
    X(fragment_limit, "more fragmented datagrams, or fragments held, than a sender may have")     \
    X(fragment_timeout, "the datagram's first fragment did not come in time")                     \
    X(inner_martian, "an address that no packet may carry as its source or destination")          \
    X(inner_land, "source and destination address are the same")                                  \
    X(inner_broadcast, "a broadcast frame other than those the gateway answers")                  \
    X(inner_multicast, "a multicast frame other than those the gateway answers")                  \
    X(inner_wrong_mac, "the inner destination MAC is neither the gateway's nor the endpoint's")   \
    X(inner_arp, "an ARP packet that is malformed, or asks for an address nobody has")            \
    X(inner_nd, "a neighbour-discovery packet that is malformed or asks for an unknown address")  \
    X(nothing_to_answer, "an announcement, or a probe for the sender's own address")              \
    X(inner_vxlan, "VXLAN inside VXLAN")                                                          \
    X(ttl_expired, "the inner TTL or hop limit is zero, or ran out at the gateway")               \
    X(too_big, "the packet exceeds the destination's MTU and must not be fragmented")             \
    /* who sends */                                                                               \
    X(unknown_vni, "no VPC is open under this VNI")                                               \
    X(unknown_vtep, "the sending VTEP is no host that this gateway knows")                        \
    X(unknown_source, "no endpoint of the VPC is known with this MAC and source address")         \
    X(spoofed_mac, "the source MAC is not that of the endpoint")                                  \
    X(spoofed_ip, "the source address is not one the endpoint may use")                           \
    X(spoofed_vtep, "the packet came from a VTEP that is not the endpoint's host")                \
    /* policy */                                                                                  \
    X(egress_no_rule, "no egress rule of the source's groups allows it")                          \
    X(egress_denied, "an egress rule of the source's groups denies it")                           \
    X(ingress_no_rule, "no ingress rule of the destination's groups allows it")                   \
    X(ingress_denied, "an ingress rule of the destination's groups denies it")                    \
    X(policy_changed, "a policy change ended the connection this packet belongs to")              \
    X(no_route, "the route table has no route to the destination")                                \
    X(route_blackhole, "the route to the destination is a blackhole")                             \
    X(source_check, "the route's next hop has its source check on: it forwards for nobody")       \
    X(unknown_destination, "no endpoint of the VPC has the destination address")                  \
    X(host_unreachable, "the destination's host has no VTEP, or its next hop does not answer")    \
    X(gateway_protocol, "a gateway address answers only ping")                                    \
    X(no_elastic_ip, "the source has no elastic address to reach the internet with")              \
    X(unknown_public_address, "no elastic IP has this public address")                            \
    X(private_on_uplink, "a private address would have left, or came in, on the uplink")          \
    X(private_destination, "the route leads to the internet, where a private address is nowhere") \
    X(roce_not_translated, "RoCEv2 cannot be translated: its iCRC covers the addresses")          \
    X(roce_fragment, "a fragment of RoCEv2, which no sender fragments")                           \
    X(roce_too_big, "RoCEv2 cannot be fragmented, and exceeds the destination's MTU")             \
    X(nat_unsupported, "this protocol cannot be translated")                                      \
    X(nat_gateway_unknown, "the route's NAT gateway has no address to translate to")              \
    X(nat_protocol, "a NAT gateway translates TCP, UDP and ICMP queries, nothing else")           \
    X(nat_ports_exhausted, "the NAT gateway has no port left for the endpoint's new connection")  \
    X(nat_blocks_exhausted, "the VPC has its share of the gateway's blocks of NAT ports")         \
    X(nat_endpoint_ports, "the endpoint has as many of the NAT gateway's ports as it may")        \
    X(nat_unmapped, "no endpoint has this port of the NAT gateway's address")                     \
    X(nat_filtered, "the NAT gateway's filtering does not admit this sender to the port")         \
    /* sessions */                                                                                \
    X(tcp_not_syn, "a TCP packet without connection that does not open one")                      \
    X(sctp_not_init, "an SCTP packet without connection that opens none and probes no path")      \
    X(tcp_invalid, "TCP flags that no end sends in this state")                                   \
    X(tcp_out_of_window, "a FIN or RST at a number that its receiver would not take")             \
    X(icmp_error_unmatched, "an ICMP error that quotes no connection")                            \
    X(icmp_not_request, "an ICMP reply without a request, or a type that opens nothing")          \
    X(session_conflict, "another live connection already has this key")                           \
    X(session_table_full, "the session table is full")                                            \
    X(vpc_connections, "the VPC has its share of the session table")                              \
    X(vpc_half_open, "too many connections of the VPC are unanswered")                            \
    X(vpc_connection_rate, "the VPC opens more connections a second than it may")                 \
    X(endpoint_connections, "the endpoint has its share of the session table")                    \
    X(endpoint_half_open, "too many connections of the endpoint are unanswered")                  \
    X(endpoint_connection_rate, "more connections a second from or to the endpoint than allowed") \
    X(walk_budget, "more new connections at once than the gateway examines in a turn")            \
    X(metered, "the elastic IP's, endpoint's or VPC's bandwidth is used up")                      \
    /* the gateway itself */                                                                      \
    X(no_buffer, "no packet buffer was free")                                                     \
    X(tx_full, "the transmit queue was full")                                                     \
    X(uplink_ethertype, "an uplink frame that is neither IPv4, IPv6 nor ARP")                     \
    X(not_ready, "no tables were committed yet")

enum class DropReason : std::uint8_t {
    none = 0,
#define SLUICE_X(name, sentence) name,
    SLUICE_DROP_REASONS(SLUICE_X)
#undef SLUICE_X
        count
};

inline constexpr std::size_t kDropReasons = static_cast<std::size_t>(DropReason::count);

struct DropReasonText {
    std::string_view label;     // as in metrics and in the API
    std::string_view sentence;  // for people
};

inline constexpr std::array<DropReasonText, kDropReasons> kDropReasonTexts = {
    {{"none", "not dropped"},
#define SLUICE_X(name, sentence) {#name, sentence},
     SLUICE_DROP_REASONS(SLUICE_X)
#undef SLUICE_X
    }};

constexpr std::string_view label(DropReason reason) {
    return kDropReasonTexts[static_cast<std::size_t>(reason)].label;
}
constexpr std::string_view sentence(DropReason reason) {
    return kDropReasonTexts[static_cast<std::size_t>(reason)].sentence;
}

}  // namespace sluice
