# SPDX-License-Identifier: Apache-2.0
"""What must hold of the addresses and ports that a NAT gateway chooses, whichever they are (RFC 4787,
5382, 5508): its own address, a port in a block of the endpoint's, one mapping for a private port where
mappings are endpoint-independent, no port of somebody else's before it has rested."""
import dataclasses

BLOCK = 64
ROUND = 5  # seconds until a block that has rested is free at the latest
REST = {6: 240, 17: 120, 1: 120}  # seconds
NEVER = (4789, 4791)  # those of VXLAN and RoCEv2 are no one's


class Block:
    def __init__(self, owner):
        self.owner = owner  # NAT gateway, endpoint
        self.users = set()
        self.last = 0  # packet
        self.left = 0  # when its last user did


class Mapping:
    """A public port, and what stands behind it: `inside` is (address, port), or None where one port
    serves many connections."""

    def __init__(self, key, owner, inside):
        self.key, self.owner, self.inside = key, owner, inside  # key: protocol, address, port
        self.users = set()
        self.last = 0

    def talks_to(self, remote):
        """The endpoint has opened a connection there by it."""
        return any(c.decision.nat and self.key == Ports.key_of(c) and c.keys[0][1][1] == remote
                   for c in self.users)


class Ports:
    def __init__(self, gateway):
        self.gateway = gateway
        self.blocks = {}  # (address, protocol, number) → Block
        self.known = {}  # (protocol, address, port) → the Mapping that it has, or had last

    @staticmethod
    def key_of(connection):
        address, _, protocol, port, _ = connection.leaving(0)
        return protocol, address, port

    def mapped(self, protocol, address, port):
        """The live mapping of one private port; None."""
        mapping = self.known.get((protocol, address, port))
        return mapping if mapping and mapping.users and mapping.inside else None

    def independent(self, nat):
        return self.gateway.world["nat-gateways"][nat]["mapping"] == "endpoint_independent"

    def of_inside(self, owner, protocol, inside):
        """Those that the private port has by addresses that are still the NAT gateway's."""
        return [one for one in self.known.values()
                if one.owner == owner and one.inside == inside and one.key[0] == protocol
                and self.usable({one.key[1]}, owner[0])]

    def rests(self, mapping):
        return not mapping.users and self.gateway.now - mapping.last < REST[mapping.key[0]]

    def take(self, connection, nat, chosen):
        """Notes what was chosen; sentences about what it must not be."""
        arrives = connection.keys[0][1]
        source, destination, protocol, port, destination_port = chosen
        key, inside = (protocol, source, port), (arrives[0], arrives[3])
        wrong = []
        if source not in self.gateway.policy.addresses_of(nat):
            wrong.append(f"{source} is not the NAT gateway's")
        leaves = connection.decision.leaves
        if not connection.decision.mapping and (destination, protocol, destination_port) != (
                leaves.destination, leaves.protocol, leaves.destination_port):
            wrong.append("another destination was chosen, too")
        if port < 1024 or port in NEVER:
            wrong.append(f"port {port} is reserved")
        owner = nat, connection.sender
        wrong += self.take_of_block(connection, owner, source, protocol, port)
        wrong += self.take_mapping(connection, owner, key, inside if self.independent(nat) else None)
        return wrong

    def take_of_block(self, connection, owner, source, protocol, port):
        wrong = []
        block = self.blocks.setdefault((source, protocol, port // BLOCK), Block(owner))
        if block.owner != owner:
            rested = self.gateway.now - block.last
            if block.users or rested < REST[protocol]:
                wrong.append(f"port {port} is another's, or was {rested} s ago")
            block.owner = owner
        used = {address for (address, _, _), one in self.blocks.items() if one.owner == owner and one.users}
        if used - {source} and self.usable(used, owner[0]):
            wrong.append(f"an endpoint with {used} got {source}")
        block.users.add(connection)
        blocks = sum(one.owner == owner and key[1] == protocol and bool(one.users)
                     for key, one in self.blocks.items())
        if blocks * BLOCK > self.most(owner[0]) and len(block.users) == 1:
            wrong.append(f"an endpoint has {blocks} blocks")
        return wrong

    def take_mapping(self, connection, owner, key, inside):
        wrong = []
        before = self.known.get(key)
        if inside:
            others = [one for one in self.of_inside(owner, key[0], inside) if one.key != key]
            # One with an address that is the NAT gateway's no more is about to end.
            if any(one.users for one in others):
                wrong.append(f"a private port has two public ones: {[one.key for one in others]} and {key}")
        if before and before.users and (before.owner, before.inside) != (owner, inside):
            wrong.append(f"{key} is that of {before.owner} {before.inside} and of {owner} {inside}")
        if before and inside and before.inside not in (None, inside) and self.rests(before):
            wrong.append(f"{key} has not rested from {before.inside}")
        if not before or not before.users:
            before = self.known[key] = Mapping(key, owner, inside)
        self.hold(connection, before)
        return wrong

    def use(self, connection, mapping):
        """A connection of somebody else to a mapped port."""
        protocol, address, port = mapping.key
        self.blocks[address, protocol, port // BLOCK].users.add(connection)
        self.hold(connection, mapping)

    @staticmethod
    def hold(connection, mapping):
        mapping.users.add(connection)
        connection.mappings.append(mapping)

    def most(self, nat):
        return self.gateway.world["nat-gateways"][nat]["ports_per_endpoint"]

    def has_all(self, p, nat):
        """What is wrong with a refusal: the sender has fewer blocks, in use or resting, than it may."""
        endpoint, protocol = self.gateway.policy.sender(p)[0], p["protocol"]
        blocks = sum(one.owner == (nat, endpoint) and key[1] == protocol and (
            bool(one.users) or self.gateway.now - one.last <= REST[protocol] + ROUND or
            self.gateway.now - one.left <= ROUND)
            for key, one in self.blocks.items())
        most = self.most(nat)
        return [] if blocks * BLOCK >= most else [f"refused a port with {blocks} blocks of {most} ports"]

    def leads_home(self, decision, p):
        """The packet goes to the public port of the very private one that sends it."""
        mapping = decision.mapping
        return mapping is not None and mapping.inside == (p["source"], p["source_port"]) and \
            mapping.owner == (decision.nat, decision.sender)

    @staticmethod
    def as_mapped(decision, p):
        return dataclasses.replace(decision, leaves=dataclasses.replace(
            decision.leaves, source=decision.mapping.key[1], source_port=decision.mapping.key[2]))

    def usable(self, addresses, nat):
        return addresses <= set(self.gateway.policy.addresses_of(nat))

    def release(self, connection):
        for mapping in connection.mappings:
            protocol, address, port = mapping.key
            for one in (mapping, self.blocks[address, protocol, port // BLOCK]):
                one.users.discard(connection)
                one.last = max(one.last, connection.last)
            self.blocks[address, protocol, port // BLOCK].left = self.gateway.now
