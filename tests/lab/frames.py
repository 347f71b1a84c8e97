# SPDX-License-Identifier: Apache-2.0
"""Frames byte by byte, right unless a field is given wrong on purpose. RFC numbers beside each."""
import ipaddress
import struct


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ip(text):
    return ipaddress.ip_address(text).packed


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ether(source, destination, ether_type, payload):
    return mac(destination) + mac(source) + struct.pack(">H", ether_type) + payload


def ipv4(source, destination, protocol, payload, ttl=64, tos=0, ident=1, flags=2, offset=0,
         options=b"", length=None, sum=None, version=4, ihl=None):
    """RFC 791. `flags`: 2 is DF, 1 is MF."""
    words = 5 + len(options) // 4 if ihl is None else ihl
    total = 20 + len(options) + len(payload) if length is None else length
    header = struct.pack(">BBHHHBBH4s4s", version << 4 | words, tos, total, ident,
                         flags << 13 | offset, ttl, protocol, 0, ip(source), ip(destination))
    header += options
    value = checksum(header) if sum is None else sum
    return header[:10] + struct.pack(">H", value) + header[12:] + payload


def ipv6(source, destination, next_header, payload, hops=64, traffic_class=0, length=None,
         version=6, flow=0):
    """RFC 8200."""
    size = len(payload) if length is None else length
    return struct.pack(">IHBB16s16s", version << 28 | traffic_class << 20 | flow, size, next_header,
                       hops, ip(source), ip(destination)) + payload


def _pseudo(source, destination, protocol, size):
    if ":" in source:
        return ip(source) + ip(destination) + struct.pack(">IHBB", size, 0, 0, protocol)
    return ip(source) + ip(destination) + struct.pack(">BBH", 0, protocol, size)


def udp(source, destination, source_port, destination_port, payload, length=None, sum=None):
    """RFC 768, over either family. `sum=0`: none."""
    size = 8 + len(payload) if length is None else length
    datagram = struct.pack(">HHHH", source_port, destination_port, size, 0) + payload
    value = checksum(_pseudo(source, destination, 17, len(datagram)) + datagram) or 0xffff
    value = value if sum is None else sum
    return datagram[:6] + struct.pack(">H", value) + payload


SYN, ACK, FIN, RST, PSH = 2, 16, 1, 4, 8


def tcp(source, destination, source_port, destination_port, payload=b"", sequence=1,
        acknowledgement=0, flags=SYN, window=65535, options=b"", sum=None, offset=None):
    """RFC 9293."""
    words = 5 + len(options) // 4 if offset is None else offset
    segment = struct.pack(">HHIIBBHHH", source_port, destination_port, sequence, acknowledgement,
                          words << 4, flags, window, 0, 0) + options + payload
    value = checksum(_pseudo(source, destination, 6, len(segment)) + segment)
    value = value if sum is None else sum
    return segment[:16] + struct.pack(">H", value) + segment[18:]


def icmp(kind, code, rest, sum=None):
    """RFC 792; `rest` begins with the four bytes after the checksum."""
    message = struct.pack(">BBH", kind, code, 0) + rest
    value = checksum(message) if sum is None else sum
    return message[:2] + struct.pack(">H", value) + rest


def icmpv6(source, destination, kind, code, rest, sum=None):
    """RFC 4443."""
    message = struct.pack(">BBH", kind, code, 0) + rest
    value = checksum(_pseudo(source, destination, 58, len(message)) + message)
    value = value if sum is None else sum
    return message[:2] + struct.pack(">H", value) + rest


def echo(identifier, sequence, payload=b"", kind=8, sum=None):
    return icmp(kind, 0, struct.pack(">HH", identifier, sequence) + payload, sum)


def arp(operation, sender_mac, sender_ip, target_mac, target_ip):
    """RFC 826."""
    return (struct.pack(">HHBBH", 1, 0x0800, 6, 4, operation) + mac(sender_mac) + ip(sender_ip)
            + mac(target_mac) + ip(target_ip))


def vxlan(vni, frame, flags=0x08, reserved=0, reserved2=0):
    """RFC 7348 section 5."""
    return struct.pack(">BBHI", flags, reserved >> 16 & 0xff, reserved & 0xffff,
                       vni << 8 | reserved2) + frame


def encapsulated(outer, vni, frame, source_port=50000, **options):
    """The frame in VXLAN between two VTEPs. `outer`: source MAC, destination MAC, source IP,
    destination IP."""
    source_mac, destination_mac, source, destination = outer
    payload = udp(source, destination, source_port, options.pop("port", 4789),
                  vxlan(vni, frame, **options), sum=None if ":" in source else 0)
    if ":" in source:
        return ether(source_mac, destination_mac, 0x86dd, ipv6(source, destination, 17, payload))
    return ether(source_mac, destination_mac, 0x0800, ipv4(source, destination, 17, payload))
