#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a result line for each test of a meson test log (testlog.json, one object a line).

usage: meson_results.py PREFIX LOG
A failed test's own output follows its line, indented, at most 60 lines of it.
"""
import json
import sys


def main():
    prefix, path = sys.argv[1:]
    with open(path, encoding="utf-8") as log:
        tests = [json.loads(line) for line in log if line.strip()]
    for test in tests:
        name = f"{prefix}/{test['name'].split(' / ')[-1]}"
        if test["result"] in ("OK", "EXPECTEDFAIL"):
            print(f"ok {name} ({test['duration']:.2f} s)")
            continue
        print(f"not ok {name}: {test['result'].lower()}, status {test['returncode']}")
        output = (test.get("stdout", "") + test.get("stderr", "")).splitlines()
        for line in output[-60:]:
            print("    " + line)


if __name__ == "__main__":
    main()
