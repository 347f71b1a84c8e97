#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/packet-fates.md from the cases, or with --check says whether it is up to date."""
import pathlib
import re
import sys

import runner

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs/packet-fates.md"
HEAD = """# What becomes of odd packets

Every packet that the gateway receives has one fate: it is forwarded, answered, or dropped under
exactly one reason, which is counted (`sluice_drops_total{reason}`, `sluicectl drops`). Below is
what happens to packets that are not ordinary; each row is a case under `tests/packets/` that runs
against a real gateway, and this page is made from them (`tests/packets/fates.py`).

| packet | fate | reason counted | case |
|---|---|---|---|
"""
TAIL = """
## All reasons

| reason | meaning |
|---|---|
"""


def page():
    rows = []
    for name, case in runner.cases([]):
        drops = case.get("drops", {})
        reasons = [drops] if isinstance(drops, str) else list(drops)
        named = ", ".join(f"`{reason}`" for reason in reasons) or "none"
        rows.append(f"| {case['subject']} | {case['fate']} | {named} | `{name}` |\n")
    source = (ROOT / "dataplane/wire/drop_reason.hpp").read_text(encoding="utf-8")
    reasons = re.findall(r'X\((\w+),\s*"([^"]*)"\)', source)
    return HEAD + "".join(rows) + TAIL + "".join(
        f"| `{name}` | {sentence} |\n" for name, sentence in reasons if name != "name")


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == page() else 1)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(page(), encoding="utf-8")
