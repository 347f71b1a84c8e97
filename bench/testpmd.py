# SPDX-License-Identifier: Apache-2.0
"""DPDK's own forwarder. What it reaches is the limit of packet input and output on this machine:
every other program pays the same and its own work."""
import re
import subprocess
import time

import machine
from measurement import Interval, Program
from sample_check import Expected


class Testpmd(Program):
    name, scenario = "testpmd-macswap", "macswap"

    def start(self):
        self.process = machine.Process(
            # Its output is a file: without stdbuf an answer would stay in its buffer.
            ["stdbuf", "-oL", "dpdk-testpmd", "-l", f"{machine.CONTROL_CORE},{machine.MEASURED_CORE}", "--in-memory",
             "--no-pci", "--no-telemetry", "--vdev", self.device, "--", "--interactive",
             "--forward-mode=macswap", "--nb-cores=1", "--no-mlockall", "--no-lsc-interrupt",
             f"--total-num-mbufs={self.buffers}"],
            f"{self.folder}/testpmd.log", stdin=subprocess.PIPE, text=True, bufsize=1)
        self.process.wait_until(lambda: "testpmd> " in self.process.text(), 30, "its prompt")
        self.command("start")

    def command(self, text):
        self.process.popen.stdin.write(text + "\n")

    def counters(self):
        """(time, received, sent)"""
        seen = len(self.process.text())
        asked = time.monotonic()
        self.command("show port stats 0")
        answer = lambda: re.search(r"RX-packets: (\d+)[\s\S]*TX-packets: (\d+)[\s\S]*Tx-pps",
                                   self.process.text()[seen:])
        self.process.wait_until(answer, 10, "an answer to 'show port stats'")
        return asked, *(int(number) for number in answer().groups())

    def count(self, seconds):
        before = self.counters()
        time.sleep(seconds)
        after = self.counters()
        # A port without an output file counts what it was given as sent.
        return Interval(after[0] - before[0], after[1] - before[1], after[2] - before[2])

    def expected(self, flow, sent):
        outer, vni, inner = sent
        return Expected(outer.source_mac, outer.source, outer.destination, vni, inner)

    def stop(self):
        if self.process:
            self.process.stop()
