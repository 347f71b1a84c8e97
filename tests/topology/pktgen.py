#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""sluice-pktgen and a gateway, each on its core, memif between them: every flow arrives where the
profile's network says, and nothing is lost at a low rate. Also what the generator says when it cannot
give a figure."""
import csv
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import shell  # noqa: E402

PROFILES = shell.ROOT / "bench/profiles"
RATE, PACKETS = 4000, 4000
GATEWAY = """\
name = "pktgen"
workers = [{core}]
vtep = ["192.0.2.1"]
state_dir = "{folder}/state"
[[port]]
role = "underlay"
device = "net_memif0,role=server,id=0,socket-abstract=no,socket={folder}/underlay.memif"
addresses = ["192.0.2.1/24"]
neighbours = {vteps}
mtu = 1600
[[port]]
role = "uplink"
device = "net_memif1,role=server,id=0,socket-abstract=no,socket={folder}/uplink.memif"
addresses = ["198.51.100.1/24"]
next_hops = ["198.51.100.254"]
neighbours = ["198.51.100.254 02:00:00:00:00:fe"]
[openflow]
listen = "unix:{folder}/of"
"""


def result(name, wrong, said=""):
    said, wrong = (" ".join(text.split())[:400] for text in (said, wrong))
    print(f"not ok topology/pktgen/{name}: {wrong}" if wrong
          else f"ok topology/pktgen/{name}" + (f" ({said})" if said else ""), flush=True)


def pktgen(*words):
    return subprocess.run([shell.BUILD / "sluice-pktgen", *map(str, words)], capture_output=True,
                          text=True, timeout=60, check=False)


class Bench:
    """A folder with profiles whose sockets lie in it, and one gateway at a time."""

    def __init__(self, folder):
        self.folder, self.gateway = pathlib.Path(folder), None

    def profile(self, name, change=lambda text: text):
        text = change((PROFILES / f"{name}.toml").read_text(encoding="utf-8"))
        path = self.folder / f"{name}.toml"
        path.write_text(text.replace("/run/sluice/", f"{self.folder}/"), encoding="utf-8")
        return path

    def start(self, network):
        config = self.folder / "gateway.toml"
        shutil.rmtree(self.folder / "state", ignore_errors=True)
        described = pktgen("--network", network)
        # Known from the start, so that not one packet waits for an answer.
        vteps = [f"{host['vtep']} 02:00:00:00:00:02" for host in json.loads(described.stdout)["hosts"]]
        config.write_text(GATEWAY.format(folder=self.folder, core=os.cpu_count() - 1,
                                         vteps=json.dumps(vteps)), encoding="utf-8")
        with open(self.folder / "gateway.log", "ab") as log:
            self.gateway = subprocess.Popen([shell.BUILD / "sluiced", "--config", config],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        shell.wait_until(lambda: (self.folder / "of").is_socket(), 20, "the gateway's socket")
        subprocess.run([shell.BUILD / "program_tables", self.folder / "of"], input=described.stdout,
                       text=True, check=True, timeout=30)

    def stop(self):
        if self.gateway:
            self.gateway.terminate()
            self.gateway.wait(10)
        for socket in self.folder.glob("*.memif"):
            socket.unlink()
        (self.folder / "of").unlink(missing_ok=True)
        self.gateway = None


def wrong_with(done, measured, flows):
    """What a run that should have gone well says else, or nothing."""
    if done.returncode or not measured:
        return f"status {done.returncode}: {done.stdout[-300:]} {done.stderr}"
    run = measured["run"]
    expected = {"sent": PACKETS, "received": PACKETS, "lost": 0, "duplicates": 0, "misdelivered": 0,
                "bad_checksum": 0}
    wrong = [f"{key} {run[key]}, expected {value}" for key, value in expected.items()
             if run[key] != value]
    if measured["flows"] != {"asked": flows, "arrived": flows}:
        wrong.append(f"flows {measured['flows']}, expected {flows}")
    return "; ".join(wrong)


def through(bench, name):
    path = bench.profile(name)
    bench.start(path)
    table = bench.folder / "flows.csv"
    try:
        done = pktgen("--run", path, "--core", 0, "--rate", RATE, "--packets", PACKETS, "--json",
                      "--flows", table)
        measured = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        wrong = wrong_with(done, measured, 1000)
        if not wrong:
            with open(table, encoding="utf-8") as opened:
                rows = list(csv.DictReader(opened))
            total = sum(int(row["received"]) for row in rows)
            wrong = "" if total == PACKETS else f"the flows' counts add up to {total}"
        said = "" if wrong else f"p50 {measured['run']['latency_us']['p50']:.1f} us"
        result(f"every-flow-arrives-{name}", wrong, said)
    finally:
        bench.stop()


def connections(bench):
    """Six packets each, both ends: every connection is complete."""
    path = bench.profile("connections")
    bench.start(path)
    try:
        done = pktgen("--run", path, "--core", 0, "--rate", 1000, "--packets", 1000, "--json")
        run = json.loads(done.stdout).get("run", {}) if done.stdout.startswith("{") else {}
        right = {"opened": 1000, "answered": 1000, "completed": 1000, "failed": 0, "sent": 6000,
                 "misdelivered": 0, "bad_checksum": 0}
        wrong = [f"{key} {run.get(key)}, expected {value}" for key, value in right.items()
                 if run.get(key) != value]
        result("every-connection-is-complete", "; ".join(wrong) + done.stderr[-200:] if wrong else
               "" if done.returncode == 0 else f"status {done.returncode}: {done.stdout}",
               f"p50 {run['duration_us']['p50']:.0f} us" if run.get("duration_us") else "")
    finally:
        bench.stop()


def unknown_vpc(bench):
    """The gateway knows one VPC less than the generator sends for."""
    bench.start(bench.profile("elastic", lambda text: text.replace("vpcs = 8", "vpcs = 7")))
    path = bench.profile("elastic")
    try:
        done = pktgen("--run", path, "--core", 0, "--packets", 100)
        said = re.search(r"no figure: of 1000 flows (\d+) never arrived:\s+(flow 7: VNI 107.*)",
                         done.stdout)
        result("flows-that-never-arrive-are-named", "" if done.returncode == 1 and said
               and said[1] == "125" else f"status {done.returncode}: {done.stdout} {done.stderr}",
               said[2] if said else "")
    finally:
        bench.stop()


def alone(bench):
    path = bench.profile("elastic")
    done = pktgen("--self-test", path, "--seconds", 0.3, "--json")
    loop = json.loads(done.stdout)["self_test"] if done.returncode == 0 else {}
    result("looped-back-to-itself-loses-nothing",
           "" if loop and loop["lost"] == 0 and loop["received"] == loop["sent"] > 100_000
           else f"status {done.returncode}: {done.stdout} {done.stderr}",
           f"{loop['offered_pps'] / 1e6:.1f} Mpps" if loop else "")
    done = pktgen("--run", path, "--wait", 0.5)
    result("without-a-gateway-it-says-so", "" if done.returncode == 2
           and "port[0].device: the device does not start" in done.stderr
           else f"status {done.returncode}: {done.stderr}", done.stderr)
    for name in ("connections", "elastic", "internet", "peers-ipv6", "rocev2"):
        done = pktgen("--check", bench.profile(name))
        result(f"check-{name}", "" if done.returncode == 0 else done.stderr, done.stdout)
    bad = bench.profile("elastic", lambda text: text.replace("count = 1000", "count = 0"))
    done = pktgen("--check", bad)
    result("a-bad-profile-is-named-by-line-and-key", "" if done.returncode == 2 and re.match(
        r".*elastic.toml:\d+: flows.count: expected an integer", done.stderr) else done.stderr)


def capture_file(bench):
    """--pcap: as many packets as asked for, the first at time 0."""
    path = bench.profile("internet", lambda text: re.sub(
        r"(gateway = .*)", r'\1\ngateway_mac = "02:00:00:00:00:01"', text))
    out = bench.folder / "out.pcap"
    done = pktgen("--run", path, "--pcap", out, "--packets", 200)
    counts = []
    for file in (out, pathlib.Path(f"{out}.uplink")):
        octets, at, count = file.read_bytes() if file.exists() else b"", 24, 0
        while at < len(octets):
            at, count = at + 16 + struct.unpack_from("<I", octets, at + 8)[0], count + 1
        counts.append(count)
    result("packets-in-capture-files", "" if done.returncode == 0 and counts == [100, 100]
           else f"status {done.returncode}, {counts} packets: {done.stderr}")


def invariant_crc(frame):
    """Of RoCEv2 in VXLAN, both over IPv4 (IBA volume 1, A17.3.3), as tshark prints it."""
    packet = bytearray(frame[14 + 20 + 8 + 8 + 14:-4])
    for at in (1, 8, 10, 11, 26, 27, 32):  # class, TTL, checksums, marks of congestion
        packet[at] = 0xff
    return f"0x{zlib.crc32(bytes(8 * [0xff]) + packet).to_bytes(4, 'little').hex()}"


def roce_frames(bench):
    """Another's eyes on them: tshark names the headers, and the CRC is computed by other code."""
    path = bench.profile("rocev2", lambda text: re.sub(
        r"(gateway = .*)", r'\1\ngateway_mac = "02:00:00:00:00:01"', text).replace(
            "size = 1086", 'mix = "imix"'))
    out = bench.folder / "roce.pcap"
    packets, flows = 4000, 1000
    done = pktgen("--run", path, "--pcap", out, "--packets", packets)
    fields = ("infiniband.bth.opcode", "infiniband.bth.p_key", "infiniband.bth.destqp",
              "infiniband.bth.psn", "infiniband.invariant.crc")
    decoded = shell.run("tshark", "-n", "-r", out, "-Y", "infiniband", "-T", "fields",
                        *(word for field in fields for word in ("-e", field)), timeout=60)
    seen = [line.split("\t") for line in decoded.stdout.splitlines()]
    octets, at, numbers, wrong = out.read_bytes() if out.exists() else b"", 24, {}, ""
    for opcode, partition, queue_pair, number, crc in seen:
        size = struct.unpack_from("<I", octets, at + 8)[0]
        right = invariant_crc(octets[at + 16:at + 16 + size])
        at += 16 + size
        expected = numbers.get(queue_pair, -1) + 1
        numbers[queue_pair] = expected
        if (opcode, partition, int(number), crc) != ("4", "65535", expected, right):
            wrong = wrong or (f"opcode {opcode}, P_Key {partition}, queue pair {queue_pair}, PSN "
                              f"{number} after {expected - 1}, CRC {crc} where {right} is right")
    if len(seen) != packets or len(numbers) != 2 * flows:
        wrong = wrong or (f"{len(seen)} packets of {len(numbers)} queue pairs; status "
                          f"{done.returncode}: {done.stderr}")
    result("tshark-knows-rocev2-and-its-crc-is-right", wrong,
           f"{len(seen)} packets, {len(numbers)} queue pairs")


def main():
    with tempfile.TemporaryDirectory(prefix="pktgen-") as folder:
        bench = Bench(folder)
        for job in (alone, capture_file, roce_frames, unknown_vpc, connections,
                    *(lambda bench, name=name: through(bench, name)
                      for name in ("elastic", "peers-ipv6", "internet", "rocev2"))):
            try:
                job(bench)
            except (shell.LabError, subprocess.SubprocessError, OSError) as error:
                result(getattr(job, "__name__", "job").strip("<>"), str(error))


if __name__ == "__main__":
    main()
