#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real stacks through the gateway: TCP on bad wires while tables change, probes of every state of a
port, path-MTU discovery, traceroute, a hundred streams. SLUICE_LONG=1: more of each."""
import itertools
import os
import pathlib
import random
import re
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import lab, netns, pcap, program, shell, world  # noqa: E402
from lab.check import Check  # noqa: E402

LONG = os.environ.get("SLUICE_LONG") == "1"
MEGABYTES = 300 if LONG else 24
SEEDS = range(1, 9 if LONG else 4)
STREAMS, STREAM_SECONDS = 100, 30 if LONG else 3
NARROW = 1300                        # MTU of the wire behind the internet host
BEYOND, BEHIND = "192.0.2.130", "192.0.2.129"  # the machine there, and the router's address to it
MESS = shell.ROOT / "tests/lab/mess.py"


class BadWire:
    """Between a machine and its segment, for as long as it is entered."""

    def __init__(self, segment, port, seed, **parts):
        self.segment, self.port = segment, port
        self.words = ["--seed", seed, *itertools.chain(*((f"--{name}", part) for name, part in parts.items()))]

    def __enter__(self):
        left, right = f"{self.port}-m", f"{self.port}-b"
        mtu = netns.execute(self.segment, "cat", f"/sys/class/net/{self.port}/mtu").stdout.strip()
        netns.batch(self.segment, f"link add {left} mtu {mtu} type veth peer name {right} mtu {mtu}",
                    f"link set {self.port} nomaster", f"link set {right} master br0",
                    f"link set {left} up", f"link set {right} up")
        for device in (left, right):
            netns.no_offloads(self.segment, device)
        # Frames are for the machines at the ends, not for the devices here.
        netns.batch(self.segment, f"link set {self.port} promisc on", f"link set {left} promisc on")
        try:
            self.program = program.Program(self.segment, "/usr/bin/python3", MESS, self.port, left,
                                           *self.words, wait_for="ready\n")
        except shell.LabError:
            self._mend()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.did = self.program.result()
        finally:
            self._mend()

    def _mend(self):
        netns.batch(self.segment, f"link del {self.port}-m", f"link set {self.port} promisc off",
                    f"link set {self.port} master br0")


class Changes(threading.Thread):
    """Changes that concern none of the connections, one after the other, until it is stopped."""

    def __init__(self, made):
        super().__init__()
        self.red, self.blue, self.number, self.error = made.red, made.blue, 0, None
        self._over = threading.Event()
        red = self.red
        self.elsewhere = red.group("elsewhere")
        self.other = red.api.create("elastic-ips", name="other",
                                    endpoint_id=red.endpoints["db1"]["id"])
        self.steps = [self.rule, self.member, self.elastic, self.stranger]
        self.rules = []

    def rule(self, turn):
        """A rule of a group that nobody at either end is a member of comes or goes."""
        if self.rules:
            return self.red.remove_rule(self.elsewhere, self.rules.pop())
        rule = self.red.add_rule(self.elsewhere, direction="ingress", action="allow", family="ipv4",
                                 protocol="tcp", port_min=7000 + turn % 100, port_max=7200)
        self.rules.append(rule["id"])

    def member(self, turn):
        """db2 joins a group or leaves it."""
        self.red.join("db2", self.red.default_group(), *([self.elsewhere] if turn % 2 else []))

    def elastic(self, turn):
        """An elastic IP of others moves."""
        self.red.api.update("elastic-ips", self.other["id"],
                            endpoint_id=self.red.endpoints["db2" if turn % 2 else "db1"]["id"])

    def stranger(self, turn):
        """Another tenant changes the default group of its own."""
        group = self.blue.default_group()
        rule = self.blue.add_rule(group, direction="ingress", action="allow", family="ipv4",
                                  protocol="udp", port_min=1 + turn % 100, port_max=2000)
        self.blue.remove_rule(group, rule["id"])

    def run(self):
        try:
            for turn, step in enumerate(itertools.cycle(self.steps)):
                if self._over.is_set():
                    return
                step(turn // len(self.steps))
                self.number += 1
        except Exception as error:  # told by `done`
            self.error = error

    def done(self):
        self._over.set()
        self.join(30)
        if self.error:
            raise shell.LabError(f"a change failed: {self.error}")
        self.red.api.delete("elastic-ips", self.other["id"])
        self.red.join("db2", self.red.default_group())
        self.red.api.delete("security-groups", self.elsewhere["id"])
        return self.number


def generation(made):
    return max(value for (name, _), value in made.lab.gateway.metrics().items()
               if name == "sluice_generation")


def bad_wires(check, made):
    red, fabric = made.red, made.fabric
    web1, web2, db1 = (red.tenants[name] for name in ("web1", "web2", "db1"))
    address = red.elastic_ip()["address"]
    red.join("db1", red.default_group())
    # The beginning of it all is enough for tshark.
    check.capture_uplink(packets=3000)
    check.capture_underlay(packets=3000)
    for seed in SEEDS:
        drawn = random.Random(seed)
        parts = {name: round(drawn.uniform(0.002, 0.02), 4) for name in ("loss", "double", "late")}
        before, begin = generation(made), time.monotonic()
        with BadWire(fabric.underlay, "host2", seed, **parts) as inside, \
                BadWire(fabric.uplink, "internet", seed + 100, **parts) as outside:
            servers = [program.traffic(space, "serve", 9001)
                       for space in (web2.space, db1.space, web1.space, fabric.internet)]
            ways = (("inside a subnet", web1, web2.ip), ("across subnets", web1, db1.ip),
                    ("IPv6", web1, web2.ipv6), ("from the internet", None, address),
                    ("to the internet", web1, fabric.far_address))
            changes = Changes(made)
            changes.start()
            fetches = [(name, program.traffic(end.space if end else fabric.internet, "fetch", to, 9001,
                                              MEGABYTES << 20, "--timeout", 20))
                       for name, end, to in ways]
            got = [(name, fetch.wait(300 if LONG else 60)) for name, fetch in fetches]
            count = changes.done()
            for server in servers:
                server.result()
        for name, result in got:
            check.fact(f"{name}, seed {seed}", f"{MEGABYTES} MiB, exact",
                       f"{result['bytes'] >> 20} MiB, exact: {result['exact']}, "
                       f"{result['seconds']:.1f} s, longest stall {result['stall']:.2f} s"
                       + (f", {result['error']}" if result["error"] else ""), result["exact"])
        for where, wire in (("underlay", inside), ("uplink", outside)):
            did = wire.did
            check.fact(f"{where}'s wire", "each fate", " ".join(f"{n} {v}" for n, v in did.items()),
                       min(did["lost"], did["doubled"], did["late"]) > 0 and not did["full"])
        moved = generation(made) - before
        check.fact("changes meanwhile", "at least 10, each a generation",
                   f"{count} in {time.monotonic() - begin:.0f} s, {moved:.0f} generations",
                   count >= 10 and moved >= count * 0.9)
    drops = {dict(labels)["reason"]: value for (name, labels), value
             in made.lab.gateway.metrics().items() if name == "sluice_drops_total" and value}
    check.equal("connections cut by changes that do not concern them", 0,
                drops.get("policy_changed", 0))


UDP_PROBE = """
import socket, sys, time
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(float(sys.argv[3]))
s.connect((sys.argv[1], int(sys.argv[2])))
s.send(b"sluice")
try: print("open" if s.recv(100) else "empty")
except ConnectionRefusedError: print("refused")
except OSError as error: print("silent" if isinstance(error, TimeoutError) else error)
"""
UDP_ECHO = """
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.bind(("::", int(sys.argv[1])))
print("ready", flush=True)
while True: s.sendto(*s.recvfrom(2000))
"""


def probe(space, protocol, address, port, seconds):
    if protocol == "tcp":
        return program.connects(space, address, port, seconds)
    return netns.execute(space, "/usr/bin/python3", "-c", UDP_PROBE, address, port, seconds,
                         timeout=seconds + 5, check=False).stdout.strip()


def ports(check, made):
    """Open, closed and filtered ports look from outside as their machine's stack means them to."""
    red, fabric = made.red, made.fabric
    web1, web2, db1 = (red.tenants[name] for name in ("web1", "web2", "db1"))
    address = red.elastic_ip()["address"]
    guarded = red.group("guarded", *({"direction": "ingress", "action": "allow", "family": family,
                                      "protocol": protocol, "port_min": 9001, "port_max": 9002}
                                     for family in ("ipv4", "ipv6") for protocol in ("tcp", "udp")))
    red.join("db1", guarded)
    capture = check.capture_underlay()
    uplink = check.capture_uplink()
    echoes = [program.Program(end.space, "/usr/bin/python3", "-c", UDP_ECHO, 9001, wait_for="ready")
              for end in (web1, web2, db1)]
    servers = [program.traffic(end.space, "echo", 9001) for end in (web1, web2, db1)]
    # The elastic IP lets in TCP 80, 9001 and UDP 9000 to 9009.
    for name, space, to, closed, filtered in (
            ("inside a subnet", web1.space, web2.ip, 9002, None),
            ("inside a subnet, IPv6", web1.space, web2.ipv6, 9002, None),
            ("across subnets", web1.space, db1.ip, 9002, 9003),
            ("across subnets, IPv6", web1.space, db1.ipv6, 9002, 9003),
            ("elastic IP", fabric.internet, address, {"tcp": 80, "udp": 9002}, 9100)):
        for protocol in ("tcp", "udp"):
            there = closed if isinstance(closed, int) else closed[protocol]
            states = [("open", 9001, "open", 2), ("closed", there, "refused", 2)]
            if filtered:
                states.append(("filtered", filtered,
                               "no: timed out" if protocol == "tcp" else "silent", 0.4))
            for state, port, wanted, seconds in states:
                check.equal(f"{name}, {protocol} {state}", wanted,
                            probe(space, protocol, to, port, seconds), capture)
    for running in servers + echoes:
        running.kill()
    capture.stop()
    uplink.stop()
    red.join("db1", red.default_group())


def beyond(made):
    """A machine behind the internet host, on a wire that carries less than everybody thinks."""
    fabric = made.fabric
    space = fabric.space("beyond")
    fabric.make_space(space)
    netns.execute(fabric.internet, "sysctl", "-qw", "net.ipv4.ip_forward=1",
                  "net.ipv4.icmp_ratelimit=0", "net.ipv4.conf.all.rp_filter=0")
    netns.batch(fabric.internet, f"link add b0 mtu {NARROW} type veth peer name eth0 netns {space} mtu 1500",
                f"addr add {BEHIND}/30 dev b0", "link set b0 up")
    netns.batch(space, f"addr add {BEYOND}/30 dev eth0", "link set eth0 up",
                # It sends no more than its wire carries, but does not say so in its SYNs.
                f"route add default via {BEHIND} mtu {NARROW} advmss 1460")
    netns.no_offloads(fabric.internet, "b0")
    netns.no_offloads(space, "eth0")
    return space


def path_mtu(check, made, far):
    """A wire behind the internet, and a tenant's own subnet, that carry less."""
    red, fabric = made.red, made.fabric
    web1 = red.tenants["web1"]
    address = red.elastic_ip()["address"]
    capture, uplink = check.capture_host(0, red), check.capture_uplink()
    received, said = program.ping(web1.space, BEYOND, "-M", "do", "-s", 1400, count=2, interval=0.3)
    told = re.search(r"From (\S+) .*[Ff]rag needed and DF set \(mtu = (\d+)\)", said)
    check.fact("ping, DF", f"MTU {NARROW} from {fabric.internet_address}",
               f"MTU {told[2]} from {told[1]}" if told else f"{received} passed",
               told and told.groups() == (fabric.internet_address, str(NARROW)) and not received, capture)
    received, _ = program.ping(web1.space, BEYOND, "-M", "do", "-s", NARROW - 28, count=2)
    check.equal("what fits", 2, received, capture)
    # TCP on its own: nobody on the way lowers the MSS, and what ping has learnt is forgotten.
    web1.run("ip", "-4", "route", "flush", "cache")
    with program.traffic(web1.space, "serve", 9001):
        got = program.traffic(far, "fetch", address, 9001, 2 << 20, "--timeout", 20).wait(30)
    check.fact("TCP inwards", "2 MiB, exact", f"exact: {got['exact']}, {got['seconds']:.1f} s", got["exact"])
    web1.run("ip", "-4", "route", "flush", "cache")
    with program.traffic(far, "echo", 9001):
        talked = program.traffic(web1.space, "talk", "pmtu" + "x" * 1400, BEYOND, 9001,
                                 "--seconds", 1).wait(10)
    check.fact("TCP outwards", "lines of 1,400 octets come back",
               f"{talked['rounds']} rounds, {talked['error']}", talked["rounds"] > 5 and not talked["error"])
    learnt = web1.run("ip", "route", "get", BEYOND).stdout
    check.fact("web1's route has learnt", f"mtu {NARROW}", (re.search(r"mtu \d+", learnt) or ["nothing"])[0],
               f"mtu {NARROW}" in learnt)
    capture.stop()
    uplink.stop()
    errors, wrong = pcap.misquoted(capture.path, hops=True)
    check.fact("errors that web1 got quote its own packets", "all", f"{wrong} of {errors} wrong",
               errors >= 3 and not wrong, capture)
    # From the internet to a subnet that carries less.
    subnet = red.api.create("subnets", wait=0, name="narrow", vpc_id=red.vpc["id"], cidr="10.0.4.0/24",
                            mtu=NARROW)
    record = red.api.create("endpoints", name="narrow1", subnet_id=subnet["id"], kind="vm", ip="10.0.4.10",
                            host_id=made.hosts[1]["id"],
                            security_group_ids=[red.default_group()["id"], red.public_group()["id"]])
    tenant = fabric.hosts[1].attach("red-narrow1", red.vni, record["ip"], record["mac"],
                                    gateway=subnet["gateway_ip"])
    unclamped(check, red, tenant)
    rule = red.add_rule(red.public_group(), direction="ingress", action="allow", family="ipv4",
                        protocol="icmp")
    narrow = red.api.create("elastic-ips", name="narrow", endpoint_id=record["id"])
    outside = check.capture_uplink("narrow-uplink")
    received, said = program.ping(fabric.internet, narrow["address"], "-M", "do", "-s", 1400, count=2,
                                  interval=0.3)
    told = re.search(r"From (\S+) .*[Ff]rag needed and DF set \(mtu = (\d+)\)", said)
    check.fact("ping from the internet, DF", f"MTU {NARROW} from {fabric.gateway_uplink}",
               f"MTU {told[2]} from {told[1]}" if told else f"{received} passed",
               told and told.groups() == (fabric.gateway_uplink, str(NARROW)) and not received, outside)
    netns.execute(fabric.internet, "ip", "route", "flush", "cache")
    received, _ = program.ping(fabric.internet, narrow["address"], "-M", "dont", "-s", 1400, count=2)
    check.equal("ping from the internet, to be fragmented", 2, received, outside)
    outside.stop()
    red.api.delete("elastic-ips", narrow["id"])
    red.remove_rule(red.public_group(), rule["id"])


def unclamped(check, red, narrow):
    """Inside the VPC, where nobody lowers what SYNs announce: the gateway tells TCP what fits."""
    web1 = red.tenants["web1"]
    for clamping, wanted in ((False, "some"), (True, "none")):
        red.api.update("vpcs", red.vpc["id"], mss_clamping=clamping)
        web1.run("ip", "-4", "route", "flush", "cache")
        during = check.capture_host(0, red, point=f"clamping-{clamping}")
        with program.traffic(web1.space, "serve", 9001):
            got = program.traffic(narrow.space, "fetch", web1.ip, 9001, 1 << 20).wait(20)
        during.stop()
        errors, wrong = pcap.misquoted(during.path)
        check.fact(f"mss_clamping {clamping}", f"exact, {wanted} of the gateway's errors, each quotes its packet",
                   f"exact: {got['exact']}, {wrong} of {errors} quotes wrong",
                   got["exact"] and (errors > 0) == (wanted == "some") and not wrong, during)


def hops(space, target, *mode):
    """Whom traceroute finds, one a hop; "*" who does not answer."""
    done = netns.execute(space, "traceroute", "-n", "-q", 1, "-w", 1, "-m", 6, "-N", 3, *mode, target,
                         timeout=30, check=False)
    return [line.split()[1] for line in done.stdout.splitlines()[1:]]


def traceroutes(check, made, far):
    red, fabric = made.red, made.fabric
    web1, db1 = red.tenants["web1"], red.tenants["db1"]
    address = red.elastic_ip()["address"]
    group = red.public_group()
    rules = [red.add_rule(group, direction="ingress", action="allow", family="ipv4", protocol="icmp"),
             red.add_rule(group, direction="ingress", action="allow", family="ipv4", protocol="udp",
                          port_min=33434, port_max=33534)]
    front, front6 = red.subnets["front"]["gateway_ip"], red.subnets["front"]["gateway_ipv6"]
    captures = check.capture_underlay(), check.capture_uplink()
    modes = (("UDP", ()), ("TCP", ("-T", "-p", "9001")), ("ICMP", ("-I",)))
    for mode, words in modes:
        for name, space, target, wanted in (
                ("across subnets", web1.space, db1.ip, [front, db1.ip]),
                ("across subnets, IPv6", web1.space, db1.ipv6, [front6, db1.ipv6]),
                ("outwards", web1.space, BEYOND, [front, fabric.internet_address, BEYOND]),
                ("inwards", far, address, [BEHIND, fabric.gateway_uplink, address])):
            check.equal(f"{mode} {name}", wanted, hops(space, target, *words), captures[0])
    for capture in captures:
        capture.stop()
    for rule in rules:
        red.remove_rule(group, rule["id"])


def streams(check, made):
    red = made.red
    web1, db1 = red.tenants["web1"], red.tenants["db1"]
    answer = program.iperf3(db1.space, web1.space, db1.ip, "-P", STREAMS, seconds=STREAM_SECONDS)
    each = [stream["receiver"]["bytes"] for stream in answer["end"]["streams"]]
    total = answer["end"]["sum_received"]["bits_per_second"] / 1e6
    check.fact(f"iperf3 -P {STREAMS}", "each stream gets something through",
               f"{len(each)} streams, least {min(each)} octets, all together {total:.0f} Mbit/s",
               len(each) == STREAMS and min(each) > 0)


def main():
    parts = (("bad-wires", bad_wires, False), ("ports", ports, False), ("path-mtu", path_mtu, True),
             ("traceroute", traceroutes, True), ("streams", streams, False))
    only = sys.argv[1:]
    try:
        with lab.Lab(os.environ.get("SLUICE_LAB", "sluice-stacks"),
                     captures=shell.BUILD / "test-logs/stacks") as raised:
            raised.start_product()
            made = world.World(raised)
            far = beyond(made)
            for number, (name, body, needs) in enumerate(parts):
                if only and name not in only:
                    continue
                run = (lambda check, world, body=body: body(check, world, far)) if needs else body
                done = Check(number, name, made).run(run)
                text = f"{done.line()} ({done.seconds:.1f} s)"
                print(f"ok topology/stacks/{name} ({text})" if done.passed
                      else f"not ok topology/stacks/{name}: {text}", flush=True)
    except shell.LabError as error:
        print(f"not ok topology/stacks: {error}")


if __name__ == "__main__":
    main()
