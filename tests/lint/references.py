# SPDX-License-Identifier: Apache-2.0
"""How the tables in docs/ name tests, and whether what they name exists.

In a cell, separated by "; ": `folder/name_test`: a TEST_CASE's beginning; a further one of the same
file; `topology/name`: a function's beginning; packet cases `pattern`; demo check N.
"""
import fnmatch
import glob
import re

import sources

CASE = re.compile(r'\b(?:TEST_CASE|TEST_CASE_METHOD|SCENARIO)\s*\(\s*(?:\w+\s*,\s*)?((?:"(?:[^"\\]|\\.)*"\s*)+)')


def cases(file):
    """The names of a test file's cases; literals that stand beside each other are one."""
    return ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found)) for found in CASE.findall(sources.text(file))]


def functions(file):
    return [name.replace("_", " ") for name in re.findall(r"^\s*def (\w+)", sources.text(file), re.MULTILINE)]


def resolve(reference, before):
    """(what is wrong or None, the test that the next reference may be of, the files that hold it)."""
    if found := re.fullmatch(r"demo check (\d+)", reference):
        files = glob.glob(f"tests/lab/checks/*{int(found[1]):02}*", root_dir=sources.ROOT)
        return None if files else f"there is no demo check {found[1]}", None, files
    if found := re.fullmatch(r"packet cases? `([^`]+)`", reference):
        present = [file for file in sources.files()
                   if file.startswith("tests/packets/") and file.endswith("/case.toml")]
        files = [file for file in present if fnmatch.fnmatch(file.split("/")[2], found[1])]
        return None if files else f"there are no packet cases {found[1]}", None, files
    found = re.fullmatch(r"`([^`]+)`: (.+)", reference)
    if found is None and before is None:
        return f"no test is named by \"{reference}\"", None, []
    name, wanted = found.groups() if found else (before, reference)
    topology = name.startswith("topology/")
    suffix = f"tests/{name}.py" if topology else f"{name}.cpp"
    files = [file for file in sources.files() if f"/{file}".endswith(f"/{suffix}")]
    if not files:
        return f"there is no {suffix}", None, []
    holding = [file for file in files
               if any(one.startswith(wanted) for one in (functions(file) if topology else cases(file)))]
    return None if holding else f"{name} has no case \"{wanted}\"", name, holding


def rows(page):
    """(line number, cells, the heading that it stands under) of each row of a page's tables."""
    heading, top = "", True
    for number, line in enumerate(sources.text(page).splitlines(), 1):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            top = True
            continue
        if line.startswith("|---"):
            top = False
        elif not top:
            yield number, [cell.strip() for cell in line.strip().strip("|").split(" | ")], heading


def held_by(cell):
    """(what is wrong with a cell's references, all files that hold them, how many they are)."""
    problems, files, name, count = [], [], None, 0
    for reference in cell.split("; "):
        wrong, name, found = resolve(reference, name)
        count += 1
        files += found
        if wrong:
            problems.append(wrong)
    return problems, files, count
