# SPDX-License-Identifier: Apache-2.0
"""The gateway with security groups and elastic IPs, programmed over OpenFlow."""
import dataclasses
import json
import os
import re
import shutil
import tempfile
import time
import urllib.request

import machine
import scenario
from measurement import Interval, Program, differences
from sample_check import Expected

CONFIGURATION = """\
name = "bench"
workers = [{core}]
vtep = ["{vtep}"]
state_dir = "{run_folder}"
[memory]
hugepages = "required"
packet_buffers = {buffers}
[sessions]
capacity = 1000000
[[port]]
role = "underlay"
device = "{device}"
mac = "{mac}"
addresses = ["{vtep}/24"]
neighbours = ["{server_vtep} {server_mac}"]
mtu = 1600
[openflow]
listen = "unix:{run_folder}/openflow"
[telemetry]
listen = "127.0.0.1:9301"
"""


class Sluiced(Program):
    name, scenario = "sluiced", "sg_nat"
    build = None  # the folder with sluiced; the comparison sets it

    def __init__(self, device, folder, buffers):
        super().__init__(device, folder, buffers)
        # Sockets need a short path.
        self.run_folder = tempfile.mkdtemp(prefix="sluice-bench-")

    def start(self):
        with open(f"{self.folder}/sluiced.toml", "w", encoding="utf-8") as out:
            out.write(CONFIGURATION.format(
                core=machine.MEASURED_CORE, vtep=scenario.GATEWAY_VTEP, run_folder=self.run_folder,
                buffers=self.buffers, device=self.device, mac=scenario.GATEWAY_MAC,
                server_vtep=scenario.SERVER_VTEP, server_mac=scenario.SERVER_HOST_MAC))
        self.process = machine.Process(
            [f"{self.build}/sluiced", "--config", f"{self.folder}/sluiced.toml"],
            f"{self.folder}/sluiced.log")
        self.process.wait_until(lambda: os.path.exists(f"{self.run_folder}/openflow"), 30, "its socket")
        self.process.wait_until(self.metrics, 30, "its telemetry")
        # Answered when every worker acts on the tables.
        machine.run(f"{self.build}/program_tables", f"{self.run_folder}/openflow",
                    input=json.dumps(scenario.as_json()))

    def metrics(self):
        """{name{labels}: number}, or None before it listens."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open("http://127.0.0.1:9301/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return None
        return {name: float(value) for name, value in
                re.findall(r"^(sluice_\S+(?:\{[^}]*\})?) (\S+)", text, re.MULTILINE)}

    def count(self, seconds):
        started, before = time.monotonic(), self.metrics()
        time.sleep(seconds)
        ended, after = time.monotonic(), self.metrics()
        grown = differences(before, after)
        port = lambda direction: int(sum(
            number for name, number in grown.items()
            if name.startswith("sluice_port_packets_total") and f'direction="{direction}"' in name))
        drops = {}
        for name, number in grown.items():
            if name.startswith("sluice_drops_total"):
                reason = re.search(r'reason="([^"]*)"', name)[1]
                drops[reason] = drops.get(reason, 0) + int(number)
        return Interval(ended - started, port("rx"), port("tx"), drops)

    def rules(self):
        counts = {re.search(r'table="([^"]*)"', name)[1]: int(number)
                  for name, number in self.metrics().items()
                  if name.startswith("sluice_table_entries") and number}
        socket = f"unix:{self.run_folder}/openflow"
        lines = ["entries: " + ", ".join(f"{table} {count}" for table, count in counts.items())]
        # Of the tables one entry each, of the rules the first group's.
        for table, number in scenario.TABLES.items():
            dump = machine.run("ovs-ofctl", "-O", "OpenFlow13", "--no-stats", "dump-flows", socket,
                               f"table={number}").splitlines()
            entries = [line.strip() for line in dump if "actions=" in line]
            lines += sorted(entries)[:3] if table.endswith("_rule") else entries[:1]
        return "\n".join(lines)

    def connections(self):
        return int(sum(number for name, number in self.metrics().items()
                       if name.split("{")[0] == "sluice_flows"))

    def expected(self, flow, sent):
        _, vni, inner = sent
        return Expected(
            scenario.SERVER_HOST_MAC, scenario.GATEWAY_VTEP, scenario.SERVER_VTEP, vni,
            dataclasses.replace(inner, source_mac=scenario.SUBNET_GATEWAY_MAC,
                                destination_mac=flow.server.mac, source=flow.client.elastic,
                                destination=flow.server.address, ttl=inner.ttl - 1))

    def stop(self):
        if self.process:
            self.process.stop()
        shutil.rmtree(self.run_folder, ignore_errors=True)
