# SPDX-License-Identifier: Apache-2.0
"""IPv6 in dual-stack subnets: neighbour discovery, ping and TCP, inside and across."""
import re

from lab import program

TITLE = "IPv6"


def run(check, world):
    red = world.red
    web1 = red.tenants["web1"]
    check.capture_underlay()
    for name, subnet in red.subnets.items():
        check.fact(f"subnet {name}", "of both families", f"{subnet['cidr']} and {subnet['ipv6_cidr']}",
                   subnet["cidr"] and subnet["ipv6_cidr"])
    for name, hops, how in (("web2", 64, "inside"), ("db1", 63, "across")):
        peer = red.tenants[name]
        received, said = program.ping(web1.space, peer.ipv6)
        replies = ", ".join(sorted(set(re.findall(r"ttl=(\d+)", said))))
        check.equal(f"ping {how}", f"3 of 3, hop limit {hops}",
                    f"{received} of 3, hop limit {replies}")
        with program.traffic(peer.space, "serve", 9001):
            got = program.traffic(web1.space, "fetch", peer.ipv6, 9001, 2_000_000).wait(20)
        check.fact(f"TCP {how}", "2,000,000 bytes, exact",
                   f"{got.get('bytes')} bytes in {got.get('seconds', 0):.2f} s, exact: "
                   f"{got.get('exact')}", got.get("exact"))
    gateway = red.subnets["front"]["gateway_ipv6"]
    received, _ = program.ping(web1.space, gateway)
    check.equal(f"ping to the gateway {gateway}", 3, received)
