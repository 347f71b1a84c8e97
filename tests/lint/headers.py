#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, with the flags of a source beside it, of one that includes it, or of
its part's program."""
import json
import os
import shlex
import subprocess

import sources

BUILD = sources.ROOT / "build"


def flags_by_file():
    """Per source: the compiler and its flags, without input, output and dependency files."""
    with open(BUILD / "compile_commands.json", encoding="utf-8") as opened:
        commands = json.load(opened)
    result = {}
    for command in commands:
        words = [w for w in shlex.split(command["command"]) if w != "ccache"]
        kept, skip = [], False
        for word in words:
            if skip:
                skip = False
            elif word in ("-o", "-c", "-MF", "-MQ"):
                skip = True
            elif word != "-MD":
                kept.append(word)
        source = os.path.relpath(BUILD / command["file"], sources.ROOT)
        result[source] = kept
    return result


FLAGS = flags_by_file()
TEXTS = {source: (sources.ROOT / source).read_text(encoding="utf-8") for source in FLAGS}


def flags(header):
    folder = header.rsplit("/", 1)[0]
    near = sorted(f for f, text in TEXTS.items()
                  if f.rsplit("/", 1)[0] == folder or f'#include "{header}"' in text)
    if near:
        # The longest set, so that a test's Catch or a program's libraries are among them.
        return max((FLAGS[f] for f in near), key=len)
    return FLAGS["controller/main.cpp" if header.startswith("controller/") else "dataplane/main.cpp"]


def work(header):
    result = subprocess.run(
        flags(header) + ["-fdiagnostics-color=never", "-fsyntax-only", "-x", "c++", "-include", str(sources.ROOT / header),
                         "/dev/null"],
        cwd=BUILD, capture_output=True, text=True)
    if result.returncode == 0:
        return None
    return f"{header} does not compile alone:\n" + "\n".join(result.stderr.splitlines()[:8])


checked = sources.cpp_files(".hpp")
compiler = sources.version("g++")


def entry(header):
    # Folders in the flags differ between clones; the outcome does not.
    portable = " ".join(flags(header)).replace(str(sources.ROOT), ".")
    return header, sources.key(sources.closure(header), portable, compiler)


sources.report("headers", sources.cached("headers", [entry(h) for h in checked], work),
               f"{len(checked)} headers compile alone")
