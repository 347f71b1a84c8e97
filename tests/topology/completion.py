# SPDX-License-Identifier: Apache-2.0
"""Completion in the shells themselves: typed into a terminal, TAB, Enter; what arrives counts."""
import os
import pty
import select
import shlex
import socket
import subprocess
import time

from lab import shell

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(sluicectl completion bash)"),
    "zsh": (["zsh", "-f", "-i"],
            "autoload -U compinit; compinit -u -D; source <(sluicectl completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "sluicectl completion fish | source")}

# In front of the real one: notes the words it was called with, and when a completion has ended.
WRAPPER = """#!/bin/bash
case ${{1:-}} in
  completion) exec {real} "$@" ;;
  complete) {real} "$@"; touch {folder}/completed; exit ;;
esac
printf '%s\\n' "$@" >{folder}/words.new
mv {folder}/words.new {folder}/words
"""


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, name, folder, environment):
        self.name, self.folder = name, folder
        words, setup = SHELLS[name]
        home = folder / f"home-{name}"
        home.mkdir()
        environment = {**environment, "HOME": str(home), "TERM": "xterm", "COLUMNS": "200",
                       "PATH": f"{folder}:{environment['PATH']}"}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, environment)
        self.send(f"{setup}; touch {folder}/ready\r")
        self.wait("ready")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def wait(self, file, seconds=15):
        """Until the file is there; what the shell draws meanwhile is read and left."""
        end = time.monotonic() + seconds
        path = self.folder / file
        while not path.exists():
            if select.select([self.terminal], [], [], 0.02)[0]:
                os.read(self.terminal, 65536)
            if time.monotonic() > end:
                raise shell.Timeout(f"{self.name}: no {file} within {seconds} s")
        time.sleep(0.02)

    def complete(self, typed):
        """The words that the program got after TAB and Enter."""
        for file in ("completed", "words"):
            (self.folder / file).unlink(missing_ok=True)
        self.send(typed + "\t")
        self.wait("completed")
        time.sleep(0.15)  # until the shell has taken it in
        self.send("\r")
        self.wait("words")
        return (self.folder / "words").read_text(encoding="utf-8").splitlines()

    def end(self):
        os.close(self.terminal)
        try:
            os.kill(self.pid, 9)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


def prepare(trials):
    """Objects whose names begin apart; answers what is typed and what must arrive."""
    json = trials.json
    prod = json("vpc", "create", "--name", "prod", "--cidr", "10.0.0.0/16", who="blue")["id"]
    json("vpc", "create", "--name", "my vpc", "--cidr", "10.0.0.0/16", who="blue")
    json("subnet", "create", "--name", "front", "--vpc", "prod", "--cidr", "10.0.1.0/24", who="blue")
    for name in ("web", "databases"):
        rule = json("security-group", "create", "--name", name, "--vpc", "prod",
                    who="blue")["rules"][0]["id"]
    json("endpoint", "create", "--name", "gate", "--subnet", "front", "--vtep", "192.0.2.7",
         who="blue")
    json("external-pool", "create", "--cidr", "203.0.113.0/28", who="admin")
    json("elastic-ip", "create", "--name", "shared", who="blue")
    json("nat-gateway", "create", "--name", "outwards", "--vpc", "prod", "--elastic-ip", "shared",
         who="blue")
    file = trials.folder / "rules-of-web.json"
    file.write_text("[]", encoding="utf-8")
    stem = str(file).removesuffix("-web.json")
    return {
        "command": ("endp", "endpoint"),
        "subcommand": ("security-group add-r", "security-group add-rule"),
        "flag": ("endpoint create --allowed-a", "endpoint create --allowed-addresses"),
        "enumeration": ("endpoint create --kind gp", "endpoint create --kind gpu_server"),
        "enumeration-after-equals": ("endpoint create --kind=gp", "endpoint create --kind=gpu_server"),
        "name": ("vpc show pr", "vpc show prod"),
        "id": (f"vpc show {prod[:8]}", f"vpc show {prod}"),
        "name-with-a-space": ("vpc show my", "vpc show 'my vpc'"),
        "name-in-a-vpc": ("security-group show prod/def", "security-group show prod/default"),
        "name-in-the-vpc-said": ("endpoint show --vpc prod ga", "endpoint show --vpc prod gate"),
        "second-of-a-list": ("endpoint update gate --security-group web,dat",
                             "endpoint update gate --security-group web,databases"),
        "second-of-several": ("security-group delete web dat", "security-group delete web databases"),
        "next-hop": ("route-table add-route prod/main --next-hop endpoint:ga",
                     "route-table add-route prod/main --next-hop endpoint:gate"),
        "next-hop-kind": ("route-table add-route prod/main --next-hop nat",
                          "route-table add-route prod/main --next-hop nat-gateway:"),
        "next-hop-nat-gateway": ("route-table add-route prod/main --next-hop nat-gateway:ou",
                                 "route-table add-route prod/main --next-hop nat-gateway:outwards"),
        "rule-id": (f"security-group remove-rule databases {rule[:8]}",
                    f"security-group remove-rule databases {rule}"),
        "file": (f"security-group update web --rules @{stem}",
                 f"security-group update web --rules @{file}"),
        "address": ("explain --vpc prod --source 10.0.1.", "explain --vpc prod --source 10.0.1.2")}


def run(trials):
    cases = prepare(trials)
    folder = trials.folder
    wrapper = folder / "sluicectl"
    wrapper.write_text(WRAPPER.format(real=shell.BUILD / "sluicectl", folder=folder),
                       encoding="utf-8")
    wrapper.chmod(0o755)
    for name in SHELLS:
        terminal = None
        try:
            (folder / "ready").unlink(missing_ok=True)
            terminal = Terminal(name, folder, trials.environment("blue"))
            for case, (typed, wanted) in cases.items():
                trials.equal(f"complete-{name}-{case}", shlex.split(wanted),
                             terminal.complete(f"sluicectl {typed}"))
        except (OSError, shell.LabError) as error:
            trials.result(f"complete-{name}", str(error))
        finally:
            if terminal:
                terminal.end()
    listed = subprocess.run(
        ["fish", "--no-config", "-c", "sluicectl completion fish | source; "
         "complete -C 'sluicectl security-group '"],
        env={**trials.environment("blue"), "HOME": str(folder)}, capture_output=True, text=True,
        timeout=15, check=False).stdout
    trials.result("complete-fish-says-what-each-is", "" if "add-rule\tadd a rule" in listed else listed)
    silent(trials)


def silent(trials):
    """Without an API, with one that never answers, with a wrong token: nothing, and soon."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        for case, changes in (
                ("api-absent", {"SLUICE_API": "http://127.0.0.1:1"}),
                ("api-silent", {"SLUICE_API": f"http://127.0.0.1:{mute.getsockname()[1]}"}),
                ("api-nonsense", {"SLUICE_API": "nonsense://"}),
                ("token-wrong", {"SLUICE_TOKEN": "wrong"})):
            begin = time.monotonic()
            done = subprocess.run(["sluicectl", "complete", "zsh", "vpc", "show", "p"],
                                  env={**trials.environment("blue"), **changes}, timeout=10,
                                  capture_output=True, text=True, check=False)
            took = time.monotonic() - begin
            trials.result(f"complete-{case}-is-silent",
                          "" if not done.stdout + done.stderr and done.returncode == 0 and took < 2
                          else f"{took:.1f} s, status {done.returncode}: {done.stdout}{done.stderr}")
