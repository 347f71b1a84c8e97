#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program that cannot start says in one sentence why and what to do, and ends with status 2."""
import pathlib
import re
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import lab, shell  # noqa: E402


# In the mount namespace that `ip netns exec` makes: a machine whose kernel offers none.
WITHOUT_HUGEPAGES = ("sh", "-c", "mount -t tmpfs none /sys/kernel/mm/hugepages && exec \"$@\"", "sh")


def attempt(space, program, config, wrap=()):
    """(status, lines on standard error) of a start that is expected to fail."""
    words = [*wrap, shell.BUILD / program, "--config", config]
    if space:
        words = ["ip", "netns", "exec", space, *words]
    try:
        done = shell.run(*words, timeout=10, check=False)
    except shell.Timeout:
        return None, ["(it started)"]
    return done.returncode, [line for line in done.stderr.splitlines() if line.strip()]


# A remedy stands behind a semicolon; where a value is wrong, what was expected is the remedy. What is
# wrong in TOML's syntax is shown at its line.
WHAT_TO_DO = r"; \w+|expected|chmod|:\d+: (not TOML|Error while parsing)"


class Trials:
    def __init__(self, made):
        self.made = made
        self.good = made.gateway.config.read_text(encoding="utf-8")
        self.folder = made.folder

    def gateway(self, name, replace, by, *mentions, wrap=()):
        """The gateway's configuration with one thing wrong."""
        text = self.good.replace(replace, by)
        assert text != self.good or not replace, f"{name}: nothing was replaced"
        self.judge(name, self.made.fabric.gateway, "sluiced", text, mentions, wrap)

    def controller(self, name, replace, by, *mentions):
        """The controller's, on a store of its own."""
        text = self.made.controller.config.read_text(encoding="utf-8")
        text = text.replace("/state.db", "/trial.db")
        changed = text.replace(replace, by)
        assert changed != text or not replace, f"{name}: nothing was replaced"
        self.judge(name, None, "sluice-controller", changed, mentions)

    def judge(self, name, space, program, text, mentions, wrap=()):
        config = self.folder / "trial.toml"
        config.write_text(text, encoding="utf-8")
        self.report(name, *attempt(space, program, config, wrap), mentions)

    @staticmethod
    def report(name, status, said, mentions):
        text = " | ".join(said)
        missing = [word for word in mentions if word.lower() not in text.lower()]
        if not re.search(WHAT_TO_DO, text):
            missing.append("what to do")
        if status == 2 and len(said) == 1 and not missing:
            print(f"ok topology/start-up/{name} ({said[0]})", flush=True)
        else:
            print(f"not ok topology/start-up/{name}: status {status}, {len(said)} lines, "
                  f"missing {missing}: {text[:400]}", flush=True)


def usage():
    """A wrong command line: one line and status 2; none at all, the usage."""
    for program in ("sluiced", "sluice-controller"):
        for name, words, mentions in (
                ("unknown-flag", ["--nonsense"], ["--nonsense"]),
                ("unknown-word", ["nonsense"], ["nonsense"]),
                ("config-without-a-file", ["--config"], ["--config"]),
                ("config-and-check", ["--config", "a", "--check", "b"], ["--config", "--check"])):
            done = shell.run(shell.BUILD / program, *words, check=False)
            Trials.report(f"{program}-{name}", done.returncode, done.stderr.splitlines(),
                          [f"{program} --help", *mentions])
    done = shell.run(shell.BUILD / "sluiced", check=False)
    good = done.returncode == 2 and "Usage: sluiced" in done.stderr and "--config" in done.stderr
    print(f"{'ok' if good else 'not ok'} topology/start-up/sluiced-without-arguments"
          + ("" if good else f": status {done.returncode}: {done.stderr}"), flush=True)


def main():
    usage()
    try:
        with lab.Lab("sluice-startup", captures=shell.BUILD / "test-logs/start-up",
                     workers=(0,)) as made:
            made.start_product()
            trials = Trials(made)
            # Beside a running instance, so names and ports that are to be free are changed.
            trials.gateway("second-instance", "", "", "gw1")
            made.gateway.daemon.stop()
            trials.gateway("missing-device", "iface=u0", "iface=nowhere", "nowhere")
            trials.gateway("unknown-driver", "net_af_packet0", "net_nothing0", "net_nothing0")
            # The TAP driver makes its interface, and carries no more than it says.
            trials.gateway("tap-carries-less", "net_af_packet0,iface=u0", "net_tap0,iface=trial0",
                           "port[0].mtu", "at most", "not 1600", "set `mtu = 1500` in this [[port]]")
            trials.gateway("syntax", 'name = "gw1"', 'name = "gw1', "trial.toml:1")
            trials.gateway("unknown-key", "mtu = 1600", "mtus = 1600", "mtus")
            trials.gateway("wrong-type", "mtu = 1600", 'mtu = "big"', "mtu")
            trials.gateway("wrong-address", '"203.0.113.254"', '"203.0.113.354"', "203.0.113.354")
            trials.gateway("no-such-core", "workers = [0]", "workers = [999]", "999")
            trials.gateway("hugepages-required", 'hugepages = "off"', 'hugepages = "required"',
                           "hugepages", wrap=WITHOUT_HUGEPAGES)
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                taken.listen()
                port = taken.getsockname()[1]
                trials.controller("api-port-in-use", str(made.controller.port), str(port), str(port))
            trials.gateway("unreadable-state", str(made.gateway.state_dir), "/proc/nowhere",
                           "/proc/nowhere")
            made.controller.daemon.stop()
            trials.controller("controller-syntax", "[api]", "[api", "trial.toml:1")
            trials.controller("controller-unknown-key", "[store]", "[store]\nurls = 1", "urls")
            trials.controller("controller-store", "sqlite:", "mysql:", "mysql")
            trials.controller("controller-tokens-missing", "tokens.toml", "no-tokens.toml",
                              "no-tokens.toml")
            made.controller.tokens.chmod(0o644)
            trials.controller("controller-tokens-readable-by-others", "", "", "tokens.toml", "chmod")
            made.controller.tokens.chmod(0o600)
            missing = made.folder / "none.toml"
            for program, space in (("sluiced", made.fabric.gateway), ("sluice-controller", None)):
                trials.report(f"{program}-no-file", *attempt(space, program, missing),
                              [str(missing)])
    except (shell.LabError, AssertionError) as error:
        print(f"not ok topology/start-up: {error}")


if __name__ == "__main__":
    main()
