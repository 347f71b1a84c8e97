# SPDX-License-Identifier: Apache-2.0
"""Builds and takes apart the frames of the benchmark: Ethernet, IPv4, UDP, VXLAN (RFC 7348)."""
import ipaddress
import os
import struct
from dataclasses import dataclass

import scenario

FCS = 4
ETHERNET, IPV4, UDP, VXLAN = 14, 20, 8, 8
VXLAN_PORT = 4789


class Malformed(Exception):
    """A frame that is not what it must be, and why."""


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(source, destination, payload, flags=0):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, IPV4 + len(payload), 0, flags, 64, 17, 0,
                       source.packed, destination.packed)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def pseudo_header(source, destination, length):
    return source.packed + destination.packed + struct.pack("!BBH", 0, 17, length)


def udp(source, destination, ports, payload):
    length = UDP + len(payload)
    segment = struct.pack("!HHHH", *ports, length, 0) + payload
    value = checksum(pseudo_header(source, destination, length) + segment) or 0xFFFF
    return segment[:6] + struct.pack("!H", value) + payload


def inner_frame(flow):
    """As the client sends it: to the server's elastic address, through its subnet's gateway."""
    source = ipaddress.IPv4Address(flow.client.address)
    destination = ipaddress.IPv4Address(flow.server.elastic)
    size = scenario.INNER_FRAME - FCS - ETHERNET - IPV4 - UDP
    payload = struct.pack("!I", flow.number).ljust(size, b"\0")
    segment = udp(source, destination, (flow.source_port, scenario.SERVER_PORT), payload)
    return (mac(scenario.SUBNET_GATEWAY_MAC) + mac(flow.client.mac) + b"\x08\0"
            + ipv4(source, destination, segment))


def outer_frame(flow):
    vxlan = struct.pack("!BBHI", 8, 0, 0, flow.client.vni << 8) + inner_frame(flow)
    # The source port is the inner flow's entropy; the checksum is zero (RFC 7348 section 5).
    entropy = 0xC000 | (flow.number * 40503 & 0x3FFF)
    segment = struct.pack("!HHHH", entropy, VXLAN_PORT, UDP + len(vxlan), 0) + vxlan
    packet = ipv4(ipaddress.IPv4Address(scenario.CLIENT_VTEP),
                  ipaddress.IPv4Address(scenario.GATEWAY_VTEP), segment, flags=0x4000)
    return mac(scenario.GATEWAY_MAC) + mac(scenario.CLIENT_HOST_MAC) + b"\x08\0" + packet


def write_pcap(path, flows):
    """One packet per flow. The file appears whole or not at all."""
    with open(f"{path}.new", "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number in range(flows):
            frame = outer_frame(scenario.flow(number))
            out.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
    os.replace(f"{path}.new", path)


@dataclass(frozen=True)
class Datagram:
    """A UDP datagram over IPv4 in an Ethernet frame, checksums verified."""
    destination_mac: str
    source_mac: str
    source: str
    destination: str
    ttl: int
    source_port: int
    destination_port: int
    payload: bytes


def parse(frame, what):
    if len(frame) < ETHERNET + IPV4 + UDP or frame[12:14] != b"\x08\0" or frame[14] != 0x45:
        raise Malformed(f"{what}: not a plain IPv4 frame")
    total, protocol = struct.unpack_from("!H", frame, 16)[0], frame[23]
    packet = frame[ETHERNET:ETHERNET + total]
    if protocol != 17 or len(packet) != total:
        raise Malformed(f"{what}: not UDP, or shorter than its length says")
    if checksum(packet[:IPV4]):
        raise Malformed(f"{what}: wrong IPv4 header checksum")
    source, destination = (ipaddress.IPv4Address(packet[at:at + 4]) for at in (12, 16))
    segment = packet[IPV4:]
    ports, length, sent = struct.unpack_from("!HH", segment), *struct.unpack_from("!HH", segment, 4)
    if length != len(segment):
        raise Malformed(f"{what}: UDP length {length} in {len(segment)} octets")
    if sent and checksum(pseudo_header(source, destination, length) + segment):
        raise Malformed(f"{what}: wrong UDP checksum")
    return Datagram(frame[0:6].hex(":"), frame[6:12].hex(":"), str(source), str(destination),
                    packet[8], *ports, segment[UDP:])


def parse_vxlan(frame):
    """(outer datagram, VNI, inner datagram)"""
    outer = parse(frame, "outer")
    if outer.destination_port != VXLAN_PORT or len(outer.payload) < VXLAN:
        raise Malformed("outer: not VXLAN")
    flags, vni = outer.payload[0], struct.unpack_from("!I", outer.payload, 4)[0] >> 8
    if flags != 8:
        raise Malformed(f"VXLAN flags are {flags:#x}, not 0x8")
    inner = parse(outer.payload[VXLAN:], "inner")
    if not struct.unpack_from("!H", outer.payload, VXLAN + ETHERNET + IPV4 + 6)[0]:
        raise Malformed("inner: the UDP checksum is gone")
    return outer, vni, inner


def flow_number(datagram):
    return struct.unpack_from("!I", datagram.payload)[0]
