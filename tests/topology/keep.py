#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./demo --only N --keep, then the very commands that it prints, then --down."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import checks, shell  # noqa: E402

NAME = f"{os.environ.get('SLUICE_LAB', 'sluice')}-keep"
DEMO = [str(shell.ROOT / "tests/lab/demo.py")]
# Quick ones, of which 7 and 14 need what 6 shows; --long: each by itself.
ALONE = ((1,), (7,), (13, 14))


def result(name, wrong, said=""):
    wrong, said = (" ".join(text.split())[-500:] for text in (wrong, said))
    print(f"not ok topology/keep/{name}: {wrong}" if wrong
          else f"ok topology/keep/{name}" + (f" ({said})" if said else ""), flush=True)


def demo(*words, seconds=120):
    return subprocess.run([*DEMO, *words], env={**os.environ, "SLUICE_LAB": NAME}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                          check=False)


def tried(name, said):
    """Runs the printed block as a shell would, each command on its own account."""
    lines = [line[2:] for line in said.splitlines() if line.startswith("  ")]
    commands = [line for line in lines if line and not line.startswith("#")]
    if len(commands) < 10:
        result(name, f"{len(commands)} commands in: {said}")
        return
    script = "".join(f"echo '>>> {number}'\n{command}\n[ $? = 0 ] || echo '!!! {number}'\n"
                     for number, command in enumerate(commands))
    # Into a file: what goes on in the background would keep a pipe open.
    log = shell.BUILD / f"test-logs/keep-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as opened:
        subprocess.run(["bash", "-c", script], stdout=opened, stderr=subprocess.STDOUT,
                       timeout=120, check=False)
    output = log.read_text(encoding="utf-8")
    failed = [commands[int(number)] for number in re.findall(r"^!!! (\d+)", output, re.M)]
    silent = [commands[int(number)] for number, one in
              re.findall(r"^>>> (\d+)\n((?:(?!>>> ).*\n)*)", output, re.M)
              if not one.strip() and not commands[int(number)].startswith("export")
              and not commands[int(number)].endswith("&")]
    wanted = ['"host": "web1"', "nobody there", "0% packet loss", "allowed", "cookie=0x",
              "sluice_flows", " web1 "]
    missing = [word for word in wanted if word not in output]
    result(name, f"failed: {failed}; silent: {silent}; not seen: {missing}; {output[-1500:]}"
           if failed or silent or missing else "", f"{len(commands)} commands")


def readme(said):
    """What the README says to try, in the kept lab: its address and socket put in."""
    text = (shell.ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"With them in the environment:\n\n((?:    .*\n)+)", text)[1]
    base = re.search(r"SLUICE_API=(\S+)", said)[1]
    socket = re.search(r"dump-flows unix:(\S+)", said)[1]
    commands = [line.strip().replace("$PWD/build", str(shell.BUILD)).replace("SOCKET", socket)
                .replace("http://127.0.0.1:8080", base) for line in block.splitlines()]
    script = "set -e\n" + "\n".join(commands)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                          check=False)
    result("readme", done.stdout[-300:] + done.stderr if done.returncode or "cookie=" not in
           done.stdout else "", f"{len(commands)} commands")


def left():
    return [line for line in shell.run("ip", "netns", "list").stdout.split() if line.startswith(NAME)]


def main():
    alone = [(number,) for number, _, _ in checks.all_checks()] \
        if os.environ.get("SLUICE_LONG") == "1" else ALONE
    try:
        for numbers in alone:
            name = "-".join(map(str, numbers))
            done = demo("--keep", "--only", ",".join(map(str, numbers)))
            result(f"only-{name}", "" if done.returncode == 0 and left() and
                   f"{len(numbers)} passed, 0 failed" in done.stdout else done.stdout)
            tried(f"only-{name}-next-commands", done.stdout)
        again = demo("--keep", "--only", "14")
        readme(again.stdout)
        result("names-its-lab-to-remove", "" if f"SLUICE_LAB={NAME} ./demo --down" in again.stdout
               else again.stdout)
        result("again-over-a-kept-lab", "" if again.returncode == 0 else again.stdout)
        down = demo("--down")
        result("down", "" if down.returncode == 0 and not left() else f"{down.stdout} left: {left()}")
        wrong = demo("--only", "1,15")
        result("unknown-check", "" if wrong.returncode == 2 and "not 15" in wrong.stdout
               and "Traceback" not in wrong.stdout else wrong.stdout)
        bogus = subprocess.run([shell.ROOT / "demo", "--bogus"], stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.STDOUT, timeout=60, check=False)
        result("wrong-argument-before-setup", "" if bogus.returncode == 2 and "--bogus" in bogus.stdout
               and bogus.stdout.startswith("usage: ./demo") else bogus.stdout)
    except (shell.LabError, subprocess.TimeoutExpired) as error:
        result("lab", str(error))
    finally:
        demo("--down")


if __name__ == "__main__":
    main()
