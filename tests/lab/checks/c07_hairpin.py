# SPDX-License-Identifier: Apache-2.0
"""An endpoint reaches its own elastic IP and its neighbour's, and is seen with its own."""
from lab import pcap, program
from .c06_elastic_ip import PRIVATE, curl, web_server

TITLE = "hairpin through elastic IPs"


def run(check, world):
    red = world.red
    web1, web2 = red.tenants["web1"], red.tenants["web2"]
    uplink = check.capture_uplink()
    check.capture_underlay()
    own = red.elastic_ip()["address"]
    second = red.api.create("elastic-ips", name="web2",
                            endpoint_id=red.endpoints["web2"]["id"])
    with web_server(web1), web_server(web2):
        for what, address, host in (("own elastic IP", own, "red-web1"),
                                    ("neighbour's elastic IP", second["address"], "red-web2")):
            answer = curl(web1.space, address)
            check.fact(what, f"{host}, from {own}", f"{answer}",
                       answer == {"host": host, "peer": own})
    red.api.delete("elastic-ips", second["id"])
    uplink.stop()
    check.equal("private addresses on the uplink", 0, pcap.count(uplink.path, PRIVATE), uplink)
