# SPDX-License-Identifier: Apache-2.0
"""One project's token neither sees nor changes another project's objects, nor names them."""
from lab import rest

TITLE = "projects apart"


def status(call, *words, **fields):
    try:
        call(*words, **fields)
    except rest.Problem as problem:
        return problem.status
    return 200


def run(check, world):
    red, blue = world.red, world.blue
    owned = {"vpcs": red.vpc, "subnets": red.subnets["front"], "endpoints": red.endpoints["web1"],
             "security-groups": red.default_group(), "elastic-ips": red.elastic_ip(),
             "route-tables": red.routes}
    seen, shown, changed, deleted = [], [], [], []
    for kind, thing in owned.items():
        if any(item["id"] == thing["id"] for item in blue.api.list(kind)):
            seen.append(kind)
        if (got := status(blue.api.get, kind, thing["id"])) != 404:
            shown.append((kind, got))
        if (got := status(blue.api.update, kind, thing["id"], wait=0, description="mine")) != 404:
            changed.append((kind, got))
        if (got := status(blue.api.request, "DELETE", f"/v1/{kind}/{thing['id']}")) != 404:
            deleted.append((kind, got))
    kinds = f"404 for each of {len(owned)} kinds"
    check.equal("listed to the other", "nothing", ", ".join(seen) or "nothing")
    check.fact("read, changed, deleted by the other", kinds,
               kinds if not shown + changed + deleted else f"{shown} {changed} {deleted}",
               not shown + changed + deleted)
    named = status(blue.api.create, "endpoints", wait=0, name="thief", kind="vm",
                   subnet_id=red.subnets["front"]["id"])
    check.equal("named in a reference", 404, named)
    for what, got in (("no token", status(rest.Client(world.lab.controller.base).list, "vpcs")),
                      ("a wrong token", status(rest.Client(world.lab.controller.base, "no").list,
                                               "vpcs"))):
        check.equal(what, 401, got)
    still = red.api.get("vpcs", red.vpc["id"])
    check.equal("version of the VPC afterwards", red.vpc["version"], still["version"])
