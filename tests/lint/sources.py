# SPDX-License-Identifier: Apache-2.0
"""What the linters share: the list of sources, their includes, a cache, the result line."""
import functools
import hashlib
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "sluice/lint"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
CPP = (".cpp", ".hpp")


@functools.cache
def files():
    """Every file of the repository, relative to its root: tracked ones and new ones."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(f for f in set(listed.split("\0")) if f and (ROOT / f).is_file())


def cpp_files(*suffixes):
    return [f for f in files() if f.endswith(suffixes or CPP)]


def is_script(file):
    """Python, shell, meson and whatever begins with #!."""
    if file.endswith((".py", ".sh")) or os.path.basename(file) in ("meson.build", "meson_options.txt"):
        return True
    if "." in os.path.basename(file):
        return False
    with open(ROOT / file, "rb") as opened:
        return opened.read(2) == b"#!"


@functools.cache
def text(file):
    return (ROOT / file).read_text(encoding="utf-8")


@functools.cache
def includes(file):
    """(quote, path, line number) of each #include."""
    content = text(file)
    return [(m[1], m[2], content.count("\n", 0, m.start(2)) + 1) for m in INCLUDE.finditer(content)]


def closure(file):
    """The file and every file of the repository that it includes, directly or not."""
    seen, todo = set(), [file]
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo += [p for q, p, _ in includes(current) if q == '"' and (ROOT / p).is_file()]
    return sorted(seen)


def key(used, *more):
    """A digest of these files' contents and of anything else that decides the outcome."""
    digest = hashlib.sha256()
    for file in used:
        digest.update(f"{file}\0{text(file)}\0".encode())
    for item in more:
        digest.update(f"{item}\0".encode())
    return digest.hexdigest()


def version(program):
    return subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout


def cached(check, todo, work):
    """work(item) -> problem or None for each (item, key), unless it passed before with that key."""
    folder = CACHE / check
    folder.mkdir(parents=True, exist_ok=True)

    def one(entry):
        item, digest = entry
        stamp = folder / digest
        if stamp.exists():
            stamp.touch()
            return None
        problem = work(item)
        if problem is None:
            stamp.touch()
        return problem

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [p for p in pool.map(one, todo) if p]


def report(name, problems, note):
    """The result line; what is wrong comes before it, one indented line each."""
    problems = list(problems)
    for problem in problems:
        for line in problem.splitlines():
            print("    " + line)
    if problems:
        first = problems[0].splitlines()[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        print(f"not ok lint/{name}: {first}{more}")
        sys.exit(1)
    print(f"ok lint/{name} ({note})")
