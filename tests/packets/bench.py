# SPDX-License-Identifier: Apache-2.0
"""A gateway alone on its wires: tables by ovs-ofctl, frames in and out as bytes, counters beside."""
import pathlib
import select
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import fabric, frames, manifest, netns, product, shell  # noqa: E402

TABLES = pathlib.Path(__file__).with_name("tables.txt")
PACKET_OUTGOING = 4
# dataplane/openflow/settings.hpp
SETTINGS = {"connections": 1, "endpoint_connections": 5, "mid_stream": 32, "tcp_window_check": 33}


class Wire:
    """A raw socket of a machine: sends frames, and keeps those that arrive for the machine."""

    def __init__(self, space, device):
        def make():
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            opened.bind((device, 3))
            opened.setblocking(False)
            return opened
        self.socket = netns.within(space, make)

    def send(self, frame):
        self.socket.send(frame)

    def received(self):
        """Frames that came in since the last call."""
        found = []
        while True:
            try:
                data, address = self.socket.recvfrom(65536)
            except BlockingIOError:
                return found
            if address[2] != PACKET_OUTGOING:
                found.append(data)


class Bench:
    """The lab's fabric with a gateway on it, without controller and without tenants."""

    def __init__(self, workers=(0,), sessions="", driver="net_af_packet", vpc=None):
        self.manifest = manifest.Manifest("sluice-packets")
        self.workers, self.sessions, self.driver = workers, sessions, driver
        self.vpc = vpc or {}

    def __enter__(self):
        self.manifest.lock()
        self.manifest.clear()
        try:
            self._raise()
        except BaseException:
            self._save_log()
            self.manifest.clear()
            raise
        return self

    def _raise(self):
        self.manifest.folder.mkdir(parents=True, exist_ok=True)
        self.fabric = fabric.Fabric("sluice-packets", self.manifest)
        self.fabric.build()
        # Someone must own the ports that are sent to, or kernels answer with ICMP errors.
        self._sinks = [netns.within(host.space, lambda: _sink(4789)) for host in self.fabric.hosts]
        self._sinks.append(netns.within(self.fabric.internet, lambda: _sink(9000)))
        self.gateway = product.Gateway(self.manifest.folder, self.fabric, self.manifest,
                                       f"unix:{self.manifest.folder}/nobody.of",
                                       workers=self.workers, sessions=self.sessions, driver=self.driver)
        self.gateway.daemon.start()
        tables = TABLES
        if self.vpc:
            words = "".join(f"set_field:{SETTINGS[name] << 24 | value}->pkt_mark,"
                            for name, value in self.vpc.items())
            tables = self.manifest.folder / "tables.txt"
            tables.write_text(TABLES.read_text(encoding="utf-8").replace(
                "set_field:4->reg0,goto_table:2", f"set_field:4->reg0,{words}goto_table:2"),
                encoding="utf-8")
        shell.run("ovs-ofctl", "-O", "OpenFlow13", "--bundle", "add-flows", self.gateway.listen,
                  tables)
        self.wires = {"host1": Wire(self.fabric.hosts[0].space, "u0"),
                      "host2": Wire(self.fabric.hosts[1].space, "u0"),
                      "rogue": Wire(self.fabric.rogue, "u0"),
                      "internet": Wire(self.fabric.internet, "eth0")}

    def __exit__(self, *_):
        self._save_log()
        self.manifest.clear()
        for wire in getattr(self, "wires", {}).values():
            wire.socket.close()
        self.manifest.unlock()

    def _save_log(self):
        logs = shell.BUILD / "test-logs"
        logs.mkdir(parents=True, exist_ok=True)
        for log in self.manifest.folder.glob("*.log"):
            (logs / f"packets-{log.name}").write_bytes(log.read_bytes())

    def drops(self):
        """{reason: packets} of the whole gateway."""
        found = {}
        for (name, labels), value in self.gateway.metrics().items():
            if name == "sluice_drops_total" and value:
                reason = dict(labels)["reason"]
                found[reason] = found.get(reason, 0) + int(value)
        return found

    def walks(self):
        """{worker: first packets that it has judged}."""
        return {dict(labels)["worker"]: int(value)
                for (name, labels), value in self.gateway.metrics().items()
                if name == "sluice_worker_walks_total" and dict(labels)["kind"] == "first"}

    def drain(self):
        for wire in self.wires.values():
            wire.received()

    def outputs(self):
        """(where, VNI or None, frame) of everything the gateway has sent for others since then."""
        found = []
        for name in ("host1", "host2", "rogue"):
            for data in self.wires[name].received():
                inner = decapsulate(data)
                if inner and data[6:12] == frames.mac(self.fabric.gateway_mac):
                    found.append((name, *inner))
        for data in self.wires["internet"].received():
            if data[6:12] == frames.mac(self.fabric.uplink_mac) and data[12:14] != b"\x08\x06" \
                    and not _neighbour_discovery(data):
                found.append(("internet", None, data))
        return found


def _sink(port):
    sink = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sink.bind(("::", port))
    return sink


def _neighbour_discovery(data):
    return data[12:14] == b"\x86\xdd" and data[20] == 58 and data[54] in (133, 134, 135, 136)


def decapsulate(data):
    """(VNI, inner frame) of a VXLAN packet, or nothing."""
    if data[12:14] == b"\x08\x00" and data[23] == 17:
        udp = 14 + (data[14] & 15) * 4
    elif data[12:14] == b"\x86\xdd" and data[20] == 17:
        udp = 54
    else:
        return None
    if struct.unpack_from(">H", data, udp + 2)[0] != 4789:
        return None
    length = struct.unpack_from(">H", data, udp + 4)[0]
    return int.from_bytes(data[udp + 12:udp + 15], "big"), data[udp + 16:udp + length]


def settle(bench, before, expected, seconds=1.5):
    """Waits until as many packets have met a fate as were sent, or the time is over."""
    end = time.monotonic() + seconds
    outputs = []
    while True:
        select.select([wire.socket for wire in bench.wires.values()], [], [], 0.02)
        outputs += bench.outputs()
        now = bench.drops()
        delta = {reason: count - before.get(reason, 0) for reason, count in now.items()
                 if count != before.get(reason, 0)}
        if sum(delta.values()) + len(outputs) >= expected or time.monotonic() > end:
            time.sleep(0.03)  # what should not be there has its chance to arrive
            outputs += bench.outputs()
            now = bench.drops()
            return {reason: count - before.get(reason, 0) for reason, count in now.items()
                    if count != before.get(reason, 0)}, outputs
