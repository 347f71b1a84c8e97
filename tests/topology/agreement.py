#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Controller and gateway agree again whatever came between them: another writer, a lost state, a refusal."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import lab, product, rest, shell  # noqa: E402


class Agreement:
    def __init__(self, made):
        self.made, self.admin = made, made.controller.client("admin")
        self.host = self.admin.create("hosts", name="host1", vteps=[made.fabric.hosts[0].local])
        self.vpc = self.admin.create("vpcs", cidrs=["10.0.0.0/16"])
        self.subnet = self.admin.create("subnets", vpc_id=self.vpc["id"], cidr="10.0.1.0/24")
        self.endpoints = [self.admin.create("endpoints", subnet_id=self.subnet["id"],
                                            host_id=self.host["id"]) for _ in range(3)]

    def ofctl(self, command, *arguments):
        return shell.run("ovs-ofctl", "-O", "OpenFlow13", command, self.made.gateway.listen,
                         *arguments).stdout

    def entries(self):
        """All that the gateway holds but the ports, which are its own."""
        lines = self.ofctl("dump-flows", "--no-stats").splitlines()
        return sorted(line.strip() for line in lines if "tab" in line and "table=0," not in line)

    def foreign(self):
        return product.total(self.made.controller.metrics(),
                             "sluice_controller_foreign_changes_total", gateway="gw1")

    def another_writer_is_put_right(self):
        wanted, before = self.entries(), self.foreign()
        self.ofctl("del-flows", "table=12")
        self.ofctl("add-flow", "table=16,reg9=99,actions=set_field:0xffffc0000263->xxreg3")
        assert self.entries() != wanted, "the other writer changed nothing"
        shell.wait_until(lambda: self.entries() == wanted, 5, "the tables as they should be")
        shell.wait_until(lambda: self.foreign() > before, 5, "the count of foreign changes")
        return f"{len(wanted)} entries; found {self.foreign() - before:.0f} times"

    def a_gateway_that_lost_its_state_is_given_it_again(self):
        wanted, gateway = self.entries(), self.made.gateway
        gateway.daemon.stop()
        shutil.rmtree(gateway.state_dir)
        gateway.daemon.start()
        shell.wait_until(lambda: self.entries() == wanted, 10, "the tables as they should be")
        return f"{len(wanted)} entries"

    def a_refused_elastic_ip_is_an_error_of_its_own(self):
        """The broadcast address of the uplink's prefix, from a block that does not say so."""
        self.made.wait_connected()
        self.admin.create("external-pools", wait=0, cidr="203.0.113.240/28", mode="routed")
        self.admin.create("external-pools", wait=0, cidr=self.made.fabric.pool, mode="routed")
        first, second, third = (endpoint["id"] for endpoint in self.endpoints)
        bad = self.admin.request("POST", "/v1/elastic-ips?wait=10", {
            "address": "203.0.113.255", "endpoint_id": first})
        status = bad["status"]
        assert status["state"] == "error" and "203.0.113.255" in status["reason"], status
        pool = next(pool["id"] for pool in self.admin.list("external-pools")
                    if pool["cidr"] == self.made.fabric.pool)
        for endpoint in (second, third):  # what comes after it is in force
            self.admin.create("elastic-ips", pool_id=pool, endpoint_id=endpoint)
        self.admin.update("subnets", self.subnet["id"], mtu=1400)
        assert self.admin.get("elastic-ips", bad["id"])["status"]["state"] == "error"
        assert not any("203.0.113.255" in entry for entry in self.entries())
        self.admin.delete("elastic-ips", bad["id"])
        self.admin.create("elastic-ips", pool_id=pool, endpoint_id=first)
        return status["reason"]

    def what_the_gateway_has_itself_cannot_be_asked_for(self):
        wanted = self.made.fabric.internet_address  # its next hop
        try:
            self.admin.request("POST", "/v1/elastic-ips", {"address": wanted})
        except rest.Problem as problem:
            assert problem.status == 422 and "/address" in str(problem), str(problem)
            return str(problem)
        raise AssertionError(f"{wanted} was given out")


CASES = (Agreement.another_writer_is_put_right,
         Agreement.a_gateway_that_lost_its_state_is_given_it_again,
         Agreement.a_refused_elastic_ip_is_an_error_of_its_own,
         Agreement.what_the_gateway_has_itself_cannot_be_asked_for)


def main():
    try:
        with lab.Lab("sluice-agreement", captures=shell.BUILD / "test-logs/agreement") as made:
            made.start_product(compare_seconds=1)
            trials = Agreement(made)
            for case in CASES:
                name = "topology/agreement/" + case.__name__.replace("_", "-")
                try:
                    print(f"ok {name} ({case(trials)})", flush=True)
                except (shell.LabError, AssertionError) as error:
                    print(f"not ok {name}: {error}".replace("\n", " "), flush=True)
    except shell.LabError as error:
        print(f"not ok topology/agreement: {error}", flush=True)


if __name__ == "__main__":
    main()
