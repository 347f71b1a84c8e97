# SPDX-License-Identifier: Apache-2.0
"""What a run met, and what it must not have missed to prove anything."""
import itertools

STATES = ("none", "syn_sent", "simultaneous_open", "syn_received", "established", "reset_doubted",
          "fin_initiator", "fin_responder", "time_wait", "closed")
SEGMENTS = ("SYN", "SYN-ACK", "ACK", "FIN", "RST", "invalid")
PROTOCOLS = {None: "any", 6: "TCP", 17: "UDP", 132: "SCTP", 1: "ICMP", 58: "ICMPv6"}
MUST_MEET = {
    "forward", "held", "answer", "ICMP error", "fragment", "fragmented", "to the uplink",
    "from the uplink", "hairpin", "bridged", "IPv6", "explained", "MSS clamped",
    "through a NAT gateway", "nat_filtered", "nat_unmapped", "nat_protocol",
    "from outside to a mapped port", "from a tenant to a mapped port", "burst", "evicted", "restart", "picked up",
    "endpoint_connections", "endpoint_half_open", "endpoint_connection_rate",
    "vpc_connections", "vpc_half_open", "vpc_connection_rate", "nat_endpoint_ports",
    *(f"protocol {number}" for number in (1, 6, 17, 33, 47, 50, 51, 58, 132, 136, 200)),
    # Reasons that sequences of well-formed packets lead to.
    "spoofed_address", "spoofed_mac", "spoofed_vtep", "unknown_vni", "inner_wrong_mac",
    "egress_no_rule", "egress_denied", "ingress_no_rule", "ingress_denied", "policy_changed",
    "no_route", "route_blackhole", "source_check", "unknown_destination", "gateway_protocol",
    "no_elastic_ip", "unknown_public_address", "private_on_uplink", "private_destination",
    "roce_not_translated", "roce_fragment", "nat_unsupported", "tcp_not_syn", "sctp_not_init",
    "tcp_invalid", "tcp_out_of_window", "icmp_error_unmatched", "icmp_not_request",
    "inner_fragment", "fragment_tiny", "fragment_overlap", "fragment_duplicate", "fragment_timeout",
    "too_big", "ttl_expired", "ecn_invalid"}


def class_of(rule):
    """direction, action, family, what it says of the protocol, what of the remote."""
    protocol = PROTOCOLS.get(rule["protocol"], "number")
    for field, word in (("port_min", "ports"), ("icmp_type", "type"), ("icmp_code", "code")):
        if rule.get(field) is not None:
            protocol += f", {word}"
    remote = next((name for name in ("cidr", "group_id", "prefix_list_id") if rule.get(f"remote_{name}")),
                  "any")
    return rule["direction"], rule["action"], rule["family"], protocol, remote


def all_classes():
    common = ("any", "TCP", "TCP, ports", "UDP", "UDP, ports", "SCTP", "SCTP, ports", "number")
    for direction, action, family, remote in itertools.product(
            ("ingress", "egress"), ("allow", "deny"), ("ipv4", "ipv6"),
            ("any", "cidr", "group_id", "prefix_list_id")):
        icmp = "ICMP" if family == "ipv4" else "ICMPv6"
        for protocol in (*common, icmp, f"{icmp}, type", f"{icmp}, type, code"):
            yield direction, action, family, protocol, remote


def missing(met, rules, cells):
    """Prints counts; sentences about what never occurred."""
    wrong = []
    never = sorted(MUST_MEET - {name for name, count in met.items() if count})
    if never:
        wrong.append("never met: " + ", ".join(never))
    for wanted in all_classes():
        print(f"rules of {', '.join(wanted)}: {rules[wanted]} times in a group, "
              f"{rules['decided', wanted]} times decisive")
        if not rules[wanted]:
            wrong.append("no rule of " + ", ".join(wanted))
    for state, directions in list(zip(STATES, cells, strict=True))[1:]:
        for who, events in zip(("initiator", "responder"), directions, strict=True):
            print(f"{state}, from the {who}: "
                  + ", ".join(f"{segment} {count}" for segment, count in zip(SEGMENTS, events, strict=True)))
            wrong += [f"no {segment} from the {who} in {state}"
                      for segment, count in zip(SEGMENTS, events, strict=True) if not count]
    return wrong
