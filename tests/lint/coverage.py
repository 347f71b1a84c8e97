#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""docs/coverage.md has every drop reason, API field and RFC clause once, each with a test that holds it.

A reason's tests name it; of a field's at least one does. A clause is what code, pages and packet
cases claim: "RFC 5961 section 3.2", which a row of section 3 covers; a mere "RFC 5961" is covered by
any row of it. A row that nothing claims is wrong too.
"""
import re

import references
import sources

PAGE = "docs/coverage.md"
REASONS, FIELDS = "dataplane/wire/drop_reason.hpp", "controller/model/"
# Where the API shows what is no kind of its own.
PARTS = {"VpcLimits": "vpcs.limits", "VpcTimeouts": "vpcs.timeouts",
         "AllowedAddress": "endpoints.allowed_addresses", "Rule": "security-groups.rules",
         "Route": "route-tables.routes", "RouteTarget": "route-tables.routes.next_hop"}
SECTION = r"\d+(?:\.\d+)+|(?<=section )\d+|(?<=sections )\d+|(?<=and )\d+(?:\.\d+)+"
MENTION = re.compile(rf"RFCs? (\d{{3,5}})(?:,? (?:sections? )?((?:{SECTION})(?:(?:, | and )\d+(?:\.\d+)+)*)"
                     r"|((?:(?:, | and )\d{3,5}\b(?!\.))+))?")
CLAIMING = (".cpp", ".hpp", ".md", ".toml", ".py")


def reasons():
    return set(re.findall(r'^    X\((\w+), "', sources.text(REASONS), re.MULTILINE))


def fields():
    """`kind.field` of all that the API shows."""
    found, kinds = set(), dict(PARTS)
    texts = [sources.text(file) for file in sources.files()
             if file.startswith(FIELDS) and file.endswith(".cpp")]
    for text in texts:
        for kind, path in re.findall(r'\{Kind::(\w+),\s*"([\w-]+)"', text):
            kinds["".join(part.capitalize() for part in kind.split("_"))] = path
    for text in texts:
        for struct, name, more in re.findall(r'field<&(\w+)::\w+>\("(\w+)"([^)]*)\)', text):
            if "kInternal" not in more:
                found.add(f"{kinds.get(struct, struct)}.{name}")
    return found


def claims():
    """{(RFC, section or ""): where} of all files but this page."""
    found = {}
    for file in sources.files():
        if not file.endswith(CLAIMING) or file == PAGE or file.startswith("tests/lint/"):
            continue
        # A comment's line break is a space.
        text = re.sub(r"\n\s*(?://|#|\*)?\s*", " ", sources.text(file))
        for mention in MENTION.finditer(text):
            for section in re.split(", | and ", mention[2] or ""):
                found.setdefault((mention[1], section), file)
            for rfc in re.findall(r"\d+", mention[3] or ""):
                found.setdefault((rfc, ""), file)
    return found


def covers(row, claim):
    """Whether a row (RFC, section) is about a claim."""
    return row[0] == claim[0] and (not claim[1] or not row[1]
                                   or f"{claim[1]}.".startswith(f"{row[1]}."))


problems = []
seen = {"Drop reasons": {}, "API fields": {}, "RFC clauses": {}}
for number, cells, heading in references.rows(PAGE):
    at = f"{PAGE}:{number}"
    wrong, files, _ = references.held_by(cells[-1])
    problems += [f"{at}: {one}" for one in wrong]
    if heading == "RFC clauses":
        keys = [(rfc, "" if section == "–" else section)
                for rfc in cells[0].split(", ") for section in cells[1].split(", ")]
    else:
        keys = [cells[0].strip("`")]
    for key in keys:
        if key in seen[heading]:
            problems.append(f"{at}: {key} has a row already")
        seen[heading][key] = at
    if heading == "RFC clauses" or wrong:
        continue
    word = re.compile(rf"\b{re.escape(keys[0].rsplit('.', 1)[-1])}\b")
    without = [file for file in files if not word.search(sources.text(file))]
    if len(without) == len(files) or (heading == "Drop reasons" and without):
        problems.append(f"{at}: {', '.join(without)} says nothing of {keys[0]}")

for heading, wanted in (("Drop reasons", reasons()), ("API fields", fields())):
    problems += [f"{PAGE}: no row for {one} under {heading}" for one in sorted(wanted - set(seen[heading]))]
    problems += [f"{seen[heading][one]}: there is no {one}" for one in sorted(set(seen[heading]) - wanted)]
rows = seen["RFC clauses"]
claimed = claims()
for claim, file in sorted(claimed.items(), key=lambda item: (int(item[0][0]), item[0][1])):
    if not any(covers(row, claim) for row in rows):
        problems.append(f"{file}: RFC {claim[0]}{' section ' + claim[1] if claim[1] else ''} has no row "
                        f"in {PAGE}")
for row, at in rows.items():
    if not any(covers(row, claim) and (claim[1] or not row[1]) for claim in claimed):
        problems.append(f"{at}: nothing claims RFC {row[0]}{' section ' + row[1] if row[1] else ''}")
sources.report("coverage", problems, ", ".join(f"{len(found)} {heading}" for heading, found in seen.items()))
