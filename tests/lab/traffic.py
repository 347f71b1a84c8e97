#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Traffic with a name on it: runs inside a namespace, prints one JSON line at its end.

  send TAG DESTINATION PORT --rate PPS --count N     UDP datagrams that carry TAG and a sequence
  receive PORT --seconds S [--expect N]              counts them by tag and source
  serve PORT                                         TCP: answers every connection with a stream
  fetch DESTINATION PORT BYTES                       TCP: checks the stream byte by byte
  echo PORT                                          TCP: sends back what it gets
  talk TAG DESTINATION PORT                          TCP: one line there and back, repeatedly
A stream is a keyed sequence (SHA-256 of a counter), so that loss, repetition and damage all show.
"""
import argparse
import hashlib
import json
import select
import signal
import socket
import sys
import threading
import time

SO_RCVBUFFORCE = 33  # Linux; the socket module does not name it


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def stream(key, block):
    """Block number `block` (8,192 bytes) of the stream of this key."""
    seed = hashlib.sha256(f"{key}/{block}".encode()).digest()
    return hashlib.shake_128(seed).digest(8192)


def send(args):
    sock = socket.socket(family(args.destination), socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    if args.source_port:
        sock.bind(("", args.source_port))
    refused = sent = 0
    begin = time.monotonic()
    end = begin + args.seconds
    while (not args.count or sent < args.count) and time.monotonic() < end and not stopping:
        payload = f"sluice-tag:{args.tag}:{sent}:{time.monotonic():.6f}:".encode().ljust(args.size, b".")
        try:
            sock.sendto(payload, (args.destination, args.port))
        except OSError:
            refused += 1  # an ICMP error that an earlier datagram earned
        sent += 1
        ahead = begin + sent / args.rate - time.monotonic()
        if ahead > 0.001:
            time.sleep(ahead)
    return {"sent": sent, "refused": refused, "seconds": time.monotonic() - begin}


def receive(args):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    sock.bind(("::", args.port))
    ready()
    by_tag, sources, arrivals = {}, {}, []
    total = 0
    end = time.monotonic() + args.seconds
    while not stopping and (not args.expect or total < args.expect):
        left = end - time.monotonic()
        if left <= 0:
            break
        if not select.select([sock], [], [], min(left, 0.2))[0]:
            continue
        data, source = sock.recvfrom(2048)
        parts = data.split(b":", 4)
        if len(parts) < 4 or parts[0] != b"sluice-tag":
            continue
        now = time.monotonic()
        tag, number = parts[1].decode(), int(parts[2])
        entry = by_tag.setdefault(tag, {"count": 0, "highest": -1, "late": 0})
        entry["count"] += 1
        entry["late"] += number < entry["highest"]
        entry["highest"] = max(entry["highest"], number)
        address = source[0].removeprefix("::ffff:")
        sources[address] = sources.get(address, 0) + 1
        total += 1
        arrivals.append(now)
    gap_at = max(range(1, len(arrivals)), key=lambda i: arrivals[i] - arrivals[i - 1], default=None)
    return {"total": total, "tags": by_tag, "sources": sources,
            "first": arrivals[0] if arrivals else None, "last": arrivals[-1] if arrivals else None,
            "longest_gap": arrivals[gap_at] - arrivals[gap_at - 1] if gap_at else None,
            "gap_end": arrivals[gap_at] if gap_at else None}


def listen(port):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", port))
    sock.listen(64)
    ready()
    return sock


def serve(args):
    """Sends the stream to each connection, as fast as --mbps allows, until the peer has enough."""
    sock = listen(args.port)

    def one(peer):
        begin, block = time.monotonic(), 0
        try:
            while not stopping:
                peer.sendall(stream(args.key, block))
                block += 1
                ahead = begin + block * 8192 * 8 / (args.mbps * 1e6) - time.monotonic()
                if ahead > 0:
                    time.sleep(ahead)
        except OSError:
            pass
        peer.close()

    sock.settimeout(0.2)
    accepted = 0
    while not stopping:
        try:
            peer, _ = sock.accept()
        except TimeoutError:
            continue
        peer.settimeout(30)
        accepted += 1
        threading.Thread(target=one, args=(peer,), daemon=True).start()
    return {"accepted": accepted}


def fetch(args):
    begin = time.monotonic()
    sock = socket.create_connection((args.destination, args.port), timeout=args.timeout)
    connected = time.monotonic() - begin
    ready()
    got, block, pending, stalled, exact, last = 0, 0, b"", 0.0, True, time.monotonic()
    error = None
    while got < args.bytes and not stopping:
        try:
            data = sock.recv(65536)
        except OSError as failure:
            error = str(failure)
            break
        if not data:
            error = "closed early"
            break
        now = time.monotonic()
        stalled, last = max(stalled, now - last), now
        got += len(data)
        pending += data
        while len(pending) >= 8192:
            exact = exact and pending[:8192] == stream(args.key, block)
            pending, block = pending[8192:], block + 1
    sock.close()
    return {"bytes": got, "exact": exact and got >= args.bytes, "stall": stalled, "error": error,
            "connect": connected, "seconds": time.monotonic() - begin}


def echo(args):
    sock = listen(args.port)
    sock.settimeout(0.2)

    def one(peer):
        try:
            while data := peer.recv(4096):
                peer.sendall(data)
        except OSError:
            pass
    peers = {}
    while not stopping:
        try:
            peer, source = sock.accept()
        except TimeoutError:
            continue
        address = source[0].removeprefix("::ffff:")
        peers[address] = peers.get(address, 0) + 1
        threading.Thread(target=one, args=(peer,), daemon=True).start()
    return {"peers": peers}


def talk(args):
    """One line there and back every --every s on one connection; notes when each came back."""
    sock = socket.create_connection((args.destination, args.port), timeout=args.timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ready()
    times, number, silent = [], 0, None
    end = time.monotonic() + args.seconds
    while time.monotonic() < end and not stopping:
        line = f"sluice-tag:{args.tag}:{number}:\n".encode()
        try:
            sock.sendall(line)
            got = b""
            while len(got) < len(line):
                part = sock.recv(4096)
                if not part:
                    raise OSError("closed by the peer")
                got += part
        except OSError as failure:
            silent = str(failure)
            break
        times.append(time.monotonic())
        number += 1
        time.sleep(args.every)
    return {"rounds": number, "last": times[-1] if times else None, "error": silent}


def ready():
    print("ready", flush=True)


stopping = False


def stop(*_):
    global stopping
    stopping = True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(function, *positional):
        sub = commands.add_parser(function.__name__)
        for name, kind in positional:
            sub.add_argument(name, type=kind)
        sub.set_defaults(function=function)
        return sub

    sub = command(send, ("tag", str), ("destination", str), ("port", int))
    sub.add_argument("--rate", type=float, default=1000)
    sub.add_argument("--count", type=int, default=0)
    sub.add_argument("--seconds", type=float, default=60)
    sub.add_argument("--source-port", type=int, default=0)
    sub.add_argument("--size", type=int, default=200)
    sub = command(receive, ("port", int))
    sub.add_argument("--seconds", type=float, default=60)
    sub.add_argument("--expect", type=int, default=0)
    sub = command(serve, ("port", int))
    sub.add_argument("--key", default="stream")
    sub.add_argument("--mbps", type=float, default=1000)
    sub = command(fetch, ("destination", str), ("port", int), ("bytes", int))
    sub.add_argument("--key", default="stream")
    sub.add_argument("--timeout", type=float, default=10)
    command(echo, ("port", int))
    sub = command(talk, ("tag", str), ("destination", str), ("port", int))
    sub.add_argument("--every", type=float, default=0.02)
    sub.add_argument("--seconds", type=float, default=30)
    sub.add_argument("--timeout", type=float, default=2)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        result = args.function(args)
    except OSError as error:
        result = {"error": str(error)}
    print(json.dumps(result), flush=True)
    return 0 if not result.get("error") else 1


if __name__ == "__main__":
    sys.exit(main())
