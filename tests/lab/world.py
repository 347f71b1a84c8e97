# SPDX-License-Identifier: Apache-2.0
"""Two tenants with the same addresses, made through REST alone, and their machines in the lab.

red and blue each: front 10.0.1.0/24 (host1: web1, host2: web2), back 10.0.2.0/24 (host2: db1,
host1: db2), dual-stack. Security groups: `default` (the members talk to each other).
"""
from . import netns

PLACES = {  # endpoint: subnet, host, last octet
    "web1": ("front", 0, 10), "web2": ("front", 1, 11), "web3": ("front", 0, 12),
    "db1": ("back", 1, 10), "db2": ("back", 0, 11)}
SUBNETS = {"front": ("10.0.1", "fd12:1"), "back": ("10.0.2", "fd12:2")}


class Project:
    """One tenant's objects by name, with its own token."""

    def __init__(self, world, name, endpoints):
        self.world, self.name = world, name
        self.api = world.lab.controller.client(name)
        self.vpc = self.api.create("vpcs", wait=0, name=f"{name}-vpc", cidrs=["10.0.0.0/16", "fd12::/16"])
        self.subnets, self.endpoints, self.tenants = {}, {}, {}
        self._public = self._elastic = None
        for subnet, (prefix, prefix6) in SUBNETS.items():
            self.subnets[subnet] = self.api.create(
                "subnets", wait=0, name=subnet, vpc_id=self.vpc["id"], cidr=f"{prefix}.0/24",
                ipv6_cidr=f"{prefix6}::/64", mtu=world.mtu)
        for endpoint in endpoints:
            self.add_endpoint(endpoint)

    def add_endpoint(self, name, **fields):
        subnet, host, octet = PLACES[name]
        prefix, prefix6 = SUBNETS[subnet]
        record = self.api.create(
            "endpoints", name=name, subnet_id=self.subnets[subnet]["id"], kind="vm",
            ip=f"{prefix}.{octet}", ipv6=f"{prefix6}::{octet}",
            host_id=self.world.hosts[host]["id"], **fields)
        self.endpoints[name] = record
        made = self.subnets[subnet]
        self.tenants[name] = self.world.lab.fabric.hosts[host].attach(
            f"{self.name}-{name}", self.vni, record["ip"], record["mac"],
            gateway=made["gateway_ip"], ipv6=record["ipv6"], gateway6=made["gateway_ipv6"],
            mtu=self.world.mtu)
        return self.tenants[name]

    @property
    def vni(self):
        return self.vpc["vni"]

    def group(self, name, *rules):
        """A group with exactly these rules: the two default egress rules are deleted or kept as
        the caller lists them."""
        made = self.api.create("security-groups", name=name, vpc_id=self.vpc["id"], wait=0)
        for rule in rules:
            self.add_rule(made, **rule)
        return made

    def add_rule(self, group, **rule):
        return self.api.request("POST", f"/v1/security-groups/{group['id']}/rules?wait=10", rule)

    def remove_rule(self, group, rule):
        self.api.request("DELETE", f"/v1/security-groups/{group['id']}/rules/{rule}?wait=10")

    def default_group(self):
        return next(group for group in self.api.list("security-groups", vpc_id=self.vpc["id"])
                    if group["name"] == "default")

    def join(self, endpoint, *groups):
        """Makes these the endpoint's groups."""
        self.api.update("endpoints", self.endpoints[endpoint]["id"],
                        security_group_ids=[group["id"] for group in groups])


    def public_group(self):
        """The group that lets the internet in on what the checks use."""
        if not self._public:
            self._public = self.group(
                "public", *({"direction": "ingress", "action": "allow", "family": "ipv4",
                             "protocol": protocol, "port_min": low, "port_max": high}
                            for protocol, low, high in (("tcp", 80, 80), ("udp", 9000, 9009),
                                                        ("tcp", 9001, 9001), ("tcp", 5201, 5209))))
        return self._public

    def elastic_ip(self):
        """An elastic IP that leads to web1; web1 and web2 let the internet in. Every check that
        needs it asks, so that each runs without the others."""
        for name in ("web1", "web2"):
            self.join(name, self.default_group(), self.public_group())
        if not self._elastic:
            self._elastic = self.api.create("elastic-ips", name="web",
                                            endpoint_id=self.endpoints["web1"]["id"])
        return self._elastic


class World:
    """`family` 6: hosts with IPv6 VTEPs only. `mtu`: of the tenants' subnets and interfaces."""

    def __init__(self, lab, family=4, mtu=1500):
        self.lab, self.fabric, self.mtu = lab, lab.fabric, mtu
        self.admin = lab.controller.client("admin")
        if family == 6:
            for host in lab.fabric.hosts:
                host.use_ipv6()
        self.hosts = [self.admin.create("hosts", wait=0, name=host.name,
                                        vteps=[host.local])
                      for host in lab.fabric.hosts]
        self.pool = self.admin.create("external-pools", wait=0, name="internet",
                                      cidr=lab.fabric.pool, mode="routed")
        self.red = Project(self, "red", PLACES)
        self.blue = Project(self, "blue", ["web1", "web2", "db1"])
        for project in (self.red, self.blue):
            table = next(table for table in project.api.list(
                "route-tables", vpc_id=project.vpc["id"]) if table["name"] == "main")
            project.routes = project.api.update(
                "route-tables", table["id"],
                routes=[{"destination": "0.0.0.0/0", "next_hop": {"internet": True}}])

    def checksum_errors(self):
        """What every kernel in the lab and the gateway have counted as bad checksums so far."""
        spaces = [tenant.space for tenant in self.fabric.tenants.values()]
        spaces += [host.space for host in self.fabric.hosts]
        metrics = self.lab.gateway.metrics()
        wrong = sum(value for (name, labels), value in metrics.items()
                    if name == "sluice_drops_total" and "checksum" in dict(labels)["reason"])
        for space in [*spaces, self.fabric.internet]:
            lines = netns.execute(space, "nstat", "-asz", "*InCsumErrors").stdout.splitlines()
            wrong += sum(int(line.split()[1]) for line in lines if "CsumErrors" in line)
        return wrong
