# SPDX-License-Identifier: Apache-2.0
"""20 Mbit/s on an elastic IP: 10^6 bits of inner IP octets a second, each direction separately."""
from lab import frames, pcap, program

TITLE = "elastic bandwidth, 20 Mbit/s"
ASKED, SECONDS = 20.0, 4


def run(check, world):
    red, internet = world.red, world.fabric.internet
    web1 = red.tenants["web1"]
    elastic = red.api.update("elastic-ips", red.elastic_ip()["id"], bandwidth_mbps=int(ASKED))
    address = elastic["address"]

    peaks = []
    before = walks(world)

    def measure(name, low, traffic, directions=("out", "in")):
        points = {"out": check.capture_uplink(f"uplink-{name}", filter=f"src host {address}"),
                  "in": check.capture_host(
                      0, red, point=f"in-{name}", filter=f"dst host {web1.ip}")}
        traffic()
        for direction in directions:
            capture = points[direction]
            capture.stop()
            ends = ({"source": frames.ip(address)} if direction == "out"
                    else {"destination": frames.ip(web1.ip)})
            rate, seconds, highest = pcap.ip_rate(capture.path, **ends)
            check.fact(f"{name}" if "TCP" in name else f"{name} {direction}",
                       f"{ASKED * low:.1f} to {ASKED * 1.05:.1f} Mbit/s",
                       f"{rate:.2f} Mbit/s", ASKED * low <= rate <= ASKED * 1.05
                       and seconds >= SECONDS - 2, capture)
            peaks.append(highest)
        for capture in points.values():
            capture.stop()

    def udp():
        senders = []
        for port in range(9000, 9004):  # four flows a direction, so that both workers get some
            rate = ["--rate", 900, "--size", 1400, "--seconds", SECONDS]
            senders.append(program.traffic(web1.space, "send", "bw",
                                           world.fabric.far_address, port, *rate))
            senders.append(program.traffic(internet, "send", "bw", address, port, *rate))
        for sender in senders:
            sender.wait(SECONDS + 10)

    def tcp(flows, direction):
        def go():
            server, client, target = ((internet, web1.space, world.fabric.far_address)
                                      if direction == "out" else (web1.space, internet, address))
            program.iperf3(server, client, target, "-P", flows, seconds=SECONDS)
        return go

    receivers = [program.traffic(web1.space, "receive", port) for port in range(9000, 9004)]
    receivers += [program.traffic(internet, "receive", port) for port in range(9000, 9004)]
    measure("UDP", 0.95, udp)
    for receiver in receivers:
        receiver.result()
    for flows, low in ((8, 0.95), (1, 0.90)):
        for direction in ("out", "in"):
            measure(f"TCP×{flows} {direction}", low, tcp(flows, direction), (direction,))
    # A burst of 100 ms may come on top of a second, whatever it follows.
    most = (ASKED + ASKED * 0.1) * 1.05
    check.fact("the highest second of all", f"with a burst of 100 ms at most {most:.1f} Mbit/s",
               f"{max(peaks):.2f} Mbit/s", max(peaks) <= most)
    judged = {worker: count - before.get(worker, 0) for worker, count in walks(world).items()}
    check.fact("connections set up by worker", "some by each of two",
               ", ".join(f"{worker}: {count:.0f}" for worker, count in sorted(judged.items())),
               len(judged) == 2 and all(judged.values()))
    red.api.update("elastic-ips", elastic["id"], bandwidth_mbps=None)


def walks(world):
    """{worker: first packets that it has judged}."""
    return {dict(labels)["worker"]: value for (name, labels), value
            in world.lab.gateway.metrics().items()
            if name == "sluice_worker_walks_total" and dict(labels)["kind"] == "first"}
