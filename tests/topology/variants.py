#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The same tenants over other underlays: IPv6 VTEPs, jumbo frames, a single worker."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import lab, program, shell, world  # noqa: E402
from lab.check import Check  # noqa: E402


def reach(check, made):
    """Ping and TCP, both families, inside and across subnets."""
    red = made.red
    web1 = red.tenants["web1"]
    check.capture_underlay()
    for name, how in (("web2", "inside"), ("db1", "across")):
        for address in (red.tenants[name].ip, red.tenants[name].ipv6):
            received, _ = program.ping(web1.space, address)
            check.equal(f"ping {how} to {address}", 3, received)
            with program.traffic(red.tenants[name].space, "serve", 9001):
                got = program.traffic(web1.space, "fetch", address, 9001, 1_000_000).wait(20)
            check.fact(f"TCP {how}", "1,000,000 bytes, exact", f"exact: {got.get('exact')}",
                       got.get("exact"))


def jumbo(check, made):
    """A tenant MTU of 8,900 octets: packets of that size pass whole, larger ones are refused."""
    red = made.red
    web1, web2 = red.tenants["web1"], red.tenants["web2"]
    check.capture_underlay()
    for size, wanted in ((8872, 2), (4000, 2)):
        received, said = program.ping(web1.space, web2.ip, "-M", "do", "-s", size, count=2)
        check.fact(f"ping with {size} octets, DF", wanted, received, received == wanted)
    with program.traffic(web2.space, "serve", 9001):
        got = program.traffic(web1.space, "fetch", web2.ip, 9001, 4_000_000).wait(20)
    check.fact("TCP", "4,000,000 bytes, exact", f"exact: {got.get('exact')}", got.get("exact"))


VARIANTS = (
    ("underlay-ipv6", {"workers": (0,)}, {"family": 6}, reach),
    ("jumbo", {"mtu": 9100}, {"mtu": 8900}, jumbo))


def main():
    for number, (name, lab_options, world_options, body) in enumerate(VARIANTS):
        try:
            with lab.Lab("sluice-variants", captures=shell.BUILD / f"test-logs/{name}",
                         **lab_options) as raised:
                raised.start_product()
                done = Check(number, name, world.World(raised, **world_options)).run(body)
            print(f"ok topology/{name} ({done.line()})" if done.passed
                  else f"not ok topology/{name}: {done.line()}", flush=True)
        except shell.LabError as error:
            print(f"not ok topology/{name}: {error}", flush=True)


if __name__ == "__main__":
    main()
