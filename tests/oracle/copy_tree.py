#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Copies every file of the repository, as it is here now, into a folder. Files that are equal keep
their time there, so that a build in the copy compiles only what changed."""
import pathlib
import shutil
import subprocess
import sys

root, copy = pathlib.Path(__file__).resolve().parents[2], pathlib.Path(sys.argv[1])
listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                        cwd=root, check=True, capture_output=True, text=True).stdout
for name in filter(None, listed.split("\0")):
    source, target = root / name, copy / name
    if not source.is_file():
        continue
    if target.is_file() and target.read_bytes() == source.read_bytes():
        continue
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    shutil.copymode(source, target)
