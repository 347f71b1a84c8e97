# SPDX-License-Identifier: Apache-2.0
"""What the lab has made, written down before it is made: `down` removes exactly that.

One lab a name and machine (namespaces are global), so the manifest is in the user's cache and not
in a clone.
"""
import fcntl
import json
import os
import shutil
import signal

from . import netns, shell


def _started(pid):
    """The kernel's start time of the process, which tells it from a later one of the same id."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as opened:
            return opened.read().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


class Manifest:
    def __init__(self, name):
        self.folder = shell.CACHE / name
        self.path = self.folder / "manifest"
        self._lock = None

    def lock(self):
        """Refuses a second lab of the same name at the same time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.folder.parent / f"{self.folder.name}.lock", "w", encoding="ascii")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise shell.LabError("another run uses this lab: wait for it, or name another one, "
                                 "e.g. SLUICE_LAB=sluice2") from error

    def unlock(self):
        if self._lock:
            self._lock.close()
            self._lock = None

    def _note(self, record):
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as opened:
            opened.write(json.dumps(record) + "\n")
            opened.flush()
            os.fsync(opened.fileno())

    def namespace(self, name):
        if netns.exists(name):
            raise shell.LabError(f"a namespace {name} exists that this lab did not make")
        self._note({"namespace": name})

    def process(self, pid):
        self._note({"pid": pid, "started": _started(pid)})

    def records(self):
        try:
            with open(self.path, encoding="utf-8") as opened:
                return [json.loads(line) for line in opened if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def clear(self):
        """Ends the processes, deletes the namespaces and the run-time folder; says how many."""
        processes = namespaces = 0
        for record in reversed(self.records()):
            if "pid" in record and record["started"] and _started(record["pid"]) == record["started"]:
                os.kill(record["pid"], signal.SIGKILL)
                processes += 1
        for record in reversed(self.records()):
            if "namespace" in record and netns.exists(record["namespace"]):
                netns.delete(record["namespace"])
                namespaces += 1
        shutil.rmtree(self.folder, ignore_errors=True)
        return processes, namespaces
