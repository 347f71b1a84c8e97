# SPDX-License-Identifier: Apache-2.0
"""Questions to captures: by tshark where dissection matters, by hand where only bytes do."""
import collections
import struct

from . import shell

# A capture is clean if nothing in it is malformed and every checksum that is there is right.
# Status 0 is "bad" in tshark 4.
# TCP streams are not put together: an underlay capture holds each segment twice, on its way to
# the gateway and from it, which reassembly takes for overlapping data.
_VALIDATE = [f"{name}:TRUE" for name in (
    "ip.check_checksum", "tcp.check_checksum", "udp.check_checksum", "ip.defragment",
    "ipv6.defragment")] + ["tcp.desegment_tcp_streams:FALSE"]
# What TCP and UDP carry here is the tests' own; a port's usual protocol would find it malformed.
# Of UDP the ports from 1024 to where VXLAN's own source ports begin (Linux': 32768): whatever comes
# from one of these is taken for data, too, and what a tunnel carries would not be looked at.
_NO_APPLICATION = ["-d", "tcp.port==0-65535,data", "-d", "udp.port==1024-4788,data",
                   "-d", "udp.port==4790-32767,data"]
# An ICMP error quotes as much of a packet as has room; tshark computes the checksum of a cut
# segment over what is there. The quotes are compared with what they quote, see `misquoted`.
_QUOTE = "icmp.type in {3, 4, 5, 11, 12} || icmpv6.type < 128"
# Linux writes a TCP checksum that comes to 0 as 0xFFFF (CSUM_MANGLED_0), which is the same number in
# one's complement and passes at every receiver; one segment in 65,536.
_MINUS_ZERO = "tcp.checksum == 0xffff && tcp.checksum_calculated == 0"
_DIRTY = " || ".join([
    "_ws.malformed", "_ws.short", "ip.checksum.status == 0",
    f"(tcp.checksum.status == 0 && !({_QUOTE}) && !({_MINUS_ZERO}))",
    "udp.checksum.status == 0", "icmp.checksum.status == 0", "icmpv6.checksum.status == 0",
    "ip.bogus_ip_length"])


def tshark(path, *words, timeout=120):
    options = [word for rule in _VALIDATE for word in ("-o", rule)] + _NO_APPLICATION
    done = shell.run("tshark", "-n", "-r", path, *options, *words, timeout=timeout)
    return done.stdout.splitlines()


def dirty(paths):
    """Packets of the captures with a wrong checksum or malformed, as tshark describes them."""
    found = []
    for path in paths:
        found += [f"{path.stem}: {line.strip()}" for line in tshark(path, "-Y", _DIRTY)]
    return found


def count(path, display_filter):
    return len(tshark(path, "-Y", display_filter, "-T", "fields", "-e", "frame.number"))


def fields(path, display_filter, *names, occurrence="f"):
    """One tuple of strings a packet."""
    wanted = [word for name in names for word in ("-e", name)]
    lines = tshark(path, "-Y", display_filter, "-T", "fields", "-E", f"occurrence={occurrence}",
                   "-E", "separator=/t", *wanted)
    return [tuple(line.split("\t")) for line in lines]


def packets(path):
    """(seconds, bytes) of every packet of a capture that tcpdump wrote."""
    with open(path, "rb") as opened:
        data = opened.read()
    if len(data) < 24:
        return
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    fraction = 1e-9 if data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d") else 1e-6
    offset = 24
    while offset + 16 <= len(data):
        seconds, part, kept, _ = struct.unpack_from(order + "IIII", data, offset)
        offset += 16
        yield seconds + part * fraction, data[offset:offset + kept]
        offset += kept


def tags(path):
    """How many packets carry each payload tag of traffic.py (`sluice-tag:NAME:`)."""
    found = {}
    for _, data in packets(path):
        at = data.find(b"sluice-tag:")
        if at >= 0:
            tag = data[at + 11:data.index(b":", at + 11)].decode()
            found[tag] = found.get(tag, 0) + 1
    return found


def _as_sent(packet, hops):
    """An IPv4 packet or its beginning; with `hops` as if it had passed no router."""
    return packet[:8] + b"\0" + packet[9:10] + b"\0\0" + packet[12:] if hops else packet


def misquoted(path, hops=False):
    """(ICMP errors of a capture, those whose quote is not the beginning of an earlier packet).

    `hops`: a router further on has met the packet, and IPv4's TTL may be less.
    """
    sent, errors, wrong = set(), 0, 0
    for _, data in packets(path):
        version = data[14] >> 4
        if version == 4 and data[23] == 1 and data[34] in (3, 11, 12):
            quote = _as_sent(data[42:], hops)
        elif version == 6 and data[20] == 58 and data[54] < 128:
            quote = data[62:]
        else:
            # As much as any quote has: the shortest that is allowed to be looked for.
            sent.add(_as_sent(data[14:14 + 548], hops))
            continue
        errors += 1
        wrong += not any(packet.startswith(quote[:548]) or quote.startswith(packet)
                         for packet in sent)
    return errors, wrong


def tag_span(path, tag):
    """When the first and the last packet with this tag came (wall clock)."""
    marker = f"sluice-tag:{tag}:".encode()
    times = [when for when, data in packets(path) if marker in data]
    return (times[0], times[-1]) if times else (0.0, 0.0)


def ip_rate(path, source=None, destination=None, skip=1.0):
    """(10^6 bits a second of IPv4 octets between these addresses, seconds, the highest second).

    The first `skip` s are left out. Measured from the first packet after `skip` to the last one, the last packet's own octets
    left out, so that a gap at either end does not count as rate.
    """
    offset = 14
    first = last = None
    octets = final = 0
    window, in_window, highest = collections.deque(), 0, 0
    start = None
    for when, data in packets(path):
        header = data[offset:offset + 20]
        if len(header) < 20 or header[0] >> 4 != 4:
            continue
        if source and header[12:16] != source or destination and header[16:20] != destination:
            continue
        start = when if start is None else start
        size = struct.unpack_from(">H", header, 2)[0]
        window.append((when, size))
        in_window += size
        while window[0][0] <= when - 1:
            in_window -= window.popleft()[1]
        highest = max(highest, in_window)
        if when < start + skip:
            continue
        first = when if first is None else first
        final = size
        octets += final
        last = when
    if first is None or last <= first:
        return 0.0, 0.0, 0.0
    return (octets - final) * 8 / (last - first) / 1e6, last - first, highest * 8 / 1e6
