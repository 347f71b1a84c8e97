# SPDX-License-Identifier: Apache-2.0
"""Traffic programs (traffic.py, iperf3, a web server) running in a namespace."""
import json
import os
import select
import signal
import subprocess
import time

from . import netns, shell

TRAFFIC = shell.ROOT / "tests/lab/traffic.py"
_started = []


def end_all():
    """Ends whatever a check left running, so that the next one finds its ports free."""
    while _started:
        _started.pop().kill()


class Program:
    """A program in the background; `result` ends it and returns its JSON, if it printed any."""

    def __init__(self, space, *words, wait_for=None, seconds=10):
        self.words = [str(word) for word in words]
        self._process = netns.popen(space, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    stdin=subprocess.DEVNULL, start_new_session=True)
        self._out = b""
        _started.append(self)
        if wait_for:
            self.expect(wait_for, seconds)

    def expect(self, text, seconds):
        """Waits until the program has printed the text."""
        stream = self._process.stdout
        end = time.monotonic() + seconds
        while text.encode() not in self._out:
            left = end - time.monotonic()
            if left <= 0:
                self._process.kill()
                raise shell.Timeout(f"`{' '.join(self.words)}` did not say {text!r} in {seconds} s")
            if not select.select([stream], [], [], left)[0]:
                continue
            data = os.read(stream.fileno(), 65536)
            if not data:
                raise shell.LabError(f"`{' '.join(self.words)}` ended: "
                                     f"{self._process.stderr.read().decode().strip()}"
                                     f"{self._out.decode().strip()}")
            self._out += data

    @property
    def running(self):
        return self._process.poll() is None

    def wait(self, seconds):
        """Waits for its own end; returns the JSON of its last line."""
        try:
            out, _ = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            self._process.kill()
            self._process.communicate()
            raise shell.Timeout(f"`{' '.join(self.words)}` did not end in {seconds:g} s") from error
        self._out += out
        return self._json()

    def result(self, seconds=10):
        """Ends it (SIGTERM) and returns the JSON of its last line."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def _json(self):
        for line in reversed(self._out.decode(errors="replace").splitlines()):
            if line.startswith("{"):
                return json.loads(line)
        return {}

    def kill(self):
        if self.running:
            self._process.kill()
            self._process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def traffic(space, *words, **options):
    """traffic.py in the background; those that listen or connect are waited for."""
    if words[0] in ("receive", "serve", "echo", "fetch", "talk"):
        options.setdefault("wait_for", "ready\n")
    return Program(space, "/usr/bin/python3", TRAFFIC, *words, **options)


def iperf3(server_space, client_space, destination, *options, seconds=2, port=5201):
    """One iperf3 run; returns its JSON."""
    with Program(server_space, "stdbuf", "-oL", "iperf3", "-s", "-1", "-p", port,
                 wait_for="listening"):
        done = netns.execute(client_space, "iperf3", "-c", destination, "-p", port, "-t", seconds,
                             "-J", "--connect-timeout", 3000, *options, timeout=seconds + 15,
                             check=False)
        answer = json.loads(done.stdout or "{}")
        if "error" in answer or "end" not in answer:
            raise shell.LabError(f"iperf3 to {destination}: {answer.get('error', done.stderr)}")
        return answer


def ping(space, destination, *options, count=3, interval=0.05, deadline=1):
    """(received, lines) of a ping."""
    # Without -w, which would go on sending until `count` answers have come.
    done = netns.execute(space, "ping", "-n", "-c", count, "-i", interval, "-W", deadline,
                         *options, destination, check=False, timeout=deadline + 10)
    received = 0
    for line in done.stdout.splitlines():
        if " received" in line:
            received = int(line.split(" received")[0].rsplit(" ", 1)[1])
    return received, done.stdout + done.stderr


def connects(space, destination, port, seconds=1.0):
    """Whether a TCP connection opens; refused counts as reached, since the packet arrived."""
    code = ("import socket,sys\n"
            "try: socket.create_connection((sys.argv[1],int(sys.argv[2])),float(sys.argv[3]))\n"
            "except ConnectionRefusedError: print('refused')\n"
            "except OSError as e: print('no:',e)\n"
            "else: print('open')")
    done = netns.execute(space, "/usr/bin/python3", "-c", code, destination, port, seconds,
                         timeout=seconds + 5, check=False)
    return done.stdout.strip()
