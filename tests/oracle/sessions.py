# SPDX-License-Identifier: Apache-2.0
"""A plain second implementation of what becomes of a sequence of packets: policy, state, address
translation, time.

Policy is policy.py's, asked anew whenever the desired state has changed. A connection is a small
object in a dict; there are no hashes, generations, records or tables of cases. It shares no source
with the product; docs/semantics.md and the RFCs say what is right.
"""
import dataclasses

import datagrams
import limits
import nat
import octets
import pickup
import policy
import tcp
from policy import ICMP, ICMPV6, SCTP, TCP, UDP

ICMP_OPPOSITE = {ICMP: {8: 0, 0: 8, 13: 14, 14: 13}, ICMPV6: {128: 129, 129: 128}}
ICMP_REPLIES = {ICMP: (0, 14), ICMPV6: (129,)}
# Seconds; RFC 5382, 7857, 4787, 5508, 9260.
TIMEOUTS = {"tcp_established": 7440, "tcp_transitory": 240, "tcp_time_wait": 240, "udp": 300,
            "udp_unanswered": 120, "icmp": 60, "sctp": 300, "sctp_unanswered": 60, "other": 300,
            "other_unanswered": 120}
# Their checksums cover addresses where nobody can mend them: DCCP, AH, UDP-Lite.
UNTRANSLATABLE = (33, 51, 136)
# What is told to the sender beside the drop: (ICMP type, code), (ICMPv6 type, code).
TOLD = {"no_route": ((3, 0), (1, 0)), "private_destination": ((3, 0), (1, 0)),
        "unknown_destination": ((3, 1), (1, 3)), "unknown_public_address": ((3, 1), (1, 3)),
        "ttl_expired": ((11, 0), (3, 0)), "too_big": ((3, 4), (2, 0))}
OF_GROUPS = {"egress_no_rule", "egress_denied", "ingress_no_rule", "ingress_denied"}
UPLINK_MTU, UNDERLAY_MTU = 1500, 9000 - 50


def turned(ends):
    """The tuple of the packets that answer."""
    source, destination, protocol, source_port, destination_port = ends
    if protocol in ICMP_OPPOSITE:
        kind = ICMP_OPPOSITE[protocol][destination_port >> 8]
        return destination, source, protocol, source_port, kind << 8 | destination_port & 0xFF
    return destination, source, protocol, destination_port, source_port


class Outcome:
    """`verdict`: forward, drop, answer. `frames`: [(port, octets)] that are to leave; `told`:
    (ICMP type, code) that the sender may be sent, in a frame beside them; `opened`: its connection."""

    def __init__(self, verdict, reason="none", frames=(), told=None, opened=None, decision=None):
        self.verdict, self.reason, self.frames = verdict, reason, list(frames)
        self.told, self.opened, self.decision = told, opened, decision
        self.clamped = False  # its MSS was lowered
        self.reopens = False  # it ended a connection before it was judged
        self.new_identification = False
        self.more = []  # of packets that had waited for this one

    def __repr__(self):
        return f"{self.verdict} {self.reason} {[(port, frame.hex()) for port, frame in self.frames]}"


class Connection:
    def __init__(self, first, decision, now, port=None):
        """`port`: with which it leaves, where its own was taken."""
        self.first = first
        self.decide(decision, port)
        self.sender = decision.sender
        self.receiver = decision.destination
        self.protocol = first["protocol"]
        self.tcp = tcp.Tcp() if self.protocol == TCP else None
        self.seen = [False, False]
        self.created = self.last = now
        self.judged = None  # the state of policy that it was last judged by
        self.over = False
        self.picked_up = False  # in its middle
        self.owner = decision.sender or decision.destination  # for which it counts
        self.vpc = None
        self.mappings = []  # of NAT gateways' ports that it uses

    def decide(self, decision, port=None):
        self.decision = decision
        # (VNI, tuple) as the packets of either direction arrive.
        leaves = decision.leaves
        there = leaves.source, leaves.destination, leaves.protocol, \
            leaves.source_port if port is None else port, leaves.destination_port
        first = self.first
        self.keys = [(first["vni"], octets.tuple_of(first)), (decision.destination_vni, turned(there))]

    def leaving(self, direction):
        """The tuple with which packets of the direction leave."""
        return turned(self.keys[1 - direction][1])

    def unanswered(self):
        """It counts against its endpoint's and its VPC's limit of such."""
        return self.tcp.unanswered if self.tcp else not self.seen[1]

    def timeout(self):
        if self.tcp:
            return self.tcp.timeout()
        if self.protocol in ICMP_OPPOSITE:
            return "icmp"
        name = {UDP: "udp", SCTP: "sctp"}.get(self.protocol, "other")
        return name if all(self.seen) else f"{name}_unanswered"


class Gateway:
    def __init__(self, world, macs):
        """`world`: kind → {id: fields}, which apply() changes; `macs`: the gateway's, by subnet."""
        self.world, self.macs = world, macs
        self.now = 0
        self.state_of_policy = 0
        self.table = {}  # (VNI, tuple) → (connection, direction)
        self.decided = {}
        self.fragments = datagrams.Datagrams(self)
        self.ports = nat.Ports(self)
        self.policy = policy.Policy(world, self.ports)
        self.limits = limits.Limits(self)
        self.evicted = 0  # connections that went for others
        self.restarted = None  # when
        self.picked_up = 0  # connections, in their middle
        self.ported = 0  # connections whose source port was translated for want of a free key
        self.wrong = []  # what was wrong with a choice of the product's
        self.ended = []  # those that are gone, for whoever makes packets

    # --- what changes beside packets ------------------------------------------------------------

    def apply(self, changes):
        for change in changes:
            if change["spec"] is None:
                self.world[change["kind"]].pop(change["id"], None)
            else:
                self.world[change["kind"]][change["id"]] = change["spec"]
        self.state_of_policy += 1
        self.decided.clear()
        self.policy = policy.Policy(self.world, self.ports)

    def advance(self, seconds):
        """The reasons for which packets are dropped that had waited."""
        self.now += seconds
        for connection in self.live():
            if self.is_homeless(connection) or self.now - connection.last > self.time_of(connection):
                self.end(connection)
            elif connection.mappings and connection.judged != self.state_of_policy \
                    and self.judge_anew(connection) != "allowed":
                self.end(connection)  # its port is its NAT gateway's again
        return self.fragments.expire()

    def vpc_of(self, connection):
        """The VPC that it counts for: the sender's, or else the receiver's."""
        return self.world["vpcs"].get(self.policy.vpc_with(connection.keys[0][0] or connection.keys[1][0]), {})

    def is_homeless(self, connection):
        return not self.vpc_of(connection)

    def time_of(self, connection):
        name = connection.timeout()
        return self.vpc_of(connection).get("timeouts", {}).get(name, TIMEOUTS[name])

    def live(self):
        return [connection for connection, direction in self.table.values() if direction == 0]

    def end(self, connection):
        for key in connection.keys:
            del self.table[key]
        connection.over = True
        self.ports.release(connection)
        self.ended.append(connection)

    def restart(self):
        """Nobody knows its connections any more, nor ports of NAT gateways that rest."""
        for connection in self.live():
            self.end(connection)
        self.ports = nat.Ports(self)
        self.fragments = datagrams.Datagrams(self)
        self.limits = limits.Limits(self)
        self.policy = policy.Policy(self.world, self.ports)
        self.decided.clear()
        self.restarted = self.now

    # --- packets ---------------------------------------------------------------------------------

    def packet(self, p, fate, taken=None):
        """`fate`: what the product did with it, for choices that are a gateway's own; `taken`: of a
        burst's drops, how many are explained."""
        self.fate, self.wrong = fate, []
        self.taken, self.alone = {} if taken is None else taken, taken is None
        if (p["vni"] and p["protocol"] == UDP and p.get("destination_port") == policy.VXLAN_PORT
                and p.get("cut", (0, 0))[0] == 0):
            return self.dropped(p, "inner_vxlan")
        if "quotes" in p:
            return self.error(p)
        return self.fragments.fragment(p) if "more" in p else self.ordinary(p)

    def ordinary(self, p):
        key = p["vni"], octets.tuple_of(p)
        if key not in self.table:
            return self.first(p)
        connection, direction = self.table[key]
        return self.follow(p, connection, direction)

    def seen_dropped(self, reason):
        return any(dropped[0] == reason for dropped in self.fate[1])

    def take_reason(self, reasons):
        """One of these for which the product dropped the packet; of a burst's, each once."""
        for number, (reason, zone, count) in enumerate(self.fate[1]):
            if reason in reasons and count > self.taken.get(number, 0):
                self.taken[number] = self.taken.get(number, 0) + 1
                return reason
        return None

    def decide(self, p):
        key = (p["vni"], p["vtep"], p["source_mac"], p["destination_mac"], p.get("subnet_id"),
               octets.tuple_of(p))
        if self.policy.nat_with(p["destination"]):  # what has its ports changes with every packet
            return self.policy.decide(p)
        if key not in self.decided:
            self.decided[key] = self.policy.decide(p)
        return self.decided[key]

    def first(self, p):
        refused = self.limits.charge(p)
        if refused:
            return self.dropped(p, refused)
        decision = self.decide(p)
        if decision.nat:
            decision = self.by_address(p, decision)
        if decision.nat and not self.fate[4] and self.take_reason(["nat_endpoint_ports"]):
            # Wherever it goes, it gets its source first.
            self.wrong += self.ports.has_all(p, decision.nat)
            self.limits.make_room_in_vain(self.fate[5])
            return self.dropped(p, "nat_endpoint_ports")
        if decision.verdict == "answer":
            if "more" in p:  # the gateway puts nothing together
                return self.dropped(p, "inner_fragment")
            return Outcome("answer", frames=[self.echo(p)], decision=decision)
        refused = self.opens(p)
        picked_up = refused and pickup.may_be(self, p)
        if decision.verdict == "drop":
            first = picked_up and decision.reason in OF_GROUPS and pickup.by_reply(self, p)
            if not first:
                return self.dropped(p, decision.reason, decision=decision)
            opened = self.decide(first)
            if not pickup.both_want(self, (first["vni"], p["vni"])):
                return self.dropped(p, refused, decision=decision)
            outcome = self.unfit(p, opened.sender, opened.bridged) or self.open(p, opened, first)
            outcome.reopens = True
            return outcome
        if picked_up and (decision.nat or decision.mapping or not pickup.both_want(
                self, (p["vni"], decision.destination_vni))):
            return self.dropped(p, refused, decision=decision)  # of a NAT gateway nobody knows who had the port
        if refused and not picked_up:
            return self.dropped(p, refused, decision=decision)
        unfit = self.unfit(p, decision.destination, decision.bridged)
        if unfit:  # what cannot go on opens nothing
            return unfit
        refused = self.untranslatable(p, decision)
        if refused:
            return self.dropped(p, refused, decision=decision)
        return self.open(p, decision, p if picked_up else None)

    def open(self, p, decision, picked_up=None):
        """`picked_up`: the first packet of what is picked up in its middle by this one."""
        connection = Connection(picked_up or p, decision, self.now)
        if picked_up:
            self.picked_up += 1
            connection.picked_up = True
            if connection.tcp:
                connection.tcp.pick_up()
        connection.vpc = self.policy.vpc_with(connection.keys[0][0] or connection.keys[1][0])
        self.wrong += self.limits.make_room(connection)
        if not self.fate[4]:
            refused = self.limits.refusal(connection)
            if refused:
                return self.dropped(p, refused, decision=decision)
        if decision.nat:
            decision = self.chosen(p, decision)
            connection.decide(decision)
        refused = self.claim(connection)
        if refused and p["protocol"] in (TCP, UDP, ICMP) and self.fate[4] and not decision.nat and \
                connection.keys[0][1] != connection.leaving(0):
            # The source port is translated, too: to one that is free.
            connection.decide(decision, self.fate[4][0][2][3])
            refused = self.claim(connection)
            self.ported += 1
        if refused:
            return self.dropped(p, refused, decision=decision)
        if decision.nat:
            self.wrong += self.ports.take(connection, decision.nat, connection.leaving(0))
        if decision.mapping:
            self.ports.use(connection, decision.mapping)
        connection.judged = self.state_of_policy
        for direction, key in enumerate(connection.keys):
            self.table[key] = connection, direction
        self.wrong += self.limits.overrun(connection)
        outcome = self.carry(p, connection, int(picked_up is not None and picked_up is not p))
        outcome.opened, outcome.decision = connection, decision
        return outcome

    def by_address(self, p, decision):
        """Whoever judges the packet behind the NAT gateway sees the address that this chose."""
        for public in self.policy.addresses_of(decision.nat):
            other = self.policy.decide(p, public=public)
            if self.fate[4][0][2][0] == public if self.fate[4] else self.seen_dropped(other.reason):
                return other
        return decision

    def chosen(self, p, decision):
        """With the address and port that the NAT gateway chose."""
        if self.fate[4]:
            source, _, _, port, _ = self.fate[4][0][2]
            leaves = dataclasses.replace(decision.leaves, source=source, source_port=port)
            return dataclasses.replace(decision, leaves=leaves)
        if self.seen_dropped("session_conflict") and self.ports.leads_home(decision, p):
            return self.ports.as_mapped(decision, p)
        self.wrong.append("the NAT gateway chose no port")
        return dataclasses.replace(decision, leaves=dataclasses.replace(
            decision.leaves, source_port=p["source_port"]))

    def opens(self, p):
        """Why the packet may open no connection."""
        protocol = p["protocol"]
        if protocol == SCTP:
            opening = p["chunk"] == 1 if p["tag"] == 0 else p["chunk"] == 4
            return None if opening else "sctp_not_init"
        if protocol in ICMP_REPLIES and p["destination_port"] >> 8 in ICMP_REPLIES[protocol]:
            return "icmp_not_request"
        flags = p.get("flags", 0) & (tcp.FIN | tcp.SYN | tcp.RST | tcp.ACK)
        return "tcp_not_syn" if protocol == TCP and flags != tcp.SYN else None

    def untranslatable(self, p, decision):
        if decision.nat:
            return None
        changes = octets.tuple_of(p) != tuple(vars(decision.leaves).values())
        return "nat_unsupported" if changes and p["protocol"] in UNTRANSLATABLE else None

    def claim(self, connection):
        """The far side's key must be free: a connection there that policy no longer admits is gone."""
        other = self.table.get(connection.keys[1], (None, 0))[0]
        if other and other.judged != self.state_of_policy and self.judge_anew(other) != "allowed":
            self.end(other)
            other = None
        if other or connection.keys[0] == connection.keys[1]:
            return "session_conflict"
        return None

    def anew(self, p):
        """Its connection has ended, and with that a NAT gateway's port, perhaps."""
        outcome = self.first(p)
        outcome.reopens = True
        return outcome

    # --- packets of a connection -----------------------------------------------------------------

    def follow(self, p, connection, direction):
        if connection.judged != self.state_of_policy:
            known = self.sender_fault(p, connection, direction) is None
            gone = self.is_of_nobody(connection) or \
                self.end_of(connection, direction) not in (None, *self.world["endpoints"])
            verdict = self.judge_anew(connection)
            if verdict != "allowed":
                self.end(connection)
                if gone:  # refused, or somebody else's, or with another address by now
                    known = True  # whoever has the MAC
                    verdict = "denied" if self.seen_dropped("policy_changed") else "replaced"
                if verdict == "denied" and known:
                    return self.dropped(p, "policy_changed", told=False)
                if known and self.seen_dropped("policy_changed") and self.may_be_denied(connection):
                    return self.dropped(p, "policy_changed", told=False)
                return None if p.get("follows") else self.anew(p)
        fault = self.sender_fault(p, connection, direction)
        if fault:
            return self.dropped(p, fault, told=False)
        return self.carry(p, connection, direction)

    def is_of_nobody(self, connection):
        """Its sender is gone, or its NAT gateway has lost the address."""
        nat = connection.decision.nat
        if nat and (nat not in self.world["nat-gateways"] or
                    connection.decision.leaves.source not in self.policy.addresses_of(nat)):
            return True
        return connection.sender and connection.sender not in self.world["endpoints"]

    def may_be_denied(self, connection):
        """It would go through a NAT gateway now: with an address that the other end does not let in, or there
        is no port for it."""
        again, decision, admitted_by = self.judged_anew
        if decision.nat and all(
                self.policy.decide(again, (None, 0, None), admitted_by, public=public).verdict == "forward"
                for public in self.policy.addresses_of(decision.nat)):
            self.wrong += self.ports.has_all(again, decision.nat)
        return bool(decision.nat)

    def judge_anew(self, connection):
        """allowed, denied, or replaced: what its first packet would open now is another."""
        again = dict(connection.first)
        if connection.sender:
            # Who sends is the endpoint with its address, should that be another by now.
            vpc = self.policy.vpc_with(again["vni"])
            owner = connection.sender if connection.sender in self.world["endpoints"] else \
                vpc and self.policy.endpoint_with(vpc, again["source"])
            if not owner:
                return "denied"
            spec = self.world["endpoints"][owner]
            again |= {"destination_mac": None, "subnet_id": spec["subnet_id"],
                      "vtep": self.policy.vteps_of(owner)[0]}
            if owner != connection.sender:
                again["source_mac"] = spec["mac"]
        was = connection.decision
        held = (was.leaves.source, was.leaves.source_port, was.nat) if was.nat else (None, 0, None)
        decision = self.policy.decide(again, held, was.admitted_by)
        self.judged_anew = again, decision, was.admitted_by
        if decision.verdict != "forward":
            return "denied"
        if (decision.leaves, decision.destination_vni, decision.destination, decision.sender) != (
                was.leaves, was.destination_vni, was.destination, was.sender):
            return "replaced"
        connection.decision = decision
        connection.judged = self.state_of_policy
        return "allowed"

    def end_of(self, connection, direction):
        """The endpoint that sends the packets of the direction; None: outside."""
        return connection.sender if direction == 0 else connection.receiver

    def sender_fault(self, p, connection, direction):
        """What is wrong with who sends a packet of the connection."""
        endpoint = self.end_of(connection, direction)
        if endpoint is None:
            return None
        spec = self.world["endpoints"].get(endpoint)
        wanted = connection.first["source_mac"] if direction == 0 else spec and spec["mac"]
        if spec is None or p["source_mac"] != wanted:
            return "spoofed_mac"
        return None if p["vtep"] in self.policy.vteps_of(endpoint) else "spoofed_vtep"

    def unfit(self, p, to, bridged):
        """What becomes of a packet that cannot go there, whatever its connection is; None: it can."""
        if p["ttl"] <= (0 if bridged else 1):
            return self.dropped(p, "ttl_expired", told=not bridged)
        length, mtu = octets.ip_length(p), self.mtu_towards(to, p)
        is_roce = p["protocol"] == UDP and p["destination_port"] == policy.ROCE_PORT
        if length > mtu and is_roce and not p.get("follows"):
            return self.dropped(p, "roce_too_big")
        if length > mtu and (p.get("df") or ":" in p["source"]):
            return self.dropped(p, "too_big")
        if self.congestion(p) is None:
            return self.dropped(p, "ecn_invalid", told=False)
        return None

    def carry(self, p, connection, direction):
        """`p`: a whole packet, a first fragment, or (`follows`) a later one."""
        to = self.end_of(connection, 1 - direction)
        unfit = self.unfit(p, to, connection.decision.bridged)
        if unfit:
            return unfit
        mtu, tos = self.mtu_towards(to, p), self.congestion(p)
        if connection.tcp and not p.get("follows"):
            if connection.picked_up and direction == 1 and tcp.is_syn(p):
                # Whoever opens from the other end of what perhaps never was is judged for it.
                refused = self.limits.charge(p)
                if not refused:
                    again = self.decide(p)
                    refused = again.verdict != "forward" and again.reason
                if refused:
                    return self.dropped(p, refused, told=False)
            verdict = connection.tcp.segment(
                direction, p, self.vpc_of(connection).get("tcp_window_check", False))
            if verdict == "new":
                self.end(connection)
                return self.anew(p)
            if verdict.startswith("tcp_"):
                return self.dropped(p, verdict, told=False)
        connection.seen[direction] = True
        connection.last = self.now
        segment = self.clamp(p, connection, direction, mtu)
        outcome = Outcome("forward", frames=self.leave(segment, connection, direction, to, tos, mtu))
        outcome.clamped = segment is not p
        outcome.new_identification = self.is_shared(p, connection, direction)
        return outcome

    @staticmethod
    def is_shared(p, connection, direction):
        """RFC 6864 section 5.3: what may be fragmented gets another from an address that many share."""
        shares = connection.decision.mapping if direction else connection.decision.nat
        return bool(shares) and not p.get("df")

    def clamp(self, p, connection, direction, mtu):
        """Of a SYN across subnets or to the outside: with an MSS that both directions carry."""
        if not self.vpc_of(connection).get("mss_clamping", True):
            return p
        if "mss" not in p or not p["flags"] & tcp.SYN or connection.decision.bridged or p.get("follows"):
            return p
        back = self.mtu_towards(self.end_of(connection, direction), p)
        most = min(mtu, back) - (40 if "." in p["source"] else 60)
        return p if p["mss"] <= most else {**p, "options": p["options"].replace(
            f"0204{p['mss']:04x}", f"0204{most:04x}")}

    def congestion(self, p):
        """The traffic class after decapsulation (RFC 6040 section 4.2); None: it must be dropped."""
        tos, outer = p["tos"], p.get("ecn", 0) if p["side"] == "underlay" else 0
        inner = tos & 3
        if outer == 3:
            return None if inner == 0 else tos | 3
        if outer == 1 and inner == 2:
            return tos & ~3 | 1
        return tos

    def mtu_towards(self, endpoint, p):
        if endpoint is None:
            return UPLINK_MTU
        return min(self.policy.subnet_of(endpoint)["mtu"], UNDERLAY_MTU)

    def leave(self, p, connection, direction, to, tos, mtu, ends=None):
        ends = ends or connection.leaving(direction)
        bridged = connection.decision.bridged
        packet = octets.network(p, ends, p["ttl"] - (not bridged), tos)
        pieces = [packet] if len(packet) <= mtu else octets.fragments(packet, mtu)
        if to is None:
            return [(octets.UPLINK, octets.leaving_uplink(piece)) for piece in pieces]
        spec = self.world["endpoints"][to]
        source = p["source_mac"] if bridged else self.macs[spec["subnet_id"]]
        return [(octets.UNDERLAY, octets.leaving_tunnelled(
            piece, (octets.mac(spec["mac"]), octets.mac(source)),
            self.policy.vni_of(to), self.policy.vteps_of(to)[0], tos)) for piece in pieces]

    # --- ICMP errors -----------------------------------------------------------------------------

    def error(self, p):
        """It belongs to the connection whose packet it quotes, and travels as its replies do."""
        quoted = p["quotes"]
        ends, vni = quoted["ends"], p["vni"]
        unmatched = self.dropped(p, "icmp_error_unmatched")
        header = 20 if "." in p["source"] else 40
        needed = 8 if ends[2] in (TCP, UDP, SCTP, ICMP, ICMPV6) else 0
        if ends[0] != p["destination"] or quoted["cut"] < header + needed or "quotes" in quoted:
            return unmatched
        if vni == 0 and self.limits.charge(p):
            return self.dropped(p, self.limits.refused)
        if vni == 0 and self.policy.stranger_outside(p["source"]):
            return self.dropped(p, self.policy.stranger_outside(p["source"]))
        connection, direction = self.table.get((vni, turned(ends)), (None, 0))
        if connection is None:
            return unmatched
        if connection.judged != self.state_of_policy and self.judge_anew(connection) != "allowed":
            self.end(connection)
            return self.dropped(p, "policy_changed")
        key = connection.keys[direction][1]
        if vni and (self.sender_fault(p, connection, direction) or p["source"] != key[0]):
            # Not the end itself: a router behind it, by an address that it may send from.
            if self.limits.charge(p):
                return self.dropped(p, self.limits.refused)
            sender, reason = self.policy.sender(p)
            if reason:
                return self.dropped(p, reason)
            if sender != self.end_of(connection, direction):
                return unmatched
        return self.carry_error(p, connection, direction, key)

    def carry_error(self, p, connection, direction, key):
        to, bridged = self.end_of(connection, 1 - direction), connection.decision.bridged
        mtu = self.mtu_towards(to, p)
        if octets.ip_length(p) > mtu and (p["df"] or ":" in p["source"]):
            return self.dropped(p, "too_big", told=False)
        if p["ttl"] <= (0 if bridged else 1):
            return self.dropped(p, "ttl_expired", told=False)
        tos = self.congestion(p)
        if tos is None:
            return self.dropped(p, "ecn_invalid")
        after = connection.leaving(direction)
        hidden = p["source"] == key[0] or p["vni"] and after[0] != key[0]
        again = {**p, "quotes": {**p["quotes"], "ends": turned(after)}}
        ends = after[0] if hidden else p["source"], after[1], p["protocol"], 0, p["destination_port"]
        outcome = Outcome("forward", frames=self.leave(again, connection, direction, to, tos, mtu, ends))
        outcome.new_identification = self.is_shared(p, connection, direction) and bool(hidden)
        return outcome

    # --- packets that go no further --------------------------------------------------------------

    @staticmethod
    def held():
        return Outcome("held")

    def dropped(self, p, reason, told=True, decision=None):
        kinds = TOLD.get(reason) if told else None
        outcome = Outcome("drop", reason, decision=decision)
        if kinds:
            outcome.told = kinds[":" in p["source"]]
        return outcome

    def echo(self, p):
        """The answer to a ping to the gateway: the same octets, turned round."""
        ends = turned(octets.tuple_of(p))
        packet = octets.network({**p, "df": p.get("df")}, ends, 64, p["tos"])
        frame = octets.ethernet(octets.mac(p["source_mac"]), octets.mac(p["to_mac"]), packet)
        return octets.UNDERLAY, octets.tunnelled(
            frame, p["vni"], octets.VTEP, p["vtep"],
            (octets.host_mac(p["vtep"]), octets.mac(octets.UNDERLAY_MAC)), 0, source_port=0)
