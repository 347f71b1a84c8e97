# SPDX-License-Identifier: Apache-2.0
"""Inside a subnet the gateway is a bridge (TTL untouched), across subnets a router (TTL one less)."""
import re

from lab import pcap, program

TITLE = "ping and traceroute"


def run(check, world):
    red = world.red
    web1 = red.tenants["web1"]
    arrived = {1: check.capture_host(1, red), 0: check.capture_host(0, red)}
    for name, ttl, how in (("web2", 64, "inside the subnet"), ("web3", 64, "same host"),
                           ("db1", 63, "across subnets")):
        peer = red.tenants[name]
        received, said = program.ping(web1.space, peer.ip)
        replies = ", ".join(sorted(set(re.findall(r"ttl=(\d+)", said))))
        check.equal(f"ping {how}", f"3 of 3, TTL {ttl}", f"{received} of 3, TTL {replies}")
    traced = program.netns.execute(web1.space, "traceroute", "-n", "-q", 1, "-w", 1, "-m", 4,
                                         red.tenants["db1"].ip, check=False).stdout
    hops = re.findall(r"^ *\d+ +(\S+)", traced, re.MULTILINE)
    check.equal("traceroute", f"{red.subnets['front']['gateway_ip']} {red.tenants['db1'].ip}",
                " ".join(hops))
    at_peer = arrived[1]
    at_peer.stop()
    for name, ttl in (("web2", "64"), ("db1", "63")):
        seen = {row[0] for row in pcap.fields(
            at_peer.path, f"icmp.type == 8 && ip.dst == {red.tenants[name].ip}", "ip.ttl")}
        check.equal(f"TTL of requests at {name}", ttl, ", ".join(sorted(seen)), at_peer)
