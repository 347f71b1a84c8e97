# SPDX-License-Identifier: Apache-2.0
"""Packets as octets, from their fields: what goes into the gateway and what is to come out.

Every checksum is computed from nothing, so that one which the gateway changed is verified. A packet
is a dict, see sequences.py; its addresses are text.
"""
import functools
import ipaddress
import struct

TCP, UDP, ICMP, ICMPV6, SCTP, GRE = 6, 17, 1, 58, 132, 47
UNDERLAY, UPLINK = 1, 2

# As gateway.cpp sets the gateway up.
VTEP = "192.0.2.250"
UNDERLAY_MAC, UPLINK_MAC, ROUTER_MAC = "02:00:00:00:aa:01", "02:00:00:00:aa:02", "02:00:00:00:cc:01"
UPLINK_ADDRESS = "198.18.7.1"
OUTER = 14 + 20 + 8 + 8
PATTERN, INVERSE = bytes(i * 7 & 0xFF for i in range(65536)), pow(7, -1, 256)


def host_mac(vtep):
    return bytes([2, 0, 0, 0, 0xBB, ipaddress.ip_address(vtep).packed[-1]])


@functools.lru_cache(None)
def mac(text):
    return bytes.fromhex(text.replace(":", ""))


@functools.lru_cache(None)
def packed(text):
    return ipaddress.ip_address(text).packed


def checksum(octets):
    if len(octets) % 2:
        octets += b"\0"
    # A sum of 16-bit words with end-around carry is the whole as one number modulo 65,535.
    number = int.from_bytes(octets, "big")
    return (number % 0xFFFF or (0xFFFF if number else 0)) ^ 0xFFFF


def payload(length, salt):
    """So many octets that tell packets apart: salt, salt + 7, ..."""
    begin = salt * INVERSE % 256
    return PATTERN[begin:begin + length]


def transport(p, ends):
    """The octets behind the IP header; `ends`: the tuple with which they travel."""
    if "quotes" in p:
        return error(p, ends)
    source, destination, protocol, source_port, destination_port = ends
    body = payload(p.get("length", 0), p.get("salt", 0))
    pseudo = packed(source) + packed(destination)

    def summed(octets, field):
        head = pseudo + (struct.pack("!HH", protocol, len(octets)) if "." in source else
                         struct.pack("!II", len(octets), protocol))
        value = checksum(head + octets)
        if protocol == UDP and value == 0:
            value = 0xFFFF
        return octets[:field] + struct.pack("!H", value) + octets[field + 2:]

    if protocol == TCP:
        options = bytes.fromhex(p.get("options", ""))
        octets = struct.pack("!HHIIBBHHH", source_port, destination_port, p["seq"], p["ack"],
                             (20 + len(options)) // 4 << 4, p["flags"], 8192, 0, 0) + options + body
        return summed(octets, 16)
    if protocol == UDP:
        octets = struct.pack("!HHHH", source_port, destination_port, 8 + len(body), 0) + body
        return octets if p.get("no_checksum") else summed(octets, 6)
    if protocol in (ICMP, ICMPV6):
        octets = struct.pack("!HHHH", destination_port, 0, source_port, p.get("salt", 0)) + body
        if protocol == ICMPV6:
            return summed(octets, 2)
        return octets[:2] + struct.pack("!H", checksum(octets)) + octets[4:]
    if protocol == SCTP:
        # The checksum (CRC32c) covers no address.
        return struct.pack("!HHIIBBH", source_port, destination_port, p["tag"], 0xC3C3C3C3,
                           p["chunk"], 0, 4 + len(body)) + body
    return b"\x00\x01\x02\x03" + body


def error(p, ends):
    """An ICMP error: the packet that it quotes, up to an octet, as it was seen there."""
    quoted = p["quotes"]
    octets = struct.pack("!HHI", p["destination_port"], 0, p["rest"]) + network(
        quoted, quoted["ends"], quoted["ttl"], quoted["tos"])[:quoted["cut"]]
    pseudo = b"" if "." in ends[0] else \
        packed(ends[0]) + packed(ends[1]) + struct.pack("!II", len(octets), ICMPV6)
    return octets[:2] + struct.pack("!H", checksum(pseudo + octets)) + octets[4:]


def ip_packet(source, destination, protocol, behind, ttl, tos, identification=0, fragment=0):
    if "." in source:
        header = struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + len(behind), identification, fragment,
                             ttl, protocol, 0, packed(source), packed(destination))
        return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + behind
    return struct.pack("!IHBB16s16s", 6 << 28 | tos << 20, len(behind), protocol, ttl,
                       packed(source), packed(destination)) + behind


def network(p, ends, ttl, tos):
    """The whole IP packet with the given tuple, TTL and traffic class."""
    protocol, behind = ends[2], transport(p, ends)
    fragment = 0x4000 if p.get("df") else 0
    if "cut" in p and "more" in p:  # a fragment of it
        start, end = p["cut"]
        behind = behind[start:end]
        if "." in ends[0]:
            fragment |= start // 8 | (0x2000 if p["more"] else 0)
        else:
            behind = struct.pack("!BBHI", protocol, 0, start | p["more"], p["id"]) + behind
            protocol = 44
    return ip_packet(ends[0], ends[1], protocol, behind, ttl, tos, p.get("id", 0), fragment)


def ethernet(destination, source, packet):
    kind = b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"
    return destination + source + kind + packet


def tunnelled(frame, vni, source, destination, macs, tos, source_port=50000):
    """In VXLAN over IPv4; `macs`: destination and source of the outer frame."""
    udp = struct.pack("!HHHH", source_port, 4789, 16 + len(frame), 0)
    vxlan = struct.pack("!II", 0x08000000, vni << 8)
    return ethernet(*macs, ip_packet(source, destination, UDP, udp + vxlan + frame, 64, tos,
                                     fragment=0x4000))


def arriving(p):
    """(port, octets) of a packet on its way into the gateway."""
    packet = network(p, tuple_of(p), p["ttl"], p["tos"])
    if p["side"] == "uplink":
        return UPLINK, ethernet(mac(UPLINK_MAC), mac(ROUTER_MAC), packet)
    frame = ethernet(mac(p["to_mac"]), mac(p["source_mac"]), packet)
    return UNDERLAY, tunnelled(frame, p["vni"], p["vtep"], VTEP,
                               (mac(UNDERLAY_MAC), host_mac(p["vtep"])), p.get("ecn", 0),
                               p.get("outer_port", 50000))


def tuple_of(p):
    return p["source"], p["destination"], p["protocol"], p["source_port"], p["destination_port"]


def leaving_tunnelled(packet, macs, vni, vtep, tos):
    """What is to leave towards a host; its outer source port is the gateway's to choose: zero."""
    return tunnelled(ethernet(*macs, packet), vni, VTEP, vtep, (host_mac(vtep), mac(UNDERLAY_MAC)),
                     tos, source_port=0)


def leaving_uplink(packet):
    return ethernet(mac(ROUTER_MAC), mac(UPLINK_MAC), packet)


def without_choice(port, frame):
    """A frame that left, with what the gateway may choose set to zero."""
    if port != UNDERLAY or len(frame) < OUTER:
        return frame
    return frame[:34] + b"\0\0" + frame[36:]


def without_identification(port, frame):
    """The same with the inner IPv4 identification, and what follows from it, set to zero."""
    at = 14 if port == UPLINK else OUTER + 14
    if frame[at] >> 4 != 4 or checksum(frame[at:at + 20]):
        return port, frame
    return port, frame[:at + 4] + b"\0\0" + frame[at + 6:at + 10] + b"\0\0" + frame[at + 12:]


def ip_length(p):
    return len(network(p, tuple_of(p), 1, 0))


def fragments(packet, mtu):
    """An IPv4 packet in pieces that fit (RFC 791 section 3.2)."""
    behind, header = packet[20:], packet[:20]
    word = struct.unpack("!H", header[6:8])[0]
    pieces, at, each = [], 0, (mtu - 20) // 8 * 8
    while at < len(behind):
        rest = len(behind) - at
        size = rest if rest <= mtu - 20 else each
        more = 0x2000 if at + size < len(behind) or word & 0x2000 else 0
        pieces.append(ip_packet_like(header, behind[at:at + size], (word & 0x1FFF) + at // 8 | more))
        at += size
    return pieces


def ip_packet_like(header, behind, fragment):
    header = header[:2] + struct.pack("!H", 20 + len(behind)) + header[4:6] + \
        struct.pack("!H", fragment) + header[8:10] + b"\0\0" + header[12:]
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + behind
