#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sluicectl against a running controller: what people type, what they get to read."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import manifest, product, shell  # noqa: E402

HTTPS = {"direction": "ingress", "action": "allow", "family": "ipv4", "protocol": "tcp",
         "port_min": 443, "port_max": 443}


class Trials:
    """Runs sluicectl, and prints a result line for each expectation."""

    def __init__(self, controller, folder):
        self.controller, self.folder = controller, folder

    def environment(self, who="red"):
        return {**os.environ, "SLUICE_API": self.controller.base, "SLUICE_TOKEN": f"sluice-{who}",
                "PATH": f"{shell.BUILD}:{os.environ['PATH']}"}

    def run(self, *words, who="red", input=None):
        return subprocess.run(["sluicectl", *map(str, words)], env=self.environment(who),
                              input=input, capture_output=True, text=True, timeout=20, check=False)

    def json(self, *words, **options):
        done = self.run(*words, "--json", **options)
        if done.returncode:
            raise shell.LabError(f"sluicectl {' '.join(map(str, words))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def succeeds(self, name, *words, **options):
        done = self.run(*words, **options)
        self.result(name, "" if done.returncode == 0
                    else f"status {done.returncode}: {done.stderr or done.stdout}")
        return done

    def fails(self, name, status, mentions, *words, **options):
        done = self.run(*words, **options)
        wrong = [f"status {done.returncode}, expected {status}"] if done.returncode != status else []
        wrong += [f"does not say {word!r}" for word in mentions if word not in done.stderr]
        self.result(name, "; ".join(wrong) + f": {done.stderr}" if wrong else "", done.stderr)

    @staticmethod
    def result(name, wrong, said=""):
        said, wrong = (" ".join(text.split())[:400] for text in (said, wrong))
        print(f"not ok topology/cli/{name}: {wrong}" if wrong
              else f"ok topology/cli/{name}" + (f" ({said})" if said else ""), flush=True)

    def equal(self, name, expected, measured):
        self.result(name, "" if expected == measured else f"{measured!r}, expected {expected!r}")


def json_values(trials):
    """Every flag that takes JSON takes it written out, from a file and from standard input."""
    trials.json("vpc", "create", "--name", "a", "--cidr", "10.0.0.0/16")
    trials.json("subnet", "create", "--name", "front", "--vpc", "a", "--cidr", "10.0.1.0/24")
    group = ["security-group", "create", "--vpc", "a", "--name", "web"]
    trials.json(*group)
    trials.json("endpoint", "create", "--name", "e", "--subnet", "front", "--vtep", "192.0.2.7")
    table = trials.controller.client("red").list("route-tables")[0]["id"]
    values = {
        "rules": ("security-group", "web", [HTTPS]),
        "routes": ("route-table", table,
                   [{"destination": "0.0.0.0/0", "next_hop": {"internet": True}}]),
        "allowed-addresses": ("endpoint", "e", [{"cidr": "10.0.9.0/24"}])}
    for flag, (kind, target, value) in values.items():
        field, text = flag.replace("-", "_"), json.dumps(value)
        file = trials.folder / "value.json"
        file.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
        for how, words, given in (("written", [f"--{flag}", text], None),
                                  ("after-equals", [f"--{flag}={text}"], None),
                                  ("file", [f"--{flag}", f"@{file}"], None),
                                  ("stdin", [f"--{flag}", "-"], text),
                                  ("before-the-name", None, None)):
            trials.run(kind, "update", target, f"--{flag}", "[]")
            if words is None:
                done = trials.run(kind, "update", f"--{flag}", text, target, "--wait", "0")
            else:
                done = trials.run(kind, "update", target, *words, input=given)
            stored = trials.json(kind, "show", target)[field]
            same = len(stored) == 1 and all(stored[0].get(key) == value[0][key] or key == "next_hop"
                                            for key in value[0])
            trials.result(f"json-{flag}-{how}", "" if same else f"{done.stderr} stored: {stored}")
    trials.fails("json-broken", 2, ["--rules", "not JSON"], *group, "--rules", "[{")
    trials.fails("json-file-missing", 2, ["--rules", "cannot read", "nowhere.json"], *group,
                 "--rules", "@nowhere.json")
    trials.fails("json-file-is-a-folder", 2, ["--rules", "cannot read"], *group, "--rules", "@/")


def words_as_written(trials):
    """No value is taken apart, and none takes what follows it."""
    trials.json("vpc", "create", "--name", "[x]", "--cidr", "10.0.0.0/16", "--tag", "k=[v]",
                "--description", "[a,b]")
    made = trials.json("vpc", "show", "[x]")
    trials.equal("brackets-stay", ("[x]", "[a,b]", {"k": "[v]"}),
                 (made["name"], made["description"], made["tags"]))
    trials.json("vpc", "create", "--name", "x", "--cidr", "10.0.0.0/16")
    trials.run("vpc", "delete", "[x]")
    names = [item["name"] for item in trials.controller.client("red").list("vpcs")]
    trials.result("delete-takes-brackets-as-written", "" if "x" in names else f"left: {names}")
    trials.succeeds("list-flag-before-the-name", "endpoint", "update", "--security-group",
                    "web", "e", "--description", "d")
    trials.json("vpc", "update", "x", "--description", "text")
    trials.succeeds("empty-value", "vpc", "update", "x", "--description=", "--tag", "a=b")
    trials.equal("empty-value-is-empty", ("", {"a": "b"}), tuple(
        trials.json("vpc", "show", "x")[field] for field in ("description", "tags")))


def main():
    made = manifest.Manifest(f"{os.environ.get('SLUICE_LAB', 'sluice')}-cli")
    try:
        made.lock()
        made.clear()
        made.folder.mkdir(parents=True)
        controller = product.Controller(made.folder, made)
        controller.daemon.start()
        trials = Trials(controller, made.folder)
        for part in (json_values, words_as_written):
            try:
                part(trials)
            except (shell.LabError, subprocess.SubprocessError, KeyError) as error:
                trials.result(part.__name__.replace("_", "-"), f"{type(error).__name__}: {error}")
    except shell.LabError as error:
        print(f"not ok topology/cli: {error}")
    finally:
        logs = shell.BUILD / "test-logs"
        logs.mkdir(parents=True, exist_ok=True)
        for log in made.folder.glob("*.log"):
            shutil.copy(log, logs / f"cli-{log.name}")
        made.clear()


if __name__ == "__main__":
    main()
