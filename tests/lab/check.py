# SPDX-License-Identifier: Apache-2.0
"""What a check records: for each fact what was expected, what was measured and which capture shows it."""
import time
import traceback

from . import pcap, program, shell


class Check:
    """One line of the demo. `fact` records; a check passes if it has facts and all of them hold."""

    def __init__(self, number, title, world):
        self.number, self.title, self.world = number, title, world
        self.facts, self.error = [], None
        self.seconds = 0.0
        self._captures, self._notes = [], []

    @property
    def passed(self):
        return self.error is None and bool(self.facts) and all(fact["ok"] for fact in self.facts)

    def fact(self, what, expected, measured, ok, capture=None):
        """`measured` is what the line shows; `capture` a Capture or nothing."""
        self.facts.append({"what": what, "expected": str(expected), "measured": str(measured),
                           "ok": bool(ok), "capture": str(capture.path) if capture else None})
        return bool(ok)

    def equal(self, what, expected, measured, capture=None):
        return self.fact(what, expected, measured, measured == expected, capture)

    def note(self, name, text):
        """Keeps what is no packet beside the captures."""
        path = self.world.lab.captures / f"{self.name(name)}.txt"
        path.write_text(text, encoding="utf-8")
        self._notes.append(str(path))

    def name(self, point):
        return f"{self.number:02}-{point}"

    def capture_host(self, index, project, point=None, **options):
        """The inner frames of a project's VPC on a host: its VXLAN device."""
        host = self.world.fabric.hosts[index]
        return self._keep(self.world.lab.capture(
            host.space, f"vx{project.vni}", self.name(point or f"{host.name}-{project.name}"),
            **options))

    def capture_underlay(self, point="underlay", **options):
        return self._keep(self.world.lab.capture(
            self.world.fabric.underlay, "gateway", self.name(point), **options))

    def capture_uplink(self, point="uplink", **options):
        return self._keep(self.world.lab.capture(
            self.world.fabric.uplink, "gateway", self.name(point), **options))

    def _keep(self, capture):
        self._captures.append(capture)
        return capture

    def run(self, body):
        """Runs the body, then looks over the captures; never raises for what went wrong inside."""
        begin = time.monotonic()
        try:
            body(self, self.world)
        except shell.LabError as error:
            self.error = str(error)
        except Exception as error:  # a fault of the check is a failed check, not the end of all
            self.error = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        program.end_all()
        try:
            self._revive()
            self._look_over_captures()
        except shell.LabError as error:
            self.error = self.error or str(error)
        self.seconds = time.monotonic() - begin
        return self

    def _revive(self):
        """What a check that went wrong has left dead, the next one needs."""
        lab = self.world.lab
        dead = [part.daemon for part in (lab.controller, lab.gateway) if not part.daemon.running]
        for daemon in dead:
            daemon.start()
        if dead:
            lab.wait_connected()
            self.fact("left dead", "nothing", ", ".join(daemon.name for daemon in dead), False)

    def _look_over_captures(self):
        for capture in self._captures:
            capture.stop()
        if not self._captures:
            return
        seen = sum(capture.captured for capture in self._captures)
        wrong = pcap.dirty([capture.path for capture in self._captures])
        self.fact("captured packets, by tshark with checksum validation", "all clean",
                  f"{len(wrong)} of {seen} faulty, first: {wrong[0]}" if wrong
                  else f"{seen}, all clean", not wrong)

    def line(self):
        """The measured facts in one sentence; of a failed check what failed comes first."""
        wrong = [f"{fact['what']}: {fact['measured']} (expected {fact['expected']})"
                 for fact in self.facts if not fact["ok"]]
        if self.error:
            wrong.insert(0, self.error)
        if wrong:
            return "; ".join(wrong)
        if not self.facts:
            return "nothing was measured"
        return "; ".join(f"{fact['what']}: {fact['measured']}" for fact in self.facts)

    def json(self):
        """`expected`, `measured` and `capture` of the whole check, and of each fact."""
        def joined(part):
            return "; ".join(f"{fact['what']}: {fact[part]}" for fact in self.facts)
        captures = [str(capture.path) for capture in self._captures] + self._notes
        return {"check": self.number, "title": self.title, "passed": self.passed,
                "expected": joined("expected"), "measured": joined("measured"),
                "capture": captures[0] if captures else None,
                "seconds": round(self.seconds, 2), "error": self.error, "facts": self.facts,
                "captures": captures}
