#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every check of the demo on one lab; a result line each.

Not in the order in which ./demo shows them: from the seventh on, then the first six. So a check
that only works after another one fails here.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import checks, lab, shell, world  # noqa: E402
from lab.check import Check  # noqa: E402


def main():
    try:
        with lab.Lab("sluice-topology", captures=shell.BUILD / "test-logs/topology") as raised:
            raised.start_product()
            made = world.World(raised)
            every = checks.all_checks()
            for number, title, body in every[6:] + every[:6]:
                done = Check(number, title, made).run(body)
                name = f"topology/{number:02}-{title.replace(' ', '-').replace(',', '')}"
                print(f"ok {name} ({done.line()})" if done.passed
                      else f"not ok {name}: {done.line()}", flush=True)
    except shell.LabError as error:
        print(f"not ok topology/lab: {error}")


if __name__ == "__main__":
    main()
