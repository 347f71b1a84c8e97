#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence in its first three lines."""
import sources

checked = [f for f in sources.files()
           if f.endswith(sources.CPP + (".c", ".h", ".proto")) or sources.is_script(f)]
sources.report("licence",
               (f"{f}: no SPDX-License-Identifier in the first three lines" for f in checked
                if not any("SPDX-License-Identifier: " in line
                           for line in sources.text(f).split("\n", 3)[:3])),
               f"{len(checked)} files")
