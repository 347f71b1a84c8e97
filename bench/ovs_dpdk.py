# SPDX-License-Identifier: Apache-2.0
"""Open vSwitch on DPDK with a rule set of the usual shape: a VXLAN port on an integration bridge,
connection tracking with source translation, one poll-mode thread."""
import dataclasses
import os
import re
import shutil
import tempfile
import time

import machine
import scenario
from measurement import Interval, Program, differences
from sample_check import Expected

DAEMON = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
HOP_SOURCE, HOP_DESTINATION = "02:00:00:00:0a:01", "02:00:00:00:0a:02"


class OvsNat(Program):
    name, scenario = "ovs-nat", "sg_nat"
    database = None

    def __init__(self, device, folder, buffers):
        super().__init__(device, folder, buffers)
        # Sockets need a short path.
        self.run_folder = tempfile.mkdtemp(prefix="sluice-bench-ovs-")
        self.environment = {**os.environ, "OVS_RUNDIR": self.run_folder, "OVS_LOGDIR": self.run_folder,
                            "OVS_DBDIR": self.run_folder}
        self.socket = f"unix:{self.run_folder}/db.sock"

    def run(self, *command):
        return machine.run(*command, env=self.environment)

    def vsctl(self, *arguments):
        return self.run("ovs-vsctl", f"--db={self.socket}", "--timeout=30", *arguments)

    def appctl(self, *arguments):
        return self.run("ovs-appctl", "-t", f"{self.run_folder}/switch.ctl", *arguments)

    def flow_rules(self):
        back = (f"dec_ttl,mod_dl_src:{HOP_SOURCE},mod_dl_dst:{HOP_DESTINATION},"
                f"set_field:{scenario.SERVER_VTEP}->tun_dst,in_port")
        return [
            "table=0,in_port=vxlan0,ip,actions=ct(zone=5,nat,table=1)",
            "table=1,ip,ct_state=+trk+new,actions=ct(commit,zone=5,"
            f"nat(src={scenario.SHARED_ADDRESS})),{back}",
            f"table=1,ip,ct_state=+trk+est,actions={back}",
        ]

    def start_daemons(self):
        self.run("ovsdb-tool", "create", f"{self.run_folder}/conf.db", SCHEMA)
        self.database = machine.Process(
            ["ovsdb-server", f"{self.run_folder}/conf.db", "--remote=p" + self.socket],
            f"{self.folder}/ovsdb-server.log", env=self.environment)
        self.database.wait_until(lambda: os.path.exists(f"{self.run_folder}/db.sock"), 10, "its socket")
        self.vsctl("--no-wait", "init")
        self.vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
                   f"other_config:pmd-cpu-mask={1 << machine.MEASURED_CORE:#x}",
                   f"other_config:dpdk-lcore-mask={1 << machine.CONTROL_CORE:#x}",
                   "other_config:dpdk-socket-mem=512", "other_config:dpdk-extra=--in-memory")
        self.process = machine.Process(
            [DAEMON, self.socket, f"--unixctl={self.run_folder}/switch.ctl"],
            f"{self.folder}/ovs-vswitchd.log", env=self.environment)
        self.process.wait_until(lambda: os.path.exists(f"{self.run_folder}/switch.ctl"), 30, "its socket")

    def start(self):
        self.start_daemons()
        for bridge in ("br-phy", "br-int"):
            self.vsctl("add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev")
        self.vsctl("set", "bridge", "br-phy", f"other_config:hwaddr={scenario.GATEWAY_MAC}")
        self.vsctl("add-port", "br-int", "vxlan0", "--", "set", "Interface", "vxlan0", "type=vxlan",
                   "options:key=flow", "options:remote_ip=flow",
                   f"options:local_ip={scenario.GATEWAY_VTEP}")
        machine.run("ip", "addr", "replace", f"{scenario.GATEWAY_VTEP}/24", "dev", "br-phy")
        machine.run("ip", "link", "set", "br-phy", "up")
        self.appctl("tnl/arp/set", "br-phy", scenario.SERVER_VTEP, scenario.SERVER_HOST_MAC)
        self.run("ovs-ofctl", "del-flows", "br-int")
        for rule in self.flow_rules():
            self.run("ovs-ofctl", "add-flow", "br-int", rule)
        # Last: packets that come before the rules are bridged by MAC, and the datapath flows made for
        # them stay and match on MACs ever after. 401 flows instead of 209, 4 to 13 % slower.
        self.vsctl("add-port", "br-phy", "phy0", "--", "set", "Interface", "phy0", "type=dpdk",
                   f"options:dpdk-devargs={self.device}")
        problem = self.vsctl("get", "Interface", "phy0", "error").strip()
        if problem != "[]":
            raise machine.Failure(f"OVS-DPDK does not take the port: {problem}")

    def drops(self):
        text = self.appctl("coverage/show")
        return {name: int(total) for name, total in
                re.findall(r"^(datapath_drop\w*|drop_action\w*) .*total: (\d+)$", text, re.MULTILINE)}

    def count(self, seconds):
        before = self.drops()
        self.appctl("dpif-netdev/pmd-stats-clear")
        started = time.monotonic()
        time.sleep(seconds)
        text = self.appctl("dpif-netdev/pmd-perf-show")
        taken = time.monotonic() - started
        # The PMD's own clock: "Rx packets: 11111 (2222 Kpps, 1170 cycles/pkt)"
        received = re.search(r"Rx packets:\s+(\d+)\s+\((\d+) Kpps", text)
        sent = re.search(r"Tx packets:\s+(\d+)", text)
        duration = re.search(r"Duration:\s+([\d.]+)", text)
        if not received or not sent:
            raise machine.Failure(f"OVS-DPDK received nothing: {text}")
        return Interval(float(duration[1]) if duration else taken, int(received[1]), int(sent[1]),
                        differences(before, self.drops()))

    def rules(self):
        flows = self.run("ovs-ofctl", "--no-stats", "dump-flows", "br-int").strip()
        cached = [line for line in self.appctl("dpctl/dump-flows").splitlines()
                  if "eth_type(0x0800)" in line]
        # One of each stage: they differ in the MAC addresses.
        stages = {re.search(r"ct_state\([^)]*\)|$", line)[0]: line for line in cached}
        return "\n".join([flows, f"its datapath caches {len(cached)} flows, for example:", *stages.values()])

    def connections(self):
        return int(re.search(r"(\d+)", self.appctl("dpctl/ct-get-nconns"))[1])

    def expected(self, flow, sent):
        _, vni, inner = sent
        return Expected(
            scenario.SERVER_HOST_MAC, scenario.GATEWAY_VTEP, scenario.SERVER_VTEP, vni,
            dataclasses.replace(inner, source_mac=HOP_SOURCE, destination_mac=HOP_DESTINATION,
                                source=scenario.SHARED_ADDRESS, ttl=inner.ttl - 1))

    def stop(self):
        for process in (self.process, self.database):
            if process:
                process.stop()
        shutil.rmtree(self.run_folder, ignore_errors=True)
