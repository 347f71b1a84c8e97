#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the product's decisions against policy.py's, over random clouds, changes and packets.

The driver (driver.cpp) is the product: API fields → compiler → table entries → walk. Each seed is a
cloud of its own that is changed several times: incremental compilation is judged as well, and whether
a commit marks the zones of every connection that it concerns.
"""
import argparse
import collections
import json
import random
import subprocess
import sys
import time

import packets
import policy
import world

ROUNDS, CHANGES, PACKETS = 12, 3, 60
# Reasons between which the desired state alone does not decide.
SAME = {"spoofed_mac": "spoofed_address", "spoofed_ip": "spoofed_address",
        "unknown_source": "spoofed_address", "unknown_vtep": "spoofed_vtep"}
# A run that never met one of these would prove little.
MUST_MEET = {
    "forward", "answer", "egress_no_rule", "egress_denied", "ingress_no_rule", "ingress_denied",
    "no_route", "route_blackhole", "unknown_destination", "no_elastic_ip", "unknown_public_address",
    "spoofed_address", "spoofed_vtep", "inner_wrong_mac", "unknown_vni", "roce_not_translated",
    "source_check", "private_on_uplink", "private_destination", "gateway_protocol", "bridged", "hairpin", "uplink",
    "ipv6"}


class Mismatch(Exception):
    pass


class Driver:
    """The product in a process of its own, a JSON text a line each way."""

    def __init__(self, program):
        self.program = program
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            status = self.process.wait(10)
            self.start()  # for whoever plays it again
            raise Mismatch(f"the driver ended with status {status}")
        answer = json.loads(answer)
        if "error" in answer:
            raise Mismatch(f"the product refused what the API admits: {answer['error']}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def leaves(decision):
    t = decision.leaves
    return [t.source, t.destination, t.protocol, t.source_port, t.destination_port]


def meters(pairs):
    return sorted(tuple(pair) for pair in pairs)


def differences(want, got, packet):
    """Names of what differs between a Decision and the driver's answer."""
    found = []

    def hold(name, expected, actual):
        if expected != actual:
            found.append(f"{name}: {actual!r}, not {expected!r}")

    hold("verdict", want.verdict, got["verdict"])
    hold("reason", want.reason, SAME.get(got["reason"], got["reason"]))
    for name in ("egress", "ingress"):
        rules = getattr(want, f"{name}_rules")
        named = got["decided_by" if want.reason == f"{name}_denied" else f"{name}_rule"]
        if rules and want.reason in ("none", f"{name}_denied") and named not in rules:
            found.append(f"{name} rule {named} decided, not one of {sorted(rules)}")
    if found or want.verdict != "forward":
        return found
    hold("leaves", leaves(want), got["leaves"])
    hold("destination VNI", want.destination_vni, got["destination_vni"])
    hold("destination", want.destination, got["destination"])
    hold("meters", meters(want.meters), meters(got["meters"]))
    # A reply meets the same limits from their other side.
    back = [(elastic, "in" if way == "out" else "out") for elastic, way in want.meters]
    hold("meters of the reply", meters(back), meters(got["reply_meters"]))
    hold("bridged", want.bridged, got["bridged"])
    if want.destination_vni:
        hold("VTEP", want.vtep, got["vtep"])
        hold("inner destination MAC", want.inner_destination_mac, got["inner_destination_mac"])
    return found


def note(met, decision, packet):
    met[decision.reason if decision.verdict == "drop" else decision.verdict] += 1
    if decision.verdict == "forward":
        met["bridged"] += decision.bridged
        met["ipv6"] += ":" in packet["source"]
        met["uplink"] += not decision.destination_vni
        met["hairpin"] += packet["side"] == "underlay" and decision.destination_vni != 0 \
            and decision.leaves.source != packet["source"]


def run_seed(driver, seed, rounds, met):
    """Judged packets; raises Mismatch with everything needed to see it again."""
    cloud = world.World(seed)
    driver.ask({"op": "reset"})
    rng = random.Random(seed + 1)
    judged, done = 0, ["built"]
    for turn in range(rounds):
        unmarked = driver.ask({"op": "apply", "changes": cloud.take_changes()})["unmarked"]
        if unmarked:
            raise Mismatch("\n    ".join([
                f"seed {seed}, round {turn} (changes: {', '.join(done[-CHANGES:])})",
                "connections would go on as they were:", *map(str, unmarked)]))
        source, truth = packets.Packets(cloud, rng), policy.Policy(cloud)
        batch = [source.packet() for _ in range(PACKETS)]
        plans = driver.ask({"op": "walk", "packets": batch})["plans"]
        for packet, plan in zip(batch, plans, strict=True):
            decision = truth.decide(packet)
            note(met, decision, packet)
            wrong = differences(decision, plan, packet)
            if wrong:
                raise Mismatch("\n    ".join([
                    f"seed {seed}, round {turn} (last changes: {', '.join(done[-CHANGES:])})",
                    *wrong, f"packet: {packet}", f"oracle: {decision}", f"product: {plan}"]))
        judged += len(batch)
        done += [cloud.mutate() for _ in range(CHANGES)]
    return judged


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--seconds", type=float, default=30, help="go on with new seeds this long")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--no-coverage", action="store_true", help="do not ask that everything was met")
    options = parser.parse_args()

    driver, met = Driver(options.driver), collections.Counter()
    started, judged = time.monotonic(), 0
    seed = options.first_seed if options.seed is None else options.seed
    first = seed
    try:
        while True:
            judged += run_seed(driver, seed, ROUNDS, met)
            seed += 1
            if options.seed is not None or time.monotonic() - started > options.seconds:
                break
    except Mismatch as mismatch:
        print(f"mismatch: {mismatch}")
        print(f"again: tests/oracle/oracle.py --driver {options.driver} --seed {seed}")
        return 1
    finally:
        driver.close()
    print(f"{judged} packets in {seed - first} clouds, seeds {first} to {seed - 1}: "
          + ", ".join(f"{name} {count}" for name, count in met.most_common()))
    missing = MUST_MEET - {name for name, count in met.items() if count}
    if missing and not options.no_coverage and options.seed is None:
        print(f"never met: {', '.join(sorted(missing))}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
