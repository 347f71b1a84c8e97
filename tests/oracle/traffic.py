# SPDX-License-Identifier: Apache-2.0
"""Random packets one after another: what ends of connections could send, in any order that a network
makes of it, and what somebody else could send in their place.

It looks at the second implementation's connections to know what would come next, and then often does
something else.
"""
import octets
import packets
import tcp
from policy import ICMP, ICMPV6, SCTP, TCP, UDP, address
from sessions import turned

OTHERS = (47, 50, 33, 51, 136, 200)
# A step in seconds now and then: within and around every timeout.
STEPS = (3, 5, 20, 56, 57, 60, 61, 64, 117, 120, 121, 124, 236, 240, 241, 297, 300, 301, 7437, 7440, 7441)


class Traffic:
    def __init__(self, world, gateway, rng):
        self.world, self.gateway, self.random = world, gateway, rng
        self.first = packets.Packets(world, rng)
        self.identification = 0
        self.waiting = []  # fragments on their way

    def chance(self, share):
        return self.random.random() < share

    def step(self):
        """Seconds until the next packets."""
        return self.random.choice(STEPS[:3] if self.chance(0.75) else STEPS)

    def packet(self):
        self.live = self.gateway.live()
        if self.waiting and self.chance(0.6):
            return self.waiting.pop(self.random.randrange(len(self.waiting)) if self.chance(0.5) else 0)
        p = self.whole()
        return self.in_pieces(p) if self.chance(0.05) and "quotes" not in p else p

    def whole(self):
        kind = self.random.random()
        if kind < 0.07 and (self.live or self.gateway.ended):
            return self.error(self.random.choice(self.live or self.gateway.ended))
        if kind < 0.1 and self.live:
            p = self.of_new_owner(self.random.choice(self.live))
            if p:
                return p
        if kind < 0.13:
            behind = [c for c in self.live if c.mappings]
            if behind:
                return self.to_mapped_port(self.random.choice(behind))
        rare = [c for c in self.live if c.tcp and (c.tcp.doubted or c.tcp.step in ("crossed", "over"))]
        if rare and self.chance(0.2):
            return self.of_connection(self.random.choice(rare))
        if kind < 0.62 and self.live:
            return self.of_connection(self.random.choice(self.live))
        restarted = self.gateway.restarted
        recently = restarted is not None and self.gateway.now < restarted + 30
        if kind < (0.9 if recently else 0.7) and self.gateway.ended:
            return self.of_connection(self.random.choice(self.gateway.ended[-20:]))
        return self.opening()

    def burst(self):
        """Many new connections of one sender at once, each with a packet or more, and packets of
        others that are known."""
        rng = self.random
        for _ in range(8):
            p = self.first.from_endpoint() if self.chance(0.8) else self.first.from_uplink()
            if p["protocol"] in (TCP, UDP, ICMP, ICMPV6) and self.world["endpoints"]:
                break
        else:
            return [self.packet()]
        if p["side"] == "underlay" and "." in p["source"] and self.chance(0.5):
            p["destination"] = rng.choice(packets.INTERNET)
            p["destination_mac"] = None
        if p["source"] == p["destination"]:
            return [self.packet()]
        crowd = self.behind_nat() if self.chance(0.4) else None
        if crowd:  # more than one block of ports has
            p = crowd
        batch = []
        # Whether a copy finds room that the one before it did not is not to be seen from outside.
        unlimited = not any(vpc.get("limits") for vpc in self.world["vpcs"].values())
        port = rng.choice((2000, 40000))
        for number in range(100 if crowd else rng.choice((3, 20, 40, 100))):
            one = {**p, "source_port": port + number}
            for copy in range(rng.choice((1, 1, 1, 2, 3)) if unlimited else 1):
                again = dict(one)
                if again["protocol"] == TCP:
                    again |= {"flags": 2, "seq": 1000 + number, "ack": 0, "length": 0, "scale": None}
                batch.append(self.complete(again) | {"ttl": 64, "df": True, "ecn": 0, "length": copy})
                if again["protocol"] == TCP:
                    batch[-1]["length"] = 0
        known = [c for c in self.gateway.live() if c.protocol == UDP and c.judged == self.gateway.state_of_policy]
        for one in rng.sample(known, min(len(known), rng.choice((0, 0, 5)))):
            other = self.of_connection(one)
            if other["side"] == p["side"]:
                batch.insert(0, other)
        # As a gateway may do it: those of known connections first. One that ends under its packet leaves
        # room for whichever is next.
        of = [(self.gateway.table.get((p["vni"], octets.tuple_of(p)), (None,))[0], p) for p in batch]
        state = self.gateway.state_of_policy
        return [p for c, p in of if c and c.judged == state] + [p for c, p in of if not c] or [self.packet()]

    def behind_nat(self):
        """A datagram to the internet from somebody whose route leads to a NAT gateway; None."""
        policy = self.gateway.policy
        destination = self.random.choice(packets.INTERNET)
        owners = {spec["endpoint_id"] for spec in self.world["elastic-ips"].values()}
        behind = [key for key in self.world["endpoints"] if key not in owners
                  and "nat_gateway_id" in (policy.route(key, address(destination))[0] or "")]
        if not behind:
            return None
        key = self.random.choice(behind)
        spec = self.world["endpoints"][key]
        return {"side": "underlay", "vni": policy.vni_of(key), "source_mac": spec["mac"],
                "vtep": (policy.vteps_of(key) or ["192.0.2.99"])[0], "source": spec["ip"],
                "destination": destination, "protocol": UDP, "source_port": 1, "destination_port": 53,
                "destination_mac": None, "subnet_id": spec["subnet_id"]}

    # --- first packets ---------------------------------------------------------------------------

    def opening(self):
        p = self.first.packet()
        self.protocol(p)
        if p["protocol"] == TCP:
            self.segment(p, None, 0)
        return self.complete(p)

    def protocol(self, p):
        """Mostly as it was made; sometimes another one."""
        if p["protocol"] in (ICMP, ICMPV6):
            if self.chance(0.1):  # a reply, a timestamp
                kind = self.random.choice((0, 13, 14) if p["protocol"] == ICMP else (129,))
                p["destination_port"] = kind << 8
            return
        if self.chance(0.85) and p["protocol"] != 47:
            p["source_port"] = self.random.choice((40000, 40001, 40002, p["source_port"]))
            return
        p["protocol"] = self.random.choice((SCTP, SCTP, *OTHERS))
        if p["protocol"] == SCTP:
            p["source_port"] = self.random.choice((5000, 5001))
            self.chunk(p, True)
        else:
            p["source_port"] = p["destination_port"] = 0

    def chunk(self, p, opens):
        if opens and self.chance(0.85):
            p["tag"], p["chunk"] = 0, 1
        else:
            p["tag"] = self.random.choice((0, 1, 0xFFFFFFFF))
            p["chunk"] = self.random.choice((0, 1, 2, 3, 4, 10, 11))

    def complete(self, p):
        """What every packet has."""
        rng = self.random
        p["ttl"] = 64 if self.chance(0.95) else rng.choice((1, 1, 2, 255))
        p["tos"] = 0 if self.chance(0.7) else rng.randrange(256)
        p["ecn"] = 0 if self.chance(0.8) else rng.randrange(4)
        p["df"] = self.chance(0.7)
        self.identification = (self.identification + 1) % 65536
        p["id"] = self.identification
        p["salt"] = rng.randrange(256)
        p.setdefault("length", rng.choice((0, 1, 8, 33)) if self.chance(0.95) else
                     rng.choice((1300, 1372, 1380, 1424, 1432, 1460)))
        if p["protocol"] == UDP and self.chance(0.1) and "." in p["source"]:
            p["no_checksum"] = True
        if p["side"] == "underlay":
            p["to_mac"] = p["destination_mac"] or self.gateway.macs[p["subnet_id"]]
        p.setdefault("vtep", None)
        return p

    def of_new_owner(self, connection):
        """Whoever has the elastic address of a connection by now opens the same one."""
        if connection.decision.destination_vni or not connection.sender:
            return None
        policy = self.gateway.policy
        elastic = policy.elastic_with(address(connection.decision.leaves.source))
        owner = elastic and self.world["elastic-ips"][elastic]["endpoint_id"]
        if not owner or owner == connection.sender:
            return None
        spec = self.world["endpoints"][owner]
        p = {**connection.first, "source": spec["ip"], "vni": policy.vni_of(owner), "salt": 0,
             "vtep": policy.vteps_of(owner)[0], "source_mac": spec["mac"], "destination_mac": None,
             "subnet_id": spec["subnet_id"]}
        for key in ("cut", "more"):
            p.pop(key, None)
        return self.complete(p)

    def to_mapped_port(self, connection):
        """Somebody opens a connection to a NAT gateway's port that one of its endpoints uses."""
        mapping = self.random.choice(connection.mappings)
        protocol, public, port = mapping.key
        if self.chance(0.4) and self.world["endpoints"]:
            p = self.first.from_endpoint()
            if ":" in p["source"] or p["side"] != "underlay":
                return self.opening()
            p |= {"destination_mac": None}
        else:
            p = self.first.from_uplink()
            if self.chance(0.5):
                p["source"] = connection.keys[0][1][1] if connection.decision.nat else connection.keys[0][1][0]
        p |= {"destination": public, "protocol": protocol, "destination_port": port,
              "source_port": self.random.choice((40000, 40001, connection.keys[0][1][4] or 1))}
        if self.chance(0.1):
            p["destination_port"] = self.random.choice((port ^ 1, 22, 1024))
        if protocol == ICMP:
            p |= {"source_port": port, "destination_port": 8 << 8}
        if p["source"] == p["destination"]:
            return self.opening()
        if protocol == TCP:
            self.segment(p, None, 0)
        return self.complete(p)

    # --- packets of a connection -----------------------------------------------------------------

    def of_connection(self, connection):
        direction = int(self.chance(0.55)) if not connection.seen[1] or self.chance(0.9) else 0
        vni, ends = connection.keys[direction]
        source, destination, protocol, source_port, destination_port = ends
        p = {"vni": vni, "side": "underlay" if vni else "uplink", "source": source,
             "destination": destination, "protocol": protocol, "source_port": source_port,
             "destination_port": destination_port, "source_mac": None, "destination_mac": None}
        if vni:
            self.sender(p, connection, direction)
        else:
            p |= {"vtep": None, "source_mac": "02:ee:00:00:00:01"}
        if protocol == SCTP:
            self.chunk(p, False)
        if protocol == TCP:
            self.segment(p, connection.tcp, direction)
        return self.complete(p)

    def sender(self, p, connection, direction):
        endpoint = self.gateway.end_of(connection, direction)
        spec = self.world["endpoints"].get(endpoint) or self.remembered(connection, direction)
        vteps = self.world["hosts"].get(spec["host_id"], {}).get("vteps") or ["192.0.2.99"]
        p["source_mac"] = connection.first["source_mac"] if direction == 0 else spec["mac"]
        p["vtep"] = self.random.choice(vteps)
        p["subnet_id"] = spec["subnet_id"]
        if connection.decision.bridged:
            p["destination_mac"] = self.first.next_mac_in(spec["subnet_id"], p["destination"])
        if self.chance(0.04):
            self.spoil(p)
        if p["subnet_id"] not in self.gateway.macs:
            p["subnet_id"] = next(iter(self.gateway.macs))

    def remembered(self, connection, direction):
        """An endpoint that is gone, as a stubborn sender would still have it."""
        return {"mac": "06:00:00:00:00:02", "subnet_id": connection.first.get("subnet_id"), "host_id": None}

    def spoil(self, p):
        others = list(self.world["endpoints"].values())
        if self.chance(0.5) and others:
            p["source_mac"] = self.random.choice(others)["mac"]
        else:
            p["vtep"] = self.random.choice([v for h in self.world["hosts"].values() for v in h["vteps"]]
                                           + ["192.0.2.99"])

    # --- TCP -------------------------------------------------------------------------------------

    def flags(self, t, end):
        """Of a segment that would bring the connection on, mostly."""
        rng = self.random
        if self.chance(0.1):
            return rng.choice((2, 18, 16, 17, 4, 20, 0, 1, 3, 6, 24, 63))
        if t is None:
            return 2
        if t.doubted:
            return rng.choice((2, 18, 18, 2, 16, 17, 4, 0))
        if t.step == "opening":
            return rng.choice((18, 18, 18, 2, 20, 16)) if end else 2
        if t.step == "crossed":
            return rng.choice((18, 18, 16))
        if t.step == "answered":
            return rng.choice((18, 18, 16, 17)) if end else rng.choice((16, 16, 16, 17, 4))
        if t.step in ("over", "reset"):
            return rng.choice((16, 16, 17, 17, 2, 2, 2, 4, 4, 18, 18, 0))
        return rng.choice((16, 16, 24, 16, 17, 17, 4, 20, 2) if t.closed else (16, 24, 16, 16, 16, 17, 4))

    def segment(self, p, t, end):
        rng = self.random
        p["flags"] = self.flags(t, end)
        if p["flags"] & 2:
            p["scale"] = rng.choice((None, None, 0, 7, 14, 15))
            if p["scale"] is not None:
                p["options"] = f"010303{p['scale']:02x}"
                p["scale"] = min(p["scale"], 14)
            if self.chance(0.4):
                p["mss"] = rng.choice((536, 1340, 1360, 1361, 1390, 1400, 1410, 1460, 8960))
                p["options"] = f"0204{p['mss']:04x}" + p.get("options", "")
        if not p["flags"] & 16 or self.chance(0.3):
            p["length"] = 0
        # Some wrap, and some to exactly 0.
        start = rng.choice((0, 1, 1000, (1 << 31) - 2, tcp.MODULUS - 1, tcp.MODULUS - 2, tcp.MODULUS - 9,
                            rng.getrandbits(32)))
        own = t.sent[end] if t and t.sent[end] is not None else start
        wanted = t.acked[1 - end] if t and t.acked[1 - end] is not None else own
        other = t.sent[1 - end] if t and t.sent[1 - end] is not None else 77
        window = t.window(end) if t else 65535
        kind = rng.random()
        if kind < 0.6:
            p["seq"] = own
        elif kind < 0.75:
            p["seq"] = wanted
        elif kind < 0.85:
            p["seq"] = (own - rng.choice((1, 2, 30, 1000))) % tcp.MODULUS
        else:
            p["seq"] = (wanted + rng.choice((-1, 1, 2, 1000, window - 1, window, window + 1, window + 2,
                                             -window, -window - 1, 1 << 30, 1 << 31))) % tcp.MODULUS
        p["ack"] = other if self.chance(0.8) else (other + rng.choice((-1, 1, -1000, 1000))) % tcp.MODULUS
        if not p["flags"] & 16:
            p["ack"] = 0
        p.setdefault("length", rng.choice((0, 1, 8, 33)))

    def neighbour(self, p, vni):
        """Somebody else of the VPC sends it, as itself."""
        policy = self.gateway.policy
        vpc, family = policy.vpc_with(vni), "ipv6" if ":" in p["source"] else "ip"
        others = [(key, spec) for key, spec in policy.endpoints_of(vpc).items() if spec[family]] if vpc else []
        if others:
            key, spec = self.random.choice(others)
            p |= {"source": spec[family], "source_mac": spec["mac"], "subnet_id": spec["subnet_id"],
                  "vtep": policy.vteps_of(key)[0], "destination_mac": None}

    # --- fragments -------------------------------------------------------------------------------

    def in_pieces(self, p):
        """The first of the fragments of a packet; the others come later, or not, or twice."""
        rng = self.random
        p = {**p, "df": False, "length": rng.choice((40, 64, 100)), "options": "", "scale": None}
        p.pop("mss", None)
        size = octets.ip_length(p) - (20 if "." in p["source"] else 40)
        cuts = sorted(rng.sample(range(8 if self.chance(0.1) else 24, size, 8), rng.choice((1, 1, 2))))
        pieces = []
        for start, end in zip([0, *cuts], [*cuts, size]):
            if self.chance(0.04) and start > 8:
                start -= 8
            piece = {**p, "cut": (start, end), "more": end < size}
            pieces += [piece] * (2 if self.chance(0.07) else 1)
            if self.chance(0.06):
                pieces.pop()
            elif self.chance(0.04) and p["side"] == "underlay":
                self.spoil(piece)
        if self.chance(0.4):
            rng.shuffle(pieces)
        self.waiting += pieces
        return self.waiting.pop(0) if self.waiting else p

    # --- ICMP errors -----------------------------------------------------------------------------

    def error(self, connection):
        """About a packet of it that had left, from its receiver or a router before that."""
        rng = self.random
        direction = rng.randrange(2)
        vni, key = connection.keys[direction]
        v6 = ":" in key[0]
        seen = connection.leaving(1 - direction)
        if v6 and seen[2] == 51:  # a header with another behind it, to whoever reads the quote
            return self.of_connection(connection)
        quoted = {"source": seen[0], "ends": seen, "ttl": rng.randrange(1, 64), "tos": 0, "df": True,
                  "id": rng.randrange(65536), "length": rng.choice((0, 8, 33)), "salt": 7, "flags": 16,
                  "seq": 1, "ack": 1, "tag": 1, "chunk": 0}
        header = 40 if v6 else 20
        quoted["cut"] = rng.choice((header + 8, header + 8, 2000, header + 20, header + 4))
        kind = rng.choice(((1, 0), (1, 4), (2, 0), (3, 0), (4, 1)) if v6 else
                          ((3, 0), (3, 1), (3, 3), (3, 4), (11, 0), (12, 0)))
        p = {"vni": vni, "side": "underlay" if vni else "uplink", "source": key[0],
             "destination": seen[0], "protocol": ICMPV6 if v6 else ICMP, "source_port": 0,
             "destination_port": kind[0] << 8 | kind[1], "source_mac": None, "destination_mac": None,
             "rest": 1280 if kind in ((2, 0), (3, 4)) else 0, "quotes": quoted}
        if vni:
            self.sender(p, connection, direction)
        else:
            p |= {"vtep": None, "source_mac": "02:ee:00:00:00:01"}
        if vni and self.chance(0.2):
            self.neighbour(p, vni)
        elif self.chance(0.3):
            p["source"] = rng.choice(("fd00:1:1::c", "2001:db8::7") if v6 else (
                *packets.INTERNET, "10.0.0.12", "172.16.0.9", "203.0.113.12"))
        if self.chance(0.05):
            quoted["ends"] = (*seen[:3], seen[3] ^ 1, seen[4]) if seen[2] in (TCP, UDP) else seen
        if p["source"] == p["destination"]:
            p["source"] = key[0]
        return self.complete(p)
