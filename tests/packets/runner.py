#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Packet cases as data, against a real gateway: one folder a case, one result line a case.

case.toml:
  subject   what kind of packet, for docs/packet-fates.md
  fate      what becomes of it, in words
  from      host1 (default), host2, rogue, internet
  send      a Python expression in the words of words.py: one frame or a list of frames.
            `port` is a number that no other case uses.
  sessions  lines for [sessions] of the gateway's configuration: it is a gateway of the case's own
  vpc       {setting: value} of the VPC; likewise
  rest      seconds to wait before, for limits by time
  drops     {reason: packets}; all of `send` where `out` is empty and this names one reason as text
  out       [{to, frame}]: what leaves, in any order; `frame` an expression, on the underlay the
            inner one. `frames` instead: a list. `match`: only these octets, [[offset, expr], …]
"""
import argparse
import pathlib
import sys
import time
import tomllib

import bench
import words
from lab import shell

HERE = pathlib.Path(__file__).parent


def cases(names):
    for path in sorted(HERE.glob("*/case.toml")):
        if not names or path.parent.name in names:
            with open(path, "rb") as opened:
                yield path.parent.name, tomllib.load(opened)


def evaluate(expression, port):
    # The expressions are this repository's own; they see the words and nothing else of ours.
    return eval(f"({expression}\n)", {**vars(words), "port": port})


def as_list(value):
    return [value] if isinstance(value, bytes) else list(value)


def expected_outputs(case, port):
    """[(where, match)] with match(vni, frame) → whether it is this one."""
    for item in case.get("out", []):
        if "match" in item:
            parts = [(offset, as_list(evaluate(text, port))[0]) for offset, text in item["match"]]
            wanted = [lambda _, frame, parts=parts: all(
                frame[offset:offset + len(part)] == part for offset, part in parts)]
        else:
            text = item.get("frames", item.get("frame"))
            wanted = [lambda _, frame, whole=whole: frame == whole
                      for whole in as_list(evaluate(text, port))]
        for match in wanted:
            yield item["to"], match


def judge(case, port, sent, drops, outputs):
    """What is wrong, in words; nothing if all is as the case says."""
    wanted = case.get("drops", {})
    if isinstance(wanted, str):
        wanted = {wanted: sent}
    wrong = []
    # What the machines on the underlay say to each other by multicast is none of the case's.
    if "outer_not_for_us" not in wanted:
        drops = {reason: count for reason, count in drops.items() if reason != "outer_not_for_us"}
    if drops != wanted:
        wrong.append(f"dropped {drops or 'nothing'}, expected {wanted or 'nothing'}")
    left = list(outputs)
    for where, match in expected_outputs(case, port):
        found = next((item for item in left if item[0] == where and match(item[1], item[2])), None)
        if found:
            left.remove(found)
        else:
            wrong.append(f"a frame to {where} is missing")
    for where, vni, frame in left:
        wrong.append(f"unexpected to {where} (VNI {vni}): {frame.hex()}")
    return "; ".join(wrong)


def spread(frame, number):
    """The frame with another outer source port, by which receive queues are chosen."""
    tunnelled = frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[36:38] == b"\x12\xb5"
    return frame[:34] + (49152 + number).to_bytes(2, "big") + frame[36:] if tunnelled else frame


def run_case(made, case, port, workers=1):
    frames = as_list(evaluate(case["send"], port))
    if workers > 1:
        frames = [spread(frame, (port + number * 7919) % 16384) for number, frame in enumerate(frames)]
    time.sleep(case.get("rest", 0))
    made.drain()
    before = made.drops()
    for frame in frames:
        made.wires[case.get("from", "host1")].send(frame)
    expected = max(len(frames), len(list(expected_outputs(case, port))) + (
        len(frames) if isinstance(case.get("drops"), str) else sum(case.get("drops", {}).values())))
    drops, outputs = bench.settle(made, before, expected)
    return judge(case, port, len(frames), drops, outputs)


def warm_up(made):
    """Until the gateway has resolved both hosts and the uplink's next hop."""
    def through():
        made.drain()
        for wire, frame in (
                ("host1", words.tunnel(words.to_b(words.datagram(999)))),
                ("host2", words.tunnel(words.to_b(words.datagram(
                    998, words.A, words.B), words.MAC_B, words.MAC_A), words.HOST2)),
                ("host1", words.tunnel(words.to_c(words.datagram(997, words.INTERNET))))):
            made.wires[wire].send(frame)
        _, outputs = bench.settle(made, made.drops(), 3, 0.3)
        return {where for where, _, _ in outputs} >= {"host1", "host2", "internet"}
    shell.wait_until(through, 10, "the gateway forwards to both hosts and the internet", step=0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*")
    parser.add_argument("--driver", default="net_af_packet", help="of the gateway's ports (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="each frame may come to another (%(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="how often each case runs (%(default)s)")
    args = parser.parse_args()
    group = "packets" if args.driver == "net_af_packet" else f"packets/{args.driver}"
    if args.workers > 1:
        group += f"/{args.workers}-workers"
    failed = False
    gateways = {}  # the cases by the configuration that they want
    every = [(name, case) for _ in range(args.rounds) for name, case in cases(args.case)]
    for number, (name, case) in enumerate(every):
        own = (case.get("sessions", ""), tuple(sorted(case.get("vpc", {}).items())))
        gateways.setdefault(own, []).append((10000 + number * 100, name, case))
    try:
        for (sessions, vpc), wanted in gateways.items():
            with bench.Bench(tuple(range(args.workers)), sessions, args.driver, dict(vpc)) as made:
                warm_up(made)
                told = {}  # rounds of a case are one result
                for port, name, case in wanted:
                    wrong = run_case(made, case, port, args.workers)
                    failed |= bool(wrong)
                    told[name] = told.get(name, 0) + 1
                    if wrong or told[name] == args.rounds:
                        print(f"not ok {group}/{name}: {wrong}" if wrong else f"ok {group}/{name}",
                              flush=True)
                    if wrong:
                        told[name] = args.rounds  # said once
                    if not made.gateway.daemon.running:
                        raise shell.LabError(
                            f"sluiced ended: {made.gateway.daemon.last_words()}")
                if args.workers > 1:
                    walks = made.walks()
                    idle = len(walks) != args.workers or not all(walks.values())
                    failed |= idle
                    print(f"{'not ok' if idle else 'ok'} {group}/shared: first packets judged by "
                          f"{walks}", flush=True)
    except shell.LabError as error:
        failed = True
        print(f"not ok {group}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
