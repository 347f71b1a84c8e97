#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Public addresses between real machines: announced, moved, limited together."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import frames, lab, pcap, program, shell, world  # noqa: E402
from lab.check import Check  # noqa: E402
from lab.checks.c06_elastic_ip import PRIVATE, curl, web_server  # noqa: E402

ON_LINK = "203.0.113.64/26"  # inside of the uplink's own prefix
ASKED, SECONDS = 20.0, 4


def announcements(capture, address):
    """[(seconds, MAC)] of the gratuitous ARPs for an address (RFC 5227 section 2.3)."""
    rows = pcap.fields(capture.path, f"arp.isgratuitous && arp.src.proto_ipv4 == {address} && "
                       f"arp.dst.proto_ipv4 == {address} && eth.dst == ff:ff:ff:ff:ff:ff",
                       "frame.time_epoch", "arp.src.hw_mac")
    return [(float(when), mac) for when, mac in rows]


def announced(check, made):
    """An elastic IP of an on-link pool is announced where it comes to be, and when it moves; the
    gateway's own addresses when it starts. One that has gone is not contradicted."""
    red = made.red
    pool = made.admin.create("external-pools", wait=0, name="link", cidr=ON_LINK, mode="on_link")
    capture = check.capture_uplink("announced")
    red.api.update("elastic-ips", red.elastic_ip()["id"], endpoint_id=None)
    elastic = red.api.create("elastic-ips", name="link", pool_id=pool["id"], wait=0)
    at = ("elastic-ips", elastic["id"])
    begin = time.time()
    red.api.update(*at, endpoint_id=red.endpoints["web1"]["id"])
    time.sleep(3.3)
    moved = time.time()
    red.api.update(*at, endpoint_id=red.endpoints["web2"]["id"])
    with web_server(red.tenants["web2"]):
        seen = curl(made.fabric.internet, elastic["address"])
    check.equal("curl on the link", "red-web2", seen.get("host"), capture)
    time.sleep(0.5)
    red.api.update(*at, endpoint_id=None)
    gone = time.time()
    time.sleep(3)
    restarted = time.time()
    check.world.lab.gateway.daemon.stop()
    check.world.lab.gateway.daemon.start()
    check.world.lab.wait_connected()
    time.sleep(3)
    capture.stop()
    three_until = [a for a in announcements(capture, elastic["address"]) if a[0] < moved]
    check.fact("attached", "within 0.2 s, three times, 1 s apart",
               ", ".join(f"{when - begin:.2f} s" for when, _ in three_until),
               len(three_until) == 3 and three_until[0][0] - begin < 0.2, capture)
    after_move = [when for when, _ in announcements(capture, elastic["address"])
                  if moved < when < gone]
    check.fact("moved", "announced again within 0.2 s",
               ", ".join(f"{when - moved:.2f} s" for when in after_move),
               after_move and after_move[0] - moved < 0.2, capture)
    late = [when for when, _ in announcements(capture, elastic["address"]) if when > gone + 0.1]
    check.equal("announced after the detach", 0, len(late), capture)
    own = [(when, mac) for when, mac in announcements(capture, made.fabric.gateway_uplink)
           if when > restarted]
    check.fact("the gateway's own address after its start", "3 times", len(own), len(own) == 3,
               capture)
    six = pcap.count(capture.path, f"icmpv6.type == 136 && icmpv6.nd.na.flag.s == 0 && "
                     f"icmpv6.nd.na.target_address == {made.fabric.gateway_uplink6}")
    check.fact("its IPv6 address, by unsolicited advertisement", "3 times or more", six, six >= 3,
               capture)
    red.api.delete(*at)
    made.admin.delete("external-pools", pool["id"])


def moved(check, made):
    """Attach, move and detach under traffic: the old connections end, the new owner gets nothing of
    them, and connections of its own at once."""
    red, internet = made.red, made.fabric.internet
    web1, web2 = red.tenants["web1"], red.tenants["web2"]
    elastic = red.elastic_ip()
    address = elastic["address"]
    uplink = check.capture_uplink("moved")
    at_host2 = check.capture_host(1, red, point="moved-host2")
    servers = [program.traffic(tenant.space, "echo", 9001) for tenant in (web1, web2)]
    inwards = program.traffic(internet, "talk", "inwards", address, 9001, "--seconds", 6)
    outwards = program.traffic(internet, "echo", 9002)
    talking = program.traffic(web1.space, "talk", "outwards", made.fabric.far_address, 9002,
                              "--seconds", 6)
    time.sleep(1)
    red.api.update("elastic-ips", elastic["id"], endpoint_id=red.endpoints["web2"]["id"])
    fresh = program.traffic(internet, "talk", "fresh", address, 9001, "--seconds", 2)
    done = fresh.wait(10)
    check.fact("a new connection after the move", "more than 50 rounds with the new owner",
               f"{done.get('rounds')} rounds", done.get("rounds", 0) > 50, at_host2)
    for name, talk in (("inwards", inwards), ("outwards", talking)):
        result = talk.wait(15)
        check.fact(f"the old connection {name}", "ended by the move, after more than 20 rounds",
                   f"{result.get('rounds')} rounds, then {result.get('error')}",
                   result.get("rounds", 0) > 20 and result.get("error"), uplink)
    del servers, outwards
    at_host2.stop()
    inherited = pcap.tags(at_host2.path).get("inwards", 0)
    check.equal("segments of the old connection at the new owner", 0, inherited, at_host2)
    red.api.update("elastic-ips", elastic["id"], endpoint_id=red.endpoints["web1"]["id"])
    uplink.stop()
    check.equal("private addresses on the uplink", 0, pcap.count(uplink.path, PRIVATE), uplink)


def shared_bandwidth(check, made):
    """Two elastic IPs of one bandwidth: together they get what it says, in each direction."""
    red, internet = made.red, made.fabric.internet
    limit = red.api.create("bandwidths", wait=0, name="office", mbps=int(ASKED))
    first = red.elastic_ip()
    second = red.api.create("elastic-ips", name="second", bandwidth_id=limit["id"],
                            endpoint_id=red.endpoints["web2"]["id"])
    red.api.update("elastic-ips", first["id"], bandwidth_id=limit["id"])
    pairs = [(red.tenants["web1"], first["address"]), (red.tenants["web2"], second["address"])]
    out = check.capture_uplink("shared-out",
                               filter=" or ".join(f"src host {public}" for _, public in pairs))
    inside = [check.capture_host(index, red, point=f"shared-in{index + 1}",
                                 filter=f"dst host {tenant.ip}")
              for index, (tenant, _) in enumerate(pairs)]
    receivers = [program.traffic(space, "receive", port)
                 for space in (internet, *(tenant.space for tenant, _ in pairs))
                 for port in (9000, 9001)]
    senders = []
    rate = ["--rate", 900, "--size", 1400, "--seconds", SECONDS]  # 10 Mbit/s each
    for tenant, public in pairs:
        for port in (9000, 9001):
            senders.append(program.traffic(tenant.space, "send", "bw", made.fabric.far_address,
                                           port, *rate))
            senders.append(program.traffic(internet, "send", "bw", public, port, *rate))
    for sender in senders:
        sender.wait(SECONDS + 10)
    for receiver in receivers:
        receiver.result()
    for capture in (out, *inside):
        capture.stop()
    directions = {
        "out": [pcap.ip_rate(out.path, source=frames.ip(public))[0] for _, public in pairs],
        "in": [pcap.ip_rate(capture.path, destination=frames.ip(tenant.ip))[0]
               for capture, (tenant, _) in zip(inside, pairs)]}
    for direction, rates in directions.items():
        both = sum(rates)
        check.fact(f"both {direction}, of 40 Mbit/s sent",
                   f"{ASKED * 0.95:.1f} to {ASKED * 1.05:.1f} Mbit/s",
                   f"{rates[0]:.2f} + {rates[1]:.2f} = {both:.2f} Mbit/s",
                   ASKED * 0.95 <= both <= ASKED * 1.05 and min(rates) > 0,
                   out if direction == "out" else inside[0])
    shown = red.api.get("bandwidths", limit["id"])
    check.equal("its elastic IPs", sorted((first["id"], second["id"])),
                sorted(shown["elastic_ip_ids"]))
    red.api.update("elastic-ips", first["id"], bandwidth_id=None)
    red.api.delete("elastic-ips", second["id"])
    red.api.delete("bandwidths", limit["id"])


# The last one restarts the gateway, which then picks connections up mid-stream for a while.
CASES = (moved, shared_bandwidth, announced)


def main():
    try:
        with lab.Lab("sluice-public", captures=shell.BUILD / "test-logs/public") as raised:
            raised.start_product()
            made = world.World(raised)
            for number, case in enumerate(CASES):
                name = "topology/public/" + case.__name__.replace("_", "-")
                done = Check(number, name, made).run(case)
                print(f"ok {name} ({done.line()})" if done.passed
                      else f"not ok {name}: {done.line()}", flush=True)
    except shell.LabError as error:
        print(f"not ok topology/public: {error}", flush=True)


if __name__ == "__main__":
    main()
