#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every test that docs/semantics.md names exists, by the beginning of its name.

The last column of each row: `folder/name_test`: a TEST_CASE's beginning; a further one of the
same file; `topology/name`: a function's beginning; packet cases `pattern`; demo check N.
"""
import fnmatch
import glob
import re

import sources

PAGE = "docs/semantics.md"
CASE = re.compile(r'\b(?:TEST_CASE|TEST_CASE_METHOD|SCENARIO)\s*\(\s*(?:\w+\s*,\s*)?((?:"(?:[^"\\]|\\.)*"\s*)+)')


def cases(file):
    """The names of a test file's cases; literals that stand beside each other are one."""
    return ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found)) for found in CASE.findall(sources.text(file))]


def functions(file):
    return [name.replace("_", " ") for name in re.findall(r"^\s*def (\w+)", sources.text(file), re.MULTILINE)]


def wrong_with(reference, before):
    """(what is wrong or None, the file that the next reference may be of)."""
    if found := re.fullmatch(r"demo check (\d+)", reference):
        return (None if glob.glob(f"tests/lab/checks/*{int(found[1]):02}*", root_dir=sources.ROOT)
                else f"there is no demo check {found[1]}"), None
    if found := re.fullmatch(r"packet cases `([^`]+)`", reference):
        present = {file.split("/")[2] for file in sources.files() if file.startswith("tests/packets/")}
        return (None if fnmatch.filter(present, found[1]) else f"there are no packet cases {found[1]}"), None
    found = re.fullmatch(r"`([^`]+)`: (.+)", reference)
    if found is None and before is None:
        return f"no test is named by \"{reference}\"", None
    name, wanted = found.groups() if found else (before, reference)
    topology = name.startswith("topology/")
    suffix = f"tests/{name}.py" if topology else f"{name}.cpp"
    files = [file for file in sources.files() if f"/{file}".endswith(f"/{suffix}")]
    if not files:
        return f"there is no {suffix}", None
    names = [one for file in files for one in (functions(file) if topology else cases(file))]
    good = any(one.startswith(wanted) for one in names)
    return (None if good else f"{name} has no case \"{wanted}\""), name


problems, count = [], 0
for number, line in enumerate(sources.text(PAGE).splitlines(), 1):
    cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    if not line.startswith("| ") or cells[-1] == "test":
        continue
    file = None
    for reference in cells[-1].split("; "):
        wrong, file = wrong_with(reference, file)
        count += 1
        if wrong:
            problems.append(f"{PAGE}:{number}: {wrong}")
sources.report("named_tests", problems, f"{count} tests named in {PAGE}")
