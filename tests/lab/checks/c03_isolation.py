# SPDX-License-Identifier: Apache-2.0
"""Two tenants with the same addresses at the same time: neither ever sees the other's packets."""
from lab import pcap, program

TITLE = "tenants with equal addresses"
COUNT, RATE = 12000, 4000


def run(check, world):
    projects = (world.red, world.blue)
    captures = {project.name: check.capture_host(1, project) for project in projects}
    receivers, senders = [], []
    for project in projects:
        receivers.append(program.traffic(project.tenants["web2"].space, "receive", 9000))
    for project in projects:
        peer = project.tenants["web2"]
        senders.append(program.traffic(project.tenants["web1"].space, "send", project.name, peer.ip,
                                       9000, "--rate", RATE, "--count", COUNT))
    for sender in senders:
        sender.wait(30)
    counted = [receiver.result() for receiver in receivers]
    addresses = [[(tenant.ip, tenant.ipv6) for tenant in (project.tenants["web1"],
                                                          project.tenants["web2"])]
                 for project in projects]
    check.fact("the two tenants' addresses", "the same",
               " = ".join(f"{a[0][0]} > {a[1][0]}" for a in addresses), addresses[0] == addresses[1])
    for project in projects:
        captures[project.name].stop()
    spans = [pcap.tag_span(captures[project.name].path, project.name) for project in projects]
    together = min(span[1] for span in spans) - max(span[0] for span in spans)
    check.fact("at the same time", "at least 2 s", f"{together:.1f} s together", together >= 2)
    for project, result in zip(projects, counted):
        capture = captures[project.name]
        found = pcap.tags(capture.path)
        own = found.pop(project.name, 0)
        check.fact(f"{project.name}'s capture holds", "at least 10000 of its own and 0 of others",
                   f"{own} of its own and {sum(found.values())} of others",
                   own >= 10000 and not found, capture)
        others = sum(entry["count"] for tag, entry in result["tags"].items()
                     if tag != project.name)
        check.equal(f"{project.name}'s socket got of others", 0, others)
