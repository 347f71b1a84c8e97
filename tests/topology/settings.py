#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Settings of VPCs and groups, from the API to real machines."""
import pathlib
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import lab, netns, program, shell, world  # noqa: E402
from lab.check import Check  # noqa: E402
from lab.checks.c04_rules import closed, identity, word  # noqa: E402

MOST, TRIED = 5, 8


def connections(tenant, address, port, count):
    """As many connections, left open: those that came to be."""
    made = []
    for _ in range(count):
        one = netns.within(tenant.space, socket.socket)
        one.settimeout(0.7)
        try:
            one.connect((address, port))
            made.append(one)
        except OSError:
            one.close()
    return made


def limits(check, made):
    """A VPC's limit of each endpoint's connections holds at once, is shown, and can be taken back."""
    red = made.red
    web1, web2 = red.tenants["web1"], red.tenants["web2"]
    with program.traffic(web2.space, "echo", 8080):
        red.api.update("vpcs", red.vpc["id"], limits={"endpoint_connections": MOST})
        opened = connections(web1, web2.ip, 8080, TRIED)
        check.equal(f"connections of {TRIED}", MOST, len(opened))
        shown = red.api.list("limits", endpoint_id=red.endpoints["web1"]["id"])[0]["connections"]
        check.fact("shown", f"{MOST} of {MOST}, some refused", str(shown),
                   shown["used"] == shown["limit"] == MOST and shown["refused"] > 0)
        red.api.update("vpcs", red.vpc["id"], limits=None)
        opened += connections(web1, web2.ip, 8080, TRIED - MOST)
        check.equal("without it", TRIED, len(opened))
        shown = red.api.list("limits", vpc_id=red.vpc["id"])[0]["connections"]
        check.fact("of the VPC", f"{TRIED} or more", str(shown), shown["used"] >= TRIED)
        for one in opened:
            one.close()


def persistence(check, made):
    """persist_established: an established connection survives its rule, a new one does not begin; and turned off
    it ends what has no rule any more."""
    red = made.red
    web1, web2 = red.tenants["web1"], red.tenants["web2"]
    for name in ("kept", "cut", "turned off"):
        group = red.group(name)
        red.api.update("security-groups", group["id"], persist_established=name != "cut")
        rule = red.add_rule(group, direction="ingress", action="allow", family="ipv4",
                            protocol="tcp", port_min=8080, port_max=8080)
        red.join("web2", group)
        with program.traffic(web2.space, "echo", 8080), \
                program.traffic(web1.space, "talk", "persist", web2.ip, 8080, "--seconds", 3) as talk:
            time.sleep(0.7)
            red.remove_rule(group, identity(rule))
            fresh = program.connects(web1.space, web2.ip, 8080, 0.7)
            if name == "turned off":
                red.api.update("security-groups", group["id"], persist_established=False)
            ended = talk.wait(15)
        done = f"{ended['rounds']} rounds, {ended['error'] or 'to its end'}; new: {word(fresh)}"
        if name == "kept":
            check.fact("the rule goes, the group persists", "it goes on to its end, no new one",
                       done, not ended["error"] and ended["rounds"] > 20 and closed(fresh))
        elif name == "cut":
            check.fact("the rule goes, the group does not", "cut, no new one", done,
                       ended["error"] and closed(fresh))
        else:
            check.fact("the rule goes, then the group persists no more", "goes on, then cut, no new one", done,
                       ended["error"] and ended["rounds"] > 9 and closed(fresh))
    red.join("web2", red.default_group())


CASES = (limits, persistence)


def main():
    try:
        with lab.Lab("sluice-settings", captures=shell.BUILD / "test-logs/settings") as raised:
            raised.start_product()
            made = world.World(raised)
            for number, case in enumerate(CASES):
                name = "topology/settings/" + case.__name__
                done = Check(number, name, made).run(case)
                print(f"ok {name} ({done.line()})" if done.passed
                      else f"not ok {name}: {done.line()}", flush=True)
    except shell.LabError as error:
        print(f"not ok topology/settings: {error}", flush=True)


if __name__ == "__main__":
    main()
