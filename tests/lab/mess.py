#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A bad wire: frames between two devices, some of them lost, doubled or late.

  mess.py LEFT RIGHT --seed N --loss P --double P --late P

Only IP packets are touched, so that neighbours stay resolved. What is late is overtaken by what comes
within the next milliseconds. Drawn from a seeded generator: the same seed gives the same sequence of
fates. Says `ready`, ends on SIGTERM and prints what it did as one JSON line.
"""
import argparse
import heapq
import json
import random
import select
import signal
import socket
import time

SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23  # Linux; the socket module does not name them
LATE = 0.0005, 0.005         # seconds, at least and at most


class Wire:
    def __init__(self, args):
        self.args, self.random = args, random.Random(args.seed)
        self.count = {"passed": 0, "lost": 0, "doubled": 0, "late": 0, "full": 0}
        self.late, self.number = [], 0
        self.ends = [self.open(args.left), self.open(args.right)]

    @staticmethod
    def open(device):
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            opened.setsockopt(socket.SOL_SOCKET, option, 8 << 20)
        opened.bind((device, 3))
        opened.setblocking(False)
        return opened

    def send(self, end, frame):
        try:
            end.send(frame)
            self.count["passed"] += 1
        except (BlockingIOError, OSError):
            self.count["full"] += 1

    def pass_on(self, end, frame):
        if frame[12:14] not in (b"\x08\x00", b"\x86\xdd"):
            return self.send(end, frame)
        drawn = self.random.random()
        for fate, part in (("lost", self.args.loss), ("doubled", self.args.double),
                           ("late", self.args.late)):
            if drawn < part:
                self.count[fate] += 1
                break
            drawn -= part
        else:
            return self.send(end, frame)
        if fate == "late":
            self.number += 1
            heapq.heappush(self.late, (time.monotonic() + self.random.uniform(*LATE), self.number,
                                       end, frame))
        elif fate == "doubled":
            self.send(end, frame)
            self.send(end, frame)

    def run(self):
        while not stopping:
            wait = min(0.2, self.late[0][0] - time.monotonic()) if self.late else 0.2
            for end in select.select(self.ends, [], [], max(wait, 0))[0]:
                other = self.ends[end is self.ends[0]]
                for _ in range(64):
                    try:
                        self.pass_on(other, end.recv(65536))
                    except BlockingIOError:
                        break
            while self.late and self.late[0][0] <= time.monotonic():
                _, _, end, frame = heapq.heappop(self.late)
                self.send(end, frame)


stopping = False


def stop(*_):
    global stopping
    stopping = True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("left")
    parser.add_argument("right")
    parser.add_argument("--seed", type=int, default=1)
    for name in ("loss", "double", "late"):
        parser.add_argument(f"--{name}", type=float, default=0.0)
    signal.signal(signal.SIGTERM, stop)
    wire = Wire(parser.parse_args())
    print("ready", flush=True)
    wire.run()
    print(json.dumps(wire.count), flush=True)


if __name__ == "__main__":
    main()
