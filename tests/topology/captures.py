#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""pcap.dirty and pcap.misquoted on packets whose faults are known."""
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import frames, pcap  # noqa: E402

ONE, TWO = "10.0.1.10", "10.0.2.10"
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


def framed(protocol, payload, source=ONE, destination=TWO, **options):
    return frames.ether(*MACS, 0x0800, frames.ipv4(source, destination, protocol, payload, **options))


def segment(payload=b"x" * 1000, **options):
    return frames.tcp(ONE, TWO, 40000, 80, payload, flags=frames.ACK, **options)


def minus_zero():
    """A segment whose checksum is 0, written as Linux does."""
    for number in range(1 << 17):
        made = segment(struct.pack(">I", number), sequence=number)
        if made[16:18] == b"\0\0":
            return segment(struct.pack(">I", number), sequence=number, sum=0xFFFF)
    raise AssertionError("no such segment")


def error(quote):
    return framed(1, frames.icmp(3, 4, struct.pack(">HH", 0, 1400) + quote), "10.0.1.1", ONE)


def write(path, packets):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for data in packets:
            file.write(struct.pack("<IIII", 1, 0, len(data), len(data)) + data)


def main():
    sent = framed(6, segment())
    inside = frames.encapsulated((*MACS, "192.0.2.1", "192.0.2.2"), 5, framed(6, segment(sum=1)))
    cases = {
        "clean-segment": (sent, 0), "wrong-tcp-checksum": (framed(6, segment(sum=1)), 1),
        "wrong-tcp-checksum-inside-vxlan": (inside, 1),
        "wrong-ip-checksum": (framed(6, segment(), sum=1), 1),
        "wrong-udp-checksum": (framed(17, frames.udp(ONE, TWO, 1, 2, b"x", sum=1)), 1),
        "wrong-icmp-checksum": (framed(1, frames.echo(1, 1, b"x", sum=1)), 1),
        "length-beyond-the-end": (framed(6, segment(), length=1400), 1),
        "checksum-zero-written-as-ffff": (framed(6, minus_zero()), 0),
        "quote-cut-short": (error(sent[14:14 + 548]), 0)}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.pcap"
        for name, (data, wanted) in cases.items():
            write(path, [data])
            found = pcap.dirty([path])
            print(f"ok topology/captures/{name}" if len(found) == wanted
                  else f"not ok topology/captures/{name}: {found}", flush=True)
        write(path, [sent, error(sent[14:562]), error(sent[14:42]), error(sent[14:500] + b"?" * 48)])
        got = pcap.misquoted(path)
        print("ok topology/captures/misquoted" if got == (3, 1)
              else f"not ok topology/captures/misquoted: {got}", flush=True)


if __name__ == "__main__":
    main()
