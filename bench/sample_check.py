# SPDX-License-Identifier: Apache-2.0
"""Sends a sample of the packets through a program over a virtual cable and holds what comes out
against what the program must do to them. A figure without this check could be one of a program that
drops or mangles what it counts."""
import socket
import time
from dataclasses import dataclass

import frames
import machine
import scenario

DEVICE = "net_pcap0,rx_iface_in=bench0,tx_iface=bench0"
FLOWS = 40
ETH_P_ALL = 3
PACKET_OUTGOING = 4


@dataclass(frozen=True)
class Expected:
    destination_mac: str
    source: str
    destination: str
    vni: int
    inner: frames.Datagram


def exchange(end, flows):
    """Sends each flow's packet twice, the second one as a later packet of its connection; what came
    back, by flow."""
    came = {}
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as wire:
        wire.bind((end, 0))
        # One at a time: net_pcap's own buffer is a few dozen packets.
        for flow in flows * 2:
            wire.send(frames.outer_frame(flow))
            answer = receive(wire, time.monotonic() + 2)
            if answer:
                came.setdefault(frames.flow_number(answer[2]), []).append(answer)
    return came


def receive(wire, deadline):
    """The next VXLAN packet, or None; what else comes is the gateway's own, such as ARP."""
    while time.monotonic() < deadline:
        wire.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            frame, address = wire.recvfrom(2048)
        except TimeoutError:
            return None
        if address[2] != PACKET_OUTGOING and frame[12:14] == b"\x08\0" and frame[23] == 17:
            return frames.parse_vxlan(frame)
    return None


def compare(program, flow, came):
    """The first difference in words, or None."""
    want = program.expected(flow, frames.parse_vxlan(frames.outer_frame(flow)))
    for outer, vni, inner in came:
        got = Expected(outer.destination_mac, outer.source, outer.destination, vni, inner)
        if got != want:
            return f"flow {flow.number}: {got} left, {want} was right"
    return None if len(came) == 2 else f"flow {flow.number}: {len(came)} of 2 packets came out"


def check(kind, folder, buffers):
    """A sentence about what was seen; raises Failure if anything is wrong."""
    # Spread over the VPCs and endpoints.
    flows = [scenario.flow(number * 251) for number in range(FLOWS)]
    with machine.veth("bench0") as end, kind(DEVICE, folder, buffers) as program:
        time.sleep(0.5)
        try:
            came = exchange(end, flows)
        except frames.Malformed as problem:
            raise machine.Failure(f"{program.name} sent a bad packet: {problem}") from None
        for flow in flows:
            problem = compare(program, flow, came.get(flow.number, []))
            if problem:
                raise machine.Failure(f"{program.name}: {problem}")
        strays = set(came) - {flow.number for flow in flows}
        if strays:
            raise machine.Failure(f"{program.name} sent packets of flows nobody asked for: {strays}")
    return (f"{2 * len(flows)} of {2 * len(flows)} sample packets came back in VXLAN as they must: "
            "addresses, ports, VNI, MACs, TTL, checksums")
