# SPDX-License-Identifier: Apache-2.0
"""A product program under supervision: start, ready, kill, log."""
import signal
import subprocess
import time

from . import shell


class Daemon:
    """One program that is started and stopped any number of times; its log is appended to."""

    def __init__(self, name, words, log, manifest, ready, namespace=None):
        self.name = name
        self.words = [str(word) for word in words]
        self.log = log
        self.manifest = manifest
        self.ready = ready  # called until true
        self.namespace = namespace
        self.process = None
        self.started = 0.0

    def start(self, seconds=20):
        """Starts it and waits until it is ready; returns the seconds that took."""
        self.launch()
        shell.wait_until(self._ready_or_dead, seconds, f"{self.name} ready (its log: {self.log})")
        return time.monotonic() - self.started

    def launch(self):
        prefix = ["ip", "netns", "exec", self.namespace] if self.namespace else []
        with open(self.log, "ab") as opened:
            opened.write(f"--- start: {' '.join(prefix + self.words)}\n".encode())
            opened.flush()
            self.started = time.monotonic()
            self.process = subprocess.Popen(prefix + self.words, stdout=opened, stderr=opened,
                                            stdin=subprocess.DEVNULL, start_new_session=True)
        self.manifest.process(self.process.pid)

    def _ready_or_dead(self):
        status = self.process.poll()
        if status is not None:
            raise shell.LabError(f"{self.name} ended with status {status}: {self.last_words()}")
        try:
            return self.ready()
        except (OSError, shell.LabError):
            return False

    def last_words(self, lines=6):
        text = self.log.read_text(encoding="utf-8", errors="replace")
        said = [line for line in text.splitlines() if not line.startswith("--- start")]
        return " | ".join(said[-lines:]) or "(no output)"

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """kill -9, as a power cut would; returns when it is gone."""
        self._end(signal.SIGKILL, 5)

    def stop(self, seconds=5):
        """SIGTERM, and SIGKILL if that does not end it; returns the exit status."""
        self._end(signal.SIGTERM, seconds)
        return self.process.returncode if self.process else None

    def _end(self, how, seconds):
        if not self.running:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
