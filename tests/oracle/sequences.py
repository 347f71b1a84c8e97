#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what the product does with sequences of packets against sessions.py's second implementation:
random clouds, changed while packets come and time passes.

gateway_driver.cpp is the product: API fields → compiler → table entries → commit → the worker, whose
clock stands still between two steps. What leaves is compared octet for octet; every drop must have
its one reason. A difference is shrunk before it is printed.

A packet is a dict: where it comes from (`side`, `vni`, `vtep`, `source_mac`, `to_mac`: the inner
destination, `destination_mac`: the same, null for the gateway's own towards `subnet_id`), its tuple
(`source`, `destination`, `protocol`, `source_port`, `destination_port`; of ICMP the identifier, and
type << 8 | code), `ttl`, `tos`, `ecn` (outer), `df`, `id`, `length` and `salt` of its payload; of TCP
`flags`, `seq`, `ack`, `scale`; of SCTP `tag`, `chunk`. A fragment has `cut` (from, to of what is behind
the IP header) and `more`, beside the fields of the whole; an ICMP error `rest` and what it `quotes`.
"""
import argparse
import collections
import json
import random
import sys
import time

import coverage
import octets
import sessions
import shrink
import traffic
import world
from oracle import Driver, Mismatch

BATCH, BATCHES_A_STEP, STEPS_A_CHANGE, STEPS = 16, 3, 2, 40
# Between which the desired state alone does not decide.
SAME = {"spoofed_address": {"spoofed_mac", "spoofed_ip", "unknown_source", "unknown_vtep"},
        "spoofed_vtep": {"spoofed_vtep", "unknown_vtep"}}
# Reasons that explain cannot know: they are about the frame.
OF_THE_FRAME = {"spoofed_address", "spoofed_vtep", "inner_wrong_mac", "unknown_vni", "private_on_uplink"}
POOL = {octets.packed(f"203.0.113.{n}") for n in range(64)} | {octets.packed(octets.UPLINK_ADDRESS)}


class Run:
    """The product and the second implementation side by side."""

    def __init__(self, driver, met, rules):
        self.driver, self.met, self.rules = driver, met, rules
        driver.ask({"op": "reset"})
        self.macs = {}
        self.gateway = sessions.Gateway({kind: {} for kind in world.KINDS}, self.macs)
        self.packets = 0

    def event(self, kind, what):
        getattr(self, kind)(what)

    def apply(self, changes):
        self.macs.update(self.driver.ask({"op": "apply", "changes": changes})["macs"])
        self.gateway.apply(changes)
        for change in changes:
            if change["kind"] == "security-groups" and change["spec"]:
                self.rules.update(coverage.class_of(rule) for rule in change["spec"]["rules"])
        self.classes = {rule["id"]: coverage.class_of(rule)
                        for spec in self.gateway.world["security-groups"].values() for rule in spec["rules"]}

    def advance(self, seconds):
        fate = self.driver.ask({"op": "advance", "seconds": seconds})["fate"]
        late = self.gateway.advance(seconds)
        dropped = [reason for reason, _, count in fate[1] for _ in range(count)]
        if fate[0] or sorted(dropped) != sorted(late):
            raise Mismatch(f"while {seconds} s passed: {fate}, not {late}")
        self.met.update(late)

    def send(self, batch):
        wanted = []
        for p in batch:
            port, frame = octets.arriving(p)
            wanted.append([port, frame.hex(), self.question(p)])
        for p, fate in zip(batch, self.driver.ask({"op": "packets", "packets": wanted})["fates"], strict=True):
            outcome = self.gateway.packet(p, fate)
            wrong = self.differences(p, outcome, fate)
            if wrong:
                raise Mismatch("\n    ".join([*wrong, f"packet: {p}", f"oracle: {outcome}",
                                              f"product: {fate}"]))
            self.note(p, outcome)
            self.packets += 1

    def burst(self, batch):
        """All at once: the same octets and drops altogether; a connection's packets in their order."""
        port = octets.arriving(batch[0])[0]
        fate = self.driver.ask({"op": "burst", "port": port,
                                "frames": [octets.arriving(p)[1].hex() for p in batch]})["fate"]
        outcomes, taken, used = [], {}, set()
        known = set(self.gateway.table)
        for p in batch:
            tuple_of = [p["vni"], list(octets.tuple_of(p))]
            number = next((n for n, one in enumerate(fate[4]) if one[:2] == tuple_of and n not in used), None)
            if number is None:
                own = [fate[0], fate[1], fate[2], None, [], []]
            else:
                used.add(number)
                own = [*fate[:4], [fate[4][number]], [one for one in fate[5] if one[3] == number]]
            outcomes.append(self.gateway.packet(p, own, taken))
            wrong = self.gateway.wrong
            if wrong:
                raise Mismatch("\n    ".join([*wrong, f"packet of a burst: {p}", f"oracle: {outcomes[-1]}"]))
        if len(used) != len(fate[4]):
            raise Mismatch(f"{len(fate[4])} connections opened by a burst, not {len(used)}: {fate[4]}")
        self.gateway.limits.make_room_in_vain(one for one in fate[5] if one[3] == len(fate[4]))
        self.packets += len(batch)
        self.met["burst"] += 1
        wrong = self.differences_of_burst(batch, outcomes, fate, known)
        if wrong:
            raise Mismatch("\n    ".join([*wrong, f"a burst of {len(batch)} from {batch[0]}",
                                          f"oracle: {dict(collections.Counter((o.verdict, o.reason) for o in outcomes))}",
                                          f"product: {len(fate[0])} left, {fate[1:]}"]))
        for p, outcome in zip(batch, outcomes):
            self.note(p, outcome)

    def restart(self, _=None):
        """Only the tables outlive it."""
        self.driver.ask({"op": "reset"})
        self.macs.clear()
        everything = [{"kind": kind, "id": key, "spec": spec}
                      for kind, specs in self.gateway.world.items() for key, spec in specs.items()]
        self.macs.update(self.driver.ask({"op": "apply", "changes": everything})["macs"])
        self.driver.ask({"op": "restarted"})
        self.gateway.restart()
        self.met["restart"] += 1

    def check(self, _=None):
        """Both hold the same connections."""
        flows = self.driver.ask({"op": "flows"})
        if flows["wrong"]:
            raise Mismatch("; ".join(flows["wrong"]))
        theirs = {(a, tuple(there), b, tuple(back)) for a, there, b, back in flows["live"]}
        ours = {(*c.keys[0], *c.keys[1]) for c in self.gateway.live()}
        unanswered = sum(connection.unanswered() for connection in self.gateway.live())
        if flows["unanswered"] != unanswered:
            raise Mismatch(f"{flows['unanswered']} connections count as unanswered, not {unanswered}")
        ports = {mapping.key for c in self.gateway.live() for mapping in c.mappings}
        if flows["ports"] != len(ports):
            raise Mismatch(f"the gauge says {flows['ports']} ports, not {len(ports)}: {ports}")
        if theirs != ours:
            raise Mismatch(f"only in the product: {theirs - ours}; only in the oracle: {ours - theirs}")

    def drain(self):
        """All is removed, and time passes: nothing is left."""
        kinds = ("nat-gateways", "elastic-ips", "external-pools", "route-tables", "endpoints", "subnets",
                 "security-groups", "prefix-lists", "vpcs", "hosts")
        for key, spec in self.gateway.world["route-tables"].items():
            if spec["routes"]:
                self.apply([{"kind": "route-tables", "id": key, "spec": {**spec, "routes": []}}])
        for kind in kinds:
            self.apply([{"kind": kind, "id": key, "spec": None} for key in self.gateway.world[kind]])
        self.advance(7441)  # for connections
        self.advance(300)  # for ports of NAT gateways that rest
        self.check()
        left = self.driver.ask({"op": "leftovers"})["left"]
        if left:
            raise Mismatch("left when all is gone: " + ", ".join(left))

    # --- comparing -------------------------------------------------------------------------------

    def question(self, p):
        """For one in four packets: what would `explain` say?"""
        if p["salt"] % 4 or "quotes" in p or "more" in p or p["side"] == "underlay" and p.get("subnet_id") is None:
            return None
        source, destination, protocol, source_port, destination_port = octets.tuple_of(p)
        question = {"source_vni": p["vni"], "source": source, "destination": destination,
                    "protocol": protocol, "source_port": source_port,
                    "destination_port": destination_port}
        if protocol in (1, 58):
            question |= {"icmp_type": destination_port >> 8, "icmp_code": destination_port & 0xFF}
        return question

    def differences(self, p, outcome, fate):
        sent, dropped, _, explained, _, _ = fate
        sent = [(port, octets.without_choice(port, bytes.fromhex(frame))) for port, frame in sent]
        wrong = self.leaks(sent)
        all_of_it = [outcome, *outcome.more]
        reasons = [one.reason for one in all_of_it if one.verdict == "drop"]
        found = [reason for reason, _, count in dropped for _ in range(count)]
        if not self.same(reasons, found):
            wrong.append(f"dropped for {found or 'nothing'}, not for {reasons or 'nothing'}")
        wrong += self.gateway.wrong
        frames = [frame for one in all_of_it for frame in one.frames]
        if any(one.new_identification for one in all_of_it):
            frames = [octets.without_identification(*frame) for frame in frames]
            sent = [octets.without_identification(*frame) for frame in sent]
        for frame in frames:
            if frame not in sent:
                wrong.append("other octets left")
                break
            sent.remove(frame)
        wrong += self.untold(p, outcome, sent)
        decision = outcome.decision
        if explained and decision and not outcome.reopens and decision.reason not in OF_THE_FRAME and self.own(p, decision):
            self.met["explained"] += 1
            if explained[1] not in SAME.get(decision.reason, {decision.reason}) \
                    or explained[0] != decision.verdict:
                wrong.append(f"explain says {explained}, not {[decision.verdict, decision.reason]}")
        return wrong

    def differences_of_burst(self, batch, outcomes, fate, known):
        sent = [(port, octets.without_choice(port, bytes.fromhex(frame))) for port, frame in fate[0]]
        wrong = self.leaks(sent)
        reasons = [one.reason for one in outcomes if one.verdict == "drop"]
        found = [reason for reason, _, count in fate[1] for _ in range(count)]
        if not self.same(reasons, found):
            wrong.append(f"dropped for {collections.Counter(found)}, not for {collections.Counter(reasons)}")
        plain = [octets.without_identification(*frame) for frame in sent]
        last = {}  # connection and direction → where its last frame was
        for p, outcome in zip(batch, outcomes):
            for frame in outcome.frames:
                frame = octets.without_identification(*frame)
                if frame not in plain:
                    wrong.append("other octets left")
                    return wrong
                at = plain.index(frame)
                plain[at] = None
                whose = p["vni"], octets.tuple_of(p)
                # A new connection's later packets may be found while others wait for its first walk.
                if at < last.get(whose, 0) and (outcome.opened is None and whose in known or len(batch) < 32):
                    wrong.append("packets of a connection overtook each other")
                last[whose] = at
        left = sum(frame is not None for frame in plain)
        if left > sum(bool(outcome.told) for outcome in outcomes):
            wrong.append(f"{left} frames too many left")
        return wrong

    @staticmethod
    def same(wanted, found):
        """Each reason once, in any order."""
        left, rest = collections.Counter(found), collections.Counter(wanted)
        left, rest = left - rest, rest - left
        for reason in rest.elements():
            match = next((one for one in left.elements() if one in SAME.get(reason, ())), None)
            if match is None:
                return False
            left[match] -= 1
        return not +left

    def own(self, p, decision):
        """The source address is its endpoint's own: then explain knows who sends."""
        return p["side"] == "uplink" or any(
            p["source"] in (spec["ip"], spec["ipv6"]) and spec["mac"] == p["source_mac"]
            for spec in self.gateway.world["endpoints"].values())

    def leaks(self, sent):
        """Whatever else is expected: what must never leave."""
        wrong = []
        for port, frame in sent:
            if port == octets.UPLINK and frame[12:14] == b"\x08\x00" and frame[26:30] not in POOL:
                wrong.append(f"a private source on the uplink: {frame.hex()}")
            if port == octets.UNDERLAY:
                vni, to = int.from_bytes(frame[46:49], "big"), frame[50:56]
                if not any(octets.mac(spec["mac"]) == to and self.gateway.policy.vni_of(key) == vni
                           for key, spec in self.gateway.world["endpoints"].items()):
                    wrong.append(f"a packet in a VPC that it does not belong to: {frame.hex()}")
        return wrong

    def untold(self, p, outcome, sent):
        """What is wrong with the error that the sender got."""
        if not sent:
            return []  # it may be limited; and an error is never owed
        if len(sent) != 1 or not outcome.told:
            return [f"{len(sent)} frames too many left"]
        port, frame = sent[0]
        if port == octets.UNDERLAY:
            frame = frame[octets.OUTER:]
        packet = frame[14:]
        v6 = ":" in p["source"]
        message = packet[40 if v6 else 20:]
        # As it came, or with the outer header's mark of congestion.
        arrived = [octets.network(p, octets.tuple_of(p), p["ttl"], tos)
                   for tos in (p["tos"], self.gateway.congestion(p) or 0)]
        quoted = message[8:]
        wrong = []
        if tuple(message[:2]) != outcome.told:
            wrong.append(f"an ICMP error of {tuple(message[:2])}, not {outcome.told}")
        if packet[24 if v6 else 16:][:16 if v6 else 4] != octets.packed(p["source"]):
            wrong.append("an ICMP error to somebody else")
        if len(quoted) < min(28, len(arrived[0])) or len(packet) > (1280 if v6 else 576) or \
                quoted not in [one[:len(quoted)] for one in arrived]:
            wrong.append("an ICMP error with another quote")
        head = packet[8:40] + len(message).to_bytes(4, "big") + b"\0\0\0\x3a" if v6 else b""
        if octets.checksum(head + message) or not v6 and octets.checksum(packet[:20]):
            wrong.append("an ICMP error with a wrong checksum")
        return wrong

    def note(self, p, outcome):
        met = self.met
        for one in outcome.more:
            self.note(p, one)
        if outcome.decision:
            for rule in outcome.decision.egress_rules | outcome.decision.ingress_rules:
                self.rules["decided", self.classes[rule]] += 1
        met[outcome.reason if outcome.verdict == "drop" else outcome.verdict] += 1
        if outcome.verdict == "forward":
            met["ICMP error"] += "quotes" in p
            met["fragment"] += "more" in p
            met[f"protocol {p['protocol']}"] += 1
            met["IPv6"] += ":" in p["source"]
            met["MSS clamped"] += outcome.clamped
            if outcome.opened:
                met["through a NAT gateway"] += bool(outcome.decision.nat)
                if outcome.decision.mapping:
                    met["from a tenant to a mapped port" if p["vni"] else "from outside to a mapped port"] += 1
                met["bridged"] += outcome.decision.bridged
                met["hairpin"] += p["side"] == "underlay" and outcome.decision.destination_vni != 0 \
                    and outcome.decision.leaves.source != p["source"]
            met["to the uplink"] += outcome.frames[0][0] == octets.UPLINK
            met["from the uplink"] += p["side"] == "uplink"
            met["fragmented"] += len(outcome.frames) > 1


def play(driver, met, events):
    """A recorded run; where it differs, a Mismatch."""
    run = Run(driver, met, collections.Counter())
    for kind, what in events:
        run.event(kind, what)
        run.check()
    return run


def run_seed(driver, seed, met, rules, events):
    """A new cloud; `events` collects what happens, so that it can be played again."""
    rng = random.Random(seed)
    cloud = world.World(seed, generous=rng.random() < 0.8, nat=rng.random() < 0.5,
                        settings=rng.random() < 0.5)
    run = Run(driver, met, rules)

    def event(kind, what):
        events.append((kind, what))
        run.event(kind, what)

    event("apply", cloud.take_changes())
    source = traffic.Traffic(cloud, run.gateway, rng)
    for step in range(STEPS):
        for _ in range(BATCHES_A_STEP):
            event("send", [source.packet() for _ in range(BATCH)])
        if rng.random() < 0.2:
            event("burst", source.burst())
        run.check()
        if rng.random() < 0.04:
            event("restart", None)
            source.waiting.clear()
        event("advance", source.step())
        if step % STEPS_A_CHANGE == 0:
            cloud.mutate()
            event("apply", cloud.take_changes())
            gone = cloud.forget_endpoint() if rng.random() < 0.2 else None
            if gone:
                event("apply", cloud.take_changes())
                cloud.recreate_endpoint(gone)
                event("apply", cloud.take_changes())
    run.drain()
    met["source port translated"] += run.gateway.ported
    met["evicted"] += run.gateway.evicted
    met["picked up"] += run.gateway.picked_up
    return run.packets


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--packets", type=int, default=100_000, help="at least so many")
    parser.add_argument("--seconds", type=float, default=3600, help="but no longer than this")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--no-coverage", action="store_true", help="do not ask that everything was met")
    parser.add_argument("--no-shrinking", action="store_true")
    options = parser.parse_args()

    driver, met, rules = Driver(options.driver), collections.Counter(), collections.Counter()
    started, judged = time.monotonic(), 0
    seed = first = options.first_seed if options.seed is None else options.seed
    events = []
    try:
        while True:
            events.clear()
            judged += run_seed(driver, seed, met, rules, events)
            seed += 1
            if (seed - first) % 200 == 0:
                print(f"{judged} packets, {time.monotonic() - started:.0f} s; go on with --first-seed {seed}",
                      flush=True)
            if options.seed is not None or judged >= options.packets or \
                    time.monotonic() - started > options.seconds:
                break
        cells = driver.ask({"op": "cells"})["cells"]
    except Mismatch as mismatch:
        print(f"mismatch: seed {seed}, after {judged} packets: {mismatch}")
        if not options.no_shrinking:
            shrink.report(lambda some: play(driver, collections.Counter(), some), events)
        print(f"again: tests/oracle/sequences.py --driver {options.driver} --seed {seed}")
        return 1
    finally:
        driver.close()
    elapsed = time.monotonic() - started
    wrong = coverage.missing(met, rules, cells)
    print(", ".join(f"{name} {count}" for name, count in met.most_common()))
    print(f"{judged} packets in {seed - first} clouds, seeds {first} to {seed - 1}: "
          f"{elapsed / judged * 1e6:.0f} µs a packet")
    if wrong and not options.no_coverage and options.seed is None:
        print("; ".join(wrong))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
