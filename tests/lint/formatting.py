#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format has nothing to change. To mend: clang-format -i FILE"""
import subprocess

import sources


def work(file):
    result = subprocess.run(["clang-format", "--dry-run", "-Werror", file], cwd=sources.ROOT,
                            capture_output=True, text=True)
    return f"{file}: run clang-format -i on it" if result.returncode else None


checked = sources.cpp_files(".cpp", ".hpp", ".c", ".h")
rules = (sources.text(".clang-format"), sources.version("clang-format"))
sources.report("formatting",
               sources.cached("formatting", [(f, sources.key([f], *rules)) for f in checked], work),
               f"{len(checked)} files")
