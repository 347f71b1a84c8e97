// SPDX-License-Identifier: Apache-2.0
#include "dataplane/openflow/settings.hpp"

#include "dataplane/openflow/tables.hpp"

namespace sluice::openflow {
namespace {

constexpr std::uint32_t in(TableId table) {
    return 1U << table;
}

constexpr std::uint32_t kMost = (1U << 24) - 1;
constexpr std::uint32_t kFiveDays = 432'000;

// The least of a time-out is what an RFC says that a NAT must not fall below; where none does, it
// is what keeps a connection alive between two packets of its protocol.
constexpr SettingSpec kSettings[] = {
    {Setting::connections, "connections", "connections", 1, kMost, in(kVni),
     "connections the VPC may have at once"},
    {Setting::half_open, "half_open", "connections", 1, kMost, in(kVni),
     "of these, connections that nobody has answered yet"},
    {Setting::new_per_second, "new_per_second", "connections a second", 1, kMost, in(kVni),
     "new connections the VPC may try in a second, those that policy refuses included"},
    {Setting::fragments, "fragments", "fragments", 1, kMost, in(kVni),
     "fragments that may wait for the first one of their datagram"},
    {Setting::endpoint_connections, "endpoint_connections", "connections", 1, kMost, in(kVni),
     "connections each endpoint of the VPC may have at once"},
    {Setting::endpoint_half_open, "endpoint_half_open", "connections", 1, kMost, in(kVni),
     "of these, connections that nobody has answered yet"},
    {Setting::endpoint_new_per_second, "endpoint_new_per_second", "connections a second", 1, kMost,
     in(kVni), "new connections each endpoint of the VPC may try in a second"},
    {Setting::endpoint_fragments, "endpoint_fragments", "fragments", 1, kMost, in(kVni),
     "fragments of each sender that may wait for the first one of their datagram"},
    {Setting::tcp_established, "tcp_established", "seconds", 7440, kFiveDays, in(kVni),
     "an established TCP connection; RFC 5382 REQ-5: not less than 2 h 4 min", 7440},
    {Setting::tcp_transitory, "tcp_transitory", "seconds", 240, kFiveDays, in(kVni),
     "a TCP connection that opens or closes; RFC 5382 REQ-5: not less than 4 min", 240},
    {Setting::tcp_time_wait, "tcp_time_wait", "seconds", 1, kFiveDays, in(kVni),
     "a TCP connection that both ends closed or one reset; RFC 7857 section 2.1: 4 min, RFC 9293 "
     "section 3.4.2: 2 MSL",
     240},
    {Setting::udp, "udp", "seconds", 120, kFiveDays, in(kVni),
     "UDP with packets in both directions; RFC 4787 REQ-5: not less than 2 min, 5 recommended",
     300},
    {Setting::udp_unanswered, "udp_unanswered", "seconds", 120, kFiveDays, in(kVni),
     "UDP that nobody has answered; RFC 4787 REQ-5: not less than 2 min", 120},
    {Setting::icmp, "icmp", "seconds", 60, kFiveDays, in(kVni),
     "ICMP and ICMPv6 queries; RFC 5508 REQ-1: not less than 60 s", 60},
    {Setting::sctp, "sctp", "seconds", 60, kFiveDays, in(kVni),
     "SCTP with packets in both directions; RFC 9260 section 8.3: a HEARTBEAT every 30 s", 300},
    {Setting::sctp_unanswered, "sctp_unanswered", "seconds", 60, kFiveDays, in(kVni),
     "SCTP that nobody has answered; RFC 9260 section 16: RTO.Max, 60 s, between two INITs", 60},
    {Setting::other, "other", "seconds", 10, kFiveDays, in(kVni),
     "any other protocol (GRE, ESP, ...) with packets in both directions; no RFC says, as UDP",
     300},
    {Setting::other_unanswered, "other_unanswered", "seconds", 10, kFiveDays, in(kVni),
     "any other protocol that nobody has answered; no RFC says, as UDP", 120},
    {Setting::mid_stream, "mid_stream", "seconds", 0, 3600, in(kVni),
     "after a restart of the gateway, the time in which a connection it forgot is picked up in its "
     "middle, where policy allows it from either end; 0: never",
     60},
    {Setting::tcp_window_check, "tcp_window_check", "", 0, 1, in(kVni),
     "whether TCP data outside of the receiver's window are dropped (RFC 9293 section 3.4)", 0},
    {Setting::mss_clamping, "mss_clamping", "", 0, 1, in(kVni),
     "whether a SYN's maximum segment size is lowered to what fits (RFC 4459 section 3.2)", 1},
    {Setting::persist_established, "persist_established", "", 1, 1,
     in(kEgressRule) | in(kIngressRule),
     "connections that the group's rules admitted survive them"},
    {Setting::nat_ports_per_endpoint, "ports_per_endpoint", "ports", 64, 4096, in(kNatGateway),
     "of each protocol that an endpoint may have, in blocks of 64"},
    {Setting::nat_mapping, "mapping", "", 0, 1, in(kNatGateway),
     "0 endpoint_independent, 1 address_and_port_dependent (RFC 4787 section 4.1)"},
    {Setting::nat_filtering, "filtering", "", 0, 2, in(kNatGateway),
     "0 endpoint_independent, 1 address_dependent, 2 address_and_port_dependent (RFC 4787 "
     "section 5)"},
};

}  // namespace

std::span<const SettingSpec> settings() {
    return kSettings;
}

const SettingSpec* find_setting(Setting id) {
    for (const SettingSpec& spec : kSettings)
        if (spec.id == id) return &spec;
    return nullptr;
}

}  // namespace sluice::openflow
