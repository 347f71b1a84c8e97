# SPDX-License-Identifier: Apache-2.0
"""A packet too big for its destination: the sender is told the tenant's MTU, and TCP knows before."""
import re

from lab import pcap, program

TITLE = "path MTU"
MTU = 1400


def run(check, world):
    red = world.red
    web1 = red.tenants["web1"]
    subnet = red.api.create("subnets", wait=0, name="small", vpc_id=red.vpc["id"], cidr="10.0.3.0/24",
                            ipv6_cidr="fd12:3::/64", mtu=MTU)
    record = red.api.create("endpoints", name="small1", subnet_id=subnet["id"], kind="vm",
                            ip="10.0.3.10", ipv6="fd12:3::10", host_id=world.hosts[1]["id"])
    # Its interface keeps 1500, so that TCP's MSS alone does not save the sender.
    small = world.fabric.hosts[1].attach(
        "red-small1", red.vni, record["ip"], record["mac"], gateway=subnet["gateway_ip"],
        ipv6=record["ipv6"], gateway6=subnet["gateway_ipv6"])
    # An ICMP error quotes a packet cut short, on purpose.
    underlay = check.capture_underlay()
    for target, size, pattern, what in (
            (small.ip, 1472, r"From (\S+) .*[Ff]rag needed and DF set \(mtu = (\d+)\)",
             "IPv4, DF"),
            (small.ipv6, 1452, r"From (\S+) .*Packet too big: mtu=(\d+)", "IPv6")):
        received, said = program.ping(web1.space, target, "-M", "do", "-s", size, count=2,
                                      interval=0.3)
        told = re.search(pattern, said)
        gateway = (world.red.subnets["front"]["gateway_ipv6"] if ":" in target
                   else world.red.subnets["front"]["gateway_ip"])
        check.fact(what, f"MTU {MTU}, from {gateway}",
                   f"MTU {told[2]}, from {told[1]}" if told else f"nothing, {received} passed",
                   told and int(told[2]) == MTU and told[1] == gateway and not received, underlay)
    for target, what, told, headers in (
            (small.ip, "TCP through it", "icmp.type == 3 && icmp.code == 4 && tcp", 40),
            (small.ipv6, "TCP through it, IPv6", "icmpv6.type == 2 && tcp", 60)):
        source = web1.ip if "." in target else web1.ipv6
        # What ping has learnt is forgotten: TCP has to do without.
        for family in ("-4", "-6"):
            web1.run("ip", family, "route", "flush", "cache")
        during = check.capture_host(0, red, point=f"tcp-to-{'v4' if '.' in target else 'v6'}")
        with program.traffic(web1.space, "serve", 9001):
            got = program.traffic(small.space, "fetch", source, 9001, 1_000_000).wait(20)
        during.stop()
        # Its SYN, as web1 got it.
        announced = pcap.fields(during.path, "tcp.flags.syn == 1 && tcp.flags.ack == 0",
                                "tcp.options.mss_val")
        largest = max((int(value) for value, in announced), default=0)
        check.equal(f"{what}: largest segment", MTU - headers, largest, during)
        check.equal(f"{what}: errors needed", 0, pcap.count(during.path, told), during)
        check.fact(what, "1,000,000 bytes, exact", f"{got.get('bytes')} bytes, exact: "
                   f"{got.get('exact')}, {got.get('seconds', 0):.1f} s", got.get("exact"))
