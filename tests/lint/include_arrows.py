#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which folder may include which: the arrows of the architecture, and nothing beside them."""
import fnmatch

import sources

WIRE, OPENFLOW, SESSION, POLICY, HTTP = (
    "dataplane/wire/*", "dataplane/openflow/*", "dataplane/session/*", "dataplane/policy/*",
    "dataplane/http/*")
SCHEMAS = "nfv/*/table.hpp"
CONTROLLER = [WIRE, OPENFLOW, SCHEMAS]

# Files that match the first pattern may include, beside their own folder's, what matches the list.
# The first row that matches decides, so exceptions come before their folder.
ARROWS = [
    ("dataplane/wire/*", []),
    ("dataplane/openflow/*", [WIRE]),
    ("dataplane/session/*", [WIRE, "dataplane/reclaim/*"]),
    ("dataplane/policy/*", [WIRE, OPENFLOW, "dataplane/reclaim/*"]),
    ("dataplane/http/*", [WIRE]),
    # The one place that knows the concrete network functions.
    ("dataplane/main.cpp", ["dataplane/*", "nfv/*"]),
    ("dataplane/*", ["dataplane/*"]),
    (SCHEMAS, [WIRE, OPENFLOW]),
    # A function: never another function, a port or a worker.
    ("nfv/*", [WIRE, OPENFLOW, POLICY, "dataplane/network_function.hpp"]),
    ("controller/model/*", CONTROLLER),
    ("controller/compiler/*", CONTROLLER + ["controller/model/*"]),
    ("controller/store/*", CONTROLLER + ["controller/model/*", "controller/compiler/*"]),
    ("controller/southbound/*", CONTROLLER + ["controller/model/*", "controller/compiler/*"]),
    ("controller/api/*", CONTROLLER + [HTTP, "controller/model/*", "controller/compiler/*",
                                       "controller/store/*", "controller/southbound/*"]),
    ("controller/cli/*", [WIRE, HTTP, "controller/model/*"]),
    ("controller/*", CONTROLLER + [HTTP, "controller/*"]),
    ("gpu-attach/*", [WIRE, HTTP]),
    ("bench/*", ["*"]),
    ("tests/*", ["*"]),
]

# Libraries of the system that only some folders may include: first pattern that matches the
# include decides. What is not listed is free.
LIBRARIES = [
    ("boost/beast*", ["dataplane/http/*"]),
    # The cores are free of DPDK, so that the sanitisers see all of them.
    ("rte_*", ["dataplane/[!/]*", "bench/*", "tests/*"]),
    ("openvswitch/*", ["dataplane/openflow/*", "dataplane/main.cpp", "controller/southbound/*",
                       "tests/*"]),
    ("openflow/*", ["dataplane/openflow/*", "controller/southbound/*", "tests/*"]),
]
DPDK_FREE = ["dataplane/wire/*", "dataplane/openflow/*", "dataplane/session/*",
             "dataplane/policy/*", "dataplane/http/*"]
BEAST_UNITS = 2


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def allowed(file):
    for pattern, targets in ARROWS:
        if fnmatch.fnmatchcase(file, pattern):
            own = [file.rsplit("/", 1)[0] + "/*"] if "/" in file else []
            beside = ["tests/*"] if file.endswith(("_test.cpp", "_fuzz.cpp")) else []
            return targets + own + beside
    return None


def problems():
    beast = []
    for file in sources.cpp_files():
        targets = allowed(file)
        if targets is None:
            yield f"{file}: no row of the table of arrows covers this folder"
            continue
        for quote, path, line in sources.includes(file):
            where = f"{file}:{line}"
            if quote == '"':
                if not (sources.ROOT / path).is_file():
                    yield f"{where}: \"{path}\" is not a path from the repository's root"
                elif not matches(path, targets):
                    yield f"{where}: may not include \"{path}\""
                continue
            if path.startswith("rte_") and matches(file, DPDK_FREE):
                yield f"{where}: this folder is free of DPDK, but includes <{path}>"
            for pattern, folders in LIBRARIES:
                if fnmatch.fnmatchcase(path, pattern):
                    if not matches(file, folders):
                        yield f"{where}: may not include <{path}>"
                    break
            if path.startswith("boost/beast") and file not in beast:
                beast.append(file)
    if len(beast) > BEAST_UNITS:
        yield f"Beast is included in {len(beast)} files, {BEAST_UNITS} are meant: {', '.join(beast)}"


sources.report("include_arrows", problems(), f"{len(sources.cpp_files())} files")
