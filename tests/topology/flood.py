#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A tenant floods the gateway with SYNs that nobody answers, a hundred times as many as another
tenant opens connections: the other's all come about, and the table keeps room."""
import multiprocessing
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "packets"))
import bench  # noqa: E402
import words  # noqa: E402
from lab import shell  # noqa: E402

# Another tenant: E on host1 and F on host2, in VPC 6 under VNI 300.
VNI = 300
E, F, MAC_E, MAC_F = "10.6.1.10", "10.6.1.11", "02:aa:00:00:06:01", "02:aa:00:00:06:02"
TABLES = f"""
table=1,tun_id={VNI},actions=set_field:6->reg0,goto_table:2
table=2,ip,dl_src={MAC_E},nw_src={E},reg0=6,actions=set_field:61->reg2,set_field:11->reg9,goto_table:3
table=2,ip,dl_src={MAC_F},nw_src={F},reg0=6,actions=set_field:62->reg2,set_field:12->reg9,goto_table:3
table=3,ip,nw_dst=10.6.1.1,reg0=6,actions=set_field:02:99:00:00:06:01->eth_src,set_field:18->reg8,set_field:17->reg7,set_field:7865820->reg11,goto_table:4
table=6,ip,nw_dst=10.6.0.0/16,reg7=17,actions=set_field:1->reg10,goto_table:12
table=12,ip,nw_dst={E},reg1=6,actions=set_field:61->reg3,set_field:18->reg8,set_field:11->reg9,set_field:{MAC_E}->eth_dst,set_field:28->reg4,goto_table:13
table=12,ip,nw_dst={F},reg1=6,actions=set_field:62->reg3,set_field:18->reg8,set_field:12->reg9,set_field:{MAC_F}->eth_dst,set_field:28->reg4,goto_table:13
"""
CAPACITY = 100_000
CONNECTIONS, SECONDS = 300, 6
FLOOD = 100 * CONNECTIONS  # SYNs a second


def tcp_packet(source, destination, ports, flags):
    return words.ipv4(source, destination, 6, words.tcp(source, destination, *ports, flags=flags))


def flood(wire, rate, until, sent):
    """Sends SYNs of A to B from random ports until the time, about `rate` a second."""
    frames = [words.tunnel(words.to_b(tcp_packet(
        words.A, words.B, (random.randrange(1, 65536), random.randrange(1, 65536)), words.SYN)))
        for _ in range(20_000)]
    random.shuffle(frames)
    start, count = time.monotonic(), 0
    while (now := time.monotonic()) < until:
        while count < (now - start) * rate:
            try:
                wire.send(frames[count % len(frames)])
            except (BlockingIOError, OSError):
                break
            count += 1
            if count % len(frames) == 0:
                random.shuffle(frames)
        time.sleep(0.0005)
    sent.value = count


def arrived(wire, wanted, seconds):
    """Whether the inner frame arrives in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for data in wire.received():
            inner = bench.decapsulate(data)
            if inner and inner == (VNI, wanted):
                return True
        time.sleep(0.0005)
    return False


def connect(made, port):
    """E opens a connection to F: the three packets of a handshake, each sent again once."""
    for flags, back in ((words.SYN, False), (words.SYN | words.ACK, True), (words.ACK, False)):
        if back:
            frame = words.to_b(tcp_packet(F, E, (80, port), flags), MAC_F, MAC_E)
            sender, receiver, outer = made.wires["host2"], made.wires["host1"], words.HOST2
        else:
            frame = words.to_b(tcp_packet(E, F, (port, 80), flags), MAC_E, MAC_F)
            sender, receiver, outer = made.wires["host1"], made.wires["host2"], words.HOST1
        for _ in range(2):
            sender.send(words.tunnel(frame, outer, VNI))
            if arrived(receiver, frame, 0.5):
                break
        else:
            return False
    return True


def main():
    checks = []
    with bench.Bench() as made:
        shell.run("ovs-ofctl", "-O", "OpenFlow13", "--bundle", "add-flows", made.gateway.listen,
                  "-", input=TABLES)
        shell.wait_until(lambda: connect(made, 9), 10, "the gateway forwards for E and F", step=0.1)
        sent = multiprocessing.Value("q", 0)
        flooding = multiprocessing.Process(
            target=flood, args=(made.wires["host1"], FLOOD, time.monotonic() + SECONDS, sent))
        flooding.start()
        time.sleep(1)
        worked = tried = 0
        while flooding.is_alive() and tried < CONNECTIONS:
            tried += 1
            worked += connect(made, 10_000 + tried)
        metrics = made.gateway.metrics()
        flooding.join()
        drops = made.drops()

        def of(name, **labels):
            return sum(value for (found, held), value in metrics.items()
                       if found == name and labels.items() <= dict(held).items())
        held = of("sluice_flows", vpc="4")
        checks += [
            (worked == tried and tried >= 50,
             f"{worked} of {tried} connections of the other tenant came about beside "
             f"{sent.value} SYNs in {SECONDS} s"),
            (sent.value >= 100 * tried, "the flood was a hundred times as much"),
            (0 < held <= CAPACITY / 5, f"the flood holds {held:.0f} of {CAPACITY} connections"),
            ("session_table_full" not in drops, f"the table was never full: {drops}"),
            (made.gateway.daemon.running, "the gateway runs")]
    for good, text in checks:
        print(f"{'ok' if good else 'not ok'} topology/flood: {text}", flush=True)
    return 0 if all(good for good, _ in checks) else 1


if __name__ == "__main__":
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    sys.exit(main())
