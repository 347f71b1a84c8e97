# SPDX-License-Identifier: Apache-2.0
"""The network that the benchmark loads: who lives where, and which flows they send.

The one source for the packets, for every program's rules and for the check of what comes out.
Clients behind one VTEP send UDP to the elastic addresses of servers of their own VPC behind another
VTEP. A program that translates makes a hairpin of it: the packet leaves with the client's elastic
address as its source and the server's private address as its destination.
"""
import ipaddress
from dataclasses import dataclass

GATEWAY_MAC, GATEWAY_VTEP = "02:00:00:00:00:01", "192.0.2.1"
CLIENT_HOST_MAC, CLIENT_VTEP = "02:00:00:00:00:02", "192.0.2.2"
SERVER_HOST_MAC, SERVER_VTEP = "02:00:00:00:00:03", "192.0.2.3"
SUBNET_GATEWAY_MAC = "02:bb:00:00:00:01"  # towards every subnet

VPCS = 8
FIRST_VNI = 100
PER_VPC = 25  # clients, and as many servers
SERVER_PORT = 443
# 64 octets with the frame check sequence, the smallest Ethernet frame.
INNER_FRAME = 64
# The address that a program with one shared address translates sources to.
SHARED_ADDRESS = "198.51.100.7"
ELASTIC_POOL = "198.18.0.0/15"  # RFC 2544: set aside for benchmarks


@dataclass(frozen=True)
class Endpoint:
    vpc: int  # from 1
    role: str  # "client" or "server"
    number: int  # from 0

    @property
    def vni(self):
        return FIRST_VNI + self.vpc - 1

    @property
    def subnet(self):
        return f"10.{self.vpc}.{1 if self.role == 'client' else 2}.0/24"

    @property
    def gateway(self):
        return str(ipaddress.ip_network(self.subnet)[1])

    @property
    def address(self):
        return str(ipaddress.ip_network(self.subnet)[10 + self.number])

    @property
    def elastic(self):
        return f"198.{18 if self.role == 'client' else 19}.{self.vpc}.{10 + self.number}"

    @property
    def mac(self):
        return f"02:aa:{self.vpc:02x}:{1 if self.role == 'client' else 2:02x}:00:{self.number:02x}"

    @property
    def vtep(self):
        return CLIENT_VTEP if self.role == "client" else SERVER_VTEP


@dataclass(frozen=True)
class Flow:
    number: int
    client: Endpoint
    server: Endpoint
    source_port: int


def endpoints():
    return [Endpoint(vpc, role, number) for vpc in range(1, VPCS + 1)
            for role in ("client", "server") for number in range(PER_VPC)]


def flow(number):
    """No two of the first 320,000 flows are equal, nor are they after translation of their sources
    to one address."""
    vpc, turn = 1 + number % VPCS, number // VPCS
    return Flow(number, Endpoint(vpc, "client", turn % PER_VPC),
                Endpoint(vpc, "server", turn // PER_VPC % PER_VPC), 1024 + number % 64000)


# OpenFlow tables of the gateway, by number, whose entries the comparison prints.
TABLES = {"vni": 1, "source": 2, "local": 3, "egress_group": 4, "egress_rule": 5, "route": 6,
          "elastic_ip": 8, "public_address": 10, "endpoint": 12, "ingress_group": 13,
          "ingress_rule": 14, "host": 16}


def as_json():
    """What program_tables makes entries of. Ids count from 1, the same in each VPC's own order."""
    subnets = sorted({(e.vpc, e.role, e.subnet, e.gateway) for e in endpoints()})
    subnet_id = {subnet: number for number, (_, _, subnet, _) in enumerate(subnets, 1)}
    return {
        "vpcs": [{"id": vpc, "vni": FIRST_VNI + vpc - 1} for vpc in range(1, VPCS + 1)],
        "hosts": [{"id": 1, "vtep": CLIENT_VTEP}, {"id": 2, "vtep": SERVER_VTEP}],
        "subnets": [{"id": subnet_id[cidr], "vpc": vpc, "cidr": cidr, "gateway": gateway,
                     "mac": SUBNET_GATEWAY_MAC} for vpc, _, cidr, gateway in subnets],
        "groups": [
            # As a tenant would have it: what clients may reach, who may reach servers.
            {"id": 2 * vpc + (role == "server"), "rules": rules}
            for vpc in range(1, VPCS + 1)
            for role, rules in (
                ("client", [{"direction": "egress", "protocol": 17, "ports": [SERVER_PORT, SERVER_PORT]},
                            {"direction": "egress", "protocol": 6, "ports": [SERVER_PORT, SERVER_PORT]},
                            {"direction": "egress", "protocol": 17, "ports": [53, 53]}]),
                ("server", [{"direction": "ingress", "protocol": 17, "ports": [SERVER_PORT, SERVER_PORT],
                             "remote": ELASTIC_POOL},
                            {"direction": "ingress", "protocol": 6, "ports": [SERVER_PORT, SERVER_PORT],
                             "remote": ELASTIC_POOL},
                            {"direction": "ingress", "protocol": 6, "ports": [22, 22],
                             "remote": f"10.{vpc}.0.0/16"}]))],
        "endpoints": [
            {"id": number, "vpc": e.vpc, "address": e.address, "elastic": e.elastic, "mac": e.mac,
             "host": 1 if e.role == "client" else 2, "subnet": subnet_id[e.subnet],
             "group": 2 * e.vpc + (e.role == "server")}
            for number, e in enumerate(endpoints(), 1)],
    }
