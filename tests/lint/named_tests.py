#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every test that docs/semantics.md names exists, by the beginning of its name (references.py)."""
import references
import sources

PAGE = "docs/semantics.md"

problems, total = [], 0
for number, cells, _ in references.rows(PAGE):
    wrong, _, count = references.held_by(cells[-1])
    total += count
    problems += [f"{PAGE}:{number}: {one}" for one in wrong]
sources.report("named_tests", problems, f"{total} tests named in {PAGE}")
