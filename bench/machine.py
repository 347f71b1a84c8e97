# SPDX-License-Identifier: Apache-2.0
"""What the benchmark asks of the machine: hugepages, a namespace, a clock, processes that end."""
import contextlib
import fcntl
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

HUGEPAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
FREE_HUGEPAGES = HUGEPAGES.with_name("free_hugepages")
CONTROL_CORE, MEASURED_CORE = 0, 1


class Failure(Exception):
    """One sentence: what went wrong and what to do."""


def say(text):
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def hugepages(megabytes):
    """Sees to it that so much of 2 MB pages is free; afterwards there are as many as before."""
    before, free = int(HUGEPAGES.read_text()), int(FREE_HUGEPAGES.read_text())
    wanted = before + max(0, megabytes // 2 - free)
    try:
        HUGEPAGES.write_text(str(wanted))
        got = int(HUGEPAGES.read_text())
        if got < wanted:
            raise Failure(f"only {got} of {wanted} hugepages of 2 MB could be reserved: free memory")
        yield
    finally:
        HUGEPAGES.write_text(str(before))


@contextlib.contextmanager
def alone():
    """Two comparisons at once would measure each other."""
    with open("/run/lock/sluice-bench.lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another comparison runs on this machine, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def enter_namespace():
    """Restarts this program as root of a network namespace of its own, on the control core."""
    if os.environ.get("SLUICE_BENCH_NAMESPACE") != "1":
        if os.geteuid() != 0:
            raise Failure("needs root: for hugepages and for a network namespace of its own")
        if (os.cpu_count() or 1) < 2:
            raise Failure("needs two cores: one is measured, one is left to everything else")
        os.environ["SLUICE_BENCH_NAMESPACE"] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    run("ip", "link", "set", "lo", "up")
    os.sched_setaffinity(0, {CONTROL_CORE})


def run(*command, **options):
    """Runs a command to its end; its standard output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)
    if done.returncode:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def ahead_of_others():
    """What runs between fork and exec of a measured program: every core is free to it, and no ordinary
    program takes one from it. (The kernel still keeps 5 % of a core for those: `sched_rt_runtime_us`.)"""
    os.sched_setaffinity(0, range(os.cpu_count()))
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Process:
    """A program that is measured: ahead of others, and gone when it is stopped."""

    def __init__(self, command, log, **options):
        self.name, self.log = os.path.basename(command[0]), log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                                          preexec_fn=ahead_of_others, **options)

    def wait_until(self, condition, seconds, what):
        deadline = time.monotonic() + seconds
        while not condition():
            if self.popen.poll() is not None:
                raise Failure(f"{self.name} ended with status {self.popen.returncode}: {self.tail()}")
            if time.monotonic() > deadline:
                raise Failure(f"{self.name}: {what} did not happen within {seconds} s: {self.tail()}")
            time.sleep(0.05)

    def thread_seconds(self):
        """{thread: seconds it ran so far}"""
        tasks = pathlib.Path(f"/proc/{self.popen.pid}/task")
        return {task.name: int((task / "schedstat").read_text("ascii").split()[0]) / 1e9
                for task in tasks.iterdir()}

    def text(self):
        return pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace")

    def tail(self):
        return " | ".join(self.text().strip().splitlines()[-3:]) + f" (all of it: {self.log})"

    def stop(self, with_signal=signal.SIGTERM):
        if self.popen.poll() is None:
            self.popen.send_signal(with_signal)
            try:
                self.popen.wait(15)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()


def tsc_hertz():
    """The kernel's own calibration: it prints twice the frequency in MHz as BogoMIPS."""
    found = re.search(r"bogomips\s*:\s*([\d.]+)", pathlib.Path("/proc/cpuinfo").read_text("ascii"))
    return float(found[1]) / 2 * 1e6


def describe():
    cpu = re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text("ascii"))[1]
    version = lambda *command: run(*command).splitlines()[0].strip()
    return {
        "cpu": cpu, "cores": os.cpu_count(), "tsc_mhz": round(tsc_hertz() / 1e6),
        "kernel": os.uname().release,
        "dpdk": version("dpkg-query", "-W", "-f=${Version}", "dpdk-dev"),
        "ovs": version("ovs-vsctl", "--version").split()[-1],
        "load_before": os.getloadavg()[0],
    }


@contextlib.contextmanager
def veth(name):
    """A pair of Ethernet ends: the program has `name`, the benchmark `name`-peer."""
    run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}-peer")
    try:
        for end in (name, f"{name}-peer"):
            pathlib.Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
            run("ip", "link", "set", end, "up", "promisc", "on")
        yield f"{name}-peer"
    finally:
        run("ip", "link", "del", name)
