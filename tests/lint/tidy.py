#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy finds nothing: in the cores always, in everything with SLUICE_LONG=1.

Slow, so what passed is remembered by the content of the source and of all that it includes.
"""
import os
import subprocess

import sources

CORES = ("dataplane/wire/", "dataplane/session/", "dataplane/policy/")
PARTS = ("dataplane/", "nfv/", "controller/", "gpu-attach/", "bench/")
BUILD = "build-clang"


def work(source):
    result = subprocess.run(
        ["nice", "clang-tidy", "-p", BUILD, "--quiet", source], cwd=sources.ROOT,
        capture_output=True, text=True)
    if result.returncode == 0:
        return None
    found = [l for l in result.stdout.splitlines() if "error:" in l or "warning:" in l]
    root = str(sources.ROOT) + "/"
    # What the analyser makes of a library's own code, reached from ours, is not ours to mend.
    ours = [l for l in found if l.startswith((root, "../", BUILD)) or "[clang-analyzer-" not in l]
    if found and not ours:
        return None
    found = ours
    return "\n".join(l.replace(root, "") for l in found[:20]) or f"{source}: {result.stderr[:300]}"


scope = PARTS if os.environ.get("SLUICE_LONG") == "1" else CORES
checked = [f for f in sources.cpp_files(".cpp")
           if f.startswith(scope) and not f.endswith(("_test.cpp", "_fuzz.cpp"))]
rules = (sources.text(".clang-tidy"), sources.version("clang-tidy"))
sources.report(
    "tidy",
    sources.cached("tidy", [(f, sources.key(sources.closure(f), *rules)) for f in checked], work),
    f"{len(checked)} sources")
