# SPDX-License-Identifier: Apache-2.0
"""How many connections, unanswered ones and new ones a second a VPC and each of its endpoints may
have, and which one may go for another."""
from policy import address

CAPACITY = 4096  # of the gateway's tables, IPv4's and IPv6's
# reason → (what a VPC sets, eighths of what is free without that)
ROOM = {"endpoint_connections": ("endpoint_connections", 8), "endpoint_half_open": ("endpoint_half_open", 1),
        "vpc_connections": ("connections", 32), "vpc_half_open": ("half_open", 2)}
RATES = ("endpoint_connection_rate", "vpc_connection_rate")
VPC_RATE, ENDPOINT_RATE = 10_000, 2_500  # of a table of this size
NANOSECONDS = 10**9


def at_once(rate):
    """An eighth of a second's worth, and not less than 16."""
    interval = NANOSECONDS // rate
    return max(NANOSECONDS // 8, 15 * interval) // interval + 1


class Limits:
    def __init__(self, gateway):
        self.gateway = gateway
        self.moment = 0
        self.tried = {}  # whose → first packets at this moment

    def of(self, vpc):
        return self.gateway.world["vpcs"].get(vpc, {}).get("limits", {})

    # --- new connections a second: of steps so long that nothing is left of the one before ---------

    def exceeds(self, whose, rate):
        count = self.tried.get(whose, 0)
        if count >= at_once(rate):
            return True
        self.tried[whose] = count + 1
        return False

    def charge(self, p):
        """Why the sender of a packet that policy must be asked about is refused; None."""
        self.refused = self.charged(p)
        return self.refused

    def charged(self, p):
        if self.gateway.now != self.moment:
            self.moment, self.tried = self.gateway.now, {}
        policy = self.gateway.policy
        if p["side"] == "uplink":
            return self.from_outside(p)
        vpc = policy.vpc_with(p["vni"])
        if vpc is None:
            return None
        limits = self.of(vpc)
        all_of_it = limits.get("new_per_second", VPC_RATE)
        each = limits.get("endpoint_new_per_second", ENDPOINT_RATE)
        endpoint = policy.endpoint_with(vpc, address(p["source"]))
        spec = endpoint and self.gateway.world["endpoints"][endpoint]
        if not spec or spec["mac"] != p["source_mac"] or p["vtep"] not in policy.vteps_of(endpoint):
            return "vpc_connection_rate" if self.exceeds((vpc, "others"), each) else None
        if self.exceeds(endpoint, each):
            return "endpoint_connection_rate"
        return "vpc_connection_rate" if self.exceeds(vpc, all_of_it) else None

    def from_outside(self, p):
        """By destination, and to the VPC that has it, once a packet has got so far that this is known:
        then it may be refused."""
        vpc = self.who_has(p["destination"])
        over = self.exceeds(("to", p["destination"]), self.of(vpc).get("endpoint_new_per_second", ENDPOINT_RATE))
        if vpc and not over:
            over = self.exceeds(("to", vpc), self.of(vpc).get("new_per_second", VPC_RATE))
        # Two addresses may be one to the gateway.
        count = self.tried["outside"] = self.tried.get("outside", 0) + 1
        maybe = over or self.gateway.alone and count > 16
        return self.gateway.take_reason(RATES) if maybe and not self.gateway.fate[4] else None

    def who_has(self, public):
        policy = self.gateway.policy
        elastic, nat = policy.elastic_with(address(public)), policy.nat_with(public)
        if elastic:
            return policy.vpc_of(self.gateway.world["elastic-ips"][elastic]["endpoint_id"])
        return self.gateway.world["nat-gateways"][nat]["vpc_id"] if nat else None

    # --- how many there are -----------------------------------------------------------------------

    def owned(self, reason, owner, vpc):
        """The connections that count for the limit."""
        mine = [c for c in self.gateway.live() if c.owner == owner] if reason.startswith("endpoint") else \
            [c for c in self.gateway.live() if c.vpc == vpc]
        return [c for c in mine if c.unanswered()] if reason.endswith("half_open") else mine

    def reached(self, reason, connection):
        name, eighths = ROOM[reason]
        there = self.owned(reason, connection.owner, connection.vpc)
        own = self.of(connection.vpc).get(name)
        if own is not None and len(there) >= own:
            return True
        family = ":" in connection.first["source"]
        same = [c for c in self.gateway.live() if (":" in c.first["source"]) == family]
        # Records that nobody uses any more may take a while to be free.
        free = CAPACITY - len(same) - len(self.gateway.ended)
        return sum((":" in c.first["source"]) == family for c in there) >= free * eighths // 8

    def make_room(self, connection):
        """Who goes for it; sentences about whom it should not have been."""
        wrong = []
        for vni, arrives, _, _ in self.gateway.fate[5]:
            other, _ = self.gateway.table.get((vni, tuple(arrives)), (None, 0))
            if other is None:
                wrong.append(f"one was evicted that was not there: {vni} {arrives}")
                continue
            closed = other.tcp and other.tcp.step in ("over", "reset")
            fitting = [reason for reason in ROOM if self.reached(reason, connection)
                       and other in self.owned(reason.replace("half_open", "connections"),
                                               connection.owner, connection.vpc)
                       and (other.unanswered() or closed and reason.endswith("connections"))]
            if not fitting:
                wrong.append(f"{other.keys} was evicted for {connection.keys[0]}")
            self.gateway.end(other)
            self.gateway.evicted += 1
        return wrong

    def make_room_in_vain(self, evicted):
        """They went for connections that were refused in the end."""
        for vni, arrives, _, _ in evicted:
            other, _ = self.gateway.table[vni, tuple(arrives)]
            if not other.unanswered() and not (other.tcp and other.tcp.step in ("over", "reset")):
                self.gateway.wrong.append(f"{other.keys} was evicted")
            self.gateway.end(other)

    def refusal(self, connection):
        """The product's reason to refuse it, if it is one."""
        return self.gateway.take_reason([reason for reason in ROOM if self.reached(reason, connection)])

    def overrun(self, connection):
        """It is there now: what of its own VPC's limits it exceeds."""
        limits = self.of(connection.vpc)
        wrong = []
        for reason, (name, _) in ROOM.items():
            if reason.endswith("half_open") and not connection.unanswered() or name not in limits:
                continue
            count = len(self.owned(reason, connection.owner, connection.vpc))
            if count > limits[name]:
                wrong.append(f"{count} of {limits[name]} {name}")
        return wrong
