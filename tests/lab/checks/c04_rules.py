# SPDX-License-Identifier: Apache-2.0
"""No rule, no traffic; one rule opens one port; without it an established connection stops."""
import time

from lab import frames, pcap, program

TITLE = "security group rules"


def closed(answer):
    """Whether program.connects() says that nothing came back."""
    return answer.startswith("no:")


def word(answer):
    return "closed" if closed(answer) else answer


def let_through(capture, tenant, when, marker):
    """Frames to the tenant's MAC that carry the marker and came after the moment (wall clock)."""
    mac = frames.mac(tenant.mac)
    return sum(1 for seen, data in pcap.packets(capture.path)
               if seen > when and data[:6] == mac and marker in data)


def run(check, world):
    red = world.red
    web1, web2, web3 = (red.tenants[name] for name in ("web1", "web2", "web3"))
    db1 = red.tenants["db1"]
    locked = red.group("locked")
    red.join("web2", locked)
    pids = [world.lab.gateway.daemon.process.pid, world.lab.controller.daemon.process.pid]
    capture = check.capture_host(1, red)
    with program.traffic(web2.space, "echo", 8080), program.traffic(web2.space, "echo", 8081):
        inside = program.connects(web1.space, web2.ip, 8080, 0.7)
        across = program.connects(db1.space, web2.ip, 8080, 0.7)
        check.fact("without a rule", "no connection inside the subnet nor across",
                   f"inside {word(inside)}, across {word(across)}", closed(inside) and closed(across))

        rule = red.add_rule(locked, direction="ingress", action="allow", family="ipv4",
                            protocol="tcp", port_min=8080, port_max=8080,
                            remote_cidr=f"{web1.ip}/32")
        opened = program.connects(web1.space, web2.ip, 8080)
        other_port = program.connects(web1.space, web2.ip, 8081, 0.7)
        other_source = program.connects(web3.space, web2.ip, 8080, 0.7)
        check.fact("with a rule for tcp 8080 from web1", "8080 open, 8081 and web3 not",
                   f"8080 {word(opened)}, 8081 {word(other_port)}, web3 {word(other_source)}",
                   opened == "open" and closed(other_port) and closed(other_source))

        with program.traffic(web1.space, "talk", "c4", web2.ip, 8080) as talk:
            time.sleep(0.5)
            red.remove_rule(locked, identity(rule))
            removed = time.time()
            ended = talk.wait(10)
        capture.stop()
        late = let_through(capture, web2, removed, b"sluice-tag:c4")
        check.fact("rule removed under an established connection",
                   "cut: 0 packets let through after the API's answer",
                   f"{late} let through, {ended['rounds']} rounds before, then {ended['error']}",
                   late == 0 and ended["rounds"] > 5 and ended["error"], capture)

        red.add_rule(locked, direction="ingress", action="allow", family="ipv4", protocol="tcp",
                     port_min=8080, port_max=8080, remote_cidr=f"{web1.ip}/32")
        again = program.connects(web1.space, web2.ip, 8080)
        same = pids == [world.lab.gateway.daemon.process.pid,
                        world.lab.controller.daemon.process.pid]
        check.fact("rule added back", "open, nothing restarted", f"{again}, same processes: {same}",
                   again == "open" and same)
    red.join("web2", red.default_group())


def identity(answer):
    """The rule's id, from an answer that is the rule or its group."""
    return answer["rules"][-1]["id"] if "rules" in answer else answer["id"]
