# SPDX-License-Identifier: Apache-2.0
"""What must hold of the addresses and ports that a NAT gateway chooses, whichever they are (RFC 4787,
5382, 5508): its own address, a port in a block of the endpoint's, one mapping for a private port, no
port of somebody else's before it has rested."""
BLOCK = 64
ROUND = 5  # seconds until a block that has rested is free at the latest
REST = {6: 240, 17: 120, 1: 120}  # seconds


class Block:
    def __init__(self, owner):
        self.owner = owner
        self.users = set()
        self.last = 0  # packet
        self.left = 0  # when its last user did


class Ports:
    def __init__(self, gateway):
        self.gateway = gateway
        self.blocks = {}  # (address, protocol, number) → Block
        self.mappings = {}  # (NAT gateway, endpoint, protocol, address, port) → {(address, port): users}

    def take(self, connection, nat, chosen):
        """Notes what was chosen; sentences about what it must not be."""
        arrives = connection.keys[0][1]
        source, destination, protocol, port, destination_port = chosen
        wrong = []
        if source not in self.gateway.policy.addresses_of(nat):
            wrong.append(f"{source} is not the NAT gateway's")
        leaves = connection.decision.leaves
        if (destination, protocol, destination_port) != (
                leaves.destination, leaves.protocol, leaves.destination_port):
            wrong.append("another destination was chosen, too")
        if port < 1024:
            wrong.append(f"port {port} is reserved")
        owner = nat, connection.sender
        block = self.blocks.setdefault((source, protocol, port // BLOCK), Block(owner))
        if block.owner != owner:
            rested = self.gateway.now - block.last
            if block.users or rested < REST[protocol]:
                wrong.append(f"port {port} is another's, or was {rested} s ago")
            block.owner = owner
        used = {address for (address, _, _), one in self.blocks.items() if one.owner == owner and one.users}
        if used - {source} and self.usable(used, nat):
            wrong.append(f"an endpoint with {used} got {source}")
        connection.block = block
        block.users.add(connection)
        mapping = self.mappings.setdefault((*owner, protocol, arrives[0], arrives[3]), {})
        # One with an address that is the NAT gateway's no more is about to end.
        if any(users for other, users in mapping.items()
               if other != (source, port) and self.usable({other[0]}, nat)):
            wrong.append(f"a private port has two public ones: {mapping.keys()} and {source, port}")
        connection.mapping = mapping.setdefault((source, port), set())
        connection.mapping.add(connection)
        blocks = sum(one.owner == owner and key[1] == protocol and bool(one.users)
                     for key, one in self.blocks.items())
        if blocks * BLOCK > self.gateway.world["nat-gateways"][nat]["ports_per_endpoint"]:
            wrong.append(f"an endpoint has {blocks} blocks")
        return wrong

    def has_all(self, p, nat):
        """What is wrong with a refusal: the sender has fewer blocks, in use or resting, than it may."""
        endpoint, protocol = self.gateway.policy.sender(p)[0], p["protocol"]
        blocks = sum(one.owner == (nat, endpoint) and key[1] == protocol and (
            bool(one.users) or self.gateway.now - one.last <= REST[protocol] + ROUND or
            self.gateway.now - one.left <= ROUND)
            for key, one in self.blocks.items())
        most = self.gateway.world["nat-gateways"][nat]["ports_per_endpoint"]
        return [] if blocks * BLOCK >= most else [f"refused a port with {blocks} blocks of {most} ports"]

    def usable(self, addresses, nat):
        return addresses <= set(self.gateway.policy.addresses_of(nat))

    def release(self, connection):
        if connection.block:
            connection.block.users.discard(connection)
            connection.block.last = max(connection.block.last, connection.last)
            connection.block.left = self.gateway.now
            connection.mapping.discard(connection)
