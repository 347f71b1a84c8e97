# SPDX-License-Identifier: Apache-2.0
"""A plain second implementation of what the gateway decides about the first packet of a connection.

It works on the desired state itself, in the shape of the API, with no tables, no compiler and no
incremental change: slow, short, and readable beside docs/semantics.md. It shares no source with the
product.
"""
import functools
import ipaddress
from dataclasses import dataclass, field

TCP, UDP, SCTP, ICMP, ICMPV6 = 6, 17, 132, 1, 58
ROCE_PORT = 4791
VXLAN_PORT = 4789
# The registries of RFC 6890, whatever of them is not globally reachable. Laboratories number their
# internet out of documentation blocks.
DOCUMENTATION = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
ECHO_REQUEST = {ICMP: 8, ICMPV6: 128}
ANYBODY = "anybody"  # no group: as if one had admitted it for good


@dataclass(frozen=True)
class Tuple:
    source: str
    destination: str
    protocol: int
    source_port: int = 0
    destination_port: int = 0  # ICMP: type << 8 | code


@dataclass(frozen=True)
class Decision:
    verdict: str  # drop, forward, answer
    reason: str = "none"
    leaves: Tuple | None = None
    destination_vni: int = 0  # 0: the uplink
    destination: str | None = None  # the endpoint's id
    sender: str | None = None  # likewise
    vtep: str | None = None
    bridged: bool = False
    inner_destination_mac: str | None = None
    # Rules of which any may be named as the one that decided; empty: none was asked.
    egress_rules: frozenset = field(default_factory=frozenset)
    ingress_rules: frozenset = field(default_factory=frozenset)
    route: str | None = None  # its destination prefix
    # A NAT gateway whose address and port the connection gets; `leaves` has them once chosen.
    nat: str | None = None
    # A NAT gateway to whose mapped port it comes from elsewhere: {what the port stands for}.
    mapping: object = None
    # The group that admitted it for good, as egress and as ingress; None: it needs a rule;
    # ANYBODY: whatever groups say.
    admitted_by: tuple = (None, None)
    # (elastic IP, direction) of each meter of this direction, as seen by its endpoint.
    meters: tuple = ()


def drop(reason, **more):
    return Decision("drop", reason, **more)


@functools.lru_cache(None)
def network(text):
    return ipaddress.ip_network(text)


@functools.lru_cache(None)
def address(text):
    return ipaddress.ip_address(text)


text_of = functools.lru_cache(1 << 16)(str)


@functools.lru_cache(1 << 16)
def contains(prefix, one):
    prefix = network(prefix)
    return prefix.version == one.version and one in prefix


def on_internet(one):
    """By Python's copy of the registries, which leaves the shared block of RFC 6598 undecided."""
    return one.is_global or any(contains(block, one) for block in DOCUMENTATION)


class Policy:
    """Decides by a World (world.py), which it reads and never changes."""

    def __init__(self, world, ports=None):
        """`ports`: what NAT gateways have given out (nat.py); None: nothing."""
        self.world, self.ports = world, ports

    # --- who is who ----------------------------------------------------------------------------

    def of_vpc(self, kind, vpc):
        return {key: spec for key, spec in self.world[kind].items() if spec["vpc_id"] == vpc}

    def vpc_with(self, vni):
        return next((key for key, spec in self.world["vpcs"].items() if spec["vni"] == vni), None)

    def vni_of(self, endpoint):
        return self.world["vpcs"][self.vpc_of(endpoint)]["vni"]

    def vpc_of(self, endpoint):
        return self.subnet_of(endpoint)["vpc_id"]

    def subnet_of(self, endpoint):
        return self.world["subnets"][self.world["endpoints"][endpoint]["subnet_id"]]

    def endpoints_of(self, vpc):
        return {key: spec for key, spec in self.world["endpoints"].items() if self.vpc_of(key) == vpc}

    def vteps_of(self, endpoint):
        spec = self.world["endpoints"][endpoint]
        return self.world["hosts"][spec["host_id"]]["vteps"]

    def endpoint_with(self, vpc, one):
        """The endpoint that has this address as its own."""
        for key, spec in self.endpoints_of(vpc).items():
            if text_of(one) in (spec.get("ip"), spec.get("ipv6")):
                return key
        return None

    def may_send(self, spec, mac, one):
        if not spec["source_check"] and mac == spec["mac"]:
            return True
        if mac == spec["mac"] and text_of(one) in (spec.get("ip"), spec.get("ipv6")):
            return True
        return any(contains(allowed["cidr"], one) and mac == (allowed.get("mac") or spec["mac"])
                   for allowed in spec["allowed_addresses"])

    # --- groups --------------------------------------------------------------------------------

    def is_member(self, one, group):
        """Whether the address is that of an endpoint in the group."""
        vpc = self.world["security-groups"][group]["vpc_id"]
        return any(group in spec["security_group_ids"] and self.speaks_for(spec, one)
                   for spec in self.endpoints_of(vpc).values())

    def speaks_for(self, spec, one):
        """Whether a rule that names a group of this endpoint means the address, too."""
        return text_of(one) in (spec.get("ip"), spec.get("ipv6"))

    def remote_matches(self, rule, remote):
        if rule.get("remote_cidr"):
            return contains(rule["remote_cidr"], remote)
        if rule.get("remote_group_id"):
            return self.is_member(remote, rule["remote_group_id"])
        if rule.get("remote_prefix_list_id"):
            cidrs = self.world["prefix-lists"][rule["remote_prefix_list_id"]]["cidrs"]
            return any(contains(cidr, remote) for cidr in cidrs)
        return True

    def rule_matches(self, rule, packet, remote):
        if rule["family"] != f"ipv{remote.version}":
            return False
        if rule.get("protocol") is not None and rule["protocol"] != packet.protocol:
            return False
        if rule.get("port_min") is not None:
            if not rule["port_min"] <= packet.destination_port <= rule["port_max"]:
                return False
        kind, code = packet.destination_port >> 8, packet.destination_port & 0xFF
        if rule.get("icmp_type") is not None and rule["icmp_type"] != kind:
            return False
        if rule.get("icmp_code") is not None and rule["icmp_code"] != code:
            return False
        return self.remote_matches(rule, remote)

    def judge_groups(self, endpoint, direction, packet, remote):
        """(reason or None, ids of the rules that may be named)"""
        # Of equal rules, that of the group which was there first admits.
        groups = [group for group in self.world["security-groups"]
                  if group in self.world["endpoints"][endpoint]["security_group_ids"]]
        matching = [(rule, group) for group in groups
                    for rule in self.world["security-groups"][group]["rules"]
                    if rule["direction"] == direction and self.rule_matches(rule, packet, remote)]
        # The lowest number first; deny before allow.
        first = min(((rule["priority"], rule["action"] == "allow") for rule, _ in matching),
                    default=(None, False))
        decisive = [(rule, group) for rule, group in matching
                    if (rule["priority"], rule["action"] == "allow") == first]
        ids = frozenset(rule["id"] for rule, _ in decisive)
        if first[1]:
            group = decisive[0][1]
            self.admitted_by[direction] = group if self.persists(group) else None
            return None, ids
        if self.persists(self.admitted_by[direction]):  # what admitted it once holds
            return None, frozenset()
        return f"{direction}_{'denied' if matching else 'no_rule'}", ids

    def persists(self, group):
        return group == ANYBODY or self.world["security-groups"].get(group, {}).get("persist_established", False)

    # --- routes --------------------------------------------------------------------------------

    def route(self, endpoint, destination):
        """(next hop, prefix) by the longest prefix; the VPC's own blocks come before any route."""
        subnet = self.subnet_of(endpoint)
        for cidr in self.world["vpcs"][subnet["vpc_id"]]["cidrs"]:
            if contains(cidr, destination):
                return "local", cidr
        routes = self.world["route-tables"][subnet["route_table_id"]]["routes"]
        fitting = [r for r in routes if contains(r["destination"], destination)]
        if not fitting:
            return None, None
        best = max(fitting, key=lambda r: network(r["destination"]).prefixlen)
        return best["next_hop"], best["destination"]

    # --- elastic addresses ---------------------------------------------------------------------

    def elastic_of(self, vpc, source):
        """The elastic IP attached to the private address, whoever may send with it."""
        owner = self.endpoint_with(vpc, source)
        for key, spec in self.world["elastic-ips"].items():
            if owner is not None and spec.get("endpoint_id") == owner and source.version == 4:
                return key
        return None

    def elastic_with(self, one):
        """The attached elastic IP that has this address."""
        for key, spec in self.world["elastic-ips"].items():
            if spec["address"] == text_of(one) and spec.get("endpoint_id"):
                return key
        return None

    def meter(self, elastic, direction):
        limited = self.world["elastic-ips"][elastic].get("bandwidth_mbps")
        return ((elastic, direction),) if limited else ()

    @staticmethod
    def is_roce(packet):
        """Its iCRC covers the addresses."""
        return packet.protocol == UDP and packet.destination_port == ROCE_PORT

    # --- the walk ------------------------------------------------------------------------------

    def decide(self, packet, held=None, admitted_by=(None, None), public=None):
        """`packet`: a dict, see packets.py. Of a connection that is judged anew, `held`: the address
        and port that it has of a NAT gateway, and which, or nothing of these; `admitted_by`: the group with
        persist_established that admitted it, as egress, as ingress. `public`: which of a NAT gateway's
        addresses it gets, if it gets one."""
        self.held, self.public = held, public
        self.admitted_by = {"egress": admitted_by[0], "ingress": admitted_by[1]}
        arrives = Tuple(packet["source"], packet["destination"], packet["protocol"],
                        packet["source_port"], packet["destination_port"])
        self.packet = packet
        if packet["side"] == "uplink":
            return self.from_uplink(arrives)
        return self.from_underlay(packet, arrives)

    def mac_fits(self, sender, receiver):
        """The gateway's MAC of the sender's subnet, or the neighbour's own (`receiver`)."""
        packet, world = self.packet, self.world
        if packet["side"] == "uplink":
            return True
        if packet["destination_mac"] is None:
            return packet["subnet_id"] == world["endpoints"][sender]["subnet_id"]
        return receiver is not None and packet["destination_mac"] == world["endpoints"][receiver]["mac"]

    def from_underlay(self, packet, arrives):
        vpc = self.vpc_with(packet["vni"])
        sender, reason = self.sender(packet)
        if reason:
            return drop(reason)

        destination = address(arrives.destination)
        if not self.subnet_of(sender)["cidr" if destination.version == 4 else "ipv6_cidr"]:
            return drop("no_route")  # the sender's subnet does not speak the family
        to_gateway = self.is_gateway_address(vpc, destination)
        if to_gateway and not self.mac_fits(sender, None):
            return drop("inner_wrong_mac")
        reason, egress = self.judge_groups(sender, "egress", arrives, destination)
        if reason:
            return drop(reason, egress_rules=egress)
        if to_gateway:
            echo = ECHO_REQUEST.get(arrives.protocol)
            if echo is not None and arrives.destination_port == echo << 8:  # and code 0
                return Decision("answer", egress_rules=egress)
            return drop("gateway_protocol", egress_rules=egress)

        hop, prefix = self.route(sender, destination)
        told = {"egress_rules": egress, "route": prefix}
        if hop is None:
            return drop("no_route", egress_rules=egress)
        if hop == "local":
            receiver = self.endpoint_with(vpc, destination)
            if receiver is None:
                return drop("unknown_destination", **told)
            return self.deliver(arrives, receiver, sender, told, local=True)
        if "blackhole" in hop:
            return drop("route_blackhole", **told)
        if "endpoint_id" in hop:
            return self.deliver(arrives, hop["endpoint_id"], sender, told)
        return self.to_internet(arrives, sender, told, hop.get("nat_gateway_id"))

    def sender(self, packet):
        """(the endpoint that sends it, None) or (None, the reason why nobody does)"""
        vpc = self.vpc_with(packet["vni"])
        if vpc is None:
            return None, "unknown_vni"
        source = address(packet["source"])
        sender = next((key for key, spec in self.endpoints_of(vpc).items()
                       if self.may_send(spec, packet["source_mac"], source)), None)
        if sender is None:
            return None, "spoofed_address"
        if packet["vtep"] not in self.vteps_of(sender):
            return None, "spoofed_vtep"
        return sender, None

    def addresses_of(self, nat):
        return [self.world["elastic-ips"][key]["address"]
                for key in self.world["nat-gateways"][nat]["elastic_ip_ids"]]

    def nat_with(self, one):
        """The NAT gateway that has this address."""
        return next((nat for nat in self.world["nat-gateways"] if text_of(one) in self.addresses_of(nat)), None)

    def stranger_outside(self, source):
        """Why nobody outside has this address."""
        if not on_internet(address(source)):
            return "private_on_uplink"
        if self.elastic_with(address(source)) is not None or self.nat_with(source):
            return "spoofed_address"  # it is one of ours
        return None

    def is_gateway_address(self, vpc, one):
        return any(text_of(one) in (spec.get("gateway_ip"), spec.get("gateway_ipv6"))
                   for spec in self.of_vpc("subnets", vpc).values())

    def to_internet(self, arrives, sender, told, nat):
        elastic = self.elastic_of(self.vpc_of(sender), address(arrives.source))
        held = self.held and self.held[0] in (self.addresses_of(nat) if nat else ())
        if nat and (elastic is None or held):
            return self.through_nat(arrives, sender, told, nat, held)
        if elastic is None:
            return drop("no_elastic_ip", **told)
        if self.is_roce(arrives):
            return drop("roce_not_translated", **told)
        public = self.world["elastic-ips"][elastic]["address"]
        leaves = Tuple(public, arrives.destination, *self.rest(arrives))
        return self.beyond(leaves, sender, {**told, "meters": self.meter(elastic, "out")})

    def through_nat(self, arrives, sender, told, nat, held):
        if self.is_roce(arrives):
            return drop("roce_not_translated", **told)
        query = arrives.protocol == ICMP and arrives.destination_port >> 8 in (0, 8, 13, 14)
        if arrives.protocol not in (TCP, UDP) and not query:
            return drop("nat_protocol", **told)
        if self.held and not held and self.held[2] == nat:
            return drop("nat_gateway_unknown", **told)  # it has lost the address
        source, port = self.held[:2] if held else (self.public or self.addresses_of(nat)[0], 0)
        leaves = Tuple(source, arrives.destination, arrives.protocol, port, arrives.destination_port)
        return self.beyond(leaves, sender, {**told, "nat": nat})

    def beyond(self, leaves, sender, told):
        """With its public source: to the internet, or back in."""
        destination = address(leaves.destination)
        target = self.elastic_with(destination)
        if target is not None:
            return self.to_elastic(leaves, target, told, sender)
        nat = self.nat_with(destination)
        if nat:
            return self.to_mapping(leaves, nat, told, sender)
        if not on_internet(destination):
            return drop("private_destination", **told)
        if not self.mac_fits(sender, None):
            return drop("inner_wrong_mac", **told)
        return Decision("forward", leaves=leaves, destination_vni=0, sender=sender,
                        admitted_by=(self.admitted_by["egress"], None), **told)

    def from_uplink(self, arrives):
        reason = self.stranger_outside(arrives.source)
        if reason:
            return drop(reason)
        target = self.elastic_with(address(arrives.destination))
        nat = self.nat_with(arrives.destination)
        if target is None and nat:
            return drop("roce_not_translated") if self.is_roce(arrives) else \
                self.to_mapping(arrives, nat, {}, None)
        if target is None:
            return drop("unknown_public_address")
        return self.to_elastic(arrives, target, {})

    def to_mapping(self, packet, nat, told, sender):
        """To a NAT gateway's address, and no reply: whom its filtering admits (RFC 4787 section 5)."""
        mapping = self.ports and packet.protocol != ICMP and \
            self.ports.mapped(packet.protocol, packet.destination, packet.destination_port)
        if not mapping or mapping.owner[0] != nat or mapping.owner[1] not in self.world["endpoints"]:
            return drop("nat_unmapped", **told)
        hop, _ = self.route(mapping.owner[1], address(packet.source))
        if not isinstance(hop, dict) or hop.get("nat_gateway_id") != nat:  # its replies go elsewhere
            return drop("nat_unmapped", **told)
        filtering = self.world["nat-gateways"][nat]["filtering"]
        # What has its connection was let in by what may have ended since.
        if filtering == "address_and_port_dependent" or filtering == "address_dependent" and \
                self.held is None and not mapping.talks_to(packet.source):
            return drop("nat_filtered", **told)
        leaves = Tuple(packet.source, mapping.inside[0], packet.protocol, packet.source_port,
                       mapping.inside[1])
        return self.deliver(leaves, mapping.owner[1], sender, {**told, "mapping": mapping})

    def to_elastic(self, packet, elastic, told, sender=None):
        receiver = self.world["elastic-ips"][elastic]["endpoint_id"]
        if self.is_roce(packet):
            return drop("roce_not_translated", **told)
        private = self.world["endpoints"][receiver]["ip"]
        leaves = Tuple(packet.source, private, *self.rest(packet))
        told = {**told, "meters": told.get("meters", ()) + self.meter(elastic, "in")}
        return self.deliver(leaves, receiver, sender, told)

    @staticmethod
    def rest(packet):
        return packet.protocol, packet.source_port, packet.destination_port

    def deliver(self, leaves, receiver, sender, told, local=False):
        """`sender`: None from the uplink. `local`: by the VPC's own blocks."""
        spec = self.world["endpoints"][receiver]
        bridged = local and self.world["endpoints"][sender]["subnet_id"] == spec["subnet_id"]
        if not self.mac_fits(sender, receiver if bridged else None):
            return drop("inner_wrong_mac", **told)
        if not self.may_send(spec, spec["mac"], address(leaves.destination)):
            return drop("source_check", **told)  # as a next hop; it could not answer either
        reason, ingress = self.judge_groups(receiver, "ingress", leaves, address(leaves.source))
        if reason:
            return drop(reason, ingress_rules=ingress, **told)
        return Decision("forward", leaves=leaves, destination=receiver, sender=sender,
                        admitted_by=(self.admitted_by["egress"], self.admitted_by["ingress"]),
                        vtep=self.vteps_of(receiver)[0],
                        bridged=bridged, inner_destination_mac=spec["mac"],
                        destination_vni=self.world["vpcs"][self.vpc_of(receiver)]["vni"],
                        ingress_rules=ingress, **told)
