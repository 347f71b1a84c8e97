# SPDX-License-Identifier: Apache-2.0
"""A rule that names a group: whoever joins is let in, whoever leaves is cut."""
import time

from lab import program
from .c04_rules import closed, let_through, word

TITLE = "a rule that names a group"


def run(check, world):
    red = world.red
    db1, web2 = red.tenants["db1"], red.tenants["web2"]
    default = red.default_group()
    clients = red.group("db-clients")
    database = red.group("database", {
        "direction": "ingress", "action": "allow", "family": "ipv4", "protocol": "tcp",
        "port_min": 5432, "port_max": 5432, "remote_group_id": clients["id"]})
    red.join("db1", database)
    capture = check.capture_host(1, red)
    with program.traffic(db1.space, "echo", 5432):
        before = program.connects(web2.space, db1.ip, 5432, 0.7)
        check.fact("outside the group", "closed", word(before), closed(before))
        red.join("web2", default, clients)
        with program.traffic(web2.space, "talk", "c5", db1.ip, 5432) as talk:
            time.sleep(0.5)
            red.join("web2", default)
            left = time.time()
            ended = talk.wait(10)
        check.fact("joined", "let in", f"{ended['rounds']} rounds", ended["rounds"] > 5)
        capture.stop()
        late = let_through(capture, db1, left, b"sluice-tag:c5")
        after = program.connects(web2.space, db1.ip, 5432, 0.7)
        check.fact("left", "cut: 0 packets let through, no new connection",
                   f"{late} let through, {ended['error']}, then {word(after)}",
                   late == 0 and ended["error"] and closed(after), capture)
    red.join("db1", default)
