#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every packet that answers.cpp writes is clean in tshark and is what it should be."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import pcap, shell  # noqa: E402

capture = shell.BUILD / "test-logs" / "answers.pcap"
capture.parent.mkdir(parents=True, exist_ok=True)
filters = shell.run(shell.BUILD / "tests" / "packets" / "answers", capture).stdout.splitlines()

problems = pcap.dirty([capture])
everything = " || ".join(
    f"(frame.number == {number} && {what})" for number, what in enumerate(filters, 1))
right = {int(number) for number, in pcap.fields(capture, everything, "frame.number")}
problems += [f"packet {number} is not: {what}" for number, what in enumerate(filters, 1)
             if number not in right]
print(*problems, f"{len(right)} of {len(filters)} packets as expected, see {capture}", sep="\n")
sys.exit(1 if problems or not filters else 0)
