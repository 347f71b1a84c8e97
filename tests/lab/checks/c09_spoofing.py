# SPDX-License-Identifier: Apache-2.0
"""Forged frames, each dropped under its own reason; a live connection they imitate is untouched."""
import time

from lab import ctl, frames, netns, pcap, program, shell

TITLE = "spoofing and isolation"
COPIES = 10


def outer(fabric, host_mac, vtep):
    return host_mac, fabric.gateway_mac, vtep, fabric.gateway_vtep


def inner_of(path, tenant, peer):
    """A data frame of the live connection as it left the host, without its outer headers."""
    for _, data in pcap.packets(path):
        frame = data[50:]
        if (frame[6:12] == frames.mac(tenant.mac) and frame[30:34] == frames.ip(peer.ip)
                and b"sluice-tag:c9" in frame):
            return frame
    raise shell.LabError("the live connection's packets are not in the capture")


def run(check, world):
    fabric, red, blue = world.fabric, world.red, world.blue
    host1, host2 = fabric.hosts
    web1, web2 = red.tenants["web1"], red.tenants["web2"]
    other_mac = "02:66:66:66:66:66"
    ping = frames.echo(7, 1, b"forged")

    def frame(mac, source):
        return frames.ether(mac, web2.mac, 0x0800, frames.ipv4(source, web2.ip, 1, ping))

    from_host1 = outer(fabric, host1.mac, host1.vtep)
    from_host2 = outer(fabric, host2.mac, host2.vtep)
    from_rogue = outer(fabric, "02:00:0a:ff:00:66", "10.255.0.66")
    send1 = netns.packet_socket(host1.space, "u0")
    send2 = netns.packet_socket(host2.space, "u0")
    rogue = netns.packet_socket(fabric.rogue, "u0")
    honest = frame(web1.mac, web1.ip)
    with program.traffic(web2.space, "echo", 9009), \
            check.capture_underlay("live", packets=200) as seen:
        talk = program.traffic(web1.space, "talk", "c9", web2.ip, 9009, "--every", 4,
                               "--seconds", 7)
        time.sleep(0.5)
        seen.stop()
        live = inner_of(seen.path, web1, web2)
        stolen = live[:6] + frames.mac(other_mac) + live[12:]
        forged = [
            ("spoofed MAC", "spoofed_mac", send1, from_host1, red.vni, frame(other_mac, web1.ip)),
            ("spoofed IP", "spoofed_ip", send1, from_host1, red.vni, frame(web1.mac, "10.0.1.77")),
            ("unknown VNI", "unknown_vni", send1, from_host1, 0xabcdef, honest),
            ("unknown VTEP", "unknown_vtep", rogue, from_rogue, red.vni, honest),
            ("live, another MAC", "spoofed_mac", send1, from_host1, red.vni, stolen),
            ("live, another VTEP", "spoofed_vtep", send2, from_host2, red.vni, live),
            ("live, another VNI", "spoofed_mac", send1, from_host1, blue.vni, live)]
        before = flow_counters(world, web1, web2)
        counter = check.capture_host(1, red)
        for what, reason, sender, underlay, vni, inner in forged:
            earlier = drops(world).get(reason, 0)
            for _ in range(COPIES):
                sender.send(frames.encapsulated(underlay, vni, inner))

            def counted():
                return drops(world).get(reason, 0) - earlier >= COPIES
            try:
                shell.wait_until(counted, 2, reason, step=0.1)
            except shell.Timeout:
                pass
            check.equal(what, f"{COPIES} {reason}",
                        f"{drops(world).get(reason, 0) - earlier} {reason}")
        counter.stop()
        after = flow_counters(world, web1, web2)
        check.fact("the live flow's counters", "unmoved", f"{before} then {after}",
                   before and before == after)
        let_in = sum(1 for _, data in pcap.packets(counter.path)
                     if data[:6] == frames.mac(web2.mac) and b"forged" in data)
        check.equal("forged packets that reached web2", 0, let_in, counter)
        rounds = talk.wait(15)
        check.fact("the live connection", "lives on", f"{rounds['rounds']} rounds, "
                   f"{rounds['error'] or 'no error'}", rounds["rounds"] >= 2)
    for opened in (send1, send2, rogue):
        opened.close()


def drops(world):
    """{reason: packets} over all VPCs and gateways, by `sluicectl drops`."""
    found = {}
    for item in ctl.json(world, "admin", "drops"):
        found[item["reason"]] = found.get(item["reason"], 0) + item["packets"]
    return found


def flow_counters(world, source, destination):
    """The live connection's packet and octet counts, both directions, by `sluicectl flows`."""
    for item in ctl.json(world, "red", "flows", "--endpoint", "web1"):
        if (item["source"], item["destination"], item["destination_port"]) == (
                source.ip, destination.ip, 9009):
            return tuple(item[way][what] for way in ("forward", "reverse")
                         for what in ("packets", "bytes"))
    return None
