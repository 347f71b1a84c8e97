# SPDX-License-Identifier: Apache-2.0
"""`sluicectl explain` names what decided: the rule, its group and the route."""
from lab import ctl

TITLE = "explain"


def run(check, world):
    red = world.red
    web1, db1 = red.tenants["web1"], red.tenants["db1"]
    group = red.group("ledger", {
        "direction": "ingress", "action": "allow", "family": "ipv4", "protocol": "tcp",
        "port_min": 7000, "port_max": 7000, "remote_cidr": "10.0.1.0/24"})
    red.add_rule(group, direction="ingress", action="deny", family="ipv4", protocol="tcp",
                 port_min=7002, port_max=7002, remote_cidr="10.0.1.0/24")
    red.join("db1", group)
    rule = "ledger: ingress allow tcp 7000 from 10.0.1.0/24"
    refusing = "ledger: ingress deny tcp 7002 from 10.0.1.0/24"
    asked = ["explain", "--vpc", "red-vpc", "--source", web1.ip, "--destination", db1.ip,
             "--protocol", "tcp", "--destination-port"]
    allowed = ctl.text(world, "red", *asked, 7000)
    denied = ctl.text(world, "red", *asked, 7001)
    by_rule = ctl.text(world, "red", *asked, 7002)
    outwards = ctl.text(world, "red", "explain", "--vpc", "red-vpc", "--source", web1.ip,
                        "--destination", world.fabric.far_address, "--protocol", "tcp",
                        "--destination-port", 443)
    check.note("explain", "\n".join((allowed, denied, by_rule, outwards)))
    for what, said, names in (
            ("allowed", allowed, ["allowed", rule, "route_table main"]),
            ("denied, no rule", denied, ["denied", "ingress_no_rule", "ledger", "route_table main"]),
            ("denied by a rule", by_rule, ["denied", refusing, "route_table main"]),
            ("to the internet", outwards, ["route_table main: 0.0.0.0/0"])):
        missing = [name for name in names if name not in said]
        check.fact(what, "names " + ", ".join(names),
                   f"missing: {', '.join(missing)}" if missing else "names " + ", ".join(names),
                   not missing)
    red.join("db1", red.default_group())
