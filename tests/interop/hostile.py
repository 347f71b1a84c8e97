# SPDX-License-Identifier: Apache-2.0
"""Peers that misbehave, against a switch: hostile.py PREFIX SOCKET [SECONDS]. Each gets an error or a
closed connection, and a well-behaved connection beside them notices nothing. The switch closes a peer
that does not read after SECONDS (3), and one without HELLO or with half a message sooner."""
import os
import random
import socket
import struct
import sys
import time

from results import case, expect, run

HELLO = struct.pack("!BBHI", 4, 0, 8, 1)
BARRIER = 20
FLOW_REQUEST = (struct.pack("!BBHIHHI", 4, 18, 56, 9, 1, 0, 0)
                + struct.pack("!B3xII4xQQHH4x", 0xFF, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0, 1, 4))


STALLED = float(sys.argv[3]) if len(sys.argv) > 3 else 3.0


class Peer:
    def __init__(self, path, hello=HELLO):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(STALLED + 5)
        self.socket.connect(path)
        self.rest = b""
        if hello:
            self.socket.sendall(hello)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def message(self):
        """The next message: type and body; None when the switch has closed."""
        while True:
            if len(self.rest) >= 8:
                length = struct.unpack("!H", self.rest[2:4])[0]
                if len(self.rest) >= length:
                    message, self.rest = self.rest[:length], self.rest[length:]
                    if message[1] == 2:
                        self.send(struct.pack("!BBH", 4, 3, 8) + message[4:8])
                        continue
                    return message[1], message[8:]
            try:
                part = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not part:
                return None
            self.rest += part

    def error(self):
        """The next error's type and code, or None at the end of the connection."""
        while (message := self.message()) is not None:
            if message[0] == 1:
                return struct.unpack("!HH", message[1][:4])
        return None

    def ended(self):
        while self.message() is not None:
            pass
        return True

    def barrier(self):
        self.send(struct.pack("!BBHI", 4, BARRIER, 8, 77))
        while (message := self.message()) is not None:
            if message[0] == BARRIER + 1:
                return True
        return False


@case
def a_length_below_the_header_is_answered_and_closed(path, _):
    peer = Peer(path)
    peer.send(struct.pack("!BBHI", 4, BARRIER, 7, 1))
    expect(peer.error() == (1, 6), "BAD_LEN")
    expect(peer.ended(), "closed")


@case
def lengths_that_lie_are_errors(path, _):
    peer = Peer(path)
    peer.send(struct.pack("!BBHI", 4, 14, 16, 1) + bytes(8))  # a FLOW_MOD of 16 octets
    expect(peer.error() == (1, 6), "a short FLOW_MOD")
    peer.send(struct.pack("!BBHI", 4, BARRIER, 12, 1) + bytes(4))  # a BARRIER with a body
    expect(peer.error() == (1, 6), "a long BARRIER")
    body = bytes(32) + struct.pack("!II", 0xFFFFFFFF, 0xFFFFFFFF)
    peer.send(struct.pack("!BBHI", 4, 14, 56, 1) + body + struct.pack("!HHI", 1, 0xFFF0, 0))
    error = peer.error()
    expect(error is not None and error[0] in (1, 4), "a match longer than its message", error)
    expect(peer.barrier(), "the connection goes on")


@case
def another_version_is_refused(path, _):
    peer = Peer(path, hello=struct.pack("!BBHI", 1, 0, 8, 1))
    expect(peer.error() == (0, 0), "HELLO_FAILED, INCOMPATIBLE")
    expect(peer.ended(), "closed")
    peer = Peer(path, hello=struct.pack("!BBHIHHI", 6, 0, 16, 1, 1, 8, 1 << 6 | 1 << 5))
    expect(peer.error() == (0, 0), "a bitmap without version 4")


@case
def a_newer_peer_that_also_speaks_ours_is_served(path, _):
    peer = Peer(path, hello=struct.pack("!BBHIHHI", 6, 0, 16, 1, 1, 8, 1 << 6 | 1 << 4))
    expect(peer.barrier(), "a bitmap with version 4")
    peer = Peer(path, hello=struct.pack("!BBHI", 6, 0, 8, 1))
    expect(peer.barrier(), "a higher version without a bitmap")


@case
def a_message_of_another_version_after_the_hello_is_bad_version(path, _):
    peer = Peer(path)
    peer.send(struct.pack("!BBHI", 1, BARRIER, 8, 1))
    expect(peer.error() == (1, 0), "BAD_VERSION")
    expect(peer.barrier(), "the connection goes on")


@case
def an_unknown_type_is_bad_type(path, _):
    peer = Peer(path)
    peer.send(struct.pack("!BBHI", 4, 99, 8, 1))
    expect(peer.error() == (1, 1), "BAD_TYPE")


@case
def no_hello_is_closed_in_time(path, _):
    started = time.monotonic()
    expect(Peer(path, hello=b"").ended(), "closed")
    return f"{time.monotonic() - started:.1f} s"


@case
def a_first_message_that_is_no_hello_is_closed(path, _):
    peer = Peer(path, hello=struct.pack("!BBHI", 4, BARRIER, 8, 1))
    expect(peer.ended(), "closed")


@case
def half_a_message_then_silence_is_closed_in_time(path, good):
    peer = Peer(path)
    peer.send(struct.pack("!BBHI", 4, 14, 80, 1) + bytes(20))
    started = time.monotonic()
    expect(good.barrier(), "another connection is served meanwhile")
    expect(time.monotonic() - started < 1, "at once")
    expect(peer.ended(), "closed")
    return f"{time.monotonic() - started:.1f} s"


@case
def one_octet_at_a_time_is_served(path, _):
    peer = Peer(path)
    for octet in struct.pack("!BBHI", 4, BARRIER, 8, 5):
        peer.send(bytes([octet]))
        time.sleep(0.02)
    expect(peer.barrier(), "an answer")


@case
def a_client_that_never_reads_is_closed_and_disturbs_nobody(path, good):
    peer = Peer(path)
    peer.socket.settimeout(0.5)
    sent = 0
    echo = struct.pack("!BBHI", 4, 2, 60000, 1) + bytes(59992)
    started = time.monotonic()
    try:
        while time.monotonic() - started < 10:
            sent += peer.socket.send(echo + FLOW_REQUEST)
    except (TimeoutError, BlockingIOError):
        pass
    except (BrokenPipeError, ConnectionResetError):
        return f"closed after {sent >> 10} KiB"
    expect(sent < 64 << 20, "the switch stops reading", sent)
    began = time.monotonic()
    expect(good.barrier(), "another connection is served meanwhile")
    expect(time.monotonic() - began < 1, "at once")
    while time.monotonic() - began < STALLED + 2:
        time.sleep(1)
        expect(good.barrier(), "another connection is served all the while")
    try:
        for _ in range(50):
            peer.socket.send(echo)
    except (BrokenPipeError, ConnectionResetError):
        return f"stalled after {sent >> 10} KiB, then closed"
    except (TimeoutError, BlockingIOError):
        pass
    raise AssertionError("it is still open")


@case
def noise_is_survived(path, good):
    generator = random.Random(20)
    for turn in range(300):
        peer = Peer(path, hello=HELLO if turn % 3 else b"")
        noise = bytearray(generator.randbytes(generator.randrange(8, 600)))
        if turn % 2:  # well-formed lengths, so that it gets as far as the decoders
            noise[:4] = struct.pack("!BBH", 4, generator.randrange(0, 35), len(noise))
        peer.send(bytes(noise))
        peer.socket.close()
    expect(good.barrier(), "another connection is served")


@case
def bundle_adds_of_any_inside_are_survived(path, good):
    generator = random.Random(21)
    peer = Peer(path)
    for _ in range(500):
        inner = bytearray(generator.randbytes(generator.randrange(0, 200)))
        inner[:8] = struct.pack("!BBHI", 4, generator.choice([14, 29, 20, 4]),
                                generator.choice([len(inner), 8, 0, 65535]), 5)[:len(inner)]
        peer.send(struct.pack("!BBHIIIIHH", 4, 4, 24 + len(inner), 5, 0x4F4E4600, 2301, 1, 0, 0)
                  + inner)
    expect(peer.barrier(), "the connection goes on")
    expect(good.barrier(), "another connection is served")


@case
def too_many_connections_are_turned_away(path, good):
    peers = [Peer(path) for _ in range(100)]
    time.sleep(0.5)
    expect(good.barrier(), "another connection is served")
    for peer in peers:
        peer.socket.close()
    time.sleep(0.5)
    expect(Peer(path).barrier(), "and afterwards there is room again")


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    run(sys.argv[1], sys.argv[2], Peer(sys.argv[2]))
