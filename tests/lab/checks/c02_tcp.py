# SPDX-License-Identifier: Apache-2.0
"""TCP throughput inside and across subnets, both directions; no wrong checksum anywhere."""
from lab import program

TITLE = "TCP by iperf3"


def run(check, world):
    red = world.red
    client = red.tenants["web1"]
    before = world.checksum_errors()
    for name, how in (("web2", "inside"), ("db1", "across")):
        for option, direction in ((), "out"), (("-R",), "back"):
            with check.capture_underlay(f"{how}-{direction}", packets=3000) as capture:
                server = red.tenants[name]
                done = program.iperf3(server.space, client.space, server.ip, *option, seconds=2)
            end = done["end"]
            mbps = end["sum_received"]["bits_per_second"] / 1e6
            check.fact(f"{how} {direction}", "more than 50 Mbit/s", f"{mbps:.0f} Mbit/s",
                       mbps > 50, capture)
    wrong = world.checksum_errors() - before
    check.equal("checksum errors counted by the kernels and the gateway", 0, int(wrong))
