# SPDX-License-Identifier: Apache-2.0
"""Fragments of inner packets for sessions.py: the first is judged like any packet, the others follow it
(RFC 1858, 3128, 5722). Nothing is put together."""
import octets
import policy
from policy import ICMP, ICMPV6, SCTP, TCP, UDP

WAIT, LIFE = 1, 2  # seconds, for the first fragment and for all
HEADERS = {TCP: 20, UDP: 8, ICMP: 8, ICMPV6: 8, SCTP: 12}


class Datagram:
    def __init__(self, now):
        self.begun = now
        self.state = "waiting"
        self.pieces = []  # (start, end)
        self.length = None
        self.overlapped = False
        self.held = []
        self.ends = None

    def add(self, start, end, more):
        """fresh, copy or overlap."""
        last = not more
        if self.length is not None and (end != self.length if last else end >= self.length):
            return "overlap"
        if last and any(e > end for _, e in self.pieces):
            return "overlap"
        there = {octet for s, e in self.pieces for octet in range(s, e, 8)}
        new = set(range(start, end, 8))
        if new & there:
            # All of it inside of what is there without a gap: a copy.
            whole = set(range(start, end))
            covered = {octet for s, e in self.pieces for octet in range(s, e)}
            return "copy" if whole <= covered else "overlap"
        self.pieces.append((start, end))
        if last:
            self.length = end
        return "fresh"

    def complete(self):
        return self.length is not None and sum(e - s for s, e in self.pieces) == self.length


class Datagrams:
    def __init__(self, gateway):
        self.gateway = gateway
        self.known = {}

    def expire(self):
        """Reasons of what had waited in vain."""
        reasons = []
        for key, datagram in list(self.known.items()):
            age = self.gateway.now - datagram.begun
            if age > (WAIT if datagram.state == "waiting" else LIFE):
                reasons += ["fragment_timeout"] * len(datagram.held)
                del self.known[key]
        return reasons

    def fragment(self, p):
        gateway, (start, end) = self.gateway, p["cut"]
        protocol = p["protocol"]
        header = HEADERS.get(protocol, 0) + len(p.get("options", "")) // 2
        if start == 0 and end < header or protocol == TCP and start == 8:
            return gateway.dropped(p, "fragment_tiny")
        if p["vni"] and gateway.policy.vpc_with(p["vni"]) is None:
            return gateway.dropped(p, "unknown_vni")
        key = (p["vni"], p["id"], protocol, p["source_mac"], p["vtep"], p["source"], p["destination"])
        datagram = self.known.setdefault(key, Datagram(gateway.now))
        fit = "overlap" if datagram.overlapped else datagram.add(start, end, p["more"])
        if fit == "copy":
            return gateway.dropped(p, "fragment_duplicate")
        if fit == "overlap":
            outcome = gateway.dropped(p, "fragment_overlap")
            outcome.more = [gateway.dropped(one, "fragment_overlap") for one in datagram.held]
            datagram.overlapped, datagram.held = True, []
            return outcome
        if start == 0:
            outcome = self.first(p, datagram)
        elif datagram.state == "waiting":
            datagram.held.append(p)
            return gateway.held()
        else:
            outcome = self.later(p, datagram)
        if datagram.complete():
            del self.known[key]
        return outcome

    def first(self, p, datagram):
        gateway = self.gateway
        if p["protocol"] == UDP and p["destination_port"] == policy.ROCE_PORT:
            outcome = gateway.dropped(p, "roce_fragment")
        else:
            outcome = gateway.ordinary(p)
        carried = outcome.reason != "roce_fragment" and (p["vni"], octets.tuple_of(p)) in gateway.table
        datagram.state = "carried" if carried else "refused"
        datagram.ends = octets.tuple_of(p)
        outcome.more = [self.later(one, datagram) for one in datagram.held]
        datagram.held = []
        return outcome

    def later(self, p, datagram):
        gateway = self.gateway
        refused = gateway.dropped(p, "inner_fragment")
        if datagram.state == "refused":
            return refused
        connection, direction = gateway.table.get((p["vni"], datagram.ends), (None, 0))
        if connection is None:
            return refused
        outcome = gateway.follow({**p, "follows": True}, connection, direction)
        return outcome or refused
