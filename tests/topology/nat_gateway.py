#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Many machines behind one public address: real clients, and no private source on the uplink, ever."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import frames, lab, netns, pcap, product, program, shell, world  # noqa: E402
from lab.check import Check  # noqa: E402
from lab.checks.c06_elastic_ip import PRIVATE, WHOAMI, curl, web_server  # noqa: E402

CLIENTS = ("web1", "web2", "db1", "db2")
ECHO_PORT = 9007

UDP_ECHO = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(2048)
    s.sendto(("%s %d" % peer).encode(), peer)
"""
# Opens sockets one after another, each asks once as whom it is seen; then all ask again.
UDP_CLIENTS = """
import json, socket, sys
to, count, first = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4])
socks, seen = [], []
def ask(s):
    for _ in range(3):
        s.sendto(b"who", to)
        try: return s.recvfrom(2048)[0].decode()
        except OSError: pass
for i in range(count):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.05)
    if first: s.bind(("0.0.0.0", first + i))
    socks.append(s)
    seen.append(ask(s))
again = [ask(s) for s, was in zip(socks, seen) if was]
print(json.dumps({"seen": seen, "again": again}))
"""


def udp_clients(tenant, destination, count, first=0):
    """[what each socket is seen as, or None], and the same asked again of those that were answered."""
    done = netns.execute(tenant.space, "/usr/bin/python3", "-c", UDP_CLIENTS, destination, ECHO_PORT,
                         count, first, timeout=60)
    answer = json.loads(done.stdout)
    return answer["seen"], answer["again"]


class Nat:
    """A NAT gateway of red's, and red's way out through it."""

    def __init__(self, made):
        self.made, self.red = made, made.red
        self.api, self.internet = made.red.api, made.fabric.internet
        for name in CLIENTS:
            made.red.join(name, made.red.default_group(), made.red.public_group())
        self.elastic = self.api.create("elastic-ips", name="shared", wait=0)
        self.address = self.elastic["address"]
        self.nat = self.api.create("nat-gateways", name="out", vpc_id=made.red.vpc["id"],
                                   elastic_ip_ids=[self.elastic["id"]])
        self.route({"nat_gateway_id": self.nat["id"]})

    def route(self, next_hop):
        self.api.update("route-tables", self.red.routes["id"],
                        routes=[{"destination": "0.0.0.0/0", "next_hop": next_hop}])

    def udp_echo(self):
        return program.Program(self.internet, "/usr/bin/python3", "-c", UDP_ECHO,
                               self.made.fabric.far_address, ECHO_PORT, wait_for="ready")

    def dropped(self, reason):
        return product.total(self.made.lab.gateway.metrics(), "sluice_drops_total", reason=reason)


def kept_inside(check, capture):
    capture.stop()
    check.equal("private addresses on the uplink", 0, pcap.count(capture.path, PRIVATE), capture)


def many_behind_one(check, nat):
    """Several machines, both subnets: HTTP, ping, iperf3, and the same source port for two."""
    uplink = check.capture_uplink("many")
    far = nat.made.fabric.far_address
    with program.Program(nat.internet, "/usr/bin/python3", WHOAMI, "internet", 80,
                         wait_for="ready"):
        peers = {name: curl(nat.red.tenants[name].space, far).get("peer") for name in CLIENTS}
    check.equal("curl of four machines is seen as", [nat.address] * 4, list(peers.values()), uplink)
    answered = [program.ping(nat.red.tenants[name].space, far)[0] for name in CLIENTS]
    check.equal("pings answered", [3] * 4, answered, uplink)
    with nat.udp_echo():
        same = [udp_clients(nat.red.tenants[name], far, 1, 40000)[0][0] for name in CLIENTS[:3]]
    check.fact("UDP from port 40000 of three machines", f"three ports of {nat.address}",
               ", ".join(str(one) for one in same),
               len(set(same)) == 3 and all(one and one.startswith(nat.address) for one in same),
               uplink)
    for name in CLIENTS[:2]:
        done = program.iperf3(nat.internet, nat.red.tenants[name].space, far, "-P", 4, "-b", "20M",
                              seconds=1)
        sent = done["end"]["sum_received"]["bytes"]
        check.fact(f"iperf3 of {name}", "more than 1,000,000 octets", f"{sent:,}", sent > 1_000_000)
    kept_inside(check, uplink)


def precedence(check, nat):
    """At a NAT gateway an endpoint's own elastic IP wins for new connections; those through the NAT
    gateway live on, and when it is detached new ones take the NAT gateway again."""
    uplink = check.capture_uplink("precedence")
    far, web1 = nat.made.fabric.far_address, nat.red.tenants["web1"]
    own = nat.api.create("elastic-ips", name="own", wait=0)
    with program.Program(nat.internet, "/usr/bin/python3", WHOAMI, "internet", 80,
                         wait_for="ready"), program.traffic(nat.internet, "echo", 9002) as echo:
        talking = program.traffic(web1.space, "talk", "through", far, 9002, "--seconds", 4)
        time.sleep(1)
        nat.api.update("elastic-ips", own["id"], endpoint_id=nat.red.endpoints["web1"]["id"])
        check.equal("new connections with an elastic IP", own["address"],
                    curl(web1.space, far).get("peer"), uplink)
        check.equal("another machine's", nat.address,
                    curl(nat.red.tenants["web2"].space, far).get("peer"), uplink)
        result = talking.wait(15)
        check.fact("a connection through the NAT gateway", "lives on",
                   f"{result.get('rounds')} rounds, {result.get('error') or 'no error'}",
                   result.get("rounds", 0) > 100 and not result.get("error"), uplink)
        nat.api.update("elastic-ips", own["id"], endpoint_id=None)
        check.equal("new connections without it", nat.address, curl(web1.space, far).get("peer"),
                    uplink)
        peers = echo.result()["peers"]
    check.equal("seen as, all the time", {nat.address: 1}, peers, uplink)
    # From an endpoint to the NAT gateway and back.
    refused = None
    try:
        nat.api.update("elastic-ips", nat.elastic["id"],
                       endpoint_id=nat.red.endpoints["web1"]["id"])
    except shell.LabError as problem:
        refused = str(problem)
    check.fact("attaching the NAT gateway's address", "409 that names it", refused,
               refused and "409" in refused and "nat_gateway out" in refused)
    nat.api.update("nat-gateways", nat.nat["id"], elastic_ip_ids=[nat.elastic["id"], own["id"]])
    check.equal("the address is now", nat.nat["id"],
                nat.api.get("elastic-ips", own["id"])["nat_gateway_id"])
    nat.api.update("nat-gateways", nat.nat["id"], elastic_ip_ids=[nat.elastic["id"]])
    nat.api.delete("elastic-ips", own["id"])
    kept_inside(check, uplink)


def named(check, nat):
    """explain and flows say by name which NAT gateway translates, and to which address."""
    far, web1 = nat.made.fabric.far_address, nat.red.tenants["web1"]
    told = nat.api.request("POST", "/v1/explain", {
        "vpc_id": nat.red.vpc["id"], "source": web1.ip, "destination": far, "protocol": "tcp",
        "source_port": 50000, "destination_port": 80})["gateways"][0]
    steps = [step for step in told["steps"] if (step.get("resource") or {}).get("id") == nat.nat["id"]]
    check.fact("explain", "forward, through nat_gateway out",
               f"{told['verdict']}, {[(step['table'], step['outcome']) for step in steps]}",
               told["verdict"] == "forward" and steps)
    with program.traffic(nat.internet, "echo", 9002), \
            program.traffic(web1.space, "talk", "named", far, 9002, "--seconds", 4):
        flows = nat.api.request(
            "GET", f"/v1/flows?endpoint_id={nat.red.endpoints['web1']['id']}")["items"]
    mine = [flow for flow in flows if flow.get("destination") == far
            and nat.nat["id"] in json.dumps(flow) and nat.address in json.dumps(flow)]
    check.fact("flows", "one at least that names it and its address", f"{len(mine)} of {len(flows)}",
               mine)


def limited(check, nat):
    """The limit of a NAT gateway's address holds for all who are behind it together."""
    uplink = check.capture_uplink("limited", filter=f"src host {nat.address}")
    nat.api.update("elastic-ips", nat.elastic["id"], bandwidth_mbps=20)
    receiver = program.traffic(nat.internet, "receive", 9000)
    senders = [program.traffic(nat.red.tenants[name].space, "send", name,
                               nat.made.fabric.far_address, 9000, "--rate", 1300, "--size", 1400,
                               "--seconds", 4) for name in ("web1", "web2")]
    for sender in senders:
        sender.wait(15)
    receiver.result()
    uplink.stop()
    rate, _, _ = pcap.ip_rate(uplink.path, source=frames.ip(nat.address))
    check.fact("two machines, of 30 Mbit/s sent", "19.0 to 21.0 Mbit/s", f"{rate:.2f} Mbit/s",
               19 <= rate <= 21, uplink)
    nat.api.update("elastic-ips", nat.elastic["id"], bandwidth_mbps=None)


def hairpin(check, nat):
    """A client behind the NAT gateway reaches the elastic IP of a server: of its own VPC, and of
    another project's. The server sees the NAT gateway's address."""
    uplink = check.capture_uplink("hairpin")
    blue = nat.made.blue
    servers = {"red": (nat.red, nat.red.tenants["web2"]), "blue": (blue, blue.tenants["web1"])}
    for name, (project, tenant) in servers.items():
        endpoint = "web2" if name == "red" else "web1"
        project.join(endpoint, project.default_group(), project.public_group())
        public = project.api.create("elastic-ips", name=f"{name}-server",
                                    endpoint_id=project.endpoints[endpoint]["id"])
        with web_server(tenant):
            seen = curl(nat.red.tenants["db1"].space, public["address"])
        check.equal(f"db1 to {name}'s server", {"host": tenant.name, "peer": nat.address}, seen,
                    uplink)
        project.api.delete("elastic-ips", public["id"])
    crossed = pcap.count(uplink.path, f"tcp && ip.addr == {nat.address}")
    check.equal("segments of it on the uplink", 0, crossed, uplink)
    kept_inside(check, uplink)


def filtering(check, nat):
    """Nobody opens a connection to a port that is nobody's, nor to a mapped one."""
    uplink = check.capture_uplink("filtering")
    far, db2 = nat.made.fabric.far_address, nat.red.tenants["db2"]
    before = nat.dropped("nat_unmapped")
    for port in (1500, 30000, 65000):
        program.traffic(nat.internet, "send", "stranger", nat.address, port, "--count", 5).wait(10)
    check.fact("datagrams to ports that nobody has", "15 dropped as nat_unmapped",
               nat.dropped("nat_unmapped") - before, nat.dropped("nat_unmapped") - before == 15,
               uplink)
    answered = program.ping(nat.internet, nat.address)[0]
    check.equal("pings of the NAT gateway's address answered", 0, answered, uplink)
    with nat.udp_echo():
        seen, _ = udp_clients(db2, far, 1, 9100)
        port = int(seen[0].split()[1])
        before = nat.dropped("nat_filtered")
        program.traffic(nat.internet, "send", "filtered", nat.address, port, "--count", 5,
                        "--source-port", 7777).wait(10)
        check.equal("datagrams of another port to a mapped one", 5,
                    nat.dropped("nat_filtered") - before, uplink)
    kept_inside(check, uplink)


def exhaustion(check, nat):
    """A cap of one block: the 65th port is refused by its reason, which names NAT gateway and
    destination; what is open lives; ports of a deleted endpoint are nobody else's for now."""
    uplink = check.capture_uplink("exhaustion")
    far = nat.made.fabric.far_address
    nat.api.update("nat-gateways", nat.nat["id"], ports_per_endpoint=64)
    web3 = nat.red.tenants["web3"]
    before = nat.dropped("nat_endpoint_ports")
    with nat.udp_echo():
        seen, again = udp_clients(web3, far, 80, 20000)
        got = [one for one in seen if one]
        check.equal("of 80 ports of a machine are mapped", 64, len(got), uplink)
        check.fact("asked again", "the same 64", f"the same {len(again)}" if got == again
                   else f"{got} became {again}", got == again, uplink)
        refused = nat.dropped("nat_endpoint_ports") - before
        check.fact("refused as nat_endpoint_ports", "48 or more", f"{refused:.0f}", refused >= 48)
        said = [drop for drop in nat.api.request(
            "GET", f"/v1/drops?endpoint_id={nat.red.endpoints['web3']['id']}")["items"]
                if drop.get("reason") == "nat_endpoint_ports"]
        text = json.dumps(said[:1])
        check.fact("the drop names", "NAT gateway out and the destination", text[:300],
                   said and nat.nat["id"] in text and far in text)
        other, _ = udp_clients(nat.red.tenants["web2"], far, 1, 20000)
        check.fact("another machine meanwhile", "is mapped", other[0], other[0] is not None, uplink)
        # Its endpoint is deleted: whoever comes next gets other ports.
        nat.red.api.delete("endpoints", nat.red.endpoints["web3"]["id"])
        nat.red.endpoints.pop("web3")
        fresh, _ = udp_clients(nat.red.tenants["db2"], far, 64, 30000)
        mine = {one.split()[1] for one in got}
        theirs = {one.split()[1] for one in fresh if one}
        check.fact("ports of a deleted endpoint given to another", "none",
                   f"{len(mine & theirs)} of {len(theirs)}", theirs and not mine & theirs, uplink)
    nat.api.update("nat-gateways", nat.nat["id"], ports_per_endpoint=1024)
    kept_inside(check, uplink)


def taken_away(check, nat):
    """Under traffic the route is taken away and the NAT gateway deleted: nothing leaks."""
    uplink = check.capture_uplink("taken-away")
    web1 = nat.red.tenants["web1"]
    sender = program.traffic(web1.space, "send", "away", nat.made.fabric.far_address, 9000,
                             "--rate", 500)
    time.sleep(0.5)
    nat.route({"internet": True})  # web1 has no elastic IP
    time.sleep(0.5)
    nat.api.delete("nat-gateways", nat.nat["id"])
    time.sleep(0.5)
    nat.api.delete("elastic-ips", nat.elastic["id"])
    time.sleep(0.5)
    sender.result()
    uplink.stop()
    left = pcap.count(uplink.path, f"ip.src == {nat.address} && udp")
    check.fact("datagrams through the NAT gateway before", "150 to 450", left, 150 <= left <= 450,
               uplink)
    kept_inside(check, uplink)


CASES = (many_behind_one, precedence, named, limited, hairpin, filtering, exhaustion, taken_away)


def main():
    try:
        with lab.Lab("sluice-nat", captures=shell.BUILD / "test-logs/nat") as raised:
            raised.start_product()
            made = world.World(raised)
            nat = Nat(made)
            for number, case in enumerate(CASES):
                name = "topology/nat/" + case.__name__.replace("_", "-")
                done = Check(number, name, made).run(lambda check, _, case=case: case(check, nat))
                print(f"ok {name} ({done.line()})" if done.passed
                      else f"not ok {name}: {done.line()}", flush=True)
    except shell.LabError as error:
        print(f"not ok topology/nat: {error}", flush=True)


if __name__ == "__main__":
    main()
