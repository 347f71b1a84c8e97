# SPDX-License-Identifier: Apache-2.0
"""An elastic IP inwards, outwards, moved under traffic, detached; the private address stays inside."""
import json
import time

from lab import netns, pcap, program, shell
from .c04_rules import let_through

TITLE = "elastic IP"
WHOAMI = shell.ROOT / "tests/lab/whoami.py"
PRIVATE = ("ip.addr == 10.0.0.0/8 || arp.src.proto_ipv4 == 10.0.0.0/8 || "
           "arp.dst.proto_ipv4 == 10.0.0.0/8 || ipv6.addr == fc00::/7")


def web_server(tenant):
    return program.Program(tenant.space, "/usr/bin/python3", WHOAMI, tenant.name, 80,
                           wait_for="ready")


def curl(space, address):
    """What whoami.py behind the address says, or {"error": …}."""
    done = netns.execute(space, "curl", "-sS", "-m", 3, f"http://{address}/", check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"error": done.stderr.strip()}


def run(check, world):
    red, internet = world.red, world.fabric.internet
    web1, web2 = red.tenants["web1"], red.tenants["web2"]
    uplink = check.capture_uplink()
    at_host2 = check.capture_host(1, red)
    elastic = red.elastic_ip()
    address = elastic["address"]
    with web_server(web1), program.Program(internet, "/usr/bin/python3", WHOAMI, "internet", 80,
                                           wait_for="ready"):
        inwards = curl(internet, address)
        check.fact("curl from the internet", f"red-web1, from {world.fabric.internet_address}",
                   f"{inwards}", inwards == {"host": "red-web1",
                                             "peer": world.fabric.internet_address}, uplink)
        outwards = curl(web1.space, world.fabric.far_address)
        check.fact("curl outwards is seen as", address, f"{outwards}",
                   outwards == {"host": "internet", "peer": address}, uplink)

    receivers = [program.traffic(tenant.space, "receive", 9000) for tenant in (web1, web2)]
    sender = program.traffic(internet, "send", "move", address, 9000, "--rate", 1000)
    time.sleep(0.8)
    red.api.update("elastic-ips", elastic["id"], endpoint_id=red.endpoints["web2"]["id"])
    time.sleep(0.8)
    red.api.update("elastic-ips", elastic["id"], endpoint_id=None)
    detached = time.time()
    time.sleep(0.5)
    sent = sender.result()["sent"]
    first, second = (receiver.result() for receiver in receivers)
    at_host2.stop()
    uplink.stop()
    gap = (second["first"] or 0) - (first["last"] or 0)
    check.fact("moved under traffic", "both got packets, less than 100 ms between",
               f"{first['total']} then {second['total']} of {sent}, {gap * 1000:.1f} ms between",
               first["total"] > 300 and second["total"] > 300 and 0 <= gap < 0.1, uplink)
    late = let_through(at_host2, web2, detached, b"sluice-tag:move")
    check.equal("packets let through after the detach", 0, late, at_host2)
    public = pcap.count(uplink.path, f"ip.addr == {address}")
    check.fact("packets of the elastic address on the uplink", "more than 1000", public, public > 1000,
               uplink)
    leaked = pcap.count(uplink.path, PRIVATE)
    check.equal("private addresses on the uplink", 0, leaked, uplink)
    red.api.update("elastic-ips", elastic["id"], endpoint_id=red.endpoints["web1"]["id"])
