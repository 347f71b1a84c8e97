# SPDX-License-Identifier: Apache-2.0
"""The words that cases are written in. tables.txt says the same to the gateway."""
import ipaddress
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import frames  # noqa: E402
from lab.fabric import Fabric  # noqa: E402
from lab.frames import *  # noqa: E402,F403

# Endpoints: A on host1, B and C on host2; A and B share a subnet, D is on host2 without a group; E is
# on a host that does not answer; F, beside C but on host1, is a router: its source check is off.
VNI = 100
A, B, C, D, E, F = "10.0.1.10", "10.0.1.11", "10.0.2.10", "10.0.1.13", "10.0.1.14", "10.0.2.15"
A6, B6, C6 = "fd12:1::10", "fd12:1::11", "fd12:2::10"
MAC_A, MAC_B, MAC_C, MAC_D, MAC_E, MAC_F = (f"02:aa:00:00:00:0{n}" for n in range(1, 7))
GATEWAY, GATEWAY6, MAC_GATEWAY = "10.0.1.1", "fd12:1::1", "02:99:00:00:01:01"
GATEWAY_C, MAC_GATEWAY_C = "10.0.2.1", "02:99:00:00:02:01"
PUBLIC_A = "198.51.100.10"  # A's elastic IP
# Where a NAT gateway leads to; one with 64 ports an endpoint; one that is not there.
BEYOND_NAT, BEYOND_SMALL_NAT, BEYOND_NO_NAT = "192.88.97.1", "192.88.98.1", "192.88.99.1"
PUBLIC_NAT, PUBLIC_SMALL_NAT = "198.51.100.20", "198.51.100.21"
INTERNET = Fabric.internet_address
BROADCAST = "ff:ff:ff:ff:ff:ff"

HOST1 = ("02:00:0a:ff:00:11", Fabric.gateway_mac, "10.255.0.11", Fabric.gateway_vtep)
HOST2 = ("02:00:0a:ff:00:12", Fabric.gateway_mac, "10.255.0.12", Fabric.gateway_vtep)
HOST1_V6 = ("02:00:0a:ff:00:11", Fabric.gateway_mac, "fd00:255::11", Fabric.gateway_vtep6)
ROGUE = ("02:00:0a:ff:00:66", Fabric.gateway_mac, "10.255.0.66", Fabric.gateway_vtep)


def tunnel(frame, outer=HOST1, vni=VNI, **options):
    """The frame in VXLAN from a host to the gateway."""
    return encapsulated(outer, vni, frame, **options)


def outer(payload, protocol=17, host=HOST1, **options):
    """Any IPv4 packet from a host to the gateway's VTEP."""
    return ether(host[0], host[1], 0x0800,
                 ipv4(options.pop("source", host[2]), options.pop("destination", host[3]),
                      protocol, payload, **options))


def to_b(packet, source=MAC_A, destination=MAC_B):
    """A's frame to its neighbour B."""
    return ether(source, destination, 0x86dd if packet[0] >> 4 == 6 else 0x0800, packet)


def to_c(packet):
    """A's frame to its gateway, for what is beyond the subnet."""
    return to_b(packet, MAC_A, MAC_GATEWAY)


def datagram(port, destination=B, source=A, payload=b"sluice", **options):
    """An IPv4 packet with a UDP datagram from A."""
    return ipv4(source, destination, 17, udp(source, destination, port, 9000, payload), **options)


def datagram6(port, destination=B6, source=A6, payload=b"sluice", **options):
    return ipv6(source, destination, 17, udp(source, destination, port, 9000, payload), **options)


def pieces(packet, cuts, ident):
    """The fragments of an IPv4 or IPv6 packet, its payload cut at these offsets."""
    six = packet[0] >> 4 == 6
    size = 40 if six else 20
    source, destination = (text_of(packet[at:at + (16 if six else 4)])
                           for at in ((8, 24) if six else (12, 16)))
    protocol, ttl = (packet[6], packet[7]) if six else (packet[9], packet[8])
    ends = [0, *cuts, len(packet) - size]
    for start, end in zip(ends, ends[1:]):
        part, more = packet[size + start:size + end], int(size + end < len(packet))
        if six:
            yield ipv6(source, destination, 44, struct.pack(">BBHI", protocol, 0, start | more, ident) + part,
                       hops=ttl)
        else:
            yield ipv4(source, destination, protocol, part, ttl=ttl, ident=ident, flags=more,
                       offset=start // 8)


def text_of(address):
    return str(ipaddress.ip_address(address))


def resum(packet):
    """An IPv4 packet with its header checksum made right again after a change."""
    size = (packet[0] & 15) * 4
    header = packet[:10] + b"\0\0" + packet[12:size]
    return packet[:10] + struct.pack(">H", frames.checksum(header)) + packet[12:]


def changed(packet, at, new):
    return packet[:at] + new + packet[at + len(new):]


def from_internet(packet, destination=Fabric.uplink_mac):
    """A frame of the internet host on the uplink; its own MAC does not matter."""
    return ether("02:11:22:33:44:55", destination, 0x0800, packet)


def b_to_c(port, ttl=64):
    """A datagram of B to C, as it is sent; with TTL 63 as it arrives."""
    ends = (MAC_B, MAC_GATEWAY) if ttl == 64 else (MAC_GATEWAY_C, MAC_C)
    return to_b(datagram(port, C, B, ttl=ttl), *ends)


def c_to_b(port, ttl=64):
    """C's answer."""
    ends = (MAC_C, MAC_GATEWAY_C) if ttl == 64 else (MAC_GATEWAY, MAC_B)
    return to_b(ipv4(C, B, 17, udp(C, B, 9000, port, b"sluice"), ttl=ttl), *ends)


def answered(port, count):
    """Connections of B to C that C answers: the frames on their way to the gateway."""
    return [tunnel(frame(number), HOST2)
            for number in range(port, port + count) for frame in (b_to_c, c_to_b)]


def answered_out(port, count):
    return [frame(number, 63) for number in range(port, port + count) for frame in (b_to_c, c_to_b)]


def unanswered(port, count):
    """Connections of B to C that C does not answer."""
    return [tunnel(b_to_c(number), HOST2) for number in range(port, port + count)]


def unanswered_out(port, count):
    return [b_to_c(number, 63) for number in range(port, port + count)]


def segment(port, flags, sequence, acknowledgement, payload=b"", back=False, ttl=64):
    """A TCP segment of a connection of B to C's port 9, or back; with TTL 63 as it arrives."""
    if back:
        ends = (MAC_C, MAC_GATEWAY_C) if ttl == 64 else (MAC_GATEWAY, MAC_B)
        return to_b(ipv4(C, B, 6, tcp(C, B, 9, port, payload, sequence, acknowledgement,
                                      flags=flags), ttl=ttl), *ends)
    ends = (MAC_B, MAC_GATEWAY) if ttl == 64 else (MAC_GATEWAY_C, MAC_C)
    return to_b(ipv4(B, C, 6, tcp(B, C, port, 9, payload, sequence, acknowledgement, flags=flags),
                     ttl=ttl), *ends)


def segments(port, *each, ttl=64):
    """As many: (flags, sequence, acknowledgement, from C?)."""
    made = [segment(port, flags, sequence, acknowledgement, back=back, ttl=ttl)
            for flags, sequence, acknowledgement, back in each]
    return [tunnel(frame, HOST2) for frame in made] if ttl == 64 else made


# B's connection to C is open: B has sent up to 1001, C up to 5001.
HANDSHAKE = ((SYN, 1000, 0, False), (SYN | ACK, 5000, 1001, True), (ACK, 1001, 5001, False))
