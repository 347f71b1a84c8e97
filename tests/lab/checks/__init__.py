# SPDX-License-Identifier: Apache-2.0
"""The demo's checks, one file each: TITLE, `run(check, world)`. Their order is the file names'."""
import importlib
import pathlib


def all_checks():
    """[(number, title, run)] in order."""
    found = []
    for file in sorted(pathlib.Path(__file__).parent.glob("c[0-9]*.py")):
        module = importlib.import_module(f"{__name__}.{file.stem}")
        found.append((int(file.stem[1:3]), module.TITLE, module.run))
    return found
