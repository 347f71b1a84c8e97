#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sluicectl against a running controller: what people type, what they get to read."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import manifest, product, shell  # noqa: E402
import completion  # noqa: E402

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


def commands(trials, words=()):
    """Every command with what is below it, as --help lists them."""
    found = [list(words)]
    listing = re.search(r"^Subcommands:\n((?:  .*\n)+)", trials.run(*words, "--help").stdout, re.M)
    names = re.findall(r"^  ([a-z-]+)", listing[1], re.M) if listing else []
    if not words:
        names += re.findall(r"^  ([a-z-]+)", re.search(
            r"^Resources:\n((?:  .*\n)+)", trials.run("--help").stdout, re.M)[1], re.M)
    for name in names:
        found += commands(trials, (*words, name))
    return found


def help_teaches(trials):
    """Every --help: usage, an example that parses, nothing wider than 80 columns."""
    every = commands(trials)
    trials.result("help-lists-all-commands", "" if len(every) > 60 else f"{len(every)} commands")
    wrong = []
    for words in every:
        done = trials.run(*words, "--help")
        said = done.stdout
        if done.returncode or not said.count("Usage: " + " ".join(["sluicectl", *words])):
            wrong.append(f"{words}: no usage")
        wrong += [f"{words}: {line}" for line in said.splitlines() if len(line) > 80]
        examples = re.findall(r"^  (sluicectl .*)", said.replace("\\\n", " "), re.M)
        if not examples and words != ["completion"]:
            wrong.append(f"{words}: no example")
        for example in examples:
            line = shlex.split(example.split(" | ")[0], comments=True)
            tried = trials.run(*line[1:], "--api", "http://127.0.0.1:1")
            if tried.returncode not in (0, 3) and "cannot read" not in tried.stderr:
                wrong.append(f"{example}: status {tried.returncode}: {tried.stderr}")
    trials.result("help-of-every-command", "; ".join(wrong), f"{len(every)} commands")
    for name, words, said in (
            ("nothing", (), "Usage: sluicectl COMMAND"), ("kind-alone", ("vpc",), "Usage: sluicectl vpc"),
            ("no-such-command", ("vcp",), "there is no command vcp"),
            ("no-such-verb", ("vpc", "lst"), "there is no command lst"),
            ("no-such-flag", ("vpc", "create", "--nmae", "x"), "there is no flag --nmae"),
            ("flag-missing", ("vpc", "create"), "--cidr is required"),
            ("name-missing", ("vpc", "show"), "NAME|ID is required"),
            ("word-too-many", ("vpc", "show", "a", "b"), "one word too many: b")):
        trials.fails(f"usage-{name}", 2, [said], *words)
    manual = subprocess.run(["man", "-l", "--warnings", "-Tutf8", shell.ROOT / "docs/sluicectl.1"],
                            capture_output=True, text=True, env={**os.environ, "MANWIDTH": "80"},
                            check=False)
    text = re.sub(".\b", "", manual.stdout)
    for words in every:
        if words and words[0] not in text:
            manual.stderr += f"does not mention {words}"
    for page in ("sluiced(8)", "sluice-controller(8)"):
        if page not in text:
            manual.stderr += f"does not refer to {page}"
    trials.result("manual", manual.stderr)


def said_once(trials):
    """Each problem of a refused request is one line."""
    subnet = trials.controller.client("red").list("subnets")[0]["id"]
    for name, words, expected in (
            ("one-problem", ("endpoint", "create", "--subnet", subnet),
             ["sluicectl: /host_id is required (or vtep)"]),
            ("conflict", ("host", "create", "--name", "h", "--vtep", "192.0.2.9"), None)):
        done = trials.run(*words)
        lines = done.stderr.splitlines()
        trials.result(f"once-{name}", "" if lines == expected or (expected is None and len(lines) == 1)
                      else done.stderr)
    done = trials.run("security-group", "update", "a/web", "--rules",
                      '[{"direction": "in"}, {"direction": "out", "priority": 0}]')
    lines = [line.strip() for line in done.stderr.splitlines()]
    trials.result("once-several-problems", "" if len(lines) == len(set(lines)) >= 4 and not any(
        lines[i + 1] in lines[i] for i in range(len(lines) - 1)) else done.stderr, done.stderr)


def narrow(trials):
    """Every list fits 80 columns; ids come back with more room."""
    trials.json("vpc", "create", "--name", "department-of-physics", "--cidr",
                "10.0.0.0/16,fd12:3456::/32")
    trials.json("subnet", "create", "--name", "accelerators", "--vpc", "department-of-physics",
                "--cidr", "10.0.128.0/24", "--ipv6-cidr", "fd12:3456:789a::/64")
    trials.json("endpoint", "create", "--name", "trainer-17", "--subnet", "accelerators", "--vtep",
                "192.0.2.7")
    trials.json("host", "create", "--name", "rack1-7", "--vtep", "192.0.2.17", who="admin")
    trials.json("external-pool", "create", "--name", "internet", "--cidr", "198.51.100.0/24",
                "--reserved", "198.51.100.0/30", who="admin")
    trials.json("elastic-ip", "create", "--name", "web", "--bandwidth-mbps", "200")
    trials.json("bandwidth", "create", "--name", "all-of-the-laboratories", "--mbps", "4000000")
    for name in ("shared-one", "shared-two"):
        trials.json("elastic-ip", "create", "--name", name, "--bandwidth", "all-of-the-laboratories")
    trials.json("nat-gateway", "create", "--name", "out-of-the-accelerators", "--vpc",
                "department-of-physics", "--elastic-ip", "shared-one,shared-two")
    wrong = []
    for kind in ("vpc", "subnet", "host", "endpoint", "security-group", "prefix-list",
                 "external-pool", "elastic-ip", "bandwidth", "nat-gateway", "route-table", "gateway",
                 "audit"):
        words = [kind] if kind == "audit" else [kind, "list"]
        for columns in ("80", "300"):
            done = subprocess.run(["sluicectl", *words], capture_output=True, text=True, timeout=20,
                                  env={**trials.environment(), "COLUMNS": columns}, check=True)
            widest = max(map(len, done.stdout.splitlines()))
            if widest > int(columns):
                wrong.append(f"{kind}: {widest} columns: " + max(done.stdout.splitlines(), key=len))
            if columns == "300" and kind != "audit" and " ID" not in done.stdout.splitlines()[0]:
                wrong.append(f"{kind}: no ids with room for them")
    trials.result("tables-fit-80-columns", "; ".join(wrong))


def names_in_two_vpcs(trials):
    """Every VPC has a `default` and a `main`; both VPCs here also have `front`, `web` and `e`."""
    client = trials.controller.client("red")
    ids = {vpc["name"]: vpc["id"] for vpc in client.list("vpcs")}
    if "b" not in ids:
        ids["b"] = trials.json("vpc", "create", "--name", "b", "--cidr", "10.0.0.0/16")["id"]
    trials.json("subnet", "create", "--name", "front", "--vpc", "b", "--cidr", "10.0.1.0/24")
    trials.json("security-group", "create", "--name", "web", "--vpc", "b")
    trials.succeeds("endpoint-create-by-vpc", "endpoint", "create", "--name", "e", "--vpc", "b",
                    "--subnet", "front", "--vtep", "192.0.2.7")

    def found(kind, vpc, name):
        for item in client.list(f"{kind}s", name=name):
            subnet = item.get("subnet_id")
            owner = client.get("subnets", subnet)["vpc_id"] if subnet else item["vpc_id"]
            if owner == ids[vpc]:
                return item["id"]
        return None

    for kind, name in (("security-group", "default"), ("route-table", "main"), ("subnet", "front"),
                       ("endpoint", "e")):
        trials.fails(f"{kind}-ambiguous", 1,
                     [f" {kind}s are named {name}", "--vpc", "VPC/NAME", found(kind, "a", name),
                      found(kind, "b", name), "  a", "  b"], kind, "show", name)
        for vpc in ("a", "b"):
            wanted = found(kind, vpc, name)
            for how, words in (("vpc-name", (name, "--vpc", vpc)),
                               ("vpc-id", (name, "--vpc", ids[vpc])),
                               ("slash", (f"{vpc}/{name}",))):
                done = trials.run(kind, "show", *words, "--json")
                got = json.loads(done.stdout)["id"] if done.returncode == 0 else done.stderr
                trials.equal(f"{kind}-show-{how}-{vpc}", wanted, got)
        listed = [item["id"] for item in trials.json(kind, "list", "--vpc", "b")
                  ["items"] if item["name"] == name]
        trials.equal(f"{kind}-list-vpc", [found(kind, "b", name)], listed)

    # What a command is about says which VPC the other names are in.
    web = {vpc: found("security-group", vpc, "web") for vpc in ("a", "b")}
    for vpc in ("a", "b"):
        made = trials.json("endpoint", "create", "--name", f"in-{vpc}", "--subnet", f"{vpc}/front",
                           "--security-group", "web", "--vtep", "192.0.2.7")
        trials.equal(f"group-of-the-subnets-vpc-{vpc}", [web[vpc]], made["security_group_ids"])
        made = trials.json("endpoint", "update", f"in-{vpc}", "--security-group", "default")
        trials.equal(f"group-of-the-endpoints-vpc-{vpc}", [found("security-group", vpc, "default")],
                     made["security_group_ids"])
        rule = trials.json("security-group", "add-rule", "web", "--vpc", vpc, "--direction",
                           "ingress", "--remote-group", "default")
        trials.equal(f"remote-group-of-the-groups-vpc-{vpc}", found("security-group", vpc, "default"),
                     rule["remote_group_id"])
        trials.succeeds(f"remove-rule-vpc-{vpc}", "security-group", "remove-rule", f"{vpc}/web",
                        rule["id"])
        table = trials.json("route-table", "add-route", "main", "--vpc", vpc, "--destination",
                            "10.77.0.0/16", "--next-hop", "endpoint:e")
        hops = [route["next_hop"].get("endpoint_id") for route in table["routes"]]
        trials.result(f"route-to-the-tables-vpc-{vpc}",
                      "" if found("endpoint", vpc, "e") in hops else str(hops))
        trials.succeeds(f"remove-route-vpc-{vpc}", "route-table", "remove-route", f"{vpc}/main",
                        "--destination", "10.77.0.0/16")
        trials.succeeds(f"subnet-route-table-{vpc}", "subnet", "update", f"{vpc}/front",
                        "--route-table", "main")
        trials.succeeds(f"flows-vpc-{vpc}", "flows", "--vpc", vpc, "--endpoint", "e")
    trials.fails("not-in-that-vpc", 1, ["no endpoint is named in-a in VPC b"],
                 "endpoint", "show", "in-a", "--vpc", "b")
    trials.fails("two-vpcs-said", 2, ["not in the VPC that --vpc says"],
                 "endpoint", "show", "a/in-a", "--vpc", "b")
    trials.succeeds("delete-vpc", "endpoint", "delete", "in-b", "e", "--vpc", "b")
    trials.result("delete-vpc-only-there",
                  "" if {item["name"] for item in client.list("endpoints")} >= {"e", "in-a"} else "gone")
    # An admin sees the same names in several projects.
    trials.run("vpc", "create", "--name", "a", "--cidr", "10.0.0.0/16", who="blue")
    trials.fails("vpc-ambiguous-says-project", 1, ["2 vpcs are named a", "PROJECT", "red", "blue",
                                                   "by its id"], "vpc", "show", "a", who="admin")


def main():
    made = manifest.Manifest(f"{os.environ.get('SLUICE_LAB', 'sluice')}-cli")
    try:
        made.lock()
        made.clear()
        made.folder.mkdir(parents=True)
        controller = product.Controller(made.folder, made)
        controller.daemon.start()
        trials = Trials(controller, made.folder)
        for part in (json_values, words_as_written, names_in_two_vpcs, help_teaches,
                     said_once, narrow, completion.run):
            try:
                part(trials)
            except (shell.LabError, subprocess.SubprocessError, KeyError) as error:
                trials.result(f"part-{part.__name__}", f"{type(error).__name__}: {error}")
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
