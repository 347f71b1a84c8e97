# SPDX-License-Identifier: Apache-2.0
"""Random clouds in the shape of the API, and random changes to them.

Small and crowded on purpose: VPCs with the same addresses, rules that overlap, groups that share
members, elastic IPs that move. Every change keeps what the API would insist on.
"""
import copy
import itertools
import random
import uuid

KINDS = ("hosts", "vpcs", "route-tables", "security-groups", "prefix-lists", "subnets", "endpoints",
         "external-pools", "elastic-ips", "nat-gateways")
PORTS = (22, 53, 80, 443, 4791, 8080)
# What a rule can say: direction, action, family with protocol and what is said of that, remote.
WITHIN = [(family, protocol, more) for family, icmp in (("ipv4", 1), ("ipv6", 58))
          for protocol, more in ((None, None), (6, None), (6, "ports"), (17, None), (17, "ports"),
                                 (132, None), (132, "ports"), (47, None), (icmp, None),
                                 (icmp, "type"), (icmp, "code"))]
CLASSES = list(itertools.product(("ingress", "egress"), ("allow", "allow", "deny"), WITHIN,
                                 (None, "cidr", "group", "list")))
random.Random(0).shuffle(CLASSES)
TURNS = 20  # of a cloud's rules
POOL = "203.0.113.0/26"
# Outside of every VPC.
INTERNET = ("8.8.8.8", "192.0.2.200", "198.51.100.20", "203.0.113.200")
MOST_ENDPOINTS = 14
# Seconds that a VPC may set.
TIMEOUTS = {"tcp_established": (7440, 8000), "tcp_transitory": (240, 300), "tcp_time_wait": (1, 4, 60, 240),
            "udp": (120, 240, 300), "udp_unanswered": (120, 180), "icmp": (60, 120), "sctp": (60, 300),
            "sctp_unanswered": (60, 117), "other": (10, 60, 300), "other_unanswered": (10, 20, 120)}
# Connections that a VPC may set.
LIMITS = {"connections": (6, 20, 100), "half_open": (4, 10), "new_per_second": (6, 50, 200),
          "endpoint_connections": (3, 10, 40), "endpoint_half_open": (2, 6),
          "endpoint_new_per_second": (6, 30, 200)}
CIDRS = ("10.0.0.0/16", "10.0.0.0/24", "10.0.1.0/24", "10.0.0.12/32", "8.8.8.0/24", "203.0.113.0/26",
         "203.0.113.16/28", "fd00:1:1::/64", "fd00::/16")


class World(dict):
    """kind → {id: fields}. `changed` collects (kind, id) until take_changes()."""

    def __init__(self, seed, generous=False, nat=False, settings=False):
        """`generous`: rules and routes let most packets pass. `nat`: some VPCs have a NAT gateway.
        `settings`: VPCs have time-outs and checks of their own, groups may persist."""
        self.generous, self.with_nat, self.with_settings = generous, nat, settings
        super().__init__((kind, {}) for kind in KINDS)
        self.random = random.Random(seed)
        self.seed = seed
        self.turn = seed * TURNS
        self.changed = {}
        self.build()

    # --- bookkeeping ---------------------------------------------------------------------------

    def new_id(self):
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def put(self, kind, fields, key=None):
        key = key or self.new_id()
        self[kind][key] = fields
        self.changed[kind, key] = None
        return key

    def touch(self, kind, key):
        """For a change in place."""
        self.put(kind, copy.deepcopy(self[kind][key]), key)
        return self[kind][key]

    def remove(self, kind, key):
        del self[kind][key]
        self.changed[kind, key] = None

    def take_changes(self):
        """[{kind, id, spec}] since the last call; `spec` null for what is gone."""
        changes = [{"kind": kind, "id": key, "spec": self[kind].get(key)} for kind, key in self.changed]
        self.changed = {}
        return copy.deepcopy(changes)

    def pick(self, kind, **fields):
        fitting = [key for key, spec in self[kind].items()
                   if all(spec.get(name) == value for name, value in fields.items())]
        return self.random.choice(fitting) if fitting else None

    def chance(self, share):
        return self.random.random() < share

    # --- building ------------------------------------------------------------------------------

    def build(self):
        for number in range(3):
            self.put("hosts", {"vteps": [f"192.0.2.{10 * number + 1 + extra}"
                                         for extra in range(self.random.choice((1, 1, 2)))]})
        self.put("external-pools", {"cidr": POOL, "mode": "routed", "reserved": []})
        for _ in range(self.random.randint(1, 2)):
            self.put("prefix-lists", {"cidrs": self.some_cidrs()})
        for number in range(self.random.randint(2, 3)):
            self.add_vpc(number)
        # Up to where the next seed begins, so that a few dozen clouds have a rule of every kind.
        while self.turn < (self.seed + 1) * TURNS:
            self.add_rule(self.pick("security-groups"))
        for _ in range(self.random.randint(3, 8)):
            self.add_elastic_ip()

    def add_vpc(self, number):
        # The first two have the same addresses.
        base = 0 if number < 2 else number
        vpc = self.put("vpcs", {"cidrs": [f"10.{base}.0.0/16", f"fd00:{base + 1:x}::/32"], "vni": 100 + number,
                                **self.some_settings()})
        for main in (True, False):
            self.put("route-tables", {"vpc_id": vpc, "routes": [], "is_main": main})
        for _ in range(self.random.randint(1, 3)):
            self.put("security-groups", {"vpc_id": vpc, "rules": [], "is_default": False})
        for subnet in range(self.random.randint(1, 3)):
            self.add_subnet(vpc, base, subnet)
        for _ in range(self.random.randint(2, 5)):
            self.add_endpoint(vpc)
        # Rules and routes last: they name what there is.
        for group in [key for key, spec in self["security-groups"].items() if spec["vpc_id"] == vpc]:
            self.add_wide_rules(group)
            for _ in range(self.random.randint(2, 6)):
                self.add_rule(group)
        for table in [key for key, spec in self["route-tables"].items() if spec["vpc_id"] == vpc]:
            if self.chance(0.95 if self.generous else 0.7):
                self.touch("route-tables", table)["routes"].append(
                    {"destination": "0.0.0.0/0", "next_hop": {"internet": True}})
            for _ in range(self.random.randint(0, 3)):
                self.add_route(table)
        if self.with_nat and self.chance(0.7):
            self.add_nat_gateway(vpc)

    def some_settings(self):
        if not self.with_settings or self.chance(0.4):
            return {}
        return {"timeouts": self.some_timeouts(), "tcp_window_check": self.chance(0.5),
                "mss_clamping": self.chance(0.7), "limits": self.some_limits(),
                "mid_stream": self.random.choice((0, 10, 60, 300))}

    def some_limits(self):
        if self.chance(0.4):
            return {}
        return {name: self.random.choice(numbers) for name, numbers in LIMITS.items() if self.chance(0.3)}

    def some_timeouts(self):
        return {name: self.random.choice(seconds) for name, seconds in TIMEOUTS.items() if self.chance(0.5)}

    def change_settings(self):
        vpc = self.pick("vpcs")
        if self.chance(0.6):
            name, some = self.random.choice((("timeouts", self.some_timeouts), ("limits", self.some_limits)))
            self.touch("vpcs", vpc)[name] = some()
            return
        for group in [key for key, spec in self["security-groups"].items() if spec["vpc_id"] == vpc]:
            self.touch("security-groups", group)["persist_established"] = self.chance(0.5)

    def add_nat_gateway(self, vpc):
        addresses = [one for one in (self.new_elastic_ip() for _ in range(self.random.randint(1, 2))) if one]
        if not addresses:
            return
        nat = self.put("nat-gateways", {
            "vpc_id": vpc, "elastic_ip_ids": addresses,
            "ports_per_endpoint": self.random.choice((64, 128, 1024)), **self.some_nat_settings()})
        for table in [key for key, spec in self["route-tables"].items() if spec["vpc_id"] == vpc]:
            if self.chance(0.7):
                fields = self.touch("route-tables", table)
                fields["routes"] = [r for r in fields["routes"] if r["destination"] != "0.0.0.0/0"] + [
                    {"destination": "0.0.0.0/0", "next_hop": {"nat_gateway_id": nat}}]

    def some_nat_settings(self):
        mapping, filtering = self.random.choice((
            ("endpoint_independent", "address_and_port_dependent"),
            ("endpoint_independent", "address_dependent"), ("endpoint_independent", "address_dependent"),
            ("endpoint_independent", "endpoint_independent"),
            ("address_and_port_dependent", "address_and_port_dependent")))
        return {"mapping": mapping, "filtering": filtering}

    def delete_nat_gateway(self, nat):
        """After the routes that lead there."""
        for key, spec in list(self["route-tables"].items()):
            kept = [r for r in spec["routes"] if r["next_hop"].get("nat_gateway_id") != nat]
            if kept != spec["routes"]:
                self.touch("route-tables", key)["routes"] = kept
        self.remove("nat-gateways", nat)

    def change_nat_gateway(self):
        nat = self.pick("nat-gateways")
        what = self.random.random()
        if nat is None or what < 0.1:
            vpc = self.pick("vpcs")
            if self.with_nat and len(self["nat-gateways"]) < 3:
                self.add_nat_gateway(vpc)
        elif what < 0.3:
            self.delete_nat_gateway(nat)
        elif what < 0.45:
            self.touch("nat-gateways", nat).update(self.some_nat_settings())
        elif what < 0.7 and len(self["nat-gateways"][nat]["elastic_ip_ids"]) > 1:
            addresses = self.touch("nat-gateways", nat)["elastic_ip_ids"]
            addresses.remove(self.random.choice(addresses))
        else:
            one = self.new_elastic_ip()
            if one and len(self["nat-gateways"][nat]["elastic_ip_ids"]) < 4:
                self.touch("nat-gateways", nat)["elastic_ip_ids"].append(one)

    def of_nat_gateways(self):
        return {one for spec in self["nat-gateways"].values() for one in spec["elastic_ip_ids"]}

    def add_subnet(self, vpc, base, number):
        v4 = f"10.{base}.{number}"
        v6 = f"fd00:{base + 1:x}:{number + 1:x}"
        dual = self.chance(0.5)
        self.put("subnets", {
            "vpc_id": vpc, "cidr": f"{v4}.0/24", "gateway_ip": f"{v4}.1",
            "ipv6_cidr": f"{v6}::/64" if dual else None, "gateway_ipv6": f"{v6}::1" if dual else None,
            "mtu": self.random.choice((1450, 1400)), "route_table_id": self.pick("route-tables", vpc_id=vpc)})

    def add_endpoint(self, vpc):
        subnet = self.pick("subnets", vpc_id=vpc)
        if subnet is None:
            return
        fields = self["subnets"][subnet]
        taken = {e[name] for e in self["endpoints"].values() for name in ("ip", "ipv6")
                 if e.get(name) and self["subnets"][e["subnet_id"]]["vpc_id"] == vpc}
        free = [n for n in range(10, 18) if f"{fields['cidr'][:-4]}{n}" not in taken]
        if not free:
            return
        number = self.random.choice(free)
        groups = [key for key, spec in self["security-groups"].items() if spec["vpc_id"] == vpc]
        several = (1, 1, 2, 2) if self.generous else (0, 1, 1, 1, 2, 2)
        members = self.random.sample(groups, min(self.random.choice(several), len(groups)))
        self.put("endpoints", {
            "subnet_id": subnet, "kind": "vm", "ip": f"{fields['cidr'][:-4]}{number}",
            "ipv6": f"{fields['ipv6_cidr'][:-3]}{number:x}" if fields["ipv6_cidr"] else None,
            "mac": "06:" + ":".join(f"{self.random.getrandbits(8):02x}" for _ in range(5)),
            "host_id": self.pick("hosts"), "security_group_ids": members,
            "allowed_addresses": self.some_allowed_addresses(), "source_check": not self.chance(0.1)})

    def some_allowed_addresses(self):
        # No own address of anyone, and a MAC of their own or the endpoint's.
        choices = [{"cidr": "10.0.77.0/24", "mac": None}, {"cidr": "10.0.77.7/32", "mac": None},
                   {"cidr": "172.16.0.0/12", "mac": None}]
        if self.chance(0.25):
            return self.random.sample(choices, self.random.randint(1, 2))
        return []

    def some_cidrs(self):
        return self.random.sample(CIDRS, self.random.randint(1, 3))

    def random_rule(self, vpc):
        """Its kind by turns, through clouds with seeds that follow one another."""
        self.turn += 1
        direction, action, (family, protocol, more), remote = CLASSES[self.turn % len(CLASSES)]
        rule = {"id": self.new_id(), "direction": direction, "action": action,
                "priority": self.random.choice((1, 999, 1000, 1000, 1000, 1001, 32000)),
                "family": family, "protocol": protocol}
        if more == "ports":
            low, high = sorted((self.random.choice(PORTS), self.random.choice(PORTS)))
            rule.update(port_min=low, port_max=high)
        elif more:
            rule["icmp_type"] = self.random.choice((8, 13) if protocol == 1 else (128, 1))
            if more == "code":
                rule["icmp_code"] = self.random.choice((0, 0, 1))
        if remote == "cidr":
            fitting = [c for c in CIDRS if (":" in c) == (family == "ipv6")]
            rule["remote_cidr"] = self.random.choice(fitting)
        elif remote == "group":
            rule["remote_group_id"] = self.pick("security-groups", vpc_id=vpc)
        elif remote == "list":
            rule["remote_prefix_list_id"] = self.pick("prefix-lists")
        return rule

    def add_rule(self, group):
        fields = self.touch("security-groups", group)
        without_id = lambda r: {name: value for name, value in r.items() if name != "id"}
        have = [without_id(other) for other in fields["rules"]]
        turn = self.turn
        # The API refuses a duplicate: another of its kind, if there is one.
        for _ in range(8):
            self.turn = turn
            rule = self.random_rule(fields["vpc_id"])
            if without_id(rule) not in have:
                fields["rules"].append(rule)
                return

    def add_wide_rules(self, group):
        """Most groups let most things through, so that packets meet the tables behind them."""
        rules = self.touch("security-groups", group)["rules"]
        shares = (1, 0.95) if self.generous else (0.85, 0.6)
        for direction, share in zip(("egress", "ingress"), shares):
            for family in ("ipv4", "ipv6"):
                if self.chance(share):
                    rules.append({"id": self.new_id(), "direction": direction, "action": "allow",
                                  "priority": self.random.choice((1000, 20000)), "family": family,
                                  "protocol": None})

    def add_route(self, table):
        fields = self.touch("route-tables", table)
        destination = self.random.choice(
            ("0.0.0.0/0", "0.0.0.0/0", "8.8.8.0/24", "8.8.8.8/32", "203.0.113.0/26", "198.51.100.0/24",
             "203.0.113.0/24", "::/0", "2001:db8::/32"))
        if destination in [route["destination"] for route in fields["routes"]]:
            return
        hop = {"internet": True} if self.chance(0.6) else {"blackhole": True}
        if ":" in destination:
            hop = {"blackhole": True}
        members = [key for key, spec in self["endpoints"].items()
                   if self["subnets"][spec["subnet_id"]]["vpc_id"] == fields["vpc_id"]]
        if members and self.chance(0.25):
            hop = {"endpoint_id": self.random.choice(members)}
        nat = self.pick("nat-gateways", vpc_id=fields["vpc_id"])
        if nat and ":" not in destination and self.chance(0.4):
            hop = {"nat_gateway_id": nat}
        fields["routes"].append({"destination": destination, "next_hop": hop})

    def add_elastic_ip(self):
        key = self.new_elastic_ip()
        if key and self.chance(0.8):
            self.attach(key)

    def new_elastic_ip(self):
        taken = {spec["address"] for spec in self["elastic-ips"].values()}
        free = [f"203.0.113.{n}" for n in range(10, 34 if self.with_nat else 24)
                if f"203.0.113.{n}" not in taken]
        if not free:
            return None
        return self.put("elastic-ips", {
            "address": self.random.choice(free), "pool_id": next(iter(self["external-pools"])),
            "endpoint_id": None, "bandwidth_mbps": None if self.with_nat else self.random.choice((None, 20))})

    def attach(self, elastic):
        holders = {spec["endpoint_id"] for spec in self["elastic-ips"].values()}
        free = [key for key in self["endpoints"] if key not in holders]
        if free:
            self.touch("elastic-ips", elastic)["endpoint_id"] = self.random.choice(free)

    # --- changes -------------------------------------------------------------------------------

    def mutate(self):
        """One random change of the kind a user makes; its name."""
        change = self.random.choice((
            self.change_rule, self.change_rule, self.change_rule, self.change_membership,
            self.change_membership, self.change_endpoints, self.change_elastic_ip,
            self.change_elastic_ip, self.change_route, self.change_host, self.change_prefix_list,
            self.change_source_check, self.change_subnet, self.change_vpc,
            *((self.change_nat_gateway,) * 2 if self.with_nat else ()),
            *((self.change_settings,) * 2 if self.with_settings else ())))
        change()
        return change.__name__

    def change_rule(self):
        group = self.pick("security-groups")
        if group is None:
            return
        rules = self.touch("security-groups", group)["rules"]
        if rules and self.chance(0.5):
            rules.pop(self.random.randrange(len(rules)))
        else:
            self.add_rule(group)

    def change_membership(self):
        endpoint = self.pick("endpoints")
        if endpoint is None:
            return
        fields = self.touch("endpoints", endpoint)
        vpc = self["subnets"][fields["subnet_id"]]["vpc_id"]
        groups = [key for key, spec in self["security-groups"].items() if spec["vpc_id"] == vpc]
        fields["security_group_ids"] = self.random.sample(groups, self.random.randint(0, min(3, len(groups))))

    def change_endpoints(self):
        if len(self["endpoints"]) < MOST_ENDPOINTS and self.chance(0.5):
            self.add_endpoint(self.pick("vpcs"))
        elif self["endpoints"]:
            self.delete_endpoint(self.pick("endpoints"))

    def forget_endpoint(self):
        """One goes; what it was, for whoever gets its addresses."""
        endpoint = self.pick("endpoints")
        if endpoint is None:
            return None
        fields = self["endpoints"][endpoint]
        self.delete_endpoint(endpoint)
        return fields

    def recreate_endpoint(self, fields):
        """Another one with its addresses, and sometimes its MAC."""
        if not self.chance(0.3):
            fields = {**fields, "mac": "06:" + ":".join(f"{self.random.getrandbits(8):02x}" for _ in range(5))}
        self.put("endpoints", copy.deepcopy(fields))

    def delete_endpoint(self, endpoint):
        """After what names it."""
        for key, spec in list(self["elastic-ips"].items()):
            if spec["endpoint_id"] == endpoint:
                self.touch("elastic-ips", key)["endpoint_id"] = None
        for key, spec in list(self["route-tables"].items()):
            kept = [r for r in spec["routes"] if r["next_hop"].get("endpoint_id") != endpoint]
            if kept != spec["routes"]:
                self.touch("route-tables", key)["routes"] = kept
        self.remove("endpoints", endpoint)

    def change_elastic_ip(self):
        elastic = self.pick("elastic-ips")
        what = self.random.random()
        if elastic is None or what < 0.2 or elastic in self.of_nat_gateways():
            self.add_elastic_ip()
        elif what < 0.35:
            self.remove("elastic-ips", elastic)
        elif what < 0.5:
            self.touch("elastic-ips", elastic)["endpoint_id"] = None
        elif what < 0.65:
            self.touch("elastic-ips", elastic)["bandwidth_mbps"] = self.random.choice((None, 10, 20))
        else:
            self.attach(elastic)

    def change_route(self):
        table = self.pick("route-tables")
        if table is None:
            return
        routes = self.touch("route-tables", table)["routes"]
        if routes and self.chance(0.5):
            routes.pop(self.random.randrange(len(routes)))
        else:
            self.add_route(table)

    def change_host(self):
        if self.chance(0.5) and self["endpoints"]:
            self.touch("endpoints", self.pick("endpoints"))["host_id"] = self.pick("hosts")
            return
        host = self.touch("hosts", self.pick("hosts"))
        used = {vtep for spec in self["hosts"].values() for vtep in spec["vteps"]}
        free = [f"192.0.2.{n}" for n in range(1, 40) if f"192.0.2.{n}" not in used]
        host["vteps"] = self.random.sample(free, self.random.choice((1, 1, 2)))

    def change_prefix_list(self):
        prefix_list = self.pick("prefix-lists")
        if prefix_list:
            self.touch("prefix-lists", prefix_list)["cidrs"] = self.some_cidrs()

    def change_source_check(self):
        endpoint = self.pick("endpoints")
        if endpoint:
            fields = self.touch("endpoints", endpoint)
            fields["source_check"] = not fields["source_check"]
            fields["allowed_addresses"] = self.some_allowed_addresses()

    def change_subnet(self):
        subnet = self.pick("subnets")
        if subnet:
            fields = self.touch("subnets", subnet)
            fields["route_table_id"] = self.pick("route-tables", vpc_id=fields["vpc_id"])
            if self.chance(0.4):
                fields["mtu"] = self.random.choice((1450, 1400, 1380))

    def change_vpc(self):
        """Rarely: a whole VPC goes, or comes."""
        if not self.chance(0.2):
            self.change_rule()
        elif len(self["vpcs"]) > 2:
            self.delete_vpc(self.pick("vpcs"))
        else:
            used = {spec["vni"] for spec in self["vpcs"].values()}
            self.add_vpc(next(n for n in range(4) if 100 + n not in used))

    def delete_vpc(self, vpc):
        subnets = [key for key, spec in self["subnets"].items() if spec["vpc_id"] == vpc]
        for key in [k for k, spec in self["endpoints"].items() if spec["subnet_id"] in subnets]:
            self.delete_endpoint(key)
        for nat in [key for key, spec in self["nat-gateways"].items() if spec["vpc_id"] == vpc]:
            self.delete_nat_gateway(nat)
        for kind in ("subnets", "security-groups", "route-tables"):
            for key in [k for k, spec in self[kind].items() if spec["vpc_id"] == vpc]:
                self.remove(kind, key)
        self.remove("vpcs", vpc)
