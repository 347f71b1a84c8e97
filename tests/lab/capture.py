# SPDX-License-Identifier: Apache-2.0
"""Captures: one tcpdump a point, known to be listening before traffic starts, and flushed at the end."""
import re
import signal
import subprocess
import time

from . import netns, shell


class Capture:
    """tcpdump on a device of a namespace. Ready when constructed; `stop` returns the file."""

    def __init__(self, namespace, device, path, filter="", packets=0, label=None):
        self.path = path
        self.label = label or path.stem
        self.dropped = self.captured = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        limit = ["-c", packets] if packets else []
        self._process = netns.popen(
            namespace, "tcpdump", "-i", device, "-n", "-U", "--immediate-mode", "-s", 0,
            "-B", 16384, "-Z", "root", "-w", path, *limit, *([filter] if filter else []),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self._said = ""
        end = time.monotonic() + 10
        while "listening on" not in self._said:
            line = self._process.stderr.readline()
            self._said += line
            if not line or time.monotonic() > end:
                raise shell.LabError(f"tcpdump on {device} in {namespace}: {self._said.strip()}")

    def stop(self):
        """Ends the capture after what is on its way has arrived; counts what the kernel lost."""
        if self._process is None:
            return self.path
        if self._process.poll() is None:
            time.sleep(0.1)
            self._process.send_signal(signal.SIGINT)
        try:
            _, rest = self._process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, rest = self._process.communicate(timeout=5)
        self._process = None
        said = self._said + rest
        lost = re.search(r"(\d+) packets? dropped by kernel", said)
        seen = re.search(r"(\d+) packets? captured", said)
        self.dropped = int(lost[1]) if lost else 0
        self.captured = int(seen[1]) if seen else 0
        return self.path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
