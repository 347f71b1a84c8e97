# SPDX-License-Identifier: Apache-2.0
"""Random first packets for a World: mostly such as its endpoints could send, so that they get far;
the rest with one thing wrong."""
import ipaddress

import policy
from world import INTERNET, PORTS

# RFC 1918, RFC 6598, RFC 3927, RFC 2544.
PRIVATE = ("10.0.0.12", "172.16.9.9", "192.168.1.1", "100.64.0.1", "169.254.169.254", "198.18.0.1")
# Beside such blocks.
NEARLY_PRIVATE = ("11.0.0.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "198.20.0.1")


class Packets:
    def __init__(self, world, rng):
        self.world, self.random = world, rng
        self.facts = policy.Policy(world)

    def packet(self):
        if self.random.random() < 0.15:
            return self.from_uplink()
        return self.from_endpoint()

    def protocol_and_ports(self, version):
        kind = self.random.random()
        if kind < 0.15:
            icmp = policy.ICMP if version == 4 else policy.ICMPV6
            code = self.random.choice((0, 0, 0, 1)) if self.random.random() < 0.3 else 0
            return icmp, self.random.randint(1, 0xFFFF), policy.ECHO_REQUEST[icmp] << 8 | code
        if kind < 0.2:
            return 47, 0, 0
        port = self.random.choice(PORTS) if self.random.random() < 0.8 else self.random.randint(1, 0xFFFF)
        # Next to a range's end.
        port = min(0xFFFF, max(1, port + self.random.choice((0, 0, 0, -1, 1))))
        return self.random.choice((policy.TCP, policy.UDP)), self.random.randint(1024, 0xFFFF), port

    def from_uplink(self):
        known = [spec["address"] for spec in self.world["elastic-ips"].values()]
        destination = self.random.choice(known) if known and self.random.random() < 0.9 else "203.0.113.60"
        kind = self.random.random()
        source = self.random.choice(
            INTERNET if kind < 0.85 else NEARLY_PRIVATE if kind < 0.9 else PRIVATE if kind < 0.95
            else known or INTERNET)
        if source == destination:
            source = INTERNET[0]
        protocol, source_port, destination_port = self.protocol_and_ports(4)
        return {"side": "uplink", "vni": 0, "vtep": None, "source_mac": "02:ee:00:00:00:01",
                "destination_mac": None, "source": source, "destination": destination,
                "protocol": protocol, "source_port": source_port, "destination_port": destination_port}

    def from_endpoint(self):
        world, rng = self.world, self.random
        sender = world.pick("endpoints") if not world["endpoints"] else rng.choice(list(world["endpoints"]))
        if sender is None:
            return self.from_uplink()
        spec = world["endpoints"][sender]
        vpc = self.facts.vpc_of(sender)
        version = 6 if spec["ipv6"] and rng.random() < 0.25 else 4
        source = spec["ipv6"] if version == 6 else spec["ip"]
        if version == 4 and spec["allowed_addresses"] and rng.random() < 0.5:
            source = str(ipaddress.ip_network(spec["allowed_addresses"][0]["cidr"])[7 % ipaddress.ip_network(
                spec["allowed_addresses"][0]["cidr"]).num_addresses])
        packet = {"side": "underlay", "vni": world["vpcs"][vpc]["vni"], "source_mac": spec["mac"],
                  "vtep": rng.choice(self.facts.vteps_of(sender) or ["192.0.2.99"]),
                  "source": source, "destination": self.destination(vpc, version, source)}
        self.spoil(packet, vpc)
        protocol, source_port, destination_port = self.protocol_and_ports(version)
        packet |= {"protocol": protocol, "source_port": source_port, "destination_port": destination_port}
        packet["destination_mac"] = self.next_mac(sender, packet["destination"])
        if rng.random() < 0.03:
            packet["destination_mac"] = rng.choice([None, spec["mac"], "06:00:00:00:00:01"])
        packet["subnet_id"] = spec["subnet_id"]
        return packet

    def destination(self, vpc, version, source):
        rng, world = self.random, self.world
        peers = [spec["ipv6"] if version == 6 else spec["ip"]
                 for spec in self.facts.endpoints_of(vpc).values()]
        peers = [peer for peer in peers if peer and peer != source]
        gateways = [spec["gateway_ipv6"] if version == 6 else spec["gateway_ip"]
                    for spec in self.facts.of_vpc("subnets", vpc).values()]
        elastic = [spec["address"] for spec in world["elastic-ips"].values()]
        unknown = ["fd00::dead", "2001:db8::1"] if version == 6 else ["10.0.0.250", "10.9.9.9", *PRIVATE[1:], *NEARLY_PRIVATE]
        kind = rng.random()
        if kind < 0.55 and peers:
            return rng.choice(peers)
        if version == 4 and kind < 0.7 and elastic:
            return rng.choice(elastic)
        if version == 4 and kind < 0.88:
            return rng.choice(INTERNET)
        if kind < 0.94 and any(gateways):
            return rng.choice([gateway for gateway in gateways if gateway])
        return rng.choice(unknown)

    def spoil(self, packet, vpc):
        """One time in ten: who sends is not who it says."""
        rng = self.random
        if rng.random() > 0.1:
            return
        others = [spec for spec in self.world["endpoints"].values() if spec["mac"] != packet["source_mac"]]
        what = rng.choice(("mac", "address", "vtep", "vni"))
        if what == "mac":
            packet["source_mac"] = rng.choice(others)["mac"] if others else "02:00:00:00:00:99"
        elif what == "address" and "." in packet["source"]:
            packet["source"] = rng.choice([o["ip"] for o in others] + ["10.0.0.251"])
        elif what == "vtep":
            packet["vtep"] = rng.choice([v for h in self.world["hosts"].values() for v in h["vteps"]]
                                        + ["192.0.2.99"])
        elif what == "vni":
            packet["vni"] = rng.choice([spec["vni"] for spec in self.world["vpcs"].values()] + [999])
        if packet["source"] == packet["destination"]:
            packet["source"] = "10.0.0.252"

    def next_mac(self, sender, destination):
        """As a correct host does: the endpoint's own inside the subnet, else the gateway's (None)."""
        return self.next_mac_in(self.world["endpoints"][sender]["subnet_id"], destination)

    def next_mac_in(self, subnet, destination):
        for spec in self.world["endpoints"].values():
            if spec["subnet_id"] == subnet and destination in (spec["ip"], spec["ipv6"]):
                return spec["mac"]
        return None
