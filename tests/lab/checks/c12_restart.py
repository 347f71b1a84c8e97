# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the gateway and of the controller under traffic: sessions survive, nothing is resent."""
import re
import time

from lab import pcap, program, shell
from .c06_elastic_ip import PRIVATE

TITLE = "kill -9"
BYTES, MBPS = 5_000_000, 10


def run(check, world):
    gateway, controller = world.lab.gateway.daemon, world.lab.controller.daemon
    public = world.red.elastic_ip()["address"]
    # Nothing private leaves, not even while the gateway comes back.
    uplink = check.capture_uplink()
    kill_gateway(check, world, public, "gateway killed")
    uplink.stop()
    check.equal("private addresses on the uplink", 0, pcap.count(uplink.path, PRIVATE), uplink)
    controller.kill()
    kill_gateway(check, world, public, "gateway killed, controller stopped")
    controller.start()
    world.lab.wait_connected()
    kill_controller(check, world)
    check.equal("both run", True, gateway.running and controller.running)


def kill_gateway(check, world, public, how):
    """Restart under traffic: a probe measures when packets flow again, transfers must be exact."""
    red, gateway = world.red, world.lab.gateway.daemon
    web1, web2, db1 = (red.tenants[name] for name in ("web1", "web2", "db1"))
    with program.traffic(db1.space, "serve", 9001, "--mbps", MBPS), \
            program.traffic(web1.space, "serve", 9001, "--mbps", MBPS):
        plain = program.traffic(web2.space, "fetch", db1.ip, 9001, BYTES)
        elastic = program.traffic(world.fabric.internet, "fetch", public, 9001, BYTES)
        arriving = program.traffic(db1.space, "receive", 9000)
        probe = program.traffic(web1.space, "send", "probe", db1.ip, 9000, "--rate", 500)
        time.sleep(1)
        gateway.kill()
        time.sleep(0.3)
        gateway.launch()
        launched = gateway.started
        results = [fetch.wait(40) for fetch in (plain, elastic)]
        probe.result()
        arrived = arriving.result()
    back = arrived["gap_end"] - launched if arrived["gap_end"] else None
    check.fact(f"{how}: forwarding again", "within 2 s of its restart",
               f"{back:.2f} s" if back is not None else "never", back is not None and back < 2)
    for name, got in (("plain", results[0]), ("elastic IP", results[1])):
        # The stall shows that the transfer was under way when the gateway died.
        check.fact(f"{name} transfer", f"{BYTES} bytes, exact, in spite of the outage",
                   f"exact: {got['exact']}, longest stall {got['stall']:.1f} s"
                   + (f", {got['error']}" if got["error"] else ""),
                   got["exact"] and got["stall"] >= 0.25)


def kill_controller(check, world):
    """No packet is lost, and after the restart the gateway's generation has not moved."""
    red, controller = world.red, world.lab.controller.daemon
    web1, db1 = red.tenants["web1"], red.tenants["db1"]
    before = state(world)
    arriving = program.traffic(db1.space, "receive", 9000)
    probe = program.traffic(web1.space, "send", "probe", db1.ip, 9000, "--rate", 2000)
    time.sleep(0.5)
    controller.kill()
    time.sleep(0.5)
    controller.start()
    world.lab.wait_connected()
    time.sleep(1)
    sent = probe.result()["sent"]
    time.sleep(0.2)
    got = arriving.result()["total"]
    check.equal("controller killed: packets lost", 0, sent - got)
    after = state(world)
    # The controller says what the comparison of all tables came to.
    log = controller.log.read_text(encoding="utf-8", errors="replace")
    put, removed = re.findall(r"(\d+) entries put, (\d+) removed", log)[-1]
    check.equal("sent again to the gateway", f"0 put, 0 removed, generation {before}",
                f"{put} put, {removed} removed, generation {after}")
    red.join("web3", red.default_group())
    received, _ = program.ping(web1.space, red.tenants["web3"].ip)
    check.equal("and it still obeys: pings after a change", 3, received)


def state(world):
    """The gateway's generation: every bundle it is sent moves it."""
    def known():
        items = world.admin.list("gateways")
        return items and items[0]["state"] == "active" and items[0]["generation"]
    return shell.wait_until(known, 5, "the gateway's generation", step=0.1)
