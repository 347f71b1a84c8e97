#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No source file is longer than a reader can hold: 600 lines."""
import sources

LIMIT = 600

checked = [f for f in sources.files() if f.endswith(sources.CPP + (".c", ".h")) or sources.is_script(f)]
lengths = {f: sources.text(f).count("\n") for f in checked}
sources.report("file_length",
               (f"{f}: {n} lines, {LIMIT} are allowed" for f, n in lengths.items() if n > LIMIT),
               f"{len(checked)} files, the longest has {max(lengths.values())} lines")
