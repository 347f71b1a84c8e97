# SPDX-License-Identifier: Apache-2.0
"""A real ovs-vswitchd under the controller's southbound: open_vswitch.py PROGRAM LOGS."""
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from results import case, expect, run

ENTRIES = 1 + 4 + 2 + 3 + 1 + 1 + 10 + 50 * 8


class OpenVSwitch:
    """ovsdb-server and ovs-vswitchd in a folder and a namespace of their own."""

    def __init__(self, logs):
        self.folder = tempfile.mkdtemp(prefix="sluice-ovs.")
        self.netns = f"sluice-interop-{os.getpid()}"
        self.environment = dict(os.environ, OVS_RUNDIR=self.folder, OVS_LOGDIR=self.folder,
                                OVS_DBDIR=self.folder, OVS_SYSCONFDIR=self.folder)
        self.log = open(os.path.join(logs, "open_vswitch.log"), "wb")
        self.children = []
        subprocess.run(["ip", "netns", "add", self.netns], check=True)
        self.tool("ovsdb-tool", "create", f"{self.folder}/conf.db",
                  "/usr/share/openvswitch/vswitch.ovsschema")
        self.daemon("ovsdb-server", f"{self.folder}/conf.db",
                    f"--remote=punix:{self.folder}/db.sock")
        self.wait("db.sock")
        self.vsctl("--no-wait", "init")
        self.daemon("ovs-vswitchd", "--enable-dummy", f"unix:{self.folder}/db.sock")
        self.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy",
                   "protocols=OpenFlow13", "fail_mode=secure", "other-config:dp-desc=ovs1")

    def daemon(self, *command):
        self.children.append(subprocess.Popen(
            ["ip", "netns", "exec", self.netns, *command], env=self.environment,
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL))

    def wait(self, name):
        for _ in range(100):
            if os.path.exists(f"{self.folder}/{name}"):
                return
            time.sleep(0.1)
        raise RuntimeError(f"{name} did not appear")

    def tool(self, *command):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=30, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stderr}")
        return done.stdout

    def vsctl(self, *arguments):
        return self.tool("ovs-vsctl", f"--db=unix:{self.folder}/db.sock", "--timeout=20",
                         *arguments)

    def ofctl(self, *arguments):
        return self.tool("ovs-ofctl", "-O", "OpenFlow13", *arguments)

    def flows(self):
        text = self.ofctl("--no-stats", "dump-flows", f"unix:{self.folder}/br0.mgmt")
        return [line for line in text.splitlines() if "actions=" in line]

    def stop(self):
        for child in reversed(self.children):
            child.terminate()
            child.wait(timeout=20)
        subprocess.run(["ip", "netns", "del", self.netns], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.log.close()


class Controller:
    def __init__(self, program, socket, log):
        self.child = subprocess.Popen([program, f"unix:{socket}", "ovs1"], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line.strip())

    def until(self, start, seconds=20):
        """The next line that begins so."""
        end = time.monotonic() + seconds
        seen = []
        while (left := end - time.monotonic()) > 0:
            try:
                seen.append(self.lines.get(timeout=left))
            except queue.Empty:
                break
            if seen[-1].startswith(start):
                return seen[-1]
        raise AssertionError(f"no line '{start}', but {seen[-5:]}")

    def order(self, command):
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()

    def stop(self):
        self.child.stdin.close()
        self.child.wait(timeout=10)


class World:
    def __init__(self, program, logs):
        self.switch = OpenVSwitch(logs)
        self.program = program
        self.socket = f"{self.switch.folder}/controller"
        self.controller = None
        self.switch.vsctl("set-controller", "br0", f"unix:{self.socket}", "--", "set", "controller",
                          "br0", "max_backoff=1000")

    def start_controller(self):
        self.controller = Controller(self.program, self.socket, self.switch.log)

    # Open vSwitch keeps its entries while its controller is away.
    def stop_controller(self):
        if self.controller:
            self.controller.stop()
            self.controller = None

    def stop(self):
        self.stop_controller()
        self.switch.stop()


@case
def a_real_switch_is_programmed_in_every_table(world):
    world.start_controller()
    line = world.controller.until("active")
    expect(line == f"active put {ENTRIES} removed 0", line)
    flows = world.switch.flows()
    expect(len(flows) == ENTRIES, len(flows), "entries")
    expect(len({f.split("table=")[1].split(",")[0].split()[0] for f in flows}) == 12, "tables")
    expect(any("set_field:0x10003e8->pkt_mark,set_field:0x130000b4->pkt_mark" in f for f in flows),
           "both settings of the VPC")
    meters = world.switch.ofctl("dump-meters", f"unix:{world.switch.folder}/br0.mgmt")
    expect(meters.count("rate=20000 burst_size=2000") == 2, meters)
    return f"{ENTRIES} entries in 12 tables, 2 meters"


@case
def what_it_holds_reads_back_equal_so_nothing_is_sent_again(world):
    world.stop_controller()
    world.start_controller()
    line = world.controller.until("log ovs1: 14 tables differ")
    expect(line == "log ovs1: 14 tables differ, 0 entries put, 0 removed", line)
    world.controller.until("active")


@case
def what_was_changed_behind_its_back_is_repaired(world):
    world.stop_controller()
    management = f"unix:{world.switch.folder}/br0.mgmt"
    world.switch.ofctl("--strict", "del-flows", management, "table=1,tun_id=77")
    world.switch.ofctl("add-flow", management,
                       "table=16,reg9=99,actions=set_field:0xffffc0000263->xxreg3")
    world.start_controller()
    line = world.controller.until("log ovs1: 14 tables differ")
    expect(line.endswith("1 entries put, 1 removed"), line)
    world.controller.until("active")
    expect(len(world.switch.flows()) == ENTRIES, "entries")


@case
def a_published_change_is_confirmed(world):
    world.controller.order("change")
    world.controller.until("confirmed 2")
    expect(len(world.switch.flows()) == ENTRIES + 8 - 1, len(world.switch.flows()), "entries")
    meters = world.switch.ofctl("dump-meters", f"unix:{world.switch.folder}/br0.mgmt")
    expect("rate=30000 burst_size=3000" in meters and "rate=1000 burst_size=100" in meters, meters)


@case
def what_it_refuses_is_left_out_and_named_and_the_rest_is_there(world):
    before = len(world.switch.flows())
    world.controller.order("bad")
    line = world.controller.until("withheld 6")
    expect("OFP" in line, line)
    world.controller.until("confirmed 3")
    expect(len(world.switch.flows()) == before + 8, len(world.switch.flows()), "entries")
    world.controller.order("repair")
    world.controller.until("confirmed 4")
    expect(world.controller.child.poll() is None, "the controller lives")
    return line


if __name__ == "__main__":
    program, logs = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    everything = World(program, logs)
    try:
        run("interop/open-vswitch", everything)
    finally:
        everything.stop()
